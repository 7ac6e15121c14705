//! The server flags as a target and what the preflight is to find out.

use crate::args::target::{API_KEY_ENV, AccessArgs, ClientArgs, Endpoint, Prompts, SamplerArgs, TargetArgs};
use crate::outcome::{unreachable, usage};
use crate::printer;
use anyhow::Result;
use precipice_drive::preflight::{PromptChoice, ReadyWait, Wants};
use precipice_drive::{
    Load, MetricsSource, PreflightError, Retries, Schedule, Secret, Stop, Target, TargetOptions, Timeouts,
};
use precipice_workload::{Facts, Load as PlannedLoad, Plan, Seconds};
use serde_json::{Map, Value};
use std::time::Duration;

/// Resolves where to send requests. The name is looked up; nothing is sent.
pub(crate) fn options(args: &TargetArgs, url: &str) -> Result<TargetOptions> {
    let endpoint = match args.endpoint {
        Endpoint::Completions => precipice_wire::openai::Endpoint::Completions,
        Endpoint::Chat => precipice_wire::openai::Endpoint::Chat,
    };
    Ok(TargetOptions { endpoint, ..access(&args.access, url)? })
}

/// As [`options`], for a server that is only to be asked what it is.
pub(crate) fn access(args: &AccessArgs, url: &str) -> Result<TargetOptions> {
    Ok(TargetOptions {
        url: url.to_owned(),
        headers: args.header.iter().map(|header| split(header)).collect::<Result<_>>()?,
        api_key: api_key(&args.api_key_env)?,
        ca_cert: args.ca_cert.clone(),
        insecure: args.insecure,
        ..TargetOptions::default()
    })
}

/// The key that a variable holds. One that was named must be set.
fn api_key(variable: &str) -> Result<Option<Secret>> {
    match std::env::var(variable).map(|key| key.trim().to_owned()) {
        Ok(key) if !key.is_empty() => Ok(Some(Secret::new(key))),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(usage(format!("--api-key-env {variable}: its value is no text that can be sent")))
        }
        _ if variable == API_KEY_ENV => Ok(None),
        _ => Err(usage(format!("--api-key-env {variable}: that variable is not set, or empty"))),
    }
}

/// Resolves the target itself.
pub(crate) fn target(options: &TargetOptions) -> Result<Target> {
    Target::new(options).map_err(usage)
}

/// What the preflight is to find out, and what the load needs of the server.
pub(crate) fn wants(
    args: &TargetArgs,
    sampler: &SamplerArgs,
    options: &TargetOptions,
    plan: &Plan,
    facts: &Facts,
) -> Result<Wants> {
    Ok(Wants {
        model: args.model.model.clone(),
        prompts: match args.prompts {
            Prompts::Auto => PromptChoice::Auto,
            Prompts::Ids => PromptChoice::Ids,
            Prompts::Text => PromptChoice::Text,
        },
        vocabulary: args.vocabulary,
        longest: facts.input_tokens.zip(facts.output_tokens).map(|(input, output)| (input.max, output.max)),
        in_flight: plan.spec().load.concurrency(),
        ignore_eos: !args.allow_eos,
        extra: extra_body(args)?,
        metrics: sampler.metrics_url.iter().map(|url| metrics(url, options)).collect::<Result<_>>()?,
        no_metrics: sampler.no_metrics,
        ready: ReadyWait {
            limit: args.ready_timeout.unwrap_or(ReadyWait::default().limit),
            for_start: args.ready_timeout.is_some(),
            note: Some(printer::note),
        },
        at_most: facts.requests,
    })
}

/// What the preflight says, with the exit code that belongs to it: a flag is wrong, or the server is.
pub(crate) fn refusal(error: PreflightError) -> anyhow::Error {
    match error {
        PreflightError::UnknownModel { .. }
        | PreflightError::WhichModel(_)
        | PreflightError::TooLong { .. }
        | PreflightError::Files { .. }
        | PreflightError::Ports { .. }
        | PreflightError::NoIds { .. } => usage(error),
        _ => unreachable(error),
    }
}

/// `--metrics-url`
pub(crate) fn metrics(url: &str, options: &TargetOptions) -> Result<MetricsSource> {
    MetricsSource::new(url, options).map_err(|error| usage(metrics_flag(&error.to_string())))
}

/// When to send and how long to wait.
pub(crate) fn load(plan: &Plan, client: &ClientArgs) -> Load {
    let duration = |seconds: Seconds| Duration::from_nanos(seconds.nanos());
    let schedule = match plan.spec().load {
        PlannedLoad::Closed { concurrency, stagger } => {
            Schedule::Closed { clients: concurrency, stagger: stagger.map_or(Duration::ZERO, duration) }
        }
        PlannedLoad::Open { cap: Some(cap), .. } | PlannedLoad::Trace { cap: Some(cap), .. } => {
            Schedule::OpenCapped { cap }
        }
        PlannedLoad::Open { cap: None, .. } | PlannedLoad::Trace { cap: None, .. } => Schedule::Open,
    };
    Load {
        schedule,
        stop: Stop { duration: plan.spec().duration.map(duration), drain: client.drain_timeout },
        timeouts: Timeouts {
            connect: Some(client.connect_timeout),
            first_token: client.patience.first_token_timeout,
            between_tokens: client.token_timeout,
            total: client.patience.timeout.or(Timeouts::default().total),
        },
        retries: Retries {
            most: client.patience.most_retries(),
            style: client.patience.retry_style(),
            ..Retries::default()
        },
        threads: client.client_threads.map_or(0, |threads| threads as usize),
    }
}

fn split(header: &str) -> Result<(String, String)> {
    match header.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(usage(format!("--header '{header}': write it as 'Name: value'"))),
    }
}

fn extra_body(args: &TargetArgs) -> Result<Map<String, Value>> {
    let Some(text) = &args.extra_body else { return Ok(Map::new()) };
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(usage("--extra-body: expected a JSON object, such as '{\"temperature\": 0}'")),
        Err(error) => Err(usage(format!("--extra-body: not JSON: {error}"))),
    }
}

/// Targets are parsed by one function whose messages name `--url`.
fn metrics_flag(message: &str) -> String {
    message.replacen("--url", "--metrics-url", 1)
}

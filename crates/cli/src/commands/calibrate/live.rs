//! The three sweeps of a live server.

use super::options;
use crate::args::calibrate::CalibrateArgs;
use crate::args::target::{ClientArgs, PatienceArgs, RetryHabit, SamplerArgs};
use crate::commands::{directory, live};
use crate::outcome::usage;
use crate::printer;
use crate::resolve;
use crate::resolve::model;
use anyhow::Result;
use precipice_decide::calibrate::{Calibration, Limits, Options, Stage, from_client, stages};
use precipice_drive::Handle;
use precipice_drive::preflight::{Preflight, preflight};
use precipice_record::{Run, ServerFacts};
use precipice_workload::{Plan, Spec};
use std::time::{Duration, Instant};

/// Tokens of a step where neither the server nor the user says: vLLM's default on GPUs below 70 GiB.
const STEP_TOKENS: u32 = 2048;
/// Requests at once, likewise.
const AT_ONCE: u32 = 64;
/// Longest sequence, likewise.
const WINDOW: u32 = 8192;

/// Drives the sweeps and fits a profile to what the client saw.
pub(super) fn from_server(args: &CalibrateArgs, url: &str) -> Result<Calibration> {
    let target_options = resolve::target::options(&args.target, url)?;
    let target = resolve::target::target(&target_options)?;
    let asked = plan(&Stage { requests: 1, ..PROBE }, &directory::salt())?;
    let sampler =
        SamplerArgs { metrics_url: Vec::new(), sample_hz: 1.0, no_metrics: false, server_log: None };
    let wants = resolve::target::wants(&args.target, &sampler, &target_options, &asked, &asked.facts())?;
    let found = preflight(&target, &wants).map_err(resolve::target::refusal)?;
    let served = found.server.model.clone().unwrap_or_default();
    let model = match &args.target.model.model_config {
        Some(text) => model::model("--model-config", text)?,
        None => model::model("--model-config", &served).map_err(|_| {
            usage(format!(
                "the catalog has no model named \"{served}\": give its shape with --model-config NAME|config.json"
            ))
        })?,
    };
    // What a client's loads do not tell is named, and the rest is worth having.
    let options = Options { partial: true, ..options(args, &model, found.server.gpu.as_deref())? };
    let limits = limits(args, &found.server);
    if !args.quiet && args.sweeps.max_num_batched_tokens.or(found.server.max_num_batched_tokens).is_none() {
        printer::note(&format!(
            "note: the server does not say how many tokens a step may have; {STEP_TOKENS} are assumed \
             (--max-num-batched-tokens)"
        ));
    }
    let measured = sweep(args, &found, &stages(&limits))?;
    let requests: u32 = measured.iter().map(|(stage, _)| stage.requests).sum();
    from_client(
        &measured,
        &limits,
        &options,
        &format!("{requests} requests to {served}, seen from the client"),
    )
    .map_err(usage)
}

/// What the preflight asks the server for.
const PROBE: Stage = Stage {
    sweep: precipice_decide::calibrate::Sweep::Prompt,
    clients: 1,
    requests: 1,
    prompt: 64,
    output: 2,
};

fn limits(args: &CalibrateArgs, server: &ServerFacts) -> Limits {
    let kv = server.kv.as_ref();
    let blocks = kv.and_then(|kv| kv.num_gpu_blocks.zip(kv.block_size));
    // The null block belongs to nobody.
    let pool = blocks.map(|(blocks, size)| blocks.saturating_sub(1) * u64::from(size));
    Limits {
        max_num_batched_tokens: args
            .sweeps
            .max_num_batched_tokens
            .or(server.max_num_batched_tokens)
            .unwrap_or(STEP_TOKENS),
        max_num_seqs: args.sweeps.max_num_seqs.or(server.max_num_seqs).unwrap_or(AT_ONCE),
        max_model_len: server.max_model_len.unwrap_or(WINDOW),
        pool_tokens: pool.or(kv.and_then(|kv| kv.tokens)),
        longest_prompt: args.sweeps.longest_prompt,
    }
}

fn plan(stage: &Stage, salt: &str) -> Result<Plan> {
    let spec = Spec::closed(stage.clients, stage.requests, stage.prompt, stage.output);
    // No two stages share a prompt, nor two calibrations: the prefix cache has nothing to give.
    let seed = u64::from(stage.clients) << 32 | u64::from(stage.prompt);
    Plan::new(spec, seed, Some(salt), None).map_err(usage)
}

/// Drives the stages one after another, until the time is over.
fn sweep(args: &CalibrateArgs, found: &Preflight, stages: &[Stage]) -> Result<Vec<(Stage, Run)>> {
    let began = Instant::now();
    let mut measured = Vec::with_capacity(stages.len());
    let mut round = Duration::ZERO;
    // The same loads again, as long as a whole round fits: each narrows the constants.
    while measured.is_empty() || began.elapsed() + round < args.sweeps.budget {
        let begun = Instant::now();
        once(args, found, stages, began, &mut measured)?;
        round = begun.elapsed();
    }
    Ok(measured)
}

/// Drives the stages once.
fn once(
    args: &CalibrateArgs,
    found: &Preflight,
    stages: &[Stage],
    began: Instant,
    measured: &mut Vec<(Stage, Run)>,
) -> Result<()> {
    let salt = directory::salt();
    for (number, stage) in stages.iter().enumerate() {
        if began.elapsed() > args.sweeps.budget {
            printer::note(&format!(
                "{} of {} loads measured in {:.0?}; the rest is left out (--budget)",
                number,
                stages.len(),
                args.sweeps.budget
            ));
            break;
        }
        if !args.quiet {
            printer::note(&format!(
                "{:>3.0} s  {} {}/{}: {} x {} prompt tokens",
                began.elapsed().as_secs_f64(),
                stage.sweep.name(),
                number + 1,
                stages.len(),
                stage.clients,
                stage.prompt
            ));
        }
        measured.push((*stage, drive(&plan(stage, &salt)?, found)?));
    }
    Ok(())
}

fn drive(plan: &Plan, found: &Preflight) -> Result<Run> {
    let client = ClientArgs {
        patience: PatienceArgs {
            timeout: None,
            first_token_timeout: None,
            retries: 0,
            client_retries: RetryHabit::Doubling,
        },
        connect_timeout: Duration::from_secs(10),
        token_timeout: None,
        drain_timeout: None,
        client_threads: None,
        strict: false,
    };
    live::in_memory(found, plan, &client, &Handle::new())
}

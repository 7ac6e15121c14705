//! The flags of a guard as its configuration.

use super::engine::{self, SimulatedServer};
use crate::args::engine::Preset;
use crate::args::guard::{GuardArgs, GuardMode, GuardPolicyArgs, SimulatedGuardArgs, Tokenize};
use crate::commands::live::read_log;
use crate::outcome::usage;
use crate::printer;
use anyhow::Result;
use precipice_admission::Settings;
use precipice_engine::EngineConfig;
use precipice_engine::cost::StepPrior;
use precipice_engine::virtual_time::Guard;
use precipice_guard::{ClassHeader, GuardConfig, Known};
use precipice_record::{Ns, ServerFacts};
use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::time::Duration;

const FLAG: &str = "flag";
const LOG: &str = "--server-log";
const PROFILE: &str = "--profile";

/// What may be admitted.
pub(crate) fn settings(args: &GuardPolicyArgs) -> Settings {
    Settings {
        output_quantile: args.output_quantile,
        ttft_budget: ns(args.ttft_budget),
        max_wait: args.max_wait.map_or(Ns::ZERO, ns),
        expected_output: args.expected_output,
        class_headroom: args.class_headroom,
        ..Settings::default()
    }
}

/// The guard in front of a simulated server; absent where none was asked for.
pub(crate) fn simulated(args: &SimulatedGuardArgs, engine: &EngineConfig) -> Option<Guard> {
    let shadow = match args.guard {
        GuardMode::Off => return None,
        GuardMode::On => false,
        GuardMode::Shadow => true,
    };
    Some(Guard::of(Settings { shadow, ..settings(&args.policy) }, engine))
}

/// Everything about a live guard.
pub(crate) fn config(args: &GuardArgs) -> Result<GuardConfig> {
    let wrong = |what: &str| usage(format!("--listen {}: {what}; write ADDRESS:PORT", args.listen));
    let mut found = args.listen.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?;
    let listen = found.next().ok_or_else(|| wrong("no address"))?;
    Ok(GuardConfig {
        listen,
        urls: args.url.clone(),
        settings: Settings { shadow: args.shadow, ..settings(&args.policy) },
        known: known(args)?,
        class: args.class.as_deref().map(class).transpose()?,
        max_body: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        tokenize: match args.tokenize {
            Tokenize::Auto => precipice_guard::Tokenize::Auto,
            Tokenize::Always => precipice_guard::Tokenize::Always,
            Tokenize::Never => precipice_guard::Tokenize::Never,
        },
        poll: args.poll.max(Duration::from_millis(10)),
        drain: args.drain,
        shed_status: args.shed_status,
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        ca_cert: args.ca_cert.clone(),
        log: Some(Arc::new(printer::note)),
        log_all: args.log_all,
    })
}

/// What flags, the log and a profile say of the servers, in this order.
fn known(args: &GuardArgs) -> Result<Known> {
    let said = args.server_log.as_deref().map(read_log).transpose()?.unwrap_or_default();
    let kv = said.kv.clone().unwrap_or_default();
    let engine = &args.engine;
    let by_flag = |value: Option<u32>| value.map(|value| (value, FLAG));
    let by_log = |value: Option<u32>| value.map(|value| (value, LOG));
    let by_hand = args.kv_tokens.or(engine.num_gpu_blocks_override).is_some();
    // A pool in tokens is one of blocks of one token; the null block that is taken off again is none of its own.
    let tokens = args.kv_tokens.map(|tokens| tokens.saturating_add(1));
    let prior = prior(args)?;
    Ok(Known {
        num_gpu_blocks: by_flag(tokens.or(engine.num_gpu_blocks_override)).or(by_log(blocks(&said))),
        block_size: if args.kv_tokens.is_some() {
            Some((1, FLAG))
        } else if by_hand {
            Some((engine.block_size, FLAG))
        } else {
            by_log(kv.block_size)
        },
        max_model_len: by_flag(engine.max_model_len).or(by_log(said.max_model_len)),
        max_num_seqs: by_flag(engine.max_num_seqs).or(by_log(said.max_num_seqs)),
        max_num_batched_tokens: by_flag(engine.max_num_batched_tokens)
            .or(by_log(said.max_num_batched_tokens)),
        prefix_caching: if engine.no_enable_prefix_caching {
            Some((false, FLAG))
        } else {
            said.prefix_caching.map(|on| (on, LOG))
        },
        step_s: prior.map(|prior| (prior.step_s, PROFILE)),
        prefill_tokens_per_s: prior.map(|prior| (prior.prefill_tokens_per_s, PROFILE)),
    })
}

fn blocks(said: &ServerFacts) -> Option<u32> {
    let kv = said.kv.as_ref()?;
    let size = u64::from(kv.block_size?.max(1));
    let blocks = kv.num_gpu_blocks.or(kv.tokens.map(|tokens| tokens / size))?;
    u32::try_from(blocks).ok()
}

fn prior(args: &GuardArgs) -> Result<Option<StepPrior>> {
    if args.engine.profile.is_none() {
        return Ok(None);
    }
    let mut server = engine::server(&args.engine, &args.model, Preset::default(), None)?;
    step_prior(&mut server).map(Some)
}

/// What a cost model says of a server's steps, for a guard that has seen none.
pub(crate) fn step_prior(server: &mut SimulatedServer) -> Result<StepPrior> {
    StepPrior::of(&server.config, &mut server.cost).map_err(|error| usage(format!("--profile: {error}")))
}

fn class(text: &str) -> Result<ClassHeader> {
    let wrong = || usage(format!("--class {text}: write header:NAME, or header:NAME=FIRST,SECOND"));
    let rest = text.strip_prefix("header:").ok_or_else(wrong)?;
    let (name, order) = rest.split_once('=').unwrap_or((rest, ""));
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || !name.bytes().all(valid) {
        return Err(wrong());
    }
    let order: Vec<String> =
        order.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if order.len() > 8 {
        return Err(usage(format!("--class {text}: at most 8 classes")));
    }
    Ok(ClassHeader { name: name.to_ascii_lowercase(), order })
}

fn ns(time: Duration) -> Ns {
    Ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes() {
        let read = class("header:X-Class=chat, batch").unwrap();
        assert_eq!((read.name.as_str(), read.order.len()), ("x-class", 2));
        assert!(class("header:X-Priority").unwrap().order.is_empty());
        for wrong in ["X-Priority", "header:", "header:a b"] {
            assert!(class(wrong).is_err(), "{wrong}");
        }
    }
}

//! `precipice serve`: the built-in engine in real time, behind an endpoint.

use crate::args::{FaultArgs, ServeArgs};
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::resolve;
use crate::units;
use anyhow::{Context as _, Result};
use precipice_serve::{Faults, ServeConfig, ServeError, Server, Stalls};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until Ctrl-C, SIGTERM or `--exit-after`.
pub(crate) fn serve(args: &ServeArgs) -> Result<Outcome> {
    let resolved = resolve::engine::server(&args.engine, &args.model, args.preset.preset, None)?;
    if let Some(note) = resolved.left_preset(args.preset.preset) {
        printer::note(&note);
    }
    let root = resolved.model.name.clone();
    let model = args.served_model_name.clone().unwrap_or_else(|| root.clone());
    let vocabulary = u32::try_from(resolved.deployment.shape.vocab).unwrap_or(u32::MAX);
    let cache_dtype = resolved.deployment.kv_dtype.to_string();
    let config = ServeConfig {
        listen: listen(&args.host, args.port)?,
        root,
        arithmetic: args.engine.enable_mfu_metrics.then_some(resolved.deployment),
        vocabulary,
        cache_config: vec![
            ("cache_dtype".to_owned(), cache_dtype),
            ("gpu_memory_utilization".to_owned(), args.engine.gpu_memory_utilization.to_string()),
        ],
        time_scale: args.time_scale,
        faults: faults(&args.faults)?,
        limits: args.engine.limits.limits(),
        log: Some(Arc::new(printer::note)),
        log_iterations: args.enable_logging_iteration_details,
        ..ServeConfig::new(model, resolved.config, Box::new(resolved.cost))
    };
    let server = Server::bind(config).map_err(|error| match error {
        ServeError::System(_) => error.into(),
        _ => usage(error),
    })?;
    // Whoever asked for port 0 reads this.
    printer::data(&format!("http://{}", server.local_addr()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let end = args.exit_after;
    runtime.block_on(async {
        let terminate = signal(SignalKind::terminate()).context("the signal SIGTERM cannot be had")?;
        server.run(end_of(end, terminate)).await?;
        Ok(Outcome::Done)
    })
}

/// Ctrl-C, SIGTERM, or the end of the time.
pub(crate) async fn end_of(after: Option<Duration>, mut terminate: tokio::signal::unix::Signal) {
    let time = async {
        match after {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = time => {}
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn listen(host: &str, port: u16) -> Result<SocketAddr> {
    let found = (host, port).to_socket_addrs().map_err(|error| usage(format!("--host {host}: {error}")))?;
    found.into_iter().next().ok_or_else(|| usage(format!("--host {host}: no address")))
}

fn faults(args: &FaultArgs) -> Result<Faults> {
    Ok(Faults {
        error_rate: args.fault_error_rate.unwrap_or(0.0),
        cut_rate: args.fault_cut_rate.unwrap_or(0.0),
        stalls: args.fault_stall.as_deref().map(stalls).transpose()?,
        slow_metrics: args.fault_slow_metrics,
    })
}

fn stalls(text: &str) -> Result<Stalls> {
    let wrong =
        |problem: &str| usage(format!("--fault-stall {text}: {problem}; write TIME/EVERY, as in 2s/60s"));
    let (lasts, every) = text.split_once('/').ok_or_else(|| wrong("no '/'"))?;
    let time = |text: &str| units::time(text).map_err(|problem| wrong(&problem));
    let stalls = Stalls { lasts: time(lasts)?, every: time(every)? };
    if stalls.every.is_zero() { Err(wrong("EVERY must be above 0")) } else { Ok(stalls) }
}

#[cfg(test)]
mod tests {
    use super::stalls;
    use std::time::Duration;

    #[test]
    fn a_stall_is_a_time_and_a_period() {
        let read = stalls("2s/60s").unwrap();
        assert_eq!((read.lasts, read.every), (Duration::from_secs(2), Duration::from_mins(1)));
        for wrong in ["2s", "2s/", "x/60s", "2s/0s"] {
            assert!(stalls(wrong).is_err(), "{wrong}");
        }
    }
}

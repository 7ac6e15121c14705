//! `/metrics` and `/guard`.

use crate::state::State;
use precipice_admission::figures::{QUEUE_WAIT_BOUNDS_S, RETRY_AFTER_BOUNDS_S, Spread};
use precipice_admission::{Figures, ReplicaState};
use precipice_wire::prometheus::{Family, HistogramSeries, PageWriter};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// The guard's own series, in Prometheus's text.
pub(crate) fn metrics(state: &State) -> String {
    let (figures, replicas, in_flight, waiting) = state.with(|admission, now| {
        (admission.figures().clone(), admission.replicas(now), admission.in_flight(), admission.waiting())
    });
    let mut page = PageWriter::new();
    decisions(&mut page, &figures);
    let one = |page: &mut PageWriter, name: &str, help: &str, value: f64| {
        page.gauge(&format!("precipice_guard_{name}"), help, &[(&[], value)]);
    };
    one(&mut page, "inflight", "Requests that were admitted and have not ended.", in_flight as f64);
    one(&mut page, "queued", "Requests that wait for admission.", waiting as f64);
    one(
        &mut page,
        "lease_leaks",
        "Leases that nothing holds any more. A defect, if it is not 0.",
        state.leaks() as f64,
    );
    for (place, replica) in replicas.iter().enumerate() {
        server(&mut page, &state.upstreams[place].url, replica, place == 0);
    }
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let counts = &state.counts;
    counter(
        &mut page,
        "upstream_aborts",
        "Responses that ended before they were whole, by who ended them.",
        &[
            (&[("cause", "client")], load(&counts.client_aborts)),
            (&[("cause", "upstream")], load(&counts.upstream_aborts)),
            (&[("cause", "unreachable")], load(&counts.upstream_unreachable)),
        ],
    );
    counter(
        &mut page,
        "ungated",
        "Requests that passed without a decision.",
        &[(&[], load(&counts.ungated))],
    );
    counter(&mut page, "opaque_bodies", "Bodies that were no JSON object.", &[(&[], load(&counts.opaque))]);
    page.finish()
}

type Series<'a> = (&'a [(&'a str, &'a str)], f64);

fn counter(page: &mut PageWriter, name: &str, help: &str, series: &[Series<'_>]) {
    let name = format!("precipice_guard_{name}_total");
    page.header(&name, help, Family::Counter);
    for (labels, value) in series {
        page.sample(&name, labels, *value);
    }
}

fn decisions(page: &mut PageWriter, figures: &Figures) {
    let by_class =
        |page: &mut PageWriter, name: &str, help: &str, counts: &std::collections::BTreeMap<u8, u64>| {
            let name = format!("precipice_guard_{name}_total");
            page.header(&name, help, Family::Counter);
            for (class, count) in counts {
                page.sample(&name, &[("class", &class.to_string())], *count as f64);
            }
        };
    by_class(
        page,
        "offered",
        "Requests that came, shed ones included: what an autoscaler should see.",
        &figures.offered,
    );
    by_class(page, "admitted", "Requests that were admitted.", &figures.admitted);
    let name = "precipice_guard_rejected_total";
    page.header(name, "Requests that were refused; with --shadow, that would have been.", Family::Counter);
    for ((reason, class), count) in &figures.refused {
        page.sample(name, &[("reason", reason.name()), ("class", &class.to_string())], *count as f64);
    }
    for (name, help, value) in [
        ("offered_prompt_tokens", "Prompt tokens of the requests that came.", figures.offered_prompt_tokens),
        ("impossible", "Requests larger than the KV pool, answered with 400.", figures.impossible),
        ("returned_after_retry", "Clients that came back when they were told to.", figures.returned),
        ("returned_admitted", "Of these, how many were admitted.", figures.returned_admitted),
        ("returned_early", "Clients that came back before they were told to.", figures.returned_early),
        ("stayed_away", "Clients that did not come back when they were told to.", figures.stayed_away),
        (
            "goodput",
            "Responses that ended whole and whose first token came within the TTFT budget.",
            figures.good,
        ),
        ("ended", "Admitted requests that ended.", figures.ended),
    ] {
        counter(page, name, help, &[(&[], value as f64)]);
    }
    histogram(
        page,
        "retry_after_seconds",
        "What refused clients were told.",
        &RETRY_AFTER_BOUNDS_S,
        &figures.retry_after_s,
    );
    histogram(
        page,
        "queue_wait_seconds",
        "How long admitted requests waited here.",
        &QUEUE_WAIT_BOUNDS_S,
        &figures.queue_wait_s,
    );
}

fn histogram(page: &mut PageWriter, name: &str, help: &str, bounds: &[f64], spread: &Spread) {
    let series =
        HistogramSeries { labels: &[], bounds, counts: &spread.counts, sum: spread.sum, created: 0.0 };
    page.histogram(&format!("precipice_guard_{name}"), help, &[series]);
}

fn server(page: &mut PageWriter, url: &str, replica: &ReplicaState, first: bool) {
    let labels: &[(&str, &str)] = &[("server", url)];
    let mut gauge = |name: &str, help: &str, value: Option<f64>| {
        let name = format!("precipice_guard_{name}");
        if first {
            page.header(&name, help, Family::Gauge);
        }
        if let Some(value) = value {
            page.sample(&name, labels, value);
        }
    };
    gauge(
        "ledger_kv_blocks",
        "KV blocks that admitted requests hold now, by the ledger.",
        replica.ledger_blocks,
    );
    gauge("forecast_peak_kv_blocks", "Forecast peak of these.", replica.peak_blocks);
    gauge("limit_kv_blocks", "KV blocks that may be used, the margin left out.", replica.limit_blocks);
    gauge(
        "foreign_kv_blocks",
        "KV blocks in use by requests that did not come this way.",
        Some(replica.foreign_blocks),
    );
    gauge("kv_margin", "Share of the pool that is left alone.", Some(replica.margin));
    gauge(
        "prefill_backlog_tokens",
        "Prompt tokens that wait for their prefill.",
        Some(replica.backlog_tokens),
    );
    gauge(
        "appointments",
        "Places kept for clients that were told when to come again.",
        Some(replica.appointments as f64),
    );
    gauge("come_back_ratio", "Share of these clients that come.", Some(replica.come_back));
    gauge(
        "step_seconds",
        "Time of an engine step, from a profile or as the streams show it.",
        replica.step_s,
    );
    gauge(
        "prefill_tokens_per_second",
        "Prompt tokens prefilled per second, likewise.",
        replica.prefill_tokens_per_s,
    );
    gauge("model_error_ratio", "Time to first token, seen over predicted.", replica.model_error_ratio);
    gauge("server_kv_usage", "Share of the KV pool in use, by the server's word.", replica.server_kv_usage);
    gauge("server_waiting", "Requests in the server's own queue, by its word.", replica.server_waiting);
    gauge("preemptions_observed", "Preemptions since this guard started.", Some(replica.preemptions));
    gauge("server_up", "The server can be reached.", Some(f64::from(u8::from(!replica.down))));
}

/// The state as JSON.
pub(crate) fn state(state: &State) -> Value {
    let leaks = state.leaks();
    state.with(|admission, now| {
        let figures = admission.figures();
        let refused: Vec<Value> = figures
            .refused
            .iter()
            .map(|((reason, class), count)| json!({"reason": reason, "class": class, "count": count}))
            .collect();
        let replicas = admission.replicas(now).into_iter().enumerate().map(|(place, replica)| {
            json!({"url": state.upstreams[place].url, "capacity": admission.capacity(place), "now": replica})
        });
        json!({
            "schema": "precipice.guard/1",
            "version": env!("CARGO_PKG_VERSION"),
            "settings": admission.settings(),
            "in_flight": admission.in_flight(),
            "queued": admission.waiting(),
            "lease_leaks": leaks,
            "ledger_empty": admission.is_empty(),
            "draining": state.draining.load(Ordering::Relaxed),
            "figures": figures,
            "refused": refused,
            "replicas": replicas.collect::<Vec<_>>(),
        })
    })
}

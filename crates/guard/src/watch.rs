//! Looks at the servers' metrics.

use crate::discovery::{self, PATIENCE};
use crate::state::{Shared, State};
use serde_json::json;

/// Looks at one server for ever.
pub(crate) async fn watch(state: Shared, replica: usize) {
    let mut ticks = tokio::time::interval(state.config.poll);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut up = true;
    let mut complete = configure(&state, replica).await;
    loop {
        ticks.tick().await;
        let reached = look(&state, replica).await;
        if reached != up {
            state.with(|admission, _| admission.set_down(replica, !reached));
            let event = if reached { "upstream_up" } else { "upstream_down" };
            state.log.line(event, json!({"replica": replica, "url": state.upstreams[replica].url}));
        }
        // A server that was not there, or that started anew, may have another pool now.
        if reached && (!up || !complete) {
            complete = configure(&state, replica).await;
        }
        up = reached;
        state.let_in();
    }
}

/// Takes from a server what it says of itself; false when it could not be asked.
async fn configure(state: &State, replica: usize) -> bool {
    let upstream = &state.upstreams[replica];
    let found = discovery::discover(upstream, &state.config.known).await;
    if !found.reached {
        return false;
    }
    let engine = found.engine.map(precipice_dialect::Engine::name);
    let fields = json!({"replica": replica, "url": upstream.url, "engine": engine, "found": found.said});
    if state.with(|admission, _| admission.capacity(replica) != Some(&found.capacity)) {
        state.log.line("configured", fields);
        state.with(|admission, _| admission.set_capacity(replica, found.capacity));
    }
    true
}

/// One look; false when the server cannot be reached. A server without metrics shows nothing.
async fn look(state: &State, replica: usize) -> bool {
    match state.upstreams[replica].get("/metrics", PATIENCE.max(state.config.poll)).await {
        Ok((200, page)) => {
            let seen = discovery::read(&page).seen;
            state.with(|admission, now| admission.observe(now, replica, seen));
            true
        }
        Ok(_) => true,
        // Late is not gone.
        Err(why) => why.starts_with("no answer"),
    }
}

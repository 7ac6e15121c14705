//! A load and an engine in virtual time: what a run against a real server would record, in milliseconds.
//!
//! [`simulate`] plays a [`Plan`] against an [`crate::EngineLoop`] whose steps last as long as a [`StepCost`] says,
//! and writes the rows of a run into a [`Sink`]: one for each attempt, each token as the client would see it, each
//! step and each turn in the life of a request exactly as they happened, and scrapes of the series that vLLM's
//! `/metrics` would have shown at those moments.
//!
//! Time: in a synchronous engine the host's part of a step and the device's part follow each other. In an
//! asynchronous one the host prepares step k+1 while the device computes step k, so a step lasts as long as the
//! longer of the two. Between client and engine nothing takes time unless [`Client`] says so.
//!
//! | module | holds |
//! | --- | --- |
//! | [`setup`] | [`Setup`], [`Client`], what can go wrong |
//! | [`summary`] | [`Summary`], what a simulation says at its end |
//! | `attempt` | one attempt: what the engine gets of it, and its row |
//! | `clients` | who sends when, gives up, tries again |
//! | `gate` | the guard in front of the engine |
//! | `server` | the engine with its device and its metrics |
//! | `scraper` | samples of the metrics |

mod attempt;
mod clients;
mod gate;
mod scraper;
mod server;
pub mod setup;
pub mod summary;

pub use setup::{Client, Guard, Setup, SimulationError};
pub use summary::Summary;

use crate::batch::StepCost;
use clients::{Clients, Input};
use precipice_record::{Ns, Sink};
use precipice_workload::Plan;
use scraper::Scraper;
use server::Server;

/// Plays a load against an engine.
///
/// The same setup, plan and cost model give the same rows.
///
/// # Errors
/// When the engine's settings are refused, or the cost model does not know a step.
pub fn simulate(
    setup: &Setup,
    plan: &Plan,
    cost: &mut dyn StepCost,
    sink: &mut dyn Sink,
) -> Result<Summary, SimulationError> {
    setup.engine.validate()?;
    let mut clients = Clients::new(setup, plan);
    let mut server = Server::new(setup, cost)?;
    let mut scraper = Scraper::new(setup, sink);
    let mut inbox = Vec::new();
    let mut now = Ns::ZERO;
    let mut stall = None;
    loop {
        clients.advance(now, &mut inbox, sink);
        for input in inbox.drain(..) {
            server.take(input, now, &mut clients, sink);
        }
        if server.wants_schedule() {
            now = server.schedule(now, &clients, sink)?;
            stall = server.stall().or(stall);
        }
        if server.stall().is_some() || server.idle() {
            // Nothing moves before somebody comes or goes.
            let Some(event) = clients.next_event() else { break };
            now = now.max(event);
        }
        if let Some(done) = server.next_result() {
            now = now.max(done);
            scraper.until(now, server.metrics(), sink);
            clients.guard_looks(now, &server);
            clients.advance(now, &mut inbox, sink);
            // While it waits for a result, the engine takes in aborts and nothing else.
            for abort in inbox.extract_if(.., |input| matches!(input, Input::Abort { .. })) {
                server.take(abort, now, &mut clients, sink);
            }
            server.complete(now, &mut clients, sink);
        }
    }
    clients.close(now, sink);
    let end = scraper.finish(now, server.metrics(), sink);
    Ok(summary::summary(&server, &clients, stall, end))
}

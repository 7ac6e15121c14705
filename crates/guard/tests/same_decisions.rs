//! The same arrivals get the same answers over sockets and in virtual time.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use precipice_admission::Settings;
use precipice_engine::virtual_time::{self, Setup, simulate};
use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_guard::{Guard, GuardConfig};
use precipice_record::{Ns, Run};
use precipice_serve::{ServeConfig, Server};
use precipice_workload::{Lengths, Load, Plan, Prompt, Spec, token_id};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// So slow that nothing moves while requests arrive.
struct Hours;

impl StepCost for Hours {
    fn step_time(&mut self, _: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: Ns(3_600_000_000_000), host: Ns::ZERO })
    }
}

fn engine() -> EngineConfig {
    EngineConfig { num_gpu_blocks: 121, max_model_len: 1024, ..EngineConfig::default() }
}

/// Forty requests at once, of all sizes.
fn plan() -> Plan {
    let load = Load::Closed { concurrency: 40, stagger: None };
    let lengths = |text: &str| text.parse::<Lengths>().unwrap();
    let spec = Spec {
        requests: Some(40),
        ..Spec::synthetic(load, lengths("uniform:8-500"), lengths("uniform:1-400"))
    };
    Plan::new(spec, 5, None, None).unwrap()
}

fn simulated() -> Vec<bool> {
    let mut guard = virtual_time::Guard::of(Settings::default(), &engine());
    // What /metrics and /v1/models do not tell, a live guard does not know either.
    (guard.capacity.max_num_seqs, guard.capacity.max_num_batched_tokens) = (None, None);
    let setup = Setup { engine: engine(), guard: Some(guard), ..Setup::default() };
    let mut run = Run::default();
    simulate(&setup, &plan(), &mut Hours, &mut run).unwrap();
    run.requests.sort_by_key(|row| row.request);
    run.requests.iter().map(|row| row.status == Some(200)).collect()
}

async fn state(address: SocketAddr) -> serde_json::Value {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET /guard HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn live_and_simulated_decide_alike() {
    let server = Server::bind(ServeConfig::new("tiny", engine(), Box::new(Hours))).unwrap();
    let upstream = server.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.run(async { drop(stopped.await) }));
    let guard = Guard::bind(GuardConfig::new(format!("http://{upstream}"))).unwrap();
    let address = guard.local_addr();
    let guarding = tokio::spawn(guard.run(std::future::pending()));
    // It learns all that it needs from the server itself.
    while !state(address).await["replicas"][0]["capacity"]["usable_blocks"].is_number() {}

    let mut sockets = Vec::new();
    let mut live = Vec::new();
    let admitted = |state: &serde_json::Value| state["figures"]["admitted"]["0"].as_u64().unwrap_or(0);
    for request in plan().requests() {
        let Prompt::Tokens(runs) = &request.prompt else { panic!("a synthetic prompt") };
        let ids = runs
            .iter()
            .flat_map(|run| (run.start..run.start + run.len).map(|at| token_id(run.stream, at, 0..1000)));
        let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
        let (prompt, output) = (ids.join(","), request.output_tokens);
        let body = format!("{{\"prompt\":[{prompt}],\"max_tokens\":{output},\"stream\":true}}");
        let before = state(address).await;
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head =
            format!("POST /v1/completions HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n\r\n", body.len());
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(body.as_bytes()).await.unwrap();
        sockets.push(socket);
        let after = loop {
            let after = state(address).await;
            if after["figures"]["offered"]["0"] != before["figures"]["offered"]["0"] {
                break after;
            }
        };
        live.push(admitted(&after) > admitted(&before));
    }
    let simulated = simulated();
    assert_eq!(live, simulated);
    assert!(live.iter().any(|admitted| *admitted) && live.iter().any(|admitted| !admitted));
    assert!(live.windows(2).any(|pair| pair == [false, true]), "sizes differ, so the order is no staircase");
    drop(sockets);
    guarding.abort();
    drop(stop);
    drop(serving);
}

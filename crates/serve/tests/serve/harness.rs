//! A server in a thread of its own, and a client as small as the questions.

use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_record::Ns;
use precipice_serve::{ServeConfig, Server};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Every step takes the same time.
pub(crate) struct Fixed(pub(crate) Ns);

impl StepCost for Fixed {
    fn step_time(&mut self, _: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: self.0, host: Ns::ZERO })
    }
}

/// Small enough to read: 12 usable blocks of 16 tokens, 64 tokens a step.
pub(crate) fn small() -> EngineConfig {
    EngineConfig {
        num_gpu_blocks: 13,
        max_num_seqs: 8,
        max_num_batched_tokens: 64,
        max_model_len: 192,
        async_scheduling: false,
        ..EngineConfig::default()
    }
}

/// A server with steps of `step`.
pub(crate) fn config(engine: EngineConfig, step: Ns) -> ServeConfig {
    ServeConfig::new("tiny", engine, Box::new(Fixed(step)))
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(config: ServeConfig) -> Self {
        let server = Server::bind(config).unwrap();
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            server
                .run_here(async {
                    let _dropped = stopped.await;
                })
                .unwrap();
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Sends a request and reads the whole response; the connection is closed afterwards.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let mut socket = self.send(method, path, body);
        let mut raw = Vec::new();
        let complete = socket.read_to_end(&mut raw).is_ok();
        Reply::parse(&raw, complete)
    }

    /// Sends a request and leaves the response in the socket.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).unwrap();
        socket
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "")
    }

    pub(crate) fn complete(&self, body: &str) -> Reply {
        self.ask("POST", "/v1/completions", body)
    }

    /// The value of the series whose line begins with `series`, up to the value.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let page = self.get("/metrics").body;
        let line = page.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap_or_else(|| panic!("no {series} in {page}")).trim().parse().unwrap()
    }

    /// Asks again and again until the engine has `waiting` and `running` requests.
    pub(crate) fn until(&self, condition: impl Fn(&Self) -> bool) {
        let begun = std::time::Instant::now();
        while !condition(self) {
            assert!(begun.elapsed().as_secs() < 60, "it never happened");
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the server panicked");
        }
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// The body came to its end.
    pub(crate) complete: bool,
}

impl Reply {
    pub(crate) fn parse(raw: &[u8], read: bool) -> Self {
        let split = raw.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&raw[..split]).to_ascii_lowercase();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        let rest = &raw[split + 4..];
        let (body, complete) =
            if head.contains("transfer-encoding: chunked") { dechunk(rest) } else { (rest.to_vec(), true) };
        Self { status, head, body: String::from_utf8(body).unwrap(), complete: complete && read }
    }

    /// The data of each event.
    pub(crate) fn events(&self) -> Vec<&str> {
        self.body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

fn dechunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = rest.get(line + 2..line + 2 + size) else { return (body, false) };
        body.extend_from_slice(chunk);
        rest = &rest[(line + 4 + size).min(rest.len())..];
    }
}

//! A server on a free port whose every byte a test decides, and a run against it.

use precipice_drive::{
    DrivePlan, Handle, Load, MetricsSource, Outcome, PromptForm, RequestForm, Retries, Schedule, Stop,
    Target, TargetOptions, Timeouts, run,
};
use precipice_record::{RequestRow, Run, ServerFacts};
use precipice_workload::{Arrival, PlannedRequest, Prompt, TokenRun};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What a handler knows of the request that it answers.
pub(crate) struct Asked {
    /// Counted over the whole server.
    pub(crate) number: usize,
    /// Counted on this connection.
    pub(crate) on_connection: usize,
    /// `GET /metrics`
    pub(crate) line: String,
    pub(crate) body: String,
}

/// What becomes of the connection.
#[derive(PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
    /// Close in such a way that the client gets a reset.
    Reset,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the accepting thread; it may be gone already.
        TcpStream::connect(self.address).ok();
    }
}

impl Server {
    /// Answers every request with `handler`.
    pub(crate) fn start<F>(handler: F) -> Self
    where
        F: Fn(&Asked, &mut TcpStream) -> Then + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (handler, stopped) = (Arc::new(handler), Arc::clone(&stop));
        let numbers = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(mut stream) = stream else { break };
                let (handler, numbers) = (Arc::clone(&handler), Arc::clone(&numbers));
                thread::spawn(move || {
                    stream.set_nodelay(true).unwrap();
                    let mut on_connection = 0;
                    while let Some((line, body)) = read_request(&mut stream) {
                        let number = numbers.fetch_add(1, Ordering::SeqCst);
                        let asked = Asked { number, on_connection, line, body };
                        match handler(&asked, &mut stream) {
                            Then::Keep => {}
                            Then::Close => break,
                            Then::Reset => {
                                // Data that nobody read makes the close a reset.
                                reset_on_close(&stream);
                                break;
                            }
                        }
                        on_connection += 1;
                    }
                });
            }
        });
        Self { address, stop }
    }

    /// A server that answers each request with the same bytes and keeps the connection.
    pub(crate) fn answering(bytes: &'static [u8]) -> Self {
        Self::start(move |_, stream| {
            stream.write_all(bytes).ok();
            Then::Close
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Makes the close of a socket a reset: the client has sent bytes that were never read.
fn reset_on_close(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    let mut byte = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        match stream.read(&mut byte) {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend_from_slice(&byte[..length]),
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |length| length.parse::<usize>().unwrap());
    while bytes.len() < end + length {
        match stream.read(&mut byte) {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend_from_slice(&byte[..length]),
        }
    }
    let line = head.lines().next().unwrap_or_default().to_owned();
    Some((line, String::from_utf8_lossy(&bytes[end..]).into_owned()))
}

pub(crate) const EVENTS_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One chunk of the chunked coding.
pub(crate) fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

pub(crate) fn token(text: &str) -> String {
    chunk(&format!("data: {{\"choices\":[{{\"index\":0,\"text\":{text:?},\"finish_reason\":null}}]}}\n\n"))
}

/// The end of a good stream: a finish, the usage, `[DONE]`, the last chunk.
pub(crate) fn ending(prompt: usize, tokens: usize) -> String {
    chunk("data: {\"choices\":[{\"index\":0,\"text\":\"z\",\"finish_reason\":\"length\"}]}\n\n")
        + &chunk(&format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{tokens}}}}}\n\n"
        ))
        + &chunk("data: [DONE]\n\n")
        + "0\r\n\r\n"
}

/// A good stream of so many tokens.
pub(crate) fn good(tokens: usize) -> String {
    let body: String = (1..tokens).map(|_| token("a")).collect();
    EVENTS_HEAD.to_owned() + &body + &ending(4, tokens)
}

pub(crate) struct Test {
    pub(crate) load: Load,
    pub(crate) requests: Vec<PlannedRequest>,
    pub(crate) warmup: Vec<PlannedRequest>,
    pub(crate) metrics: Vec<String>,
    pub(crate) metrics_every: Duration,
}

/// A planned request of four tokens in and so many out.
pub(crate) fn planned(index: u32, arrival: Arrival) -> PlannedRequest {
    PlannedRequest {
        index,
        arrival,
        prompt: Prompt::Tokens(vec![TokenRun { stream: u64::from(index), start: 0, len: 4 }]),
        output_tokens: 3,
        priority: 0,
        ramp: false,
    }
}

impl Test {
    /// A closed loop.
    pub(crate) fn closed(clients: u32, requests: u32) -> Self {
        Self {
            load: Load {
                schedule: Schedule::Closed { clients, stagger: Duration::ZERO },
                stop: Stop::default(),
                timeouts: Timeouts::default(),
                retries: Retries::default(),
                threads: 1,
            },
            requests: (0..requests).map(|index| planned(index, Arrival::WhenFree)).collect(),
            warmup: Vec::new(),
            metrics: Vec::new(),
            metrics_every: Duration::from_secs(1),
        }
    }

    pub(crate) fn run(self, url: &str) -> (Run, Outcome) {
        self.run_with(url, &Handle::new())
    }

    pub(crate) fn run_with(self, url: &str, handle: &Handle) -> (Run, Outcome) {
        self.run_all(&TargetOptions { url: url.to_owned(), ..TargetOptions::default() }, handle)
    }

    pub(crate) fn run_to(self, options: &TargetOptions) -> (Run, Outcome) {
        self.run_all(options, &Handle::new())
    }

    fn run_all(self, options: &TargetOptions, handle: &Handle) -> (Run, Outcome) {
        let mut rows = Run::default();
        let plan = DrivePlan {
            target: Target::new(options).unwrap(),
            form: RequestForm::new(Some("m".to_owned()), PromptForm::Ids(10..100)),
            load: self.load,
            warmup: Box::new(self.warmup.into_iter()),
            requests: Box::new(self.requests.into_iter()),
            metrics: self.metrics.iter().map(|url| MetricsSource::new(url, options).unwrap()).collect(),
            metrics_every: self.metrics_every,
            server: ServerFacts::default(),
        };
        let outcome = run(plan, &mut rows, handle).unwrap();
        rows.requests.sort_by_key(|row| (row.request, row.attempt));
        (rows, outcome)
    }

    /// The row of a run of one request.
    pub(crate) fn one(self, url: &str) -> RequestRow {
        let (run, _) = self.run(url);
        assert_eq!(run.requests.len(), 1);
        run.requests.into_iter().next().unwrap()
    }
}

pub(crate) fn codes(outcome: &Outcome) -> Vec<&str> {
    outcome.verdict.warnings.iter().map(|warning| warning.code.name()).collect()
}

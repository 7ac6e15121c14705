//! A server that does what the test says.

use precipice_guard::{Guard, GuardConfig, Known};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// What the server shows and is told.
pub(crate) struct Told {
    /// Streams may go on.
    pub(crate) go: watch::Sender<bool>,
    /// Generations that are being answered, and how often that changed.
    pub(crate) open: watch::Sender<usize>,
    /// Generations that were begun.
    pub(crate) begun: AtomicUsize,
    /// Answer a generation with this instead of a stream.
    pub(crate) instead: std::sync::Mutex<Option<String>>,
    /// No answer to a generation at all, not even a head.
    pub(crate) silent: AtomicBool,
    /// Break off after the first event.
    pub(crate) breaks: AtomicBool,
}

impl Told {
    pub(crate) fn new(go: bool) -> Arc<Self> {
        Arc::new(Self {
            go: watch::channel(go).0,
            open: watch::channel(0).0,
            begun: AtomicUsize::new(0),
            instead: std::sync::Mutex::new(None),
            silent: AtomicBool::new(false),
            breaks: AtomicBool::new(false),
        })
    }

    /// Waits until so many generations are open.
    pub(crate) async fn open_are(&self, count: usize) {
        self.open.subscribe().wait_for(|open| *open == count).await.unwrap();
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a server; its connections die with it.
pub(crate) async fn server(told: &Arc<Told>, address: Option<SocketAddr>) -> Server {
    let listener = match address {
        None => TcpListener::bind("127.0.0.1:0").await.unwrap(),
        Some(address) => {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_reuseaddr(true).unwrap();
            socket.bind(address).unwrap();
            socket.listen(128).unwrap()
        }
    };
    let address = listener.local_addr().unwrap();
    let told = Arc::clone(told);
    let task = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            connections.spawn(connection(socket, Arc::clone(&told)));
        }
    });
    Server { address, task }
}

/// Three events, a usage and the end.
pub(crate) const FIRST: &str =
    "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\n";
pub(crate) const REST: &str = "data: {\"choices\":[{\"index\":0,\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n\
     data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

async fn connection(mut socket: TcpStream, told: Arc<Told>) {
    while let Some((head, body)) = request(&mut socket).await {
        if !head.starts_with("POST /v1/") {
            let page = "vllm:num_requests_waiting 0\n";
            let answer = if head.starts_with("GET /metrics") {
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{page}", page.len())
            } else if head.starts_with("POST /tokenize") || head.starts_with("GET /v1/models") {
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned()
            } else {
                let echo = format!("{head}{}", String::from_utf8_lossy(&body));
                format!("HTTP/1.1 418 Teapot\r\nx-own: yes\r\ncontent-length: {}\r\n\r\n{echo}", echo.len())
            };
            if socket.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
            continue;
        }
        told.begun.fetch_add(1, Ordering::SeqCst);
        told.open.send_modify(|open| *open += 1);
        let keep = generation(&mut socket, &told).await;
        told.open.send_modify(|open| *open -= 1);
        if !keep {
            return;
        }
    }
}

async fn generation(socket: &mut TcpStream, told: &Told) -> bool {
    let instead = told.instead.lock().unwrap().clone();
    if let Some(answer) = instead {
        return socket.write_all(answer.as_bytes()).await.is_ok();
    }
    if !told.silent.load(Ordering::SeqCst) {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{FIRST}\r\n",
            FIRST.len()
        );
        if socket.write_all(head.as_bytes()).await.is_err() {
            return false;
        }
    }
    if told.breaks.load(Ordering::SeqCst) {
        return false;
    }
    let mut go = told.go.subscribe();
    let mut byte = [0];
    tokio::select! {
        _ = go.wait_for(|go| *go) => {}
        // The other side left.
        _ = socket.read(&mut byte) => return false,
    }
    let rest = format!("{:x}\r\n{REST}\r\n0\r\n\r\n", REST.len());
    socket.write_all(rest.as_bytes()).await.is_ok()
}

/// Head and body of a request.
async fn request(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
    let length: usize = length.unwrap_or(0);
    while bytes.len() < end + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, bytes[end..end + length].to_vec()))
}

/// A guard that runs.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A configuration for the server at this address, with a pool of so many blocks of 16 tokens.
pub(crate) fn config(server: SocketAddr, blocks: u32) -> GuardConfig {
    GuardConfig {
        known: Known {
            num_gpu_blocks: Some((blocks + 1, "test")),
            block_size: Some((16, "test")),
            max_model_len: Some((1024, "test")),
            step_s: Some((0.01, "test")),
            ..Known::default()
        },
        poll: std::time::Duration::from_millis(20),
        ..GuardConfig::new(format!("http://{server}"))
    }
}

/// Starts a guard and waits until it knows its server.
pub(crate) async fn guard(config: GuardConfig) -> Running {
    let knows = config.known.num_gpu_blocks.is_some();
    let secure = config.tls.is_some();
    let guard = Guard::bind(config).unwrap();
    let address = guard.local_addr();
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        guard.run(async { drop(stopped.await) }).await.unwrap();
    });
    let running = Running { address, stop: Some(stop), task };
    if knows && !secure {
        while !crate::client::state(address).await["replicas"][0]["capacity"]["usable_blocks"].is_number() {}
    }
    running
}

//! Tests with thousands of clients that connect to `acp serve` but never complete a request.
//!
//! `ACP_SLOW_CLIENTS=10000` sets their number.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::common::TestProject;
use crate::serve::Server;

/// The default number of clients: about twice as many as the server handles at once.
const CLIENTS: u64 = 2000;

/// The number of open files to reserve for the other tests in this process.
const OTHER_FILES: u64 = 500;

/// The maximum number of sockets that the server keeps open at once.
const SOCKETS: usize = 1024;

/// The maximum memory, in bytes, that the server may use per socket with an unfinished request.
const MAX_SOCKET_MEMORY: usize = 64 * 1024;

/// How long the server may take to close the first sockets. It allows 10 seconds for receiving the headers of a
/// request.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns how many clients this process can have, after raising its limit on open files if necessary.
fn clients_allowed() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let clients = std::env::var("ACP_SLOW_CLIENTS").map(|number| number.parse().unwrap());
    let wanted = clients.unwrap_or(CLIENTS) + OTHER_FILES;
    let allowed = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|current| current < allowed) {
        let raised = Rlimit {
            current: Some(allowed),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, raised).unwrap();
    }
    usize::try_from(allowed.saturating_sub(OTHER_FILES)).unwrap()
}

/// Returns a process's memory use in bytes: the current use for `VmRSS`, and the peak for `VmHWM`.
fn memory(server: &Server, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kibibytes = line.split_whitespace().nth(1).unwrap();
    kibibytes.parse::<usize>().unwrap() * 1024
}

/// Sends the beginning of a request and waits until the server closes the socket. Returns `false` if connecting fails.
async fn stall(address: String) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return false;
    };
    let beginning = b"GET /acp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    if stream.write_all(beginning).await.is_err() {
        return false;
    }
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    true
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_connections_take_little_memory_and_are_closed() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let clients = clients_allowed();
    let before = memory(&server, "VmRSS:");
    let (closed, mut closings) = mpsc::channel(SOCKETS);
    let mut stalling = JoinSet::new();
    for _ in 0..clients {
        let (address, closed) = (server.address().to_owned(), closed.clone());
        stalling.spawn(async move {
            if stall(address).await {
                let _ = closed.try_send(());
            }
        });
    }
    drop(closed);
    // When the first sockets are closed, as many as the server serves at a time have been open.
    let served = SOCKETS.min(clients);
    for number in 0..served {
        let next = tokio::time::timeout(PATIENCE, closings.recv()).await;
        let next = next.unwrap_or_else(|_| panic!("{number} of {served} sockets were closed"));
        assert!(next.is_some(), "only {number} sockets were served");
    }
    let most = memory(&server, "VmHWM:");
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "{clients} slow connections: the server takes {:.1} MB before, {:.1} MB at most",
        megabytes(before),
        megabytes(most)
    );
    assert!(
        most - before < SOCKETS * MAX_SOCKET_MEMORY,
        "{before} {most}"
    );
    stalling.shutdown().await;
    // A real client is served again.
    let health = tokio::task::spawn_blocking(move || server.get("/health", "")).await;
    assert!(health.unwrap().ends_with("\r\n\r\nok\n"));
}

//! Tests that no messages are lost or repeated when connections are cut at random moments.

use std::sync::atomic::Ordering;
use std::time::Duration;

use acp::v1::StopReason;
use acp_remote::client::{ConnectOptions, HttpVersion};

use crate::common::proxy::{ConnectionFault, CuttingProxy};
use crate::common::server::{server_url, test_token};
use crate::common::{TestClient, TestServer, connect_and_open, with_timeout};

/// The prompts sent in each run.
const PROMPTS: [&str; 4] = ["stream 400 300", "ask 3", "large 100000", "stream 2000 40"];

/// The outcome of a run: the thread, the number of permission requests, and the number of answers to them.
type TurnOutcome = (String, usize, usize);

/// Runs the prompts over a proxy that cuts connections, and returns the outcome and the number of cuts.
async fn run_session(
    scheme: &str,
    version: HttpVersion,
    seed: Option<u64>,
) -> (TurnOutcome, usize) {
    let server = TestServer::start().await;
    let mut random = fastrand::Rng::with_seed(seed.unwrap_or_default());
    let proxy = CuttingProxy::start(server.address, move || match seed {
        None => ConnectionFault::NONE,
        Some(_) => ConnectionFault {
            // Enough to make progress: a handshake takes about a kilobyte, the largest message 100.
            cut_after: random.usize(500..150_000),
            delay: Duration::from_micros(random.u64(0..2000)),
        },
    })
    .await;
    let options = ConnectOptions::new()
        .token(test_token())
        .http_version(version);
    let client = TestClient::default();
    let (agent, session) =
        connect_and_open(&server_url(scheme, proxy.address), options, client.clone()).await;
    for prompt in PROMPTS {
        let stopped = with_timeout(session.prompt(prompt)).await;
        let stopped = stopped.unwrap_or_else(|error| panic!("{scheme} {seed:?} {prompt}: {error}"));
        assert_eq!(stopped, StopReason::EndTurn);
    }
    let shown = session
        .thread()
        .read(|thread| format!("{:?}", thread.items()));
    let asked = client.asked.load(Ordering::Relaxed);
    let answered = server.agent.answered.load(Ordering::Relaxed);
    let cuts = proxy.cuts.load(Ordering::Relaxed);
    agent.close();
    ((normalize_ids(&shown), asked, answered), cuts)
}

/// Replaces all sequences of eight or more hexadecimal digits, because random ids differ between runs.
fn normalize_ids(shown: &str) -> String {
    let mut out = String::new();
    for word in shown.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        let rest = word.strip_prefix(digits).unwrap_or_default();
        out.push_str(if digits.len() >= 8 { "ID" } else { digits });
        out.push_str(rest);
    }
    out
}

/// Returns the first difference between two outcomes.
fn first_difference(one: &TurnOutcome, other: &TurnOutcome) -> String {
    let pairs = one.0.char_indices().zip(other.0.chars());
    let at = pairs
        .take_while(|((_, a), b)| a == b)
        .last()
        .map_or(0, |((at, _), _)| at);
    let around = |text: &str| {
        text.get(at.saturating_sub(100)..at + 100)
            .unwrap_or_default()
            .to_owned()
    };
    let lengths = (one.0.len(), other.0.len());
    format!(
        "{:?} {:?} {lengths:?} {} | {}",
        (one.1, one.2),
        (other.1, other.2),
        around(&one.0),
        around(&other.0)
    )
}

/// Repeats the session until `cuts` connections have been cut, and compares each outcome with that of an uncut session.
async fn compare_with_cuts(scheme: &str, version: HttpVersion, first_seed: u64, cuts: usize) {
    let (uncut, none) = run_session(scheme, version, None).await;
    assert_eq!(none, 0);
    assert_eq!((uncut.1, uncut.2), (3, 3));
    let mut total = 0;
    let mut seed = first_seed;
    while total < cuts {
        let (outcome, cuts) = run_session(scheme, version, Some(seed)).await;
        assert!(
            outcome == uncut,
            "{scheme} {version:?}: seed {seed} with {cuts} cuts: {}",
            first_difference(&outcome, &uncut)
        );
        // Each session sends more than any connection may carry.
        assert_ne!(cuts, 0, "{scheme} {version:?}: seed {seed} was not cut");
        total += cuts;
        seed += 1;
    }
    let runs = seed - first_seed;
    println!("{scheme} {version:?}: {total} cuts in {runs} runs, nothing lost or twice");
}

// Together, these cut at least 510 connections.

#[tokio::test]
async fn cut_websocket_loses_nothing() {
    compare_with_cuts("ws", HttpVersion::Auto, 0, 130).await;
}

#[tokio::test]
async fn cut_websocket_over_http_2_loses_nothing() {
    compare_with_cuts("ws", HttpVersion::Http2, 100, 70).await;
}

#[tokio::test]
async fn cut_streams_over_http_2_lose_nothing() {
    compare_with_cuts("http", HttpVersion::Http2, 200, 170).await;
}

#[tokio::test]
async fn cut_streams_over_http_1_lose_nothing() {
    compare_with_cuts("http", HttpVersion::Http1, 300, 140).await;
}

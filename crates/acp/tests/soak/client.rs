//! The soak test's client. Some of its readers are fast, some are slow, and some do not read at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use acp::client::{Update, UpdateContext};
use acp::thread::ItemKind;
use acp::v1::{SessionId, StopReason};
use acp::{Client, ThreadHandle, Transport};
use tokio::task::JoinSet;

use super::memory::{PROGRAM_BYTES, check_peak, peak_memory};
use super::{SESSION_COUNT, UPDATES_PER_SESSION, agent, rerun_as, soak_limits};

/// A client whose update handler behaves differently depending on the session's number.
#[derive(Default)]
struct SoakClient {
    seen: Arc<AtomicUsize>,
    /// The number of updates so far in the session whose handler stalls.
    of_one: AtomicUsize,
}

fn session_number(session: &SessionId) -> usize {
    session.as_str().strip_prefix('s').unwrap().parse().unwrap()
}

impl Client for SoakClient {
    type State = ();

    async fn update(&self, (): &(), cx: &UpdateContext, _: &Update) {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        match session_number(&cx.session_id) {
            // Blocks once. Nothing of the connection moves in the meantime.
            500 if self.of_one.fetch_add(1, Ordering::Relaxed) == UPDATES_PER_SESSION / 2 => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            // A slow handler.
            n if n % 100 == 1 && seen.is_multiple_of(50) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            _ => {}
        }
    }
}

/// Reads a thread at each change, with pauses, or never, depending on the session's `number`.
async fn watch_thread(number: usize, thread: ThreadHandle) {
    let mut revision = 0;
    loop {
        match number % 3 {
            0 => revision = thread.changed(revision).await,
            1 => {
                revision = thread.changed(revision).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            _ => std::future::pending().await,
        }
        thread.read(|thread| assert!(thread.items().len() < UPDATES_PER_SESSION));
    }
}

/// Runs a million updates in a thousand sessions.
pub(crate) async fn run_soak() {
    let begun = Instant::now();
    let mut child = rerun_as(agent::AGENT_ROLE).spawn().unwrap();
    let process = child.id().unwrap().to_string();
    let reader = SoakClient::default();
    let seen = Arc::clone(&reader.seen);
    let transport = Transport::child(&mut child).unwrap();
    let agent = acp::testing::start_client(transport, reader, soak_limits())
        .await
        .unwrap();

    let mut sessions = Vec::new();
    for _ in 0..SESSION_COUNT {
        sessions.push(agent.new_session("/work").await.unwrap());
    }
    let (mut turns, mut watchers) = (JoinSet::new(), JoinSet::new());
    for session in &sessions {
        watchers.spawn(watch_thread(
            session_number(session.id()),
            session.thread().clone(),
        ));
        let session = session.clone();
        turns.spawn(async move { session.prompt(UPDATES_PER_SESSION.to_string()).await });
    }
    while let Some(turn) = turns.join_next().await {
        assert_eq!(turn.unwrap().unwrap(), StopReason::EndTurn);
    }
    assert!(!watchers.is_empty());
    watchers.shutdown().await;

    assert_eq!(
        seen.load(Ordering::Relaxed),
        SESSION_COUNT * UPDATES_PER_SESSION
    );
    for session in &sessions {
        session.thread().read(|thread| {
            // What did not fit was dropped from the start, and counted.
            assert!(thread.truncation().items > 0, "{:?}", thread.truncation());
            let Some(ItemKind::Agent(last)) = thread.items().last().map(|item| &item.kind) else {
                panic!("{}: no message is last", session.id());
            };
            assert!(last.text().ends_with("the end"));
        });
    }
    println!(
        "soak: {SESSION_COUNT} sessions, {} updates in {:?}",
        SESSION_COUNT * UPDATES_PER_SESSION,
        begun.elapsed()
    );
    let (of_agent, of_client) = (peak_memory(&process).unwrap(), peak_memory("self").unwrap());
    check_peak(
        "client",
        of_client,
        PROGRAM_BYTES + soak_limits().max_client_memory(SESSION_COUNT),
    );
    check_peak(
        "agent",
        of_agent,
        PROGRAM_BYTES + soak_limits().max_agent_memory(SESSION_COUNT),
    );
    drop(sessions);
    agent.close();
    agent.closed().await;
    assert!(child.wait().await.unwrap().success());
}

//! Sets up a client, and a server that runs an agent, as in real use.

pub(crate) mod agent;
pub(crate) mod client;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod server;

pub(crate) use agent::TestAgent;
pub(crate) use client::{TestClient, connect_and_open};
pub(crate) use server::TestServer;

use std::time::Duration;

/// The time limit for each thing that a test waits for. It is long because the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `work` and returns its result. Fails if it takes too long.
#[track_caller]
pub(crate) fn with_timeout<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        tokio::time::timeout(TIMEOUT, work)
            .await
            .unwrap_or_else(|_| panic!("{caller}: nothing happened for {TIMEOUT:?}"))
    }
}

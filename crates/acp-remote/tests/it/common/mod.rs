//! A server with an agent, and a client, as in real use.

pub(crate) mod agent;
pub(crate) mod client;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod server;

pub(crate) use agent::TestAgent;
pub(crate) use client::{TestClient, open};
pub(crate) use server::Server;

use std::time::Duration;

/// How long anything may take that a test expects. Long, because the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the result of `work`, and fails if it takes too long.
#[track_caller]
pub(crate) fn soon<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        tokio::time::timeout(PATIENCE, work)
            .await
            .unwrap_or_else(|_| panic!("{caller}: nothing happened for {PATIENCE:?}"))
    }
}

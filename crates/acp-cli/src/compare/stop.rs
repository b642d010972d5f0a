//! Ctrl-C and other signals during a comparison. The first one ends the agents, the second one ends everything.

use std::sync::Arc;

use tokio::sync::watch;

use crate::exit::CommandExit;
use crate::signals::Signals;

/// Knows whether the user wants the comparison to stop.
#[derive(Debug, Clone)]
pub(super) struct StopSignal {
    count: Arc<watch::Sender<u32>>,
}

impl StopSignal {
    /// Starts to listen for signals.
    pub(super) fn listen() -> Result<Self, CommandExit> {
        let mut signals = Signals::listen()
            .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
        let count = Arc::new(watch::Sender::new(0));
        let sender = Arc::clone(&count);
        tokio::spawn(async move {
            loop {
                signals.next().await;
                sender.send_modify(|count: &mut u32| *count = count.saturating_add(1));
            }
        });
        Ok(Self { count })
    }

    pub(super) fn is_requested(&self) -> bool {
        *self.count.borrow() > 0
    }

    /// Waits for the first signal.
    pub(super) async fn requested(&self) {
        self.wait_for(1).await;
    }

    /// Waits for the second signal.
    pub(super) async fn repeated(&self) {
        self.wait_for(2).await;
    }

    /// Runs `work`, unless a signal arrives.
    pub(super) async fn unless_requested<T>(
        &self,
        work: impl Future<Output = Result<T, CommandExit>>,
    ) -> Result<T, CommandExit> {
        tokio::select! {
            biased;
            () = self.requested() => Err(CommandExit::CANCELLED),
            done = work => done,
        }
    }

    async fn wait_for(&self, count: u32) {
        let mut receiver = self.count.subscribe();
        if receiver.wait_for(|now| *now >= count).await.is_err() {
            // The sender lives as long as this.
            std::future::pending::<()>().await;
        }
    }
}

//! Agents whose type is not known until the program runs.

use std::sync::Arc;

use super::Agent;
use super::side::{limits, served, start_shared};
use crate::connection::{Connection, Driver};
use crate::options::Options;
use crate::transport::Transport;

/// An agent behind a pointer. [`Agent`] has methods that `dyn` does not allow; every agent is one of these, too, and one
/// value may serve several connections.
///
/// ```
/// use std::sync::Arc;
/// use acp::agent::DynAgent;
/// # use acp::Agent;
///
/// # fn choose(careful: impl Agent, quick: impl Agent, is_careful: bool) {
/// let agent: Arc<dyn DynAgent> = if is_careful { Arc::new(careful) } else { Arc::new(quick) };
/// # let _ = agent;
/// # }
/// ```
pub trait DynAgent: Send + Sync + 'static {
    /// As [`start`](super::start): a connection to a client, and what moves it.
    fn start(self: Arc<Self>, transport: Transport, options: Options) -> (Connection, Driver);
}

impl<A: Agent> DynAgent for A {
    fn start(self: Arc<Self>, transport: Transport, options: Options) -> (Connection, Driver) {
        start_shared(transport, self, options)
    }
}

impl dyn DynAgent {
    /// As [`serve`](super::serve): serves a client until it closes its side.
    ///
    /// # Errors
    /// Reading or writing fails.
    pub async fn serve(self: Arc<Self>, transport: Transport) -> std::io::Result<()> {
        let (_, driver) = self.start(transport, Options::new().limits(limits()));
        served(driver.await)
    }
}

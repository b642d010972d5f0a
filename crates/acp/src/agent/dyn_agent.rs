//! Agents as trait objects, for programs that choose an agent type at run time.

use std::sync::Arc;

use super::Agent;
use super::side::{default_limits, start_shared, to_serve_result};
use crate::connection::{Connection, Driver};
use crate::options::Options;
use crate::transport::Transport;

/// A dyn-compatible version of [`Agent`], which every agent implements automatically. One value can serve several
/// connections.
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
    /// Starts a connection to a client, like [`start`](super::start). Returns the connection and its driver.
    fn start(self: Arc<Self>, transport: Transport, options: Options) -> (Connection, Driver);
}

impl<A: Agent> DynAgent for A {
    fn start(self: Arc<Self>, transport: Transport, options: Options) -> (Connection, Driver) {
        start_shared(transport, self, options)
    }
}

impl dyn DynAgent {
    /// Serves a client until it closes its end of the connection, like [`serve`](super::serve).
    ///
    /// # Errors
    /// Reading or writing fails.
    pub async fn serve(self: Arc<Self>, transport: Transport) -> std::io::Result<()> {
        let (_, driver) = self.start(transport, Options::new().limits(default_limits()));
        to_serve_result(driver.await)
    }
}

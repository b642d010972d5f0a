//! Clients as trait objects, for programs that choose a client type at run time.

use std::sync::Arc;

use super::Client;
use super::agent::{Handshake, connect_shared};
use crate::connection::Driver;
use crate::options::Options;
use crate::transport::Transport;

/// A dyn-compatible version of [`Client`], which every client implements automatically. One value can have several
/// connections.
///
/// ```
/// use std::sync::Arc;
/// use acp::client::DynClient;
/// # use acp::Client;
///
/// # fn choose(editor: impl Client, script: impl Client, is_interactive: bool, transport: acp::Transport) {
/// let client: Arc<dyn DynClient> = if is_interactive { Arc::new(editor) } else { Arc::new(script) };
/// let (handshake, driver) = client.connect(transport, acp::Options::new());
/// # let _ = (handshake, driver);
/// # }
/// ```
pub trait DynClient: Send + Sync + 'static {
    /// Connects to an agent, like [`connect_with`](super::connect_with). Returns a handshake to await and the
    /// connection's driver.
    fn connect(self: Arc<Self>, transport: Transport, options: Options) -> (Handshake, Driver);
}

impl<C: Client> DynClient for C {
    fn connect(self: Arc<Self>, transport: Transport, options: Options) -> (Handshake, Driver) {
        connect_shared(transport, self, options)
    }
}

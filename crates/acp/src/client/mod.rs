//! The client's side of the protocol, for editors, terminal programs and scripts.
//!
//! Implement [`Client`] to handle the agent's requests, [`connect`] to an agent, open a [`ClientSession`], send
//! prompts, and render the session's [`Thread`](crate::Thread).

mod agent;
mod dyn_client;
mod initialize;
mod mcp_servers;
mod methods;
mod open_session;
mod session;
mod sessions;
mod side;
mod state;
#[cfg(feature = "unstable")]
mod unstable;

pub use crate::client_core::{ObservedChange, ObservedEvent, Observer, PermissionRequest};
pub use crate::extension::{ExtensionNotification, ExtensionRequest};
pub use crate::session_setup::SessionSetup;
pub use crate::update::Update;
pub use agent::{AgentConnection, Handshake, connect, connect_with};
pub use dyn_client::DynClient;
pub use methods::{Elicitation, ReadTextFile, Terminals, WriteTextFile};
pub use session::{ClientSession, PromptContent};
pub use side::UpdateContext;
pub use state::ClientState;

use acp_wire::v1::{
    AuthStatusUpdateNotification, ElicitationId, Implementation, McpServer,
    RequestPermissionOutcome,
};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::pending_request::UnsupportedMethod;

/// A client, which handles an agent's requests and updates. Every method is optional.
///
/// The client's capabilities (`clientCapabilities`) are derived from the methods of this trait. For example, the client
/// declares `fs.readTextFile` exactly when [`read_text_file`](Self::read_text_file) returns a handler.
pub trait Client: Send + Sync + 'static {
    /// The client's own data for one session. It is created when the session is first seen, passed to every call about
    /// the session, and dropped when the session is closed. See [`ClientState`]. Use `()` if you need none.
    type State: ClientState<Self>;

    /// Returns the client's name and version (`clientInfo`).
    fn info(&self) -> Option<Implementation> {
        None
    }

    /// Returns the client's own MCP servers. They are passed to the agent whenever a session is opened, loaded or
    /// resumed, after the servers of its [`SessionSetup`]. A server whose name is already in use is left out. This
    /// method is called each time and must not block. See "MCP Servers" on the specification's page "Session Setup".
    ///
    /// The crate `acp-mcp` creates such a server from tools that run in the client's process.
    fn mcp_servers(&self) -> Vec<McpServer> {
        Vec::new()
    }

    /// Handles a session update, after it has been applied to the thread.
    ///
    /// Updates come one at a time, in the order in which they arrive. The next message is handled when this method
    /// returns, so a slow handler makes the agent wait. The handler may send requests to the agent and await them,
    /// except for `session/prompt` and `session/load`, whose responses come after all of their updates.
    fn update(
        &self,
        state: &Self::State,
        cx: &UpdateContext,
        update: &Update,
    ) -> impl Future<Output = ()> + Send {
        let _ = (state, cx, update);
        async {}
    }

    /// Handles a permission request, by default by rejecting the tool call. See "Requesting Permission" on the
    /// specification's page "Tool Calls".
    ///
    /// If the turn is cancelled while the request is pending, the future is dropped and the agent is notified.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) is sent as the outcome `cancelled`, any other error as an error
    /// response.
    fn request_permission(
        &self,
        state: &Self::State,
        request: PermissionRequest,
    ) -> impl Future<Output = Result<RequestPermissionOutcome>> + Send {
        let _ = state;
        async move { Ok(request.reject()) }
    }

    /// Returns `true` if the client can run the agent's program in a terminal for the user to log in (`auth.terminal`).
    /// Otherwise, [`AgentConnection::auth_methods`] contains no methods of type `terminal`.
    fn supports_terminal_login(&self) -> bool {
        false
    }

    /// Returns the handler for reading text files (`fs.readTextFile`). Version 2 agents do not read files through the
    /// client.
    fn read_text_file(&self) -> Option<&impl ReadTextFile<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler for writing text files (`fs.writeTextFile`). Version 2 agents do not write files through the
    /// client.
    fn write_text_file(&self) -> Option<&impl WriteTextFile<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler for terminals (`terminal`). Version 2 agents do not use client terminals.
    fn terminals(&self) -> Option<&impl Terminals<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Returns the handler for elicitations (`elicitation`).
    fn elicitation(&self) -> Option<&impl Elicitation<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Called when the agent reports that the user has completed an elicitation on a web page (`elicitation/complete`).
    fn elicitation_completed(&self, id: &ElicitationId) -> impl Future<Output = ()> + Send {
        let _ = id;
        async {}
    }

    /// Handles a change of the authentication status (`auth/status_update`, unstable).
    #[cfg(feature = "unstable")]
    fn auth_status_changed(
        &self,
        status: AuthStatusUpdateNotification,
    ) -> impl Future<Output = ()> + Send {
        let _ = status;
        async {}
    }

    /// Handles an extension request. See [`ExtensionRequest`].
    ///
    /// # Errors
    /// The error is sent as the response: -32601 if the method is unknown.
    fn extension_request(
        &self,
        request: ExtensionRequest,
    ) -> impl Future<Output = Result<Box<RawValue>>> + Send {
        async move { Err(request.not_found()) }
    }

    /// Handles an extension notification. The connection handles no further message until this method returns.
    fn extension_notification(
        &self,
        notification: ExtensionNotification,
    ) -> impl Future<Output = ()> + Send {
        let _ = notification;
        async {}
    }
}

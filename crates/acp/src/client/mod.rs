//! The client's side: what an editor, a terminal program or a script is.
//!
//! Implement [`Client`] for what the agent may ask, [`connect`] to an agent, open a
//! [`ClientSession`], prompt, and render its [`Thread`](crate::Thread).

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
mod turn;
#[cfg(feature = "unstable")]
mod unstable;

pub use crate::extension::{ExtensionNotification, ExtensionRequest};
pub use crate::session_setup::SessionSetup;
pub use crate::update::Update;
pub use agent::{AgentConnection, Handshake, connect, connect_with};
pub use dyn_client::DynClient;
pub use methods::{Elicitation, PermissionRequest, ReadTextFile, Terminals, WriteTextFile};
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

/// What a client does when the agent asks.
///
/// Everything is optional. What a client can do (`clientCapabilities`) is taken from what it gives
/// here, so the two cannot disagree: an agent is told of file access exactly when
/// [`read_text_file`](Self::read_text_file) gives something.
pub trait Client: Send + Sync + 'static {
    /// The client's own data for one session, which is made when the session is first seen, handed to every call about
    /// the session, and dropped when it is closed: [`ClientState`]. `()` if there is none.
    type State: ClientState<Self>;

    /// Who the client is (`clientInfo`).
    fn info(&self) -> Option<Implementation> {
        None
    }

    /// MCP servers of the client's own: Session setup, "MCP Servers". They are given to the agent with
    /// every session that is opened, loaded or resumed, behind those of its [`SessionSetup`]; one whose
    /// name is taken already is left out. Asked for each time. Must not block.
    ///
    /// The crate `acp-mcp` makes one of tools that run in the client's process.
    fn mcp_servers(&self) -> Vec<McpServer> {
        Vec::new()
    }

    /// Something has happened in a session, and its thread shows it already.
    ///
    /// Updates come one by one, in the order of the wire, and the next message is looked at when
    /// this returns: a slow handler makes the agent wait. It may make requests of the agent and
    /// await them, except for `session/prompt` and `session/load`, whose answers come after all of
    /// their updates.
    fn update(
        &self,
        state: &Self::State,
        cx: &UpdateContext,
        update: &Update,
    ) -> impl Future<Output = ()> + Send {
        let _ = (state, cx, update);
        async {}
    }

    /// The agent asks for permission: tool calls, "Requesting Permission". Rejects by default.
    ///
    /// When the turn is cancelled meanwhile, the future is dropped and the agent is told so.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) is answered as cancelled; any other is the answer to the request.
    fn request_permission(
        &self,
        state: &Self::State,
        request: PermissionRequest,
    ) -> impl Future<Output = Result<RequestPermissionOutcome>> + Send {
        let _ = state;
        async move { Ok(request.reject()) }
    }

    /// Whether the client can run the agent's program in a terminal, where the person logs in
    /// (`auth.terminal`): [`AgentConnection::auth_methods`] may have such methods then.
    fn terminal_login(&self) -> bool {
        false
    }

    /// Reading text files (`fs.readTextFile`). Agents of version 2 do not ask for it.
    fn read_text_file(&self) -> Option<&impl ReadTextFile<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Writing text files (`fs.writeTextFile`). Agents of version 2 do not ask for it.
    fn write_text_file(&self) -> Option<&impl WriteTextFile<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Terminals (`terminal`). Agents of version 2 do not ask for them.
    fn terminals(&self) -> Option<&impl Terminals<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// Asking the person for input (`elicitation`).
    fn elicitation(&self) -> Option<&impl Elicitation<Self::State>> {
        None::<&UnsupportedMethod>
    }

    /// What was asked on a web page has been done there (`elicitation/complete`).
    fn elicitation_completed(&self, id: &ElicitationId) -> impl Future<Output = ()> + Send {
        let _ = id;
        async {}
    }

    /// Whether one must authenticate has changed (`auth/status_update`, unstable).
    #[cfg(feature = "unstable")]
    fn auth_status_changed(
        &self,
        status: AuthStatusUpdateNotification,
    ) -> impl Future<Output = ()> + Send {
        let _ = status;
        async {}
    }

    /// A request of an extension: [`ExtensionRequest`].
    ///
    /// # Errors
    /// The error is the answer; -32601 where the method is not known.
    fn extension_request(
        &self,
        request: ExtensionRequest,
    ) -> impl Future<Output = Result<Box<RawValue>>> + Send {
        async move { Err(request.not_found()) }
    }

    /// A notification of an extension. The next message is looked at when this returns.
    fn extension_notification(
        &self,
        notification: ExtensionNotification,
    ) -> impl Future<Output = ()> + Send {
        let _ = notification;
        async {}
    }
}

//! Bridges protocol versions 1 and 2, so that an agent that speaks one can work with a client that speaks the other.
//!
//! [`Bridge::to_v2`] puts a version 1 agent behind a version 2 client, and [`Bridge::to_v1`] puts a version 2 agent
//! behind a version 1 client. If agent and client turn out to speak the same version, lines pass unchanged.
//!
//! A bridge works line by line. Lines that do not have to change are passed on byte for byte. In other lines, only the
//! fields that differ between the versions change. Unknown methods, fields, types and `_meta`, and numbers of any size,
//! pass unchanged. Request ids are the same on both sides. Each side's lines are handled in order, and the output for
//! one line is buffered before the next line is handled. If one side does not read, the other waits.
//!
//! # What cannot be translated
//!
//! A version 1 agent behind a version 2 client:
//!
//! | message or feature | translation |
//! |---|---|
//! | `fs/*` and `terminal/*` requests | error -32601: version 2 clients do not have these methods |
//! | an error as the response to a prompt | an idle `state_update` with stop reason `error`: by then the prompt has been acknowledged, even if the error is that authentication is required |
//! | a second prompt while a turn runs | queued until the turn ends, at most 16 per session; it never joins the running turn |
//! | `session/list`, `session/close` if the agent does not support them | the list of sessions opened through the bridge; a cancel |
//! | `session/resume` if the agent can only load | a load whose replay is dropped |
//! | `session/resume` with a replay if the agent can only resume | error -32601 |
//! | MCP servers over SSE | not offered |
//! | a diff's old and new text | a patch; no patch if the two texts together exceed 4 MiB |
//!
//! A version 2 agent behind a version 1 client:
//!
//! | message or feature | translation |
//! |---|---|
//! | work that the agent starts by itself, `background` | updates are passed on, states are not |
//! | a whole message | the part that the client does not have yet; if an earlier part changed, the whole message again under another id |
//! | a cleared message | nothing; later chunks form another message |
//! | tool call content sent in chunks | the whole content each time, at most the last 256 KiB per call and 4 MiB per session |
//! | tool call status `cancelled`, `paused`; plan entry status `cancelled` | `failed`, `in_progress`; `completed`; the original is in `_meta` |
//! | a structured diff | its patch as text, or one line per file |
//! | terminal output | `_meta` of the tool call that shows the terminal; until one does, the last 64 KiB are stored. Output sent again is shown below the earlier output |
//! | several plans | merged into one, for clients without `plan`; plans of other types are omitted |
//! | notices, compaction | omitted if the client does not support them |
//! | subagents | omitted if the client does not support them; their requests are sent in the session that the user opened |
//! | boolean options | omitted if the client does not support them |
//! | unknown stop reasons | `end_turn`; the original is in `_meta` |
//! | client files and terminals | version 2 has no methods for them; the agent uses its own |

mod config;
mod diff;
mod json;
mod method;
mod negotiate;
mod pump;
mod setup;
mod state;
mod v1_to_v2;
mod v2_to_v1;
mod writer;

use std::io;
use std::time::Duration;

use self::negotiate::{BridgeState, BridgeTarget};
use self::pump::Pump;
use crate::connection::Limits;
use crate::transport::Transport;

/// A callback for lines from the agent that are not messages.
pub(crate) type BridgeNoiseHandler = Box<dyn FnMut(&str) + Send>;

/// One of the two sides of a bridge: the client or the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BridgeSide {
    /// The connection to the client.
    Client,
    /// The connection to the agent.
    Agent,
}

/// How a bridge ended: which side closed first, and the error, if any.
#[derive(Debug)]
#[non_exhaustive]
pub struct BridgeEnd {
    /// The side whose stream ended first.
    pub first: BridgeSide,
    /// The error that ended the first side's stream, or `None` if the side closed it normally.
    pub error: Option<io::Error>,
    /// The number of lines from the agent that were not messages.
    pub noise: u64,
}

/// A bridge, ready to run.
///
/// ```no_run
/// # async fn f(client: acp::Transport, agent: acp::Transport) {
/// let end = acp::bridge::Bridge::to_v2().run(client, agent).await;
/// # }
/// ```
#[must_use = "a bridge does nothing unless it is run"]
pub struct Bridge {
    target: BridgeTarget,
    limits: Limits,
    on_noise: BridgeNoiseHandler,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge")
            .field("to", &self.target)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Bridge {
    fn new(to: BridgeTarget) -> Self {
        let limits = Limits {
            linger: Duration::from_secs(2),
            ..Limits::default()
        };
        Self {
            target: to,
            limits,
            on_noise: Box::new(|_| ()),
        }
    }

    /// Creates a bridge between a version 1 agent and a version 2 client.
    pub fn to_v2() -> Self {
        Self::new(BridgeTarget::V2)
    }

    /// Creates a bridge between a version 2 agent and a version 1 client.
    pub fn to_v1() -> Self {
        Self::new(BridgeTarget::V1)
    }

    /// Sets the limits. A bridge uses `message`, `outbox` and `requests` for each side. It also uses `linger`, the time
    /// for which the second side may continue after the first has ended (2 s by default).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets a handler for lines from the agent that are not messages, such as log output. The handler runs between two
    /// messages and must not block.
    pub fn on_noise(mut self, on_noise: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_noise = Box::new(on_noise);
        self
    }

    /// Runs the bridge until one side has ended.
    ///
    /// When the client ends, the bridge closes the agent's input and passes on what the agent still sends within
    /// [`Limits::linger`]. When the agent ends, every pending client request gets an error response. The transports
    /// are closed when this returns.
    pub async fn run(self, client: Transport, agent: Transport) -> BridgeEnd {
        let core = BridgeState::new(self.target, self.limits.clone());
        Pump::new(core, self.limits, self.on_noise)
            .run(client, agent)
            .await
    }
}

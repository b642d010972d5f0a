//! A bridge between versions 1 and 2 of the protocol: an agent of one behind a client of the other.
//!
//! [`Bridge::to_v2`] puts an agent of version 1 behind a client of version 2, [`Bridge::to_v1`] the
//! other way round. When both sides turn out to speak the same version, lines pass as they came.
//!
//! A bridge is a pump of lines. What it need not change it passes on as the bytes that came, and of what
//! it changes only the fields that differ between the versions: methods, fields, kinds and `_meta` that
//! it does not know, and numbers of any size, come out as they went in. Ids of requests are the same on
//! both sides. Each side's lines are looked at in their order and what comes of one is written before
//! the next is looked at; a side that does not read makes the other wait.
//!
//! # What cannot be carried over
//!
//! An agent of version 1 behind a client of version 2:
//!
//! | what | becomes |
//! |---|---|
//! | `fs/*`, `terminal/*` of a client | answered with -32601: a client of version 2 has none |
//! | an error as the answer to a prompt | `state_update` idle with stop reason `error`: the prompt has been acknowledged by then, also when the error is that one must authenticate |
//! | a second prompt while a turn runs | waits for the end of the turn, 16 of them at most; it joins nothing |
//! | `session/list`, `session/close` of an agent without them | the sessions opened through the bridge; a cancel |
//! | `session/resume` of an agent that can only load | a load whose replay is swallowed |
//! | `session/resume` with replay of an agent that can only resume | -32601 |
//! | MCP servers over SSE | not offered |
//! | the texts of a diff before and after | a patch; none for texts of more than 4 MiB |
//!
//! An agent of version 2 behind a client of version 1:
//!
//! | what | becomes |
//! |---|---|
//! | work that the agent begins by itself, `background` | its updates are passed, its state is not |
//! | a message told whole | the part the client has not been told yet; if it was changed otherwise, the whole again under another id |
//! | a message cleared | nothing; what follows is another message |
//! | content of a tool call told in pieces | all of it each time, at most the last 256 KiB of a call and 4 MiB of a session |
//! | status `cancelled`, `paused` of a tool call; `cancelled` of a plan's entry | `failed`, `in_progress`; `completed`; the original is in `_meta` |
//! | a structured diff | its patch as text, or a line for each file |
//! | a terminal's output | `_meta` of the tool call that shows the terminal; before one does, its last 64 KiB are kept. Output told anew is shown below what was there |
//! | several plans | one after the other, for clients without `plan`; plans of other kinds are left out |
//! | notices, compaction | left out for clients without the capability |
//! | subagents | left out for clients without the capability; what they ask is asked in the session that they work for |
//! | yes-or-no options | left out for clients without the capability |
//! | unknown stop reasons | `end_turn`; the original is in `_meta` |
//! | a client's files and terminals | have no words in version 2; the agent uses its own |

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

/// What is done with a line of the agent's that is no message.
pub(crate) type BridgeNoiseHandler = Box<dyn FnMut(&str) + Send>;

/// A side of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BridgeSide {
    /// The client.
    Client,
    /// The agent.
    Agent,
}

/// How a bridge has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct BridgeEnd {
    /// The side that ended first.
    pub first: BridgeSide,
    /// Why, if it did not simply close its side.
    pub error: Option<io::Error>,
    /// How many lines of the agent's were no messages.
    pub noise: u64,
}

/// A bridge that is to be run.
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

    /// Puts an agent of version 1 behind a client of version 2.
    pub fn to_v2() -> Self {
        Self::new(BridgeTarget::V2)
    }

    /// Puts an agent of version 2 behind a client of version 1.
    pub fn to_v1() -> Self {
        Self::new(BridgeTarget::V1)
    }

    /// Sets what is kept. Of the limits, `message`, `outbox` (for each side), `requests` (of each side)
    /// and `linger` (what the other side is given once one has ended; 2 s) are used.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Has each line of the agent's shown that is no message, such as log output. It is called between
    /// two messages and must not block.
    pub fn on_noise(mut self, on_noise: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_noise = Box::new(on_noise);
        self
    }

    /// Runs the bridge until one side has ended.
    ///
    /// When the client ends, the agent's input is closed, and what it still says within
    /// [`Limits::linger`] is passed on. When the agent ends, every request that it has not answered is
    /// answered with an error. Either way the transports are closed when this returns.
    pub async fn run(self, client: Transport, agent: Transport) -> BridgeEnd {
        let core = BridgeState::new(self.target, self.limits.clone());
        Pump::new(core, self.limits, self.on_noise)
            .run(client, agent)
            .await
    }
}

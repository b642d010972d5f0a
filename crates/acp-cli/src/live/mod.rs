//! Local live sessions: `--session NAME` attaches to a server of this user, which holds the agent. The server starts by
//! itself, and exits when the agent is no longer used.
//!
//! `docs/decisions/0024-local-sessions.md` explains the design. What is where:
//!
//! | file | subject |
//! |---|---|
//! | `directory.rs` | the private directory of the sockets, and the lock that servers and their starters hold |
//! | `control.rs` | requests to a server: its status, and stopping it |
//! | `attach.rs` | attaches to the server of an agent and directory, or starts it |
//! | `unix_server.rs` | the server's side: binds the socket, and removes it when the server is no longer used |
//! | `detached.rs` | `--no-wait`: a run that goes on in the background |
//! | `notes.rs` | what a user who watches a session is told, apart from the conversation |

mod attach;
#[cfg(unix)]
mod control;
mod detached;
#[cfg(unix)]
mod directory;
mod notes;
#[cfg(unix)]
pub(crate) mod unix_server;

use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use attach::{AttachMode, LiveAttachment, LiveTarget};
pub(crate) use detached::RunLauncher;
pub(crate) use notes::WatcherNotes;

/// Whose turn it is in a live session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOwner {
    ThisClient,
    OtherClient,
}

/// Returns whose turn starts, if this is the notification that a server sends before what the agent does in a turn.
pub(crate) fn turn_started(method: &str, params: Option<&RawValue>) -> Option<TurnOwner> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TurnStartedParams {
        is_own: bool,
    }
    let params = params.filter(|_| method == "_live/turn_started")?;
    let params: TurnStartedParams = serde_json::from_str(params.get()).ok()?;
    Some(match params.is_own {
        true => TurnOwner::ThisClient,
        false => TurnOwner::OtherClient,
    })
}

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

mod attach;
#[cfg(unix)]
mod control;
mod detached;
#[cfg(unix)]
mod directory;
#[cfg(unix)]
pub(crate) mod unix_server;

use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use attach::{AttachMode, LiveAttachment, LiveTarget};
pub(crate) use detached::RunLauncher;

/// Returns `true` for the notification that a server sends before everything that belongs to the client's own turn.
pub(crate) fn is_own_turn_started(method: &str, params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TurnStartedParams {
        is_own: bool,
    }
    method == "_live/turn_started"
        && params.is_some_and(|params| {
            let params: Result<TurnStartedParams, _> = serde_json::from_str(params.get());
            params.is_ok_and(|params| params.is_own)
        })
}

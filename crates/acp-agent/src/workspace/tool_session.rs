//! What a session knows and remembers, as far as its tools ask for it.

use acp::v1::SessionConfigOption;
use futures_util::future::BoxFuture;

use super::access::WorkspaceAccess;
use crate::mode::Mode;
use crate::permission::subject::AlwaysSubject;

/// The session that a tool works in.
pub(crate) trait ToolSession: Send + Sync {
    /// The agent's own access to its files; if there is none, why.
    fn access(&self) -> Result<&WorkspaceAccess, &str>;

    /// Whether commands must run in a sandbox.
    fn is_sandboxed(&self) -> bool;

    fn mode(&self) -> Mode;

    fn set_mode(&self, mode: Mode) -> BoxFuture<'_, acp::Result<()>>;

    /// Its config options, as its client is told of them.
    fn options(&self) -> Vec<SessionConfigOption>;

    /// What was answered with "always" before, in the session's directories.
    fn always_answer(&self, subject: &AlwaysSubject) -> Option<bool>;

    fn remember<'a>(
        &'a self,
        subject: &'a AlwaysSubject,
        allowed: bool,
    ) -> BoxFuture<'a, acp::Result<()>>;

    /// An id for a tool call that no other of the session has.
    fn next_call_id(&self) -> String;
}

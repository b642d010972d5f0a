//! Defines the interface that a session exposes to its tools.

use acp::v1::SessionConfigOption;
use futures_util::future::BoxFuture;

use super::access::WorkspaceAccess;
use crate::mode::Mode;
use crate::permission::subject::AlwaysSubject;

/// The interface that a session exposes to the tools running in it.
pub(crate) trait ToolSession: Send + Sync {
    /// Returns direct access to the session's files, or the reason why there is none.
    fn access(&self) -> Result<&WorkspaceAccess, &str>;

    /// Returns `true` if commands must run in the sandbox.
    fn is_sandboxed(&self) -> bool;

    fn mode(&self) -> Mode;

    fn set_mode(&self, mode: Mode) -> BoxFuture<'_, acp::Result<()>>;

    /// Returns the session's config options, as sent to the client.
    fn config_options(&self) -> Vec<SessionConfigOption>;

    /// Returns the remembered answer for `subject`, if one applies in the session's directories.
    fn always_answer(&self, subject: &AlwaysSubject) -> Option<bool>;

    fn remember<'a>(
        &'a self,
        subject: &'a AlwaysSubject,
        allowed: bool,
    ) -> BoxFuture<'a, acp::Result<()>>;

    /// Returns a tool call id that is unique in the session.
    fn next_call_id(&self) -> String;
}

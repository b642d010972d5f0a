//! Implements [`ToolSession`], the interface through which tools access a session.

use acp::v1::SessionConfigOption;
use futures_util::future::BoxFuture;

use super::SessionState;
use crate::mode::Mode;
use crate::permission::subject::AlwaysSubject;
use crate::workspace::access::WorkspaceAccess;
use crate::workspace::tool_session::ToolSession;

impl ToolSession for SessionState {
    fn access(&self) -> Result<&WorkspaceAccess, &str> {
        self.access()
    }

    fn is_sandboxed(&self) -> bool {
        self.is_sandboxed
    }

    fn mode(&self) -> Mode {
        self.mode()
    }

    fn set_mode(&self, mode: Mode) -> BoxFuture<'_, acp::Result<()>> {
        Box::pin(async move { Ok(self.set_mode(mode).await?) })
    }

    fn config_options(&self) -> Vec<SessionConfigOption> {
        self.config_options()
    }

    fn always_answer(&self, subject: &AlwaysSubject) -> Option<bool> {
        self.always_answer(subject)
    }

    fn remember<'a>(
        &'a self,
        subject: &'a AlwaysSubject,
        allowed: bool,
    ) -> BoxFuture<'a, acp::Result<()>> {
        Box::pin(async move { Ok(self.remember(subject, allowed).await?) })
    }

    fn next_call_id(&self) -> String {
        self.next_call_id()
    }
}

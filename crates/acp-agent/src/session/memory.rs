//! What a session's tools ask of it.

use acp::v1::SessionConfigOption;
use futures_util::future::BoxFuture;

use super::SessionState;
use crate::mode::Mode;
use crate::permission::subject::Subject;
use crate::workspace::access::Access;
use crate::workspace::memory::Memory;

impl Memory for SessionState {
    fn access(&self) -> Result<&Access, &str> {
        self.own()
    }

    fn is_sandboxed(&self) -> bool {
        self.sandboxed
    }

    fn mode(&self) -> Mode {
        self.mode()
    }

    fn set_mode(&self, mode: Mode) -> BoxFuture<'_, acp::Result<()>> {
        Box::pin(async move { Ok(self.set_mode(mode).await?) })
    }

    fn options(&self) -> Vec<SessionConfigOption> {
        self.options()
    }

    fn always(&self, subject: &Subject) -> Option<bool> {
        self.always(subject)
    }

    fn remember<'a>(
        &'a self,
        subject: &'a Subject,
        allowed: bool,
    ) -> BoxFuture<'a, acp::Result<()>> {
        Box::pin(async move { Ok(self.remember(subject, allowed).await?) })
    }

    fn next_call_id(&self) -> String {
        self.next_call_id()
    }
}

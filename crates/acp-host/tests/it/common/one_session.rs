//! Helpers for tests of a host with one session.

use std::ops::Deref;

use acp::client::{PermissionRequest, ReadTextFile, Terminals, WriteTextFile};
use acp::{Result, ThreadHandle};
use acp_host::{Host, HostSession, Prompter};
use acp_wire::v1::*;

pub(crate) struct OneSession<P> {
    host: Host<P>,
    session: HostSession,
}

impl<P> Deref for OneSession<P> {
    type Target = Host<P>;

    fn deref(&self) -> &Host<P> {
        &self.host
    }
}

impl<P: Prompter + Send + Sync> OneSession<P> {
    pub(crate) fn new(host: Host<P>, thread: &ThreadHandle) -> Self {
        let session = host.session(&SessionId::from("s"), thread);
        Self { host, session }
    }

    pub(crate) fn turn_ended(&self, stop_reason: Option<&StopReason>) {
        self.session.turn_ended(stop_reason);
    }

    pub(crate) async fn request_permission(
        &self,
        request: &PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.host.request_permission(&self.session, request).await
    }

    pub(crate) async fn read(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        self.host.read(&self.session, request).await
    }

    pub(crate) async fn write(
        &self,
        request: WriteTextFileRequest,
    ) -> Result<WriteTextFileResponse> {
        self.host.write(&self.session, request).await
    }

    pub(crate) async fn create(
        &self,
        request: CreateTerminalRequest,
    ) -> Result<CreateTerminalResponse> {
        self.host.create(&self.session, request).await
    }

    pub(crate) async fn wait_for_exit(
        &self,
        request: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        self.host.wait_for_exit(&self.session, request).await
    }
}

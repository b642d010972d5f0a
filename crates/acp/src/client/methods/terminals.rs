//! The `terminal/*` methods, which run commands in client terminals. See the specification's page "Terminals".

use acp_wire::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, TerminalOutputRequest, TerminalOutputResponse,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use acp_wire::{MessageHandler, Request};

use crate::client::Client;
use crate::client::side::ClientSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for all `terminal/*` methods, which run commands in client terminals. Version 1 only. See the
/// specification's page "Terminals".
///
/// An error that a method returns is sent as the response. The output of a released terminal stays visible in the tool
/// call that contains the terminal.
pub trait Terminals<S>: Send + Sync {
    /// Starts a command, without waiting for it to exit. See "Executing Commands" on the specification's page
    /// "Terminals".
    fn create(
        &self,
        state: &S,
        request: CreateTerminalRequest,
    ) -> impl Future<Output = Result<CreateTerminalResponse>> + Send;

    /// Returns the output, and the exit status if the command has exited. Output over the byte limit is truncated at
    /// the start, at a character boundary. See "Getting Output" on the specification's page "Terminals".
    fn output(
        &self,
        state: &S,
        request: TerminalOutputRequest,
    ) -> impl Future<Output = Result<TerminalOutputResponse>> + Send;

    /// Waits until the command has exited. See "Waiting for Exit" on the specification's page "Terminals".
    fn wait_for_exit(
        &self,
        state: &S,
        request: WaitForTerminalExitRequest,
    ) -> impl Future<Output = Result<WaitForTerminalExitResponse>> + Send;

    /// Kills the command, but keeps the terminal. See "Killing Commands" on the specification's page "Terminals".
    fn kill(
        &self,
        state: &S,
        request: KillTerminalRequest,
    ) -> impl Future<Output = Result<KillTerminalResponse>> + Send;

    /// Kills the command if it is running, and frees the terminal. See "Releasing Terminals" on the specification's
    /// page "Terminals".
    fn release(
        &self,
        state: &S,
        request: ReleaseTerminalRequest,
    ) -> impl Future<Output = Result<ReleaseTerminalResponse>> + Send;
}

impl<S: Sync> Terminals<S> for UnsupportedMethod {
    async fn create(&self, _: &S, _: CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        match *self {}
    }
    async fn output(&self, _: &S, _: TerminalOutputRequest) -> Result<TerminalOutputResponse> {
        match *self {}
    }
    async fn wait_for_exit(
        &self,
        _: &S,
        _: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        match *self {}
    }
    async fn kill(&self, _: &S, _: KillTerminalRequest) -> Result<KillTerminalResponse> {
        match *self {}
    }
    async fn release(&self, _: &S, _: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse> {
        match *self {}
    }
}

offered_by! {
    terminals:
    CreateTerminalRequest,
    TerminalOutputRequest,
    ReleaseTerminalRequest,
    WaitForTerminalExitRequest,
    KillTerminalRequest,
}

macro_rules! handle {
    ($($request:ident, $call:ident;)+) => { $(
        impl<C: Client> MessageHandler<$request, ()> for PendingRequest<ClientSide<C>> {
            fn handle(self, request: $request) {
                let Some((Self { side, responder }, state)) = self.require_session(&request.session_id) else {
                    return;
                };
                responder.spawn(async move {
                    let terminals = require_handler(side.client.terminals(), $request::METHOD)?;
                    terminals.$call(&state, request).await
                });
            }
        }
    )+ };
}

handle! {
    CreateTerminalRequest, create;
    WaitForTerminalExitRequest, wait_for_exit;
    KillTerminalRequest, kill;
    ReleaseTerminalRequest, release;
}

impl<C: Client> MessageHandler<TerminalOutputRequest, ()> for PendingRequest<ClientSide<C>> {
    fn handle(self, request: TerminalOutputRequest) {
        let Some((Self { side, responder }, state)) = self.require_session(&request.session_id)
        else {
            return;
        };
        let work = async move {
            let terminals =
                require_handler(side.client.terminals(), TerminalOutputRequest::METHOD)?;
            terminals.output(&state, request).await
        };
        // The response can contain all output of the terminal.
        responder.spawn_sized(work, |response| response.output.len());
    }
}

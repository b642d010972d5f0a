//! An agent that asks for permission, and a client that allows reads but no changes.
//!
//! ```sh
//! cargo run -p acp-sdk --example permission
//! ```

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use acp::agent::{
    Agent, NewToolCall, OpenedSession, PermissionAnswer, Prompt, Session, SessionSetup, Turn,
};
use acp::client::{Client, PermissionRequest, connect};
use acp::thread::ItemKind;
use acp::transport;
use acp::v1::{RequestPermissionOutcome, StopReason, ToolKind};

struct PermissionAgent;

impl Agent for PermissionAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
        for (what, kind) in [
            ("Read notes.txt", ToolKind::Read),
            ("Delete notes.txt", ToolKind::Delete),
        ] {
            let call = turn
                .report_tool_call(NewToolCall::new(what).kind(kind))
                .await?;
            match turn.ask(&call).await? {
                // A real agent would act here.
                PermissionAnswer::Allowed => call.complete().await?,
                PermissionAnswer::Rejected => call.fail("not allowed").await?,
                PermissionAnswer::Cancelled => return Ok(StopReason::Cancelled),
            }
        }
        Ok(StopReason::EndTurn)
    }
}

struct PermissionClient;

impl Client for PermissionClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        println!("Allow {:?}?", request.title);
        // A real client asks the user, who chooses one of `request.options`.
        Ok(match request.kind() {
            ToolKind::Read | ToolKind::Search => request.allow(),
            _ => request.reject(),
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp::Result<()> {
    let (client_transport, agent_transport) = transport::memory();
    let (_, driver) = acp::agent::start(agent_transport, PermissionAgent, acp::Options::new());
    tokio::spawn(driver);
    let (handshake, driver) = connect(client_transport, PermissionClient);
    tokio::spawn(driver);
    let session = handshake.await?.new_session("/").await?;
    let stopped = session.prompt("Tidy up.").await?;
    session.thread().read(|thread| {
        for item in thread.items() {
            if let ItemKind::ToolCall(call) = &item.kind {
                println!("{}: {}", call.title, call.status);
            }
        }
    });
    println!("({stopped})");
    Ok(())
}

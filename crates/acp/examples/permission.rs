//! An agent that asks before it acts, and a client that lets it look but not change.
//!
//! ```sh
//! cargo run -p acp-sdk --example permission
//! ```

// Clippy takes a program that prints for one that logs.
#![allow(clippy::print_stdout)]

use acp::agent::{Agent, Prompt, Turn};
use acp::client::{Client, PermissionRequest, connect};
use acp::thread::ItemKind;
use acp::transport;
use acp::v1::PermissionOptionKind::{AllowOnce, RejectOnce};
use acp::v1::{PermissionOption, RequestPermissionOutcome, StopReason, ToolCall, ToolKind};

struct Careful;

impl Agent for Careful {
    async fn prompt(&self, turn: Turn, _: Prompt) -> acp::Result<StopReason> {
        for (id, what, kind) in [
            ("call_1", "Read notes.txt", ToolKind::Read),
            ("call_2", "Delete notes.txt", ToolKind::Delete),
        ] {
            let call = turn.tool_call(ToolCall::new(id, what).kind(kind)).await?;
            let yes = PermissionOption::new("yes", "Yes", AllowOnce);
            let no = PermissionOption::new("no", "No", RejectOnce);
            let options = vec![yes, no];
            match turn.request_permission(call.change(), options).await? {
                RequestPermissionOutcome::Selected(chosen) if chosen.option_id == "yes".into() => {
                    // Here it would be done.
                    call.complete().await?;
                }
                RequestPermissionOutcome::Selected(_) => call.fail("not allowed").await?,
                // The turn is cancelled, or the client says neither yes nor no.
                _ => return Ok(StopReason::Cancelled),
            }
        }
        Ok(StopReason::EndTurn)
    }
}

struct Reader;

impl Client for Reader {
    async fn request_permission(
        &self,
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        println!("May it {:?}?", request.title);
        // A real client asks the person, who chooses one of `request.options`.
        Ok(match request.kind() {
            ToolKind::Read | ToolKind::Search => request.allow(),
            _ => request.reject(),
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp::Result<()> {
    let (ours, theirs) = transport::memory();
    acp::agent::start(theirs, Careful, acp::Options::new());
    let session = connect(ours, Reader).await?.new_session("/").await?;
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

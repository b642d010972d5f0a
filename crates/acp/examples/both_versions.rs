//! An agent and a client that both speak either protocol version. The same code sends different messages on the wire.
//!
//! ```sh
//! cargo run -p acp-sdk --example both_versions
//! ```

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::client::{Client, Update, UpdateContext, connect_with};
use acp::v1::{ProtocolVersion, StopReason, ToolCall};
use acp::{Options, transport};

struct BothVersionsAgent;

impl Agent for BothVersionsAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
        let call = turn
            .report_tool_call(ToolCall::new("call_1", "Think"))
            .await?;
        call.complete().await?;
        turn.send_message("Done.").await?;
        Ok(StopReason::EndTurn)
    }
}

/// A client that prints updates as they arrive. To show what the user sees, render the thread instead.
struct WirePrinter(ProtocolVersion);

impl Client for WirePrinter {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        let update = update.clone();
        let json = match self.0 {
            ProtocolVersion::V2 => serde_json::to_string(&update.into_v2()),
            _ => serde_json::to_string(&update.into_v1()),
        };
        println!("  {}", json.unwrap_or_default());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> acp::Result<()> {
    // The latest version that each side supports. Version 2 is used if both sides support it.
    let (old, new) = (Options::new(), Options::new().draft_version_2());
    for (agents, clients) in [(&new, &new), (&new, &old), (&old, &new)] {
        let version = agents.latest().min(clients.latest());
        let (client_transport, agent_transport) = transport::memory();
        let (_, driver) = acp::agent::start(agent_transport, BothVersionsAgent, agents.clone());
        tokio::spawn(driver);
        let (handshake, driver) =
            connect_with(client_transport, WirePrinter(version), clients.clone());
        tokio::spawn(driver);
        let agent = handshake.await?;
        println!(
            "the agent supports up to version {}, the client up to version {}; negotiated: version {}",
            agents.latest(),
            clients.latest(),
            agent.version(),
        );
        let session = agent.new_session("/").await?;
        let stopped = session.prompt("Work.").await?;
        let items = session.thread().read(|thread| thread.items().len());
        println!("  {stopped}; items in the thread: {items}");
    }
    Ok(())
}

//! An agent and a client that exchange custom requests and notifications in both directions.
//!
//! ```sh
//! cargo run -p acp-sdk --example extension
//! ```

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use acp::agent::{
    Agent, ExtensionNotification, ExtensionRequest, OpenedSession, Prompt, Session, SessionSetup,
    Turn,
};
use acp::client::{Client, connect};
use acp::v1::StopReason;
use acp::wire::{Notification, Request};
use acp::{Connection, Result, transport};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A request to add numbers, sent by the client.
#[derive(Serialize, Deserialize)]
struct SumRequest {
    numbers: Vec<i64>,
}

impl Request for SumRequest {
    const METHOD: &'static str = "_example.com/sum";
    type Response = i64;
}

/// A notification with a hint, sent by the client.
#[derive(Debug, Serialize, Deserialize)]
struct HintNotification {
    text: String,
}

impl Notification for HintNotification {
    const METHOD: &'static str = "_example.com/hint";
}

/// A request for the selected text, sent by the agent.
#[derive(Serialize, Deserialize)]
struct GetSelection {}

impl Request for GetSelection {
    const METHOD: &'static str = "_example.com/selection";
    type Response = Selection;
}

#[derive(Debug, Serialize, Deserialize)]
struct Selection {
    text: String,
}

/// An agent that adds numbers and accepts hints.
struct ExtensionAgent;

impl Agent for ExtensionAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let selection = turn.connection().request(&GetSelection {}).await?;
        println!("the selection is {selection:?}");
        Ok(StopReason::EndTurn)
    }

    async fn extension_request(
        &self,
        _: &Connection,
        request: ExtensionRequest,
    ) -> Result<Box<RawValue>> {
        let add = async |sum: SumRequest| Ok(sum.numbers.into_iter().fold(0, i64::saturating_add));
        match request.method() {
            SumRequest::METHOD => request.answer_with(add).await,
            _ => Err(request.not_found()),
        }
    }

    async fn extension_notification(&self, _: &Connection, notification: ExtensionNotification) {
        match notification.read::<HintNotification>() {
            Ok(Some(hint)) => println!("the agent received a hint: {}", hint.text),
            Ok(None) => println!("unknown notification: {}", notification.method()),
            Err(error) => println!("{error}"),
        }
    }
}

/// A client that returns the text selected by the user.
struct ExtensionClient;

impl Client for ExtensionClient {
    type State = ();

    async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
        let selection = async |_: GetSelection| {
            Ok(Selection {
                text: "let answer = 42;".to_owned(),
            })
        };
        match request.method() {
            GetSelection::METHOD => request.answer_with(selection).await,
            _ => Err(request.not_found()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (client_transport, agent_transport) = transport::memory();
    let (_, driver) = acp::agent::start(agent_transport, ExtensionAgent, acp::Options::new());
    tokio::spawn(driver);
    let (handshake, driver) = connect(client_transport, ExtensionClient);
    tokio::spawn(driver);
    let agent = handshake.await?;
    let conn = agent.connection();
    let text = "be quick".to_owned();
    conn.notify(&HintNotification { text }).await?;
    let numbers = vec![1, 2, 3];
    println!(
        "the sum is {}",
        conn.request(&SumRequest { numbers }).await?
    );
    // An untyped request, with a method that the client does not know.
    let unknown = conn.request_raw("_example.com/product", &[1, 2, 3]).await;
    println!(
        "unknown method: {}",
        unknown.map_or_else(|e| e.to_string(), |v| v.to_string())
    );
    agent.new_session("/").await?.prompt("Look.").await?;
    Ok(())
}

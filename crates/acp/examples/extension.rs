//! Methods of one's own, asked and told both ways.
//!
//! ```sh
//! cargo run -p acp-sdk --example extension
//! ```

// Clippy takes a program that prints for one that logs.
#![allow(clippy::print_stdout)]

use acp::agent::{Agent, Prompt, Session, SessionOpened, SessionSetup, Turn};
use acp::client::{Client, connect};
use acp::jsonrpc::Error;
use acp::v1::StopReason;
use acp::{Connection, Result, transport};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// Knows the request `_example/sum` and the notification `_example/hint`.
struct Extended;

impl Agent for Extended {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<SessionOpened> {
        Ok(SessionOpened::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let none = json!({});
        let client = turn.connection();
        let selection = client.request_raw("_example/selection", &none).await?;
        let told = json!({"seen": selection});
        client.notify_raw("_example/seen", &told).await?;
        Ok(StopReason::EndTurn)
    }

    async fn extension_request(
        &self,
        _: &Connection,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        if method != "_example/sum" {
            return Err(Error::method_not_found(method).into());
        }
        let params = params.as_deref().map_or("[]", RawValue::get);
        let numbers: Vec<i64> =
            serde_json::from_str(params).map_err(|e| acp::Error::invalid_params(e.to_string()))?;
        let sum: i64 = numbers.into_iter().fold(0, i64::saturating_add);
        to_raw_value(&sum).map_err(|e| acp::Error::internal(e.to_string()))
    }

    async fn extension_notification(
        &self,
        _: &Connection,
        method: &str,
        params: Option<Box<RawValue>>,
    ) {
        println!("the agent is told {method}: {params:?}");
    }
}

/// Knows the request `_example/selection` and the notification `_example/seen`.
struct Editor;

impl Client for Editor {
    async fn extension_request(
        &self,
        method: &str,
        _: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        match method {
            "_example/selection" => {
                to_raw_value("let answer = 42;").map_err(|e| acp::Error::internal(e.to_string()))
            }
            _ => Err(Error::method_not_found(method).into()),
        }
    }

    async fn extension_notification(&self, method: &str, params: Option<Box<RawValue>>) {
        println!("the client is told {method}: {params:?}");
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (ours, theirs) = transport::memory();
    let (_, driver) = acp::agent::start(theirs, Extended, acp::Options::new());
    tokio::spawn(driver);
    let (handshake, driver) = connect(ours, Editor);
    tokio::spawn(driver);
    let agent = handshake.await?;
    let conn = agent.connection();
    conn.notify_raw("_example/hint", "be quick").await?;
    let sum = conn.request_raw("_example/sum", &[1, 2, 3]).await?;
    println!("the sum is {sum}");
    let unknown = conn.request_raw("_example/product", &[1, 2, 3]).await;
    println!(
        "and then: {}",
        unknown.map_or_else(|e| e.to_string(), |v| v.to_string())
    );
    agent.new_session("/").await?.prompt("Look.").await?;
    Ok(())
}

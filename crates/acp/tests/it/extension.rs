//! Tests of extension methods with raw params, in both directions.

use std::sync::{Arc, Mutex};

use acp::agent::{ExtensionNotification, ExtensionRequest, Prompt, Turn};
use acp::v1::StopReason;
use acp::wire::{Notification, Request};
use acp::{Agent, Client, Connection, Error, Result, jsonrpc};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::common::{TestPeer, wait_until_idle, with_timeout};

type ExtensionLog = Arc<Mutex<Vec<String>>>;

/// An agent that handles `_echo` and `_fail`, and records notifications.
#[derive(Clone, Default)]
struct ExtensionEchoAgent(ExtensionLog);

impl ExtensionEchoAgent {
    fn handle_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
        match request.method() {
            "_echo" => {
                let nothing = || to_raw_value("nothing").unwrap();
                Ok(request.into_params().unwrap_or_else(nothing))
            }
            "_fail" => Err(jsonrpc::Error::new(1234, "as asked")
                .data(json!({"why": "so"}))
                .into()),
            _ => Err(request.not_found()),
        }
    }

    fn handle_notification(&self, notification: &ExtensionNotification) {
        let method = notification.method();
        let params = notification.params().map_or("nothing", RawValue::get);
        self.0.lock().unwrap().push(format!("{method} {params}"));
    }

    fn log_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Agent for ExtensionEchoAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let asked = turn
            .connection()
            .request_raw("_ask", &json!([1, "two"]))
            .await?;
        turn.connection().notify_raw("_tell", &asked).await?;
        Ok(StopReason::EndTurn)
    }
    async fn extension_request(
        &self,
        client: &Connection,
        request: ExtensionRequest,
    ) -> Result<Box<RawValue>> {
        client.notify_raw("_seen", request.method()).await?;
        self.handle_request(request)
    }
    async fn extension_notification(
        &self,
        client: &Connection,
        notification: ExtensionNotification,
    ) {
        self.handle_notification(&notification);
        let method = notification.method();
        client.notify_raw("_seen", method).await.unwrap();
    }
}

impl Client for ExtensionEchoAgent {
    type State = ();

    async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
        self.handle_request(request)
    }
    async fn extension_notification(&self, notification: ExtensionNotification) {
        self.handle_notification(&notification);
    }
}

/// Params with unusual whitespace, a duplicate key and a long number.
const RAW_PARAMS: &str = r#"{ "b": 1.50, "a": [ 12345678901234567890123, "é\u00e9" ], "a": null }"#;

#[tokio::test(start_paused = true)]
async fn an_agent_handles_extensions_in_order() {
    let agent = ExtensionEchoAgent::default();
    let (_conn, mut peer) = TestPeer::connect_to_agent(agent.clone());
    // Extensions may be used before `initialize`, because they may take part in the negotiation.
    for raw in [RAW_PARAMS, "[1, 2]", "\"text\"", "null"] {
        peer.send_line(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"_echo","params":{raw}}}"#
        ))
        .await;
        assert_eq!(peer.expect_notification("_seen").await, "_echo");
        let line = String::from_utf8(peer.try_line().await.unwrap()).unwrap();
        assert_eq!(
            line,
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#)
        );
        peer.send_line(format!(
            r#"{{"jsonrpc":"2.0","method":"_note","params":{raw}}}"#
        ))
        .await;
        assert_eq!(peer.expect_notification("_seen").await, "_note");
        assert_eq!(agent.log_lines(), [format!("_note {raw}")]);
    }
    peer.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"_echo"}"#)
        .await;
    peer.expect_notification("_seen").await;
    assert_eq!(peer.expect_result(1).await, "nothing");
    peer.send_line(r#"{"jsonrpc":"2.0","method":"_"}"#).await;
    peer.expect_notification("_seen").await;
    assert_eq!(agent.log_lines(), ["_ nothing"]);
    peer.send_request(2, "_fail", json!({})).await;
    peer.expect_notification("_seen").await;
    let error = json!({"code": 1234, "message": "as asked", "data": {"why": "so"}});
    peer.expect(json!({"jsonrpc": "2.0", "id": 2, "error": error}))
        .await;
    peer.send_request(3, "_unknown", json!({})).await;
    peer.expect_notification("_seen").await;
    assert_eq!(
        peer.expect_error(3).await,
        (-32601, "Method not found: _unknown".to_owned())
    );
    // Methods without an underscore are not passed on.
    peer.send_request(4, "echo", json!({})).await;
    assert_eq!(peer.expect_error(4).await.0, -32601);
    peer.notify("note", json!({})).await;
    peer.expect_silence().await;
    assert!(agent.log_lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_client_handles_extensions_in_order() {
    let client = ExtensionEchoAgent::default();
    let (_conn, mut peer) = TestPeer::connect_to_client(client.clone()).await;
    for raw in [RAW_PARAMS, "[1, 2]", "\"text\"", "null"] {
        peer.send_line(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"_echo","params":{raw}}}"#
        ))
        .await;
        let line = String::from_utf8(peer.try_line().await.unwrap()).unwrap();
        assert_eq!(
            line,
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#)
        );
        peer.send_line(format!(
            r#"{{"jsonrpc":"2.0","method":"_note","params":{raw}}}"#
        ))
        .await;
        wait_until_idle().await;
        assert_eq!(client.log_lines(), [format!("_note {raw}")]);
    }
    peer.send_request(2, "_fail", json!({})).await;
    assert_eq!(peer.expect_error(2).await, (1234, "as asked".to_owned()));
    peer.send_request(3, "_unknown", json!({})).await;
    assert_eq!(peer.expect_error(3).await.0, -32601);
}

#[tokio::test(start_paused = true)]
async fn both_sides_send_extensions() {
    let (_conn, mut peer, s) = TestPeer::open_agent_session(ExtensionEchoAgent::default()).await;
    peer.send_prompt(1, &s, "go").await;
    let (id, params) = peer.expect_request("_ask").await;
    assert_eq!(params, json!([1, "two"]));
    peer.send_line(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{RAW_PARAMS}}}"#
    ))
    .await;
    let line = String::from_utf8(peer.try_line().await.unwrap()).unwrap();
    assert_eq!(
        line,
        format!(r#"{{"jsonrpc":"2.0","method":"_tell","params":{RAW_PARAMS}}}"#)
    );
    peer.expect_result(1).await;

    let (conn, mut peer) = TestPeer::connect_to_client(ExtensionEchoAgent::default()).await;
    let conn = conn.connection().clone();
    let asking = tokio::spawn({
        let conn = conn.clone();
        async move { conn.request_raw("_ask", "that").await }
    });
    let (id, params) = peer.expect_request("_ask").await;
    assert_eq!(params, "that");
    peer.send(json!({"id": id, "error": {"code": -5, "message": "no", "data": "really"}}))
        .await;
    let error = with_timeout("it is answered", asking)
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        matches!(&error, Error::Rpc(e) if e.code == -5 && e.data == Some(json!("really"))),
        "{error:?}"
    );
    conn.notify_raw("_tell", &json!({"a": 1})).await.unwrap();
    assert_eq!(peer.expect_notification("_tell").await, json!({"a": 1}));
}

#[tokio::test(start_paused = true)]
async fn unserializable_params_are_an_error_and_not_sent() {
    let (conn, mut peer) = TestPeer::connect_to_client(ExtensionEchoAgent::default()).await;
    let conn = conn.connection();
    // Keys in JSON are strings.
    let unwritable = std::collections::HashMap::from([(vec![1], 1)]);
    for error in [
        conn.notify_raw("_x", &unwritable).await.unwrap_err(),
        conn.request_raw("_x", &unwritable).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::NotSerializable { method, .. } if method == "_x"),
            "{error}"
        );
    }
    peer.expect_silence().await;
    peer.check_alive().await;
    // Line breaks between the tokens do not end the line.
    let spread = RawValue::from_string("{\n\"a\":\r\n1}".to_owned()).unwrap();
    conn.notify_raw("_x", &spread).await.unwrap();
    assert_eq!(peer.expect_notification("_x").await, json!({"a": 1}));
}

/// A request to add numbers.
#[derive(serde::Serialize, serde::Deserialize)]
struct TestSumRequest {
    numbers: Vec<i64>,
}

impl Request for TestSumRequest {
    const METHOD: &'static str = "_example.com/sum";
    type Response = i64;
}

#[derive(serde::Serialize, serde::Deserialize)]
struct TestHintNotification {
    text: String,
}

impl Notification for TestHintNotification {
    const METHOD: &'static str = "_example.com/hint";
}

/// A client that adds numbers, fails if there are none, and records hints.
#[derive(Clone, Default)]
struct AddingClient(ExtensionLog);

impl Client for AddingClient {
    type State = ();

    async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
        let add = async |sum: TestSumRequest| match sum.numbers.is_empty() {
            true => Err(Error::invalid_params("there are no numbers")),
            false => Ok(sum.numbers.iter().sum()),
        };
        match request.method() {
            TestSumRequest::METHOD => request.answer_with(add).await,
            _ => Err(request.not_found()),
        }
    }

    async fn extension_notification(&self, notification: ExtensionNotification) {
        let note = match notification.read::<TestHintNotification>() {
            Ok(Some(hint)) => hint.text,
            Ok(None) => format!("not a hint: {}", notification.method()),
            Err(error) => error.to_string(),
        };
        self.0.lock().unwrap().push(note);
    }
}

#[tokio::test(start_paused = true)]
async fn custom_methods_have_typed_params() {
    let adder = AddingClient::default();
    let (_conn, mut peer) = TestPeer::connect_to_client(adder.clone()).await;
    peer.send_request(1, TestSumRequest::METHOD, json!({"numbers": [1, 2, 3]}))
        .await;
    assert_eq!(peer.expect_result(1).await, 6);
    peer.send_request(2, TestSumRequest::METHOD, json!({"numbers": []}))
        .await;
    let (code, message) = peer.expect_error(2).await;
    assert_eq!(code, -32602);
    assert!(message.contains("there are no numbers"), "{message}");
    for (params, fault) in [
        (json!({"numbers": ["one"]}), "invalid type"),
        (json!({}), "missing field `numbers`"),
    ] {
        peer.send_request(3, TestSumRequest::METHOD, params).await;
        let (code, message) = peer.expect_error(3).await;
        assert_eq!(code, -32602, "{message}");
        assert!(message.contains(fault), "{message}");
        assert!(message.contains(TestSumRequest::METHOD), "{message}");
    }
    peer.send_request(4, "_example.com/product", json!({}))
        .await;
    assert_eq!(peer.expect_error(4).await.0, -32601);

    peer.notify(TestHintNotification::METHOD, json!({"text": "be quick"}))
        .await;
    peer.notify("_other", json!({"text": "be slow"})).await;
    peer.notify(TestHintNotification::METHOD, json!({"text": 7}))
        .await;
    wait_until_idle().await;
    let noted = std::mem::take(&mut *adder.0.lock().unwrap());
    assert_eq!(noted[..2], ["be quick", "not a hint: _other"]);
    assert!(noted[2].contains("invalid type"), "{noted:?}");
}

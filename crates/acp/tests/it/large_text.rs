//! Tests of `fs/read_text_file` with large files, which are transferred in pieces.

use std::sync::Mutex;

use acp::agent::{Prompt, Turn};
use acp::client::ReadTextFile;
use acp::v1::{ReadTextFileRequest, ReadTextFileResponse, StopReason};
use acp::{Agent, Client, Connection, Error, Limits, Result, testing};
use serde_json::{Value, json};

use crate::common::{TestPeer as Scripted, limits_with};
use testing::ScriptedPeer;

/// Returns varied text of at least `bytes` bytes with many characters to escape in JSON.
fn long_text(bytes: usize) -> String {
    let line = "\tlet name = \"é😀\\u{1}\"; // \u{0} \u{8} \u{c} \u{7f} \u{2028} 漢\r\n";
    line.repeat(bytes / line.len() + 1)
}

const LARGE_TEXT_BYTES: usize = 3 * 1024 * 1024;

/// An agent that reads a file during its turn and stores the result.
#[derive(Default)]
struct FileReadingAgent(Mutex<Option<Result<String>>>);

impl Agent for &'static FileReadingAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.send_message("before").await?;
        let read = turn.read_text_file("/file", None, None).await;
        turn.send_message("after").await?;
        *self.0.lock().unwrap() = Some(read);
        Ok(StopReason::EndTurn)
    }
}

impl FileReadingAgent {
    fn new() -> &'static Self {
        Box::leak(Box::default())
    }

    fn take_result(&self) -> Result<String> {
        self.0.lock().unwrap().take().expect("a file was read")
    }
}

/// A client that returns the same file for every path.
struct OneFileClient;

impl Client for OneFileClient {
    type State = ();

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }
}

impl ReadTextFile<()> for OneFileClient {
    async fn read(&self, (): &(), _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new(long_text(LARGE_TEXT_BYTES)))
    }
}

#[tokio::test]
async fn a_large_file_arrives_unchanged() {
    let agent = FileReadingAgent::new();
    let (client, _agent) = testing::connect(agent, OneFileClient).await;
    let session = client.new_session("/").await.unwrap();
    session.prompt("read").await.unwrap();
    assert!(agent.take_result().unwrap() == long_text(LARGE_TEXT_BYTES));
    let said = session.thread().read(|thread| format!("{thread:?}"));
    assert!(said.find("before") < said.find("after"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn large_responses_are_separate_messages() {
    let (_session, mut scripted) = Scripted::open_client_session(OneFileClient).await;
    let (peer, session) = (&mut *scripted, "s");
    let params = json!({"sessionId": session, "path": "/file"});
    let first = peer.request("fs/read_text_file", params.clone()).await;
    let second = peer.request("fs/read_text_file", params).await;
    let unknown = peer.request("no/such_method", json!({})).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(peer.next_message().await);
    }
    for id in [first, second] {
        let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
        assert!(answer["result"]["content"] == long_text(LARGE_TEXT_BYTES));
    }
    assert!(
        answers
            .iter()
            .any(|answer| answer["id"] == unknown && answer["error"]["code"] == -32601)
    );
}

/// Starts a turn in which the agent requests a file. Returns the ids of the prompt and of the agent's request.
async fn start_read(
    agent: &'static FileReadingAgent,
    limits: Limits,
) -> (Connection, ScriptedPeer, String, i64, Value) {
    let (conn, mut peer) = ScriptedPeer::connect_agent_with(agent, limits);
    peer.initialize_with(json!({
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": true}},
    }))
    .await;
    let session = peer.open_session().await;
    let prompt = peer.prompt(&session, "read").await;
    peer.expect_update("agent_message_chunk").await;
    let call = peer.expect_request("fs/read_text_file").await;
    (conn, peer, session, prompt, call.id)
}

/// Responds to the agent's request with `result`. Returns the peer, and the text or error that the agent receives.
async fn respond_with_text(result: &str, limit: usize) -> (Result<String>, ScriptedPeer) {
    let agent = FileReadingAgent::new();
    let limits = limits_with(|l| l.message = limit);
    let (_conn, mut peer, _, prompt, id) = start_read(agent, limits).await;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    peer.send_line(answer).await;
    peer.expect_update("agent_message_chunk").await;
    peer.expect_answer(prompt).await;
    (agent.take_result(), peer)
}

#[tokio::test(start_paused = true)]
async fn a_response_can_have_more_fields_than_its_text() {
    let whole = long_text(LARGE_TEXT_BYTES);
    let content = serde_json::to_string(&whole).unwrap();
    for result in [
        format!(r#"{{"content":{content}}}"#),
        format!(r#"{{"content":{content},"_meta":{{"content":"other"}},"x":[1,2]}}"#),
        format!(r#"{{ "content": {content} }}   "#),
        format!(r#"{{"_meta":null,"content":{content}}}"#),
    ] {
        let (read, _) = respond_with_text(&result, 16 * LARGE_TEXT_BYTES).await;
        assert!(read.unwrap() == whole);
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_text_fails_only_its_request() {
    let whole = serde_json::to_string(&long_text(LARGE_TEXT_BYTES)).unwrap();
    let content = whole.strip_suffix('"').unwrap();
    for (result, limit) in [
        (
            format!(r#"{{"content":{content}\x"}}"#),
            16 * LARGE_TEXT_BYTES,
        ),
        (
            format!(r#"{{"content":{content}{content}"}}"#),
            16 * LARGE_TEXT_BYTES,
        ),
        (
            format!("{{\"content\":{content}\u{1}\"}}"),
            16 * LARGE_TEXT_BYTES,
        ),
        (format!(r#"{{"content":{content}"#), 16 * LARGE_TEXT_BYTES),
        (format!(r#"{{"content":{content}"}}"#), LARGE_TEXT_BYTES),
    ] {
        let (read, mut peer) = respond_with_text(&result, limit).await;
        assert!(matches!(read, Err(Error::InvalidResponse { .. })));
        let unknown = peer.request("no/such_method", json!({})).await;
        assert_eq!(peer.expect_error(unknown).await.code, -32601);
    }
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_cancelled_response_is_discarded() {
    let agent = FileReadingAgent::new();
    let (_conn, mut peer, session, prompt, id) = start_read(agent, limits_with(|_| ())).await;
    let content = serde_json::to_string(&long_text(LARGE_TEXT_BYTES)).unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content}}}}}"#);
    let (beginning, end) = answer.split_at(LARGE_TEXT_BYTES / 2);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    peer.send(cancel).await;
    // The response had already been sent.
    peer.send_bytes(beginning).await;
    peer.expect_notification("$/cancel_request").await;
    peer.send_bytes(end).await;
    peer.send_bytes("\n").await;
    peer.expect_updates_until_answer(prompt).await;
    assert!(matches!(agent.take_result(), Err(Error::Cancelled)));
    let unknown = peer.request("no/such_method", json!({})).await;
    assert_eq!(peer.expect_error(unknown).await.code, -32601);
}

//! Tests of the library on an executor other than tokio's. They are a separate program, so that the process contains no
//! tokio runtime.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acp::agent::{Agent, NewToolCall, Prompt, Turn};
use acp::client::{Client, ClientSession, PermissionRequest, ReadTextFile, WriteTextFile};
use acp::thread::{ItemKind, ToolCallStatus};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, StopReason, ToolKind,
    WriteTextFileRequest, WriteTextFileResponse,
};
use acp::{CloseReason, Limits, Options, Result, Transport};

/// Returns transports for both ends of a socket, using smol's streams.
fn socket_transports() -> (Transport, Transport) {
    let (a, b) = UnixStream::pair().unwrap();
    (socket_transport(a), socket_transport(b))
}

fn socket_transport(socket: UnixStream) -> Transport {
    let (reader, writer) = smol::io::split(smol::Async::new(socket).unwrap());
    Transport::from_futures(reader, writer)
}

fn assert_no_tokio() {
    let runtime = tokio::runtime::Handle::try_current();
    assert!(runtime.is_err(), "this runs in a tokio runtime");
}

/// An agent that reads a file and, if permitted, writes it back in capitals.
struct ShoutingAgent;

impl Agent for ShoutingAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        assert_no_tokio();
        let text = turn.read_text_file("/poem", None, None).await?;
        let call = NewToolCall::new("Write in capitals").kind(ToolKind::Edit);
        let call = turn.report_tool_call(call).await?;
        if turn.ask(&call).await?.is_allowed() {
            turn.write_text_file("/poem", &text.to_uppercase()).await?;
            call.complete().await?;
        }
        turn.send_message("Done.").await?;
        Ok(StopReason::EndTurn)
    }
}

#[derive(Clone, Default)]
struct ExecutorClient(Arc<Mutex<String>>);

impl Client for ExecutorClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        assert_no_tokio();
        // As a user would, after a while.
        smol::Timer::after(Duration::from_millis(1)).await;
        Ok(RequestPermissionOutcome::selected(
            &request.options[0].option_id,
        ))
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<()>> {
        Some(self)
    }
}

impl ReadTextFile<()> for ExecutorClient {
    async fn read(&self, (): &(), _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        Ok(ReadTextFileResponse::new(self.0.lock().unwrap().clone()))
    }
}

impl WriteTextFile<()> for ExecutorClient {
    async fn write(&self, (): &(), request: WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        *self.0.lock().unwrap() = request.content;
        Ok(WriteTextFileResponse::new())
    }
}

fn assert_shouted(session: &ClientSession, editor: &ExecutorClient) {
    assert_eq!(*editor.0.lock().unwrap(), "ROSES ARE RED");
    let calls = session.thread().read(|thread| {
        let items = thread.items().iter();
        let calls = items.filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) => Some((call.title.clone(), call.status.clone())),
            _ => None,
        });
        calls.collect::<Vec<_>>()
    });
    let done = ToolCallStatus::Completed;
    assert_eq!(calls, [("Write in capitals".to_owned(), done)]);
}

#[test]
fn a_turn_runs_on_another_executor() {
    let editor = ExecutorClient(Arc::new(Mutex::new("roses are red".to_owned())));
    smol::block_on(async {
        let (ours, theirs) = socket_transports();
        let (_, serving) = acp::agent::start(theirs, ShoutingAgent, Options::new());
        let serving = smol::spawn(serving);
        let (handshake, driver) = acp::client::connect(ours, editor.clone());
        let driver = smol::spawn(driver);
        let session = handshake.await.unwrap().new_session("/").await.unwrap();
        assert_eq!(
            session.prompt("Shout it").await.unwrap(),
            StopReason::EndTurn
        );
        assert_shouted(&session, &editor);
        // Dropping the last handle closes the connection, and both drivers end.
        drop(session);
        assert!(matches!(driver.await, CloseReason::Local));
        assert!(matches!(serving.await, CloseReason::Peer));
    });
}

#[test]
fn no_task_needs_to_be_spawned() {
    let editor = ExecutorClient(Arc::new(Mutex::new("roses are red".to_owned())));
    let (ours, theirs) = socket_transports();
    // Without any executor: each side has its own thread.
    let agent =
        std::thread::spawn(move || smol::block_on(acp::agent::serve(theirs, ShoutingAgent)));
    let (handshake, driver) = acp::client::connect(ours, editor.clone());
    let stop_reason = smol::block_on(driver.run(async {
        let session = handshake.await?.new_session("/").await?;
        let stop_reason = session.prompt("Shout it").await?;
        assert_shouted(&session, &editor);
        Ok::<_, acp::Error>(stop_reason)
    }));
    assert_eq!(stop_reason.unwrap(), StopReason::EndTurn);
    agent.join().unwrap().unwrap();
}

/// An agent that sends chunks endlessly.
struct FloodingAgent;

impl Agent for FloodingAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        loop {
            turn.send_message("and another thing, ").await?;
        }
    }
}

#[test]
fn closing_waits_two_seconds_without_the_tokio_clock() {
    use std::io::Write as _;
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
    ] {
        writeln!(theirs, "{line}").unwrap();
    }
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(theirs.try_clone().unwrap()));
    smol::block_on(async {
        let options = Options::new().limits(Limits::default());
        let (conn, driver) = acp::agent::start(socket_transport(ours), FloodingAgent, options);
        let driver = smol::spawn(driver);
        let opened = smol::unblock(move || lines.nth(1).unwrap().unwrap()).await;
        let opened: serde_json::Value = serde_json::from_str(&opened).unwrap();
        let prompt = serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {
            "sessionId": opened["result"]["sessionId"], "prompt": [{"type": "text", "text": "Talk"}],
        }});
        writeln!(theirs, "{prompt}").unwrap();
        // Something has arrived, so the agent is sending.
        let mut byte = [0];
        let mut reading = theirs.try_clone().unwrap();
        smol::unblock(move || std::io::Read::read_exact(&mut reading, &mut byte).unwrap()).await;
        let began = Instant::now();
        conn.close();
        assert!(matches!(driver.await, CloseReason::Local));
        let took = began.elapsed();
        assert!(took < Duration::from_secs(10), "it took {took:?}");
    });
    drop(theirs);
}

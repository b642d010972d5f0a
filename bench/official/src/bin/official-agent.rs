//! The agent, on the official Rust SDK.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
    LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    PermissionOption, PermissionOptionKind, PromptRequest, PromptResponse, ReadTextFileRequest,
    RequestPermissionOutcome, RequestPermissionRequest, SessionId, SessionNotification,
    SessionUpdate, StopReason, ToolCallUpdate, ToolCallUpdateFields,
};
use agent_client_protocol::{Agent, Client, Error, Result, Stdio, on_receive_request};
use bench_official::{EmptyRequest, EmptyResponse};

#[tokio::main]
async fn main() -> Result<()> {
    let opened = AtomicU64::new(0);
    Agent
        .v1()
        .name("official-agent")
        .on_receive_request(
            async move |_: InitializeRequest, responder, _| {
                let capabilities = AgentCapabilities::new().load_session(true);
                responder.respond(
                    InitializeResponse::new(ProtocolVersion::V1).agent_capabilities(capabilities),
                )
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: NewSessionRequest, responder, _| {
                let number = opened.fetch_add(1, Ordering::Relaxed) + 1;
                responder.respond(NewSessionResponse::new(format!("s{number}")))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest,
                        responder,
                        connection: ConnectionTo<Client>| {
                let turn = Turn {
                    connection,
                    session: request.session_id,
                };
                responder.respond_with_result(turn.replay().map(|()| LoadSessionResponse::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let turn = Turn {
                    connection: connection.clone(),
                    session: request.session_id,
                };
                // Handlers run where messages are read: a turn that asks the client must not be one.
                connection.spawn(async move {
                    let ended = turn.run(&request.prompt).await;
                    responder.respond_with_result(
                        ended.map(|()| PromptResponse::new(StopReason::EndTurn)),
                    )
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: EmptyRequest, responder, _| responder.respond(EmptyResponse {}),
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}

struct Turn {
    connection: ConnectionTo<Client>,
    session: SessionId,
}

impl Turn {
    async fn run(&self, prompt: &[ContentBlock]) -> Result<()> {
        let text: String = prompt
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        match text.split_once(' ') {
            Some(("stream", rest)) => {
                let (messages, bytes) = rest.split_once(' ').ok_or_else(Error::invalid_params)?;
                self.stream(number(messages)?, number(bytes)?)
            }
            Some(("ask", requests)) => self.ask(number(requests)?).await,
            Some(("read", path)) => self.read(path).await,
            _ => Err(Error::invalid_params()),
        }
    }

    fn stream(&self, messages: usize, bytes: usize) -> Result<()> {
        let filling = "x".repeat(bytes.saturating_sub(8));
        // The SDK queues what is sent, and has nothing to wait for.
        (0..messages).try_for_each(|number| self.say(format!("{number:08}{filling}")))
    }

    async fn ask(&self, requests: usize) -> Result<()> {
        let options = [
            PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
        ];
        for number in 0..requests {
            let fields = ToolCallUpdateFields::new().title("work");
            let call = ToolCallUpdate::new(format!("call-{number}"), fields);
            let request =
                RequestPermissionRequest::new(self.session.clone(), call, options.to_vec());
            let answer = self.connection.send_request(request).block_task().await?;
            match answer.outcome {
                RequestPermissionOutcome::Selected(chosen) if &*chosen.option_id.0 == "allow" => {}
                other => return Err(Error::internal_error().data(format!("{other:?}"))),
            }
        }
        Ok(())
    }

    async fn read(&self, path: &str) -> Result<()> {
        let request = ReadTextFileRequest::new(self.session.clone(), PathBuf::from(path));
        let file = self.connection.send_request(request).block_task().await?;
        self.say(file.content.len().to_string())
    }

    /// A session `replay-N-B` was one of N chunks of B bytes.
    fn replay(&self) -> Result<()> {
        let (messages, bytes) = self
            .session
            .0
            .strip_prefix("replay-")
            .and_then(|sizes| sizes.split_once('-'))
            .ok_or_else(Error::invalid_params)?;
        self.stream(number(messages)?, number(bytes)?)
    }

    fn say(&self, text: String) -> Result<()> {
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()));
        self.connection
            .send_notification(SessionNotification::new(self.session.clone(), update))
    }
}

fn number(word: &str) -> Result<usize> {
    word.parse()
        .map_err(|error| Error::invalid_params().data(format!("{word}: {error}")))
}

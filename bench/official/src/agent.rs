//! The agent.

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
use agent_client_protocol::{Agent, Client, ConnectTo, Error, Result, on_receive_request};
use bench_work::{BenchTask, BenchText};

use crate::{EmptyRequest, EmptyResponse};

/// Creates the agent.
pub fn agent() -> impl ConnectTo<Client> {
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
                let turn = OfficialBenchTurn {
                    connection,
                    session: request.session_id,
                };
                responder.respond_with_result(turn.replay().map(|()| LoadSessionResponse::new()))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let turn = OfficialBenchTurn {
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
}

struct OfficialBenchTurn {
    connection: ConnectionTo<Client>,
    session: SessionId,
}

impl OfficialBenchTurn {
    async fn run(&self, prompt: &[ContentBlock]) -> Result<()> {
        let text: String = prompt
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        match BenchTask::from_prompt(&text) {
            Some(BenchTask::Stream { messages, bytes }) => self.stream(messages, bytes),
            Some(BenchTask::Ask(requests)) => self.request_permissions(requests).await,
            Some(BenchTask::Read(path)) => self.read(&path).await,
            Some(BenchTask::Pace { .. }) | None => Err(Error::invalid_params()),
        }
    }

    fn stream(&self, messages: u64, bytes: usize) -> Result<()> {
        let mut text = BenchText::new(bytes);
        // The SDK queues what is sent, and has nothing to wait for.
        (0..messages).try_for_each(|number| self.send_chunk(text.text_for(number)))
    }

    async fn request_permissions(&self, requests: u64) -> Result<()> {
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
        self.send_chunk(file.content.len().to_string())
    }

    fn replay(&self) -> Result<()> {
        match BenchTask::from_session_id(&self.session.0) {
            Some(BenchTask::Stream { messages, bytes }) => self.stream(messages, bytes),
            _ => Err(Error::invalid_params()),
        }
    }

    fn send_chunk(&self, text: impl Into<ContentBlock>) -> Result<()> {
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()));
        self.connection
            .send_notification(SessionNotification::new(self.session.clone(), update))
    }
}

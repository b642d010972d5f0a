//! The agent on this library, for a program with one client on pipes and for one that serves the network.

use std::time::{Duration, Instant};

use acp::agent::{
    Agent, ExtensionRequest, LoadSession, OpenedSession, Prompt, Session, SessionSetup, Turn,
};
use acp::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, StopReason, ToolCallUpdate,
};
use acp::{Connection, Error, Limits, Options, Result};
use bench_work::{BenchTask, BenchText};
use serde_json::value::RawValue;

pub(crate) struct BenchAgent;

async fn stream(session: &Session, messages: u64, bytes: usize) -> Result<()> {
    let mut text = BenchText::new(bytes);
    for number in 0..messages {
        session.send_message(text.text_for(number)).await?;
    }
    Ok(())
}

/// Sends chunks at a given rate, some in each millisecond, because a task cannot wait for less.
async fn stream_paced(session: &Session, messages: u64, bytes: usize, rate: u64) -> Result<()> {
    let mut text = BenchText::new(bytes);
    let start = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let mut sent = 0;
    while sent < messages {
        ticks.tick().await;
        let due = u128::from(rate) * start.elapsed().as_micros() / 1_000_000;
        while sent < messages && u128::from(sent) < due {
            session.send_message(text.text_for(sent)).await?;
            sent += 1;
        }
    }
    Ok(())
}

async fn request_permissions(turn: &Turn, requests: u64) -> Result<()> {
    let options = [
        PermissionOption::new("allow", "Allow", PermissionOptionKind::AllowOnce),
        PermissionOption::new("reject", "Reject", PermissionOptionKind::RejectOnce),
    ];
    for number in 0..requests {
        let call = ToolCallUpdate::new(format!("call-{number}")).title("work");
        let outcome = turn.request_permission(call, options.to_vec()).await?;
        match outcome {
            RequestPermissionOutcome::Selected(chosen) if chosen.option_id.as_str() == "allow" => {}
            other => return Err(Error::internal(format!("{other:?}"))),
        }
    }
    Ok(())
}

impl Agent for BenchAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        match BenchTask::from_prompt(&prompt.text()) {
            Some(BenchTask::Stream { messages, bytes }) => stream(&turn, messages, bytes).await?,
            Some(BenchTask::Pace {
                messages,
                bytes,
                rate,
            }) => stream_paced(&turn, messages, bytes, rate).await?,
            Some(BenchTask::Ask(requests)) => request_permissions(&turn, requests).await?,
            Some(BenchTask::Read(path)) => {
                let content = turn.read_text_file(&path, None, None).await?;
                turn.send_message(content.len().to_string()).await?;
            }
            None => return Err(Error::invalid_params("no such task")),
        }
        Ok(StopReason::EndTurn)
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }

    async fn extension_request(
        &self,
        _: &Connection,
        request: ExtensionRequest,
    ) -> Result<Box<RawValue>> {
        let known = request.method() == "_bench/empty";
        match request.into_params() {
            Some(params) if known => Ok(params),
            _ => Err(Error::invalid_params("no such request")),
        }
    }
}

impl LoadSession for BenchAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        let Some(BenchTask::Stream { messages, bytes }) =
            BenchTask::from_session_id(session.id().as_str())
        else {
            return Err(Error::invalid_params("no such session"));
        };
        stream(session, messages, bytes).await?;
        Ok(OpenedSession::new())
    }
}

/// Serves the agent with higher limits, so that it accepts as many sessions and turns as the benchmark needs.
pub(crate) fn options() -> Options {
    let mut limits: Limits = acp::agent::default_limits();
    limits.sessions = 20_000;
    limits.requests = 20_000;
    limits.message = 80 * 1024 * 1024;
    Options::new().limits(limits)
}

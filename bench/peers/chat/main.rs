//! The agent behind `acp chat`: it replays a long conversation, and streams until it is cancelled.

mod conversation;

use std::time::{Duration, Instant};

use acp::agent::{Agent, LoadSession, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::{ContentBlock, StopReason, ToolCall, ToolCallStatus, ToolKind};
use acp::{Error, Result};

use conversation::{BenchItem, ItemWriter};

/// The text length of a chunk, in bytes, as in the streaming workloads.
const CHUNK_BYTES: usize = 51;

/// The amount of text after which a tool call interrupts the response, in bytes.
const BYTES_PER_TOOL_CALL: usize = 64 * 1024;

/// The length of the chunks of a long message, in bytes.
const LONG_MESSAGE_CHUNK_BYTES: usize = 16 * 1024;

struct ReplayAgent;

/// Replays a conversation. The session's title says how much text it has.
async fn replay(session: &Session, items: usize) -> Result<()> {
    let mut written = ItemWriter::default();
    for number in 0..items {
        match written.next_item(number) {
            BenchItem::User(text) => {
                session
                    .replay_user_message(ContentBlock::text(text))
                    .await?
            }
            BenchItem::Thought(text) => session.send_thought(text).await?,
            BenchItem::Agent(text) => session.send_message(text).await?,
            BenchItem::ToolCall(call) => drop(session.report_tool_call(*call).await?),
        }
    }
    let bytes = written.bytes();
    session
        .set_title(format!("{items} items {bytes} bytes"))
        .await
}

/// Replays a single message of at least this many bytes.
async fn send_message(session: &Session, bytes: usize) -> Result<()> {
    let mut text = conversation::answer();
    let mut sent = 0;
    while sent < bytes {
        let piece = text.next(LONG_MESSAGE_CHUNK_BYTES);
        sent += piece.len();
        session.send_message(piece).await?;
    }
    session.set_title(format!("1 items {sent} bytes")).await
}

/// Streams until it is cancelled, at a number of chunks per second or at full speed.
async fn stream(turn: &Turn, rate: Option<u64>) -> Result<()> {
    let start = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    let mut text = conversation::answer();
    let (mut sent, mut said, mut calls) = (0, 0, 0);
    while !turn.is_cancelled() {
        let due = match rate {
            Some(rate) => {
                ticks.tick().await;
                u128::from(rate) * start.elapsed().as_micros() / 1_000_000
            }
            None => sent + 64,
        };
        while sent < due {
            let chunk = text.next(CHUNK_BYTES);
            said += chunk.len();
            turn.send_message(chunk).await?;
            sent += 1;
            if said >= BYTES_PER_TOOL_CALL {
                said = 0;
                calls += 1;
                let call = ToolCall::new(format!("look-{calls}"), "Look at what is there")
                    .kind(ToolKind::Read)
                    .status(ToolCallStatus::Completed);
                turn.report_tool_call(call).await?;
            }
        }
        if rate.is_none() {
            // So that the cancellation is heard.
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

impl Agent for ReplayAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text();
        let rate = match text.trim().split_once(' ') {
            None if text.trim() == "flood" => None,
            Some(("stream", rate)) => {
                let rate = rate.parse();
                Some(rate.map_err(|_| Error::invalid_params("no such rate"))?)
            }
            _ => return Err(Error::invalid_params("no such task")),
        };
        stream(&turn, rate).await?;
        Ok(StopReason::Cancelled)
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }
}

impl LoadSession for ReplayAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        match session.id().as_str().split_once('-') {
            Some(("conversation", items)) => {
                let items = items.parse();
                let items = items.map_err(|_| Error::invalid_params("no such length"))?;
                replay(session, items).await?;
            }
            Some(("message", bytes)) => {
                let bytes = bytes.parse();
                let bytes = bytes.map_err(|_| Error::invalid_params("no such length"))?;
                send_message(session, bytes).await?;
            }
            _ => return Err(Error::invalid_params("no such session")),
        }
        Ok(OpenedSession::new())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    acp::agent::serve(acp::transport::stdio()?, ReplayAgent).await
}

//! The agent that the tests serve. Its behavior depends on the prompt.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp::Agent;
use acp::agent::{LoadSession, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::StopReason;

/// An agent that treats prompts as commands:
///
/// - `stream N BYTES`: N messages, with a text of so many bytes that names its number;
/// - `ask N`: N permission requests, each followed by what was answered;
/// - `file PATH`: reads a file of the client, writes its reverse to `PATH.out`;
/// - `large BYTES`: one message of this size;
/// - `wait`: waits until the turn is cancelled;
/// - anything else is said back.
#[derive(Clone, Default)]
pub(crate) struct TestAgent {
    /// The number of messages that the agent has sent.
    pub(crate) sent: Arc<AtomicUsize>,
    /// The number of permission requests that were answered.
    pub(crate) answered: Arc<AtomicUsize>,
}

/// Returns text of about `length` bytes that contains `number`.
pub(crate) fn numbered_text(number: usize, length: usize) -> String {
    let text = format!("[{number}]");
    let fill = length.saturating_sub(text.len());
    text + &"x".repeat(fill)
}

impl Agent for TestAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    fn load_session(&self) -> Option<&impl LoadSession<()>> {
        Some(self)
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        let text = prompt.text();
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|word| word.parse().ok())
                .unwrap_or(0)
        };
        match words.first().copied().unwrap_or_default() {
            "stream" => {
                for each in 0..number(1) {
                    turn.send_message(numbered_text(each, number(2))).await?;
                    self.sent.fetch_add(1, Ordering::Relaxed);
                }
            }
            "ask" => {
                for each in 0..number(1) {
                    let call = turn.report_tool_call(format!("Delete file {each}")).await?;
                    let answer = turn.ask(&call).await?;
                    self.answered.fetch_add(1, Ordering::Relaxed);
                    turn.send_message(format!("{each}: {answer:?};")).await?;
                    call.complete().await?;
                }
            }
            "file" => {
                let path = words.get(1).copied().unwrap_or_default();
                let content = turn.read_text_file(path, None, None).await?;
                let reversed: String = content.chars().rev().collect();
                turn.write_text_file(&format!("{path}.out"), &reversed)
                    .await?;
                turn.send_message(format!("reversed {} characters", content.chars().count()))
                    .await?;
            }
            "large" => turn.send_message("y".repeat(number(1))).await?,
            "wait" => turn.cancelled().await,
            _ => turn.send_message(format!("You said: {text}")).await?,
        }
        Ok(StopReason::EndTurn)
    }
}

impl LoadSession<()> for TestAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        session.replay_user_message("history").await?;
        for each in 0..1000 {
            session.send_message(numbered_text(each, 100)).await?;
        }
        Ok(OpenedSession::new())
    }
}

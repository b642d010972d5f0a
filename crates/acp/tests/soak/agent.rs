//! The soak test's agent, which sends as many updates as the prompt asks for.

use std::sync::atomic::{AtomicUsize, Ordering};

use acp::agent::{Prompt, Turn};
use acp::v1::{
    ContentBlock, SessionId, SessionUpdate, StopReason, ToolCall, ToolCallStatus, ToolCallUpdate,
};
use acp::{Agent, Result};
use serde_json::json;

pub(crate) const AGENT_ROLE: &str = "--as-the-agent";

#[derive(Default)]
struct SoakAgent {
    sessions: AtomicUsize,
}

impl Agent for SoakAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    fn new_session_id(&self) -> SessionId {
        format!("s{}", self.sessions.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Sends as many updates as the prompt asks for, of all types that make a thread grow.
    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let updates: usize = prompt.text().parse().unwrap();
        for n in 1..updates {
            let id = format!("call {}", n / 10);
            match n % 10 {
                0 => drop(turn.report_tool_call(ToolCall::new(id, "Count")).await?),
                1 => {
                    let mut update = ToolCallUpdate::new(id);
                    update.status = Some(ToolCallStatus::Completed);
                    update.content = Some(vec![
                        ContentBlock::text("all of it counted ".repeat(10)).into(),
                    ]);
                    turn.send_update(SessionUpdate::ToolCallUpdate(Box::new(update)))
                        .await?;
                }
                2 => turn.send_thought(format!("what comes after {n}?")).await?,
                3 => {
                    let mut update = ToolCallUpdate::new(id);
                    let output =
                        json!({"terminal_id": format!("t{}", n / 50), "data": "line\n".repeat(20)});
                    update.meta = json!({"terminal_output": output}).as_object().cloned();
                    turn.send_update(SessionUpdate::ToolCallUpdate(Box::new(update)))
                        .await?;
                }
                _ => {
                    turn.send_message(format!("{n} and a few more words of it; "))
                        .await?
                }
            }
        }
        turn.send_message("the end").await?;
        Ok(StopReason::EndTurn)
    }
}

pub(crate) async fn run_agent() {
    let transport = acp::transport::stdio().unwrap();
    acp::agent::serve_with(transport, SoakAgent::default(), super::soak_limits())
        .await
        .unwrap();
}

//! An agent that repeats the prompt, on the executor `smol`.

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::StopReason;

struct SmolAgent;

impl Agent for SmolAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        turn.message(prompt.text()).await?;
        Ok(StopReason::EndTurn)
    }
}

fn main() -> std::io::Result<()> {
    let stdin = smol::Unblock::new(std::io::stdin());
    let stdout = smol::Unblock::new(std::io::stdout());
    smol::block_on(acp::agent::serve(
        acp::Transport::from_futures(stdin, stdout),
        SmolAgent,
    ))
}

//! A minimal agent that repeats the prompt. Any editor that speaks the protocol can use it.
//!
//! ```sh
//! cargo run -p acp-sdk --example client -- "Hello" cargo run -q -p acp-sdk --example agent
//! ```

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::StopReason;

struct Parrot;

impl Agent for Parrot {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> acp::Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        turn.send_message(format!("You said: {}", prompt.text()))
            .await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    acp::agent::serve_stdio(Parrot).await
}

//! Tests in which a client exits while its agent is sending messages.

use crate::common::with_timeout;
use acp::agent::{Prompt, Turn, serve};
use acp::v1::StopReason;
use acp::{Agent, Result, Transport};
use tokio::io::AsyncWriteExt;

struct IdleAgent;

impl Agent for IdleAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), _: Turn, _: Prompt) -> Result<StopReason> {
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn serving_succeeds_when_the_client_exits() {
    // The client stops reading, which is noticed before the end of its output.
    let (theirs_in, mut our_output) = tokio::io::duplex(64 * 1024);
    let (theirs_out, our_input) = tokio::io::duplex(64 * 1024);
    drop(our_input);
    let serving = tokio::spawn(serve(Transport::new(theirs_in, theirs_out), IdleAgent));
    let initialize =
        br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    our_output.write_all(initialize).await.unwrap();
    our_output.write_all(b"\n").await.unwrap();
    let served = with_timeout("the agent ends", serving).await.unwrap();
    served.unwrap();
}

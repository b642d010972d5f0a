//! Tests of `session/status` in both versions.

use acp::agent::{Agent, OpenedSession, Prompt, Session, SessionSetup, SessionStatusHandler, Turn};
use acp::testing::{NoopClient, connect_with};
use acp::v1::{SessionId, SessionStatus, StopReason};
use acp::wire::v2::StateUpdate;
use acp::{Error, Options, Result, jsonrpc};
use serde_json::json;

use crate::common::with_timeout;

/// An agent with a stored session that is not open.
struct SessionStatusAgent;

impl Agent for SessionStatusAgent {
    type State = ();

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        turn.send_message("I think").await?;
        turn.cancelled().await;
        Ok(StopReason::Cancelled)
    }

    fn session_status(&self) -> Option<&impl SessionStatusHandler> {
        Some(self)
    }
}

impl SessionStatusHandler for SessionStatusAgent {
    async fn status(&self, session: &SessionId) -> Result<Option<SessionStatus>> {
        Ok((session.as_str() == "saved").then_some(SessionStatus::Saved))
    }
}

#[tokio::test(start_paused = true)]
async fn session_status_is_open_saved_or_unknown() {
    for (version, options) in [(1, Options::new()), (2, Options::new().draft_version_2())] {
        let (agent, _serving) = connect_with(SessionStatusAgent, NoopClient, options).await;
        let session = agent.new_session("/garden").await.unwrap();
        let status = agent.session_status(session.id()).await.unwrap();
        assert_eq!(status.status, SessionStatus::Open);
        match version {
            1 => assert_eq!(status.state, None),
            _ => assert!(
                matches!(status.state, Some(StateUpdate::Idle(_))),
                "{status:?}"
            ),
        }

        let working = tokio::spawn({
            let session = session.clone();
            async move { session.prompt("think").await }
        });
        let said = session.thread().clone();
        crate::common::wait_for_thread(&said, |thread| !thread.items().is_empty()).await;
        crate::common::wait_until_idle().await;
        let status = agent.session_status(session.id()).await.unwrap();
        if version == 2 {
            assert!(
                matches!(status.state, Some(StateUpdate::Running(_))),
                "{status:?}"
            );
        }
        session.cancel().await.unwrap();
        with_timeout("the turn ends", working)
            .await
            .unwrap()
            .unwrap();

        let saved = agent.session_status(&"saved".into()).await.unwrap();
        assert_eq!((saved.status, saved.state), (SessionStatus::Saved, None));
        let none = agent.session_status(&"none".into()).await.unwrap_err();
        let Error::Rpc(error) = &none else {
            panic!("{none:?}");
        };
        assert_eq!(error.code, jsonrpc::Error::RESOURCE_NOT_FOUND);
        assert_eq!(error.data, Some(json!({"sessionId": "none"})));
    }
}

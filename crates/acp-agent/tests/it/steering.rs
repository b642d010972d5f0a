//! `_session/steering`: what a person says while a turn runs reaches the model in the same turn.

use acp::Options;
use acp::v1::{PermissionOptionKind, SteeringOutcome, StopReason};
use tokio::sync::oneshot;

use crate::common::hears::HeardRequests;
use crate::common::{AgentFixture, NONE, QuestionAnswer, until};

const SCRIPT: &str = r#"{"turns": [
    [{"write": {"path": "right.txt", "text": "right"}}, {"say": "I went right."}],
    [{"expect": "go left"}, {"say": "I go left."}],
    [{"say": "Done."}]
]}"#;

#[tokio::test]
async fn the_model_hears_it_in_the_turn_that_runs() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let heard = HeardRequests::default();
        let f = AgentFixture::speaking(options, heard.agent(SCRIPT), NONE).await;
        let early = f.session.steer("too early").await.unwrap();
        assert_eq!(early.outcome, SteeringOutcome::PromptRequired);

        let (allow, allowed) = oneshot::channel();
        f.answers([QuestionAnswer::When(
            allowed,
            PermissionOptionKind::AllowOnce,
        )]);
        let steered = async {
            heard.until(1).await;
            let taken = f.session.steer("go left").await.unwrap();
            assert_eq!(taken.outcome, SteeringOutcome::Injected);
            allow.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(f.prompt("go"), steered);
        assert_eq!(ended.unwrap(), StopReason::EndTurn);
        // The call has its result before the model is told anything else.
        assert!(heard.last().is_well_formed(), "{:?}", heard.last());
        let lines = heard.last().lines();
        assert_eq!(lines.last().map(String::as_str), Some("user go left"));
        assert_eq!(f.last_words(), "I go left.");

        let late = f.session.steer("too late").await.unwrap();
        assert_eq!(late.outcome, SteeringOutcome::PromptRequired);
        assert_eq!(f.says("well").await, "Done.");
        // It stays a part of the conversation.
        assert!(heard.last().lines().contains(&"user go left".to_owned()));
    }
}

#[tokio::test]
async fn what_was_said_in_a_turn_that_is_cancelled_is_not_lost() {
    let script = r#"{"turns": [
        [{"write": {"path": "right.txt", "text": "right"}}],
        [{"say": "not reached"}],
        [{"say": "Left, then."}]
    ]}"#;
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(script), NONE).await;
    f.answers([QuestionAnswer::Hang]);
    let steered = async {
        heard.until(1).await;
        let taken = f.session.steer("go left").await.unwrap();
        assert_eq!(taken.outcome, SteeringOutcome::Injected);
        let asked = || !f.seen.asked.lock().unwrap().is_empty();
        until(f.session.thread(), |_| asked()).await;
        f.session.cancel().await.unwrap();
    };
    let (ended, ()) = tokio::join!(f.prompt("go"), steered);
    assert_eq!(ended.unwrap(), StopReason::Cancelled);
    f.says("well").await;
    assert!(heard.last().lines().contains(&"user go left".to_owned()));
    assert!(heard.last().is_well_formed(), "{:?}", heard.last());
}

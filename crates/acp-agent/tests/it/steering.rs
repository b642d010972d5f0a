//! Tests `_session/steering`: messages that a user sends during a turn reach the model in the same turn.

use acp::Options;
use acp::v1::{PermissionOptionKind, SteeringOutcome, StopReason};
use tokio::sync::oneshot;

use crate::common::hears::RequestRecorder;
use crate::common::{AgentFixture, NO_CAPABILITIES, QuestionAnswer, wait_for_thread};

const SCRIPT: &str = r#"{"turns": [
    [{"write": {"path": "right.txt", "text": "right"}}, {"say": "I went right."}],
    [{"expect": "go left"}, {"say": "I go left."}],
    [{"say": "Done."}]
]}"#;

#[tokio::test]
async fn steering_message_reaches_the_model_in_the_running_turn() {
    for options in [Options::new(), Options::new().draft_version_2()] {
        let heard = RequestRecorder::default();
        let f = AgentFixture::start_with_options(
            options,
            heard.scripted_agent(SCRIPT),
            NO_CAPABILITIES,
        )
        .await;
        let early = f.session.steer("too early").await.unwrap();
        assert_eq!(early.outcome, SteeringOutcome::PromptRequired);

        let (allow, allowed) = oneshot::channel();
        f.queue_answers([QuestionAnswer::When(
            allowed,
            PermissionOptionKind::AllowOnce,
        )]);
        let steered = async {
            heard.wait_for_requests(1).await;
            let taken = f.session.steer("go left").await.unwrap();
            assert_eq!(taken.outcome, SteeringOutcome::Injected);
            allow.send(()).unwrap();
        };
        let (ended, ()) = tokio::join!(f.prompt("go"), steered);
        assert_eq!(ended.unwrap(), StopReason::EndTurn);
        // The result of the call precedes any further message to the model.
        assert!(
            heard.last_request().is_well_formed(),
            "{:?}",
            heard.last_request()
        );
        let lines = heard.last_request().message_lines();
        assert_eq!(lines.last().map(String::as_str), Some("user go left"));
        assert_eq!(f.last_message(), "I go left.");

        let late = f.session.steer("too late").await.unwrap();
        assert_eq!(late.outcome, SteeringOutcome::PromptRequired);
        assert_eq!(f.prompt_for_text("well").await, "Done.");
        // The message remains part of the conversation.
        assert!(
            heard
                .last_request()
                .message_lines()
                .contains(&"user go left".to_owned())
        );
    }
}

#[tokio::test]
async fn steering_messages_of_a_cancelled_turn_are_kept() {
    let script = r#"{"turns": [
        [{"write": {"path": "right.txt", "text": "right"}}],
        [{"say": "not reached"}],
        [{"say": "Left, then."}]
    ]}"#;
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(script), NO_CAPABILITIES).await;
    f.queue_answers([QuestionAnswer::Hang]);
    let steered = async {
        heard.wait_for_requests(1).await;
        let taken = f.session.steer("go left").await.unwrap();
        assert_eq!(taken.outcome, SteeringOutcome::Injected);
        let asked = || !f.seen.asked.lock().unwrap().is_empty();
        wait_for_thread(f.session.thread(), |_| asked()).await;
        f.session.cancel().await.unwrap();
    };
    let (ended, ()) = tokio::join!(f.prompt("go"), steered);
    assert_eq!(ended.unwrap(), StopReason::Cancelled);
    f.prompt_for_text("well").await;
    assert!(
        heard
            .last_request()
            .message_lines()
            .contains(&"user go left".to_owned())
    );
    assert!(
        heard.last_request().is_well_formed(),
        "{:?}",
        heard.last_request()
    );
}

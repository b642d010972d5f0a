//! What the user does in a view.

use serde::Deserialize;
use serde_json::json;

use super::view::SessionView;

/// An action of the user, with its parameters.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(super) enum PageAction {
    /// Sends a prompt.
    Prompt { text: String },
    /// Cancels the running turn.
    Cancel,
    /// Answers a question.
    Answer { question: u64, choice: String },
    /// Changes an option of the session.
    Set { option: String, value: String },
    /// Takes back a prompt that waits.
    TakeBack { prompt: u64 },
}

/// Carries out an action. Does not wait for the turn that a prompt starts. Failures are shown in the view.
pub(super) async fn perform(view: &SessionView, action: PageAction) {
    let session = &view.session;
    let done = match action {
        PageAction::Prompt { text } => {
            // Not `session/prompt`, which a client sends only when its last turn has ended.
            let content = json!([{ "type": "text", "text": text }]);
            let params = json!({ "sessionId": session.id(), "prompt": content });
            let connection = session.agent().connection();
            connection
                .request_raw("_live/prompt", &params)
                .await
                .map(drop)
        }
        PageAction::Cancel => session.cancel().await,
        PageAction::Answer { question, choice } => {
            if !view.state.answer(question, choice.into()) {
                view.state.note("The question is no longer open.");
            }
            Ok(())
        }
        PageAction::Set { option, value } => {
            session
                .set_config_option(option.as_str(), value.as_str())
                .await
        }
        PageAction::TakeBack { prompt } => {
            let params = json!({ "sessionId": session.id(), "prompt": prompt });
            let connection = session.agent().connection();
            connection
                .request_raw("_live/take_back", &params)
                .await
                .map(drop)
        }
    };
    if let Err(error) = done {
        view.state.note(error.to_string());
    }
}

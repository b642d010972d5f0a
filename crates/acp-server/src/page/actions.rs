//! What the user does in a view.

use std::sync::Arc;

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

/// Carries out an action. Returns without waiting for the turn that a prompt starts. Failures are shown in the view.
pub(super) async fn perform(view: &Arc<SessionView>, action: PageAction) {
    let session = &view.session;
    let done = match action {
        PageAction::Prompt { text } => {
            if !text.trim().is_empty() {
                tokio::spawn(prompt(Arc::clone(view), text));
            }
            Ok(())
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

async fn prompt(view: Arc<SessionView>, text: String) {
    let ended = view.session.prompt(text.as_str()).await;
    view.state.change(|contents| contents.is_running = false);
    match ended {
        Ok(reason) if reason.as_str() == "end_turn" => {}
        Ok(reason) => view
            .state
            .note(format!("The turn ended: {}.", reason.as_str())),
        Err(error) => view.state.note(error.to_string()),
    }
}

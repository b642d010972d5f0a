//! Notes about what happens in a live session that is not part of its conversation.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_host::terminal_text;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::screen::TerminalScreen;

#[derive(Deserialize)]
struct TurnEndedParams {
    error: Option<TurnError>,
}

#[derive(Deserialize)]
struct TurnError {
    message: String,
}

#[derive(Deserialize)]
struct QuestionOpenedParams {
    question: u64,
    params: QuestionParams,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QuestionParams {
    /// Of a permission request.
    tool_call: Option<AskedToolCall>,
    /// Of an elicitation.
    message: Option<String>,
}

#[derive(Deserialize)]
struct AskedToolCall {
    title: Option<String>,
}

#[derive(Deserialize)]
struct QuestionClosedParams {
    question: u64,
}

/// How long a question must be open before the user is told. Another client often answers at once, by its policy.
const QUESTION_DELAY: Duration = Duration::from_secs(1);

/// Tells a user who only watches what the server's notifications say: that a turn failed, or that a question waits for
/// somebody else.
pub(crate) struct WatcherNotes {
    screen: TerminalScreen,
    /// The questions that nobody has answered yet.
    open_questions: Arc<Mutex<BTreeSet<u64>>>,
}

impl WatcherNotes {
    pub(crate) fn new(screen: TerminalScreen) -> Self {
        Self {
            screen,
            open_questions: Arc::default(),
        }
    }

    /// Handles a notification of the server.
    pub(crate) fn handle(&self, method: &str, params: Option<&RawValue>) {
        let Some(params) = params.map(RawValue::get) else {
            return;
        };
        match method {
            "_live/turn_ended" => {
                let ended: Result<TurnEndedParams, _> = serde_json::from_str(params);
                if let Ok(TurnEndedParams { error: Some(error) }) = ended {
                    let message = terminal_text::clean_value(&error.message);
                    self.screen.note(&format!("the turn failed: {message}"));
                }
            }
            "_live/question_opened" => {
                if let Ok(opened) = serde_json::from_str(params) {
                    self.question_opened(opened);
                }
            }
            "_live/question_closed" => {
                let closed: Result<QuestionClosedParams, _> = serde_json::from_str(params);
                if let Ok(closed) = closed {
                    lock(&self.open_questions).remove(&closed.question);
                }
            }
            _ => {}
        }
    }

    fn question_opened(&self, opened: QuestionOpenedParams) {
        let number = opened.question;
        lock(&self.open_questions).insert(number);
        let asked = opened.params;
        let title = asked.tool_call.and_then(|call| call.title);
        let about = terminal_text::clean_value(&title.or(asked.message).unwrap_or_default());
        let (screen, open) = (self.screen.clone(), Arc::clone(&self.open_questions));
        tokio::spawn(async move {
            tokio::time::sleep(QUESTION_DELAY).await;
            if lock(&open).contains(&number) {
                screen.note(&format!("the agent waits for an answer: {about}"));
            }
        });
    }
}

fn lock(questions: &Mutex<BTreeSet<u64>>) -> MutexGuard<'_, BTreeSet<u64>> {
    questions.lock().unwrap_or_else(PoisonError::into_inner)
}

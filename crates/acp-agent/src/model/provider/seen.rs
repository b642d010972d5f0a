//! What of a stream the provider crate passes over, and a person should know.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;

/// How much of an event is kept to be shown, in characters.
const GLIMPSE: usize = 120;

/// What was seen of a stream. It is asked about each event before that is understood.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Events>>);

#[derive(Debug, Default)]
struct Events {
    /// OpenAI's models say why they refuse in a place of its own.
    refusal: String,
    refused: bool,
    /// Why Gemini did not even begin.
    blocked: Option<String>,
    last: String,
}

impl Seen {
    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of a refusal since this was asked last.
    pub(super) fn take_refusal(&self) -> Option<String> {
        let mut events = self.events();
        (!events.refusal.is_empty()).then(|| std::mem::take(&mut events.refusal))
    }

    /// Whether it was refused.
    pub(super) fn refused(&self) -> bool {
        let events = self.events();
        events.refused || events.blocked.is_some()
    }

    /// The beginning of the last event.
    pub(super) fn last(&self) -> String {
        self.events().last.clone()
    }
}

impl ChatFrameSink for Seen {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut events = self.events();
        events.last.clear();
        events.last.extend(frame.data.chars().take(GLIMPSE));
        // Nearly all events are neither, and need not be read twice.
        if !frame.data.contains("\"refusal\"") && !frame.data.contains("\"blockReason\"") {
            return;
        }
        let Some(event) = frame.json() else { return };
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        if let Some(text) = text("/choices/0/delta/refusal") {
            events.refused = true;
            events.refusal.push_str(text);
        }
        if let Some(reason) = text("/promptFeedback/blockReason") {
            events.blocked = Some(reason.to_owned());
        }
    }
}

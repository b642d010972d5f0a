//! Collects a trace's sessions as a client sees them, using the library's connection observer.

use std::collections::HashMap;

use acp::ThreadHandle;
use acp::client::{ObservedChange, ObservedEvent, Observer, PermissionRequest};
use acp::thread::TurnResult;
use acp::v1::{PermissionOptionId, RequestPermissionOutcome, SessionId, ToolCallId};
use acp_wire::jsonrpc::{self, RequestId};

use crate::format::{RecordBody, TraceRecord};
use acp_rules::Side;

/// The maximum number of sessions in the page.
const MAX_SESSIONS: usize = 256;

/// The position of a record in the trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracePosition {
    /// The number of the record, counted from 0.
    pub(super) row: usize,
    /// The time of the record, in microseconds since the start of the trace.
    pub(super) time_us: u64,
}

/// The end of a turn in a traced session.
#[derive(Debug)]
pub(super) struct TurnEnd {
    /// The number of items in the thread when the turn ended.
    pub(super) items: usize,
    pub(super) reason: String,
    pub(super) failed: bool,
    pub(super) position: TracePosition,
}

/// A permission request for a tool call.
#[derive(Debug)]
pub(super) struct TracedQuestion {
    id: RequestId,
    /// The ids and names of the options that the user can choose from.
    pub(super) options: Vec<(PermissionOptionId, String)>,
    /// The user's answer, or `None` while the request is pending.
    pub(super) answer: Option<String>,
    pub(super) position: TracePosition,
}

/// The positions in the trace at which a session's items start and its turns end.
#[derive(Debug, Default)]
pub(super) struct SessionPositions {
    /// The position at which each item started, including items that the thread has dropped.
    pub(super) items: Vec<TracePosition>,
    pub(super) turn_ends: Vec<TurnEnd>,
}

/// A session as the user saw it.
#[derive(Debug)]
pub(super) struct TracedSession {
    pub(super) id: SessionId,
    pub(super) thread: ThreadHandle,
    pub(super) positions: SessionPositions,
    /// The positions recorded before the current replay started.
    before_replay: Option<SessionPositions>,
    /// The permission requests, by tool call.
    pub(super) questions: HashMap<ToolCallId, Vec<TracedQuestion>>,
}

#[derive(Debug)]
pub(super) struct TracedSessions {
    observer: Observer,
    all: Vec<TracedSession>,
    indices: HashMap<SessionId, usize>,
}

impl Default for TracedSessions {
    fn default() -> Self {
        Self {
            observer: Observer::new(MAX_SESSIONS),
            all: Vec::new(),
            indices: HashMap::new(),
        }
    }
}

impl TracedSessions {
    pub(super) fn iter(&self) -> impl Iterator<Item = &TracedSession> {
        self.all.iter()
    }

    /// Returns a note if the trace has more sessions than the page shows.
    pub(super) fn omission_note(&self) -> Option<String> {
        self.observer.has_ignored_sessions().then(|| {
            format!(
                "Only the first {MAX_SESSIONS} sessions are shown here; all messages are included."
            )
        })
    }

    /// Processes the record number `row`, counted from 0.
    pub(super) fn record_message(&mut self, record: &TraceRecord, row: usize) {
        let RecordBody::Message { from, message, .. } = &record.body else {
            return;
        };
        let Ok(message) = jsonrpc::parse(message.get().as_bytes()) else {
            return;
        };
        let change = match from {
            Side::Client => self.observer.handle_client_message(&message),
            Side::Agent => self.observer.handle_agent_message(&message),
        };
        let Some(ObservedChange {
            session_id,
            thread,
            event,
            ..
        }) = change
        else {
            return;
        };
        let position = TracePosition {
            row,
            time_us: record.time_us,
        };
        let next = self.all.len();
        let number = *self.indices.entry(session_id.clone()).or_insert(next);
        if number == next {
            self.all.push(TracedSession {
                id: session_id,
                thread: thread.clone(),
                positions: SessionPositions::default(),
                before_replay: None,
                questions: HashMap::new(),
            });
        }
        if let Some(session) = self.all.get_mut(number) {
            session.record_event(thread, event, position);
        }
    }
}

impl TracedSession {
    /// Records the positions of new items, and facts that are not in the thread, such as where turns end.
    fn record_event(
        &mut self,
        thread: ThreadHandle,
        event: Option<ObservedEvent>,
        position: TracePosition,
    ) {
        if !thread.is_same(&self.thread) {
            // The replay of its parent has replaced a subagent's session.
            self.positions = SessionPositions::default();
            self.thread = thread;
        }
        let items = self
            .thread
            .read(|thread| thread.truncation().items + thread.items().len());
        match event {
            Some(ObservedEvent::TurnEnded(result)) => {
                let (reason, failed) = describe_end(&result);
                self.positions.turn_ends.push(TurnEnd {
                    items,
                    reason,
                    failed,
                    position,
                });
            }
            Some(ObservedEvent::PermissionRequested(id, request)) => {
                self.add_question(id, *request, position);
            }
            Some(ObservedEvent::PermissionAnswered(id, outcome)) => {
                self.answer_question(&id, &outcome);
            }
            Some(ObservedEvent::ReplayStarted) => {
                self.before_replay = Some(std::mem::take(&mut self.positions));
            }
            Some(ObservedEvent::ReplayFailed) => {
                self.positions = self.before_replay.take().unwrap_or_default();
            }
            _ => {}
        }
        let known = items.max(self.positions.items.len());
        self.positions.items.resize(known, position);
    }

    fn add_question(&mut self, id: RequestId, request: PermissionRequest, position: TracePosition) {
        let options = request.options.into_iter();
        let question = TracedQuestion {
            id,
            options: options
                .map(|option| (option.option_id, option.name))
                .collect(),
            answer: None,
            position,
        };
        let of_call = self.questions.entry(request.tool_call.id).or_default();
        of_call.push(question);
    }

    fn answer_question(
        &mut self,
        id: &RequestId,
        outcome: &Result<RequestPermissionOutcome, jsonrpc::Error>,
    ) {
        let mut all = self.questions.values_mut().flatten();
        let Some(question) = all.find(|asked| asked.answer.is_none() && asked.id == *id) else {
            return;
        };
        question.answer = Some(match outcome {
            Ok(RequestPermissionOutcome::Selected(selected)) => {
                let chosen = &selected.option_id;
                let mut options = question.options.iter();
                let option = options.find(|(id, _)| id == chosen);
                option.map_or_else(|| chosen.to_string(), |(_, name)| name.clone())
            }
            Ok(RequestPermissionOutcome::Cancelled(_)) => "cancelled".to_owned(),
            Ok(_) => String::new(),
            Err(error) => error.message.to_string(),
        });
    }
}

/// Returns the text to show at the end of a turn, and whether the turn failed.
fn describe_end(result: &TurnResult) -> (String, bool) {
    match result {
        Ok(reason) => (reason.as_str().to_owned(), false),
        Err(error) => (format!("failed: {}", error.message), true),
    }
}

//! A live session: its log, the clients attached to it, its turn and queue, and its open questions.

use std::collections::{BTreeMap, HashMap, HashSet};

use acp::jsonrpc::{self, RequestId};
use acp::v1::SessionId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::log::{Audience, ClientId, EntryContent, LiveLog, LiveLogEntry, QuestionId};
use super::message::{LiveLine, notification, response, to_raw};
use super::prompt::{PromptSender, Prompts, prompt_content};
use super::record::SessionRecord;
use super::setup::LiveSetup;

/// Tells a client its position in the log of a session, after the lines before it.
pub(super) const POSITION: &str = "_live/position";

/// The maximum number of open questions of a session.
pub(super) const MAX_QUESTIONS: usize = 256;

/// A request of a client, to which a response is still to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientRequestId {
    pub(super) client: ClientId,
    pub(super) id: RequestId,
}

/// A client that waits for the agent to load a session.
#[derive(Debug)]
pub(super) struct WaitingClient {
    pub(super) request: ClientRequestId,
    /// Whether the client gets the history. It is attached already, and gets it as the agent sends it.
    pub(super) with_replay: bool,
}

/// A session that several clients can be attached to.
#[derive(Debug)]
pub(super) struct SharedSession {
    pub(super) id: SessionId,
    pub(super) cwd: Option<String>,
    pub(super) title: Option<String>,
    /// The name of the user who has created the session, if they have a token of their own.
    pub(super) creator: Option<String>,
    pub(super) setup: LiveSetup,
    /// The clients that wait for the agent to load the session. `None` once it is loaded.
    pub(super) loading: Option<Vec<WaitingClient>>,
    pub(super) prompts: Prompts,
    /// What is to be written to the store, if the session is stored.
    pub(super) record: Option<SessionRecord>,
    /// Whether the agent has the session open.
    pub(super) agent_state: OpenState,
    pub(super) log: LiveLog,
    /// How often the session was found at rest, since it last was not.
    rests: u8,
    attached: HashMap<ClientId, Attachment>,
    questions: BTreeMap<QuestionId, Question>,
    next_question: u64,
}

/// Whether the agent has a session open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenState {
    /// It has.
    Open,
    /// It is opening a session whose log is known already. If it sends the history again, it is ignored.
    Reopening,
    /// It cannot open the session, for this reason. The log can still be read.
    Lost(String),
}

/// A client's position in the log of a session.
#[derive(Debug)]
struct Attachment {
    /// The number of the next entry to send.
    position: u64,
    /// Entries with lower numbers were added before the client attached. They are the session's history.
    live_from: u64,
    /// The keys of the client's own prompts, which it does not get as history.
    own_prompts: Vec<String>,
}

/// A request of the agent that no client has answered yet.
#[derive(Debug)]
pub(super) struct Question {
    /// The agent's id of the request.
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Box<RawValue>,
    /// The clients that have been asked, with the id that the request has there.
    pub(super) asked: HashMap<ClientId, i64>,
    /// The clients that have answered with an error, or are not asked.
    unable: HashSet<ClientId>,
}

/// A line for a client that is read from the log.
pub(super) enum ClientLine {
    Line(LiveLine),
    /// A question, which the caller must give an id.
    Question(QuestionId),
}

/// The entries that a client wants to read have been dropped.
#[derive(Debug)]
pub(super) struct ClientTooSlow;

impl SharedSession {
    pub(super) fn new(id: SessionId, cwd: Option<String>, max_log_bytes: usize) -> Self {
        Self {
            id,
            cwd,
            title: None,
            creator: None,
            setup: LiveSetup::default(),
            loading: None,
            prompts: Prompts::default(),
            record: None,
            agent_state: OpenState::Open,
            log: LiveLog::new(max_log_bytes),
            rests: 0,
            attached: HashMap::new(),
            questions: BTreeMap::new(),
            next_question: 0,
        }
    }

    /// Returns the attached clients.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.attached.keys().copied()
    }

    /// Returns `true` if a turn is running or the agent waits for an answer.
    pub(super) fn is_busy(&self) -> bool {
        self.prompts.turn.is_some()
            || self.loading.is_some()
            || !self.questions.is_empty()
            || self.agent_state == OpenState::Reopening
    }

    /// Returns `true` if the session is at rest and was so the last time: nobody is attached, nothing is to be done, and
    /// everything is in the store.
    pub(super) fn is_still_at_rest(&mut self) -> bool {
        let is_at_rest = self.record.is_some()
            && self.attached.is_empty()
            && !self.is_busy()
            && self.prompts.queue().len() == 0
            && self.log.is_written(self.log.end());
        self.rests = match is_at_rest && !self.has_unwritten() {
            true => self.rests.saturating_add(1),
            false => 0,
        };
        self.rests > 1
    }

    /// Returns `true` if a turn is running that can end: it does not wait for an answer, or somebody is there to answer.
    pub(super) fn is_progressing(&self) -> bool {
        let can_continue = self.questions.is_empty() || !self.attached.is_empty();
        self.prompts.turn.is_some() && can_continue
    }

    /// Attaches a client. With a replay, it gets the history of the session first. If it is attached already, it must
    /// have taken what it has not read yet.
    pub(super) fn attach(&mut self, client: ClientId, with_replay: bool) {
        if self.is_attached(client) && !with_replay {
            // It goes on where it is.
            self.ask_again(client);
            return;
        }
        let again = self.unwritten_responses(client);
        let live_from = self.log.end();
        let position = match with_replay {
            true => self.log.start(),
            false => live_from,
        };
        self.attach_from(client, position, live_from, Vec::new());
        for line in again {
            self.push_event(Audience::Only(client), line);
        }
    }

    /// Attaches a client that has read everything before a position, on another server. It gets the rest, except for
    /// its own prompts. Returns `false` if it cannot continue from there.
    pub(super) fn continue_from(
        &mut self,
        client: ClientId,
        position: u64,
        own_prompts: Vec<String>,
    ) -> bool {
        let can_continue = self.log.can_continue_from(position);
        if can_continue {
            self.attach_from(client, position, self.log.end(), own_prompts);
        }
        can_continue
    }

    fn attach_from(
        &mut self,
        client: ClientId,
        position: u64,
        live_from: u64,
        own_prompts: Vec<String>,
    ) {
        let attachment = Attachment {
            position,
            live_from,
            own_prompts,
        };
        self.attached.insert(client, attachment);
        self.ask_again(client);
    }

    /// Forgets what a client was asked: it is asked again.
    fn ask_again(&mut self, client: ClientId) {
        for question in self.questions.values_mut() {
            question.asked.remove(&client);
        }
    }

    /// Detaches a client. Its prompts stay in the queue.
    pub(super) fn detach(&mut self, client: ClientId) -> bool {
        for question in self.questions.values_mut() {
            question.asked.remove(&client);
        }
        self.attached.remove(&client).is_some()
    }

    pub(super) fn is_attached(&self, client: ClientId) -> bool {
        self.attached.contains_key(&client)
    }

    /// Sends the response to a client's request for opening the session, and then asks it the open questions.
    pub(super) fn confirm_attached(&mut self, request: &ClientRequestId) {
        let result = match self.log.start() {
            0 => json!(self.setup.to_result()),
            // The extension says that the replay is not complete.
            dropped => {
                let mut result = self.setup.to_result().clone();
                let meta = result.entry("_meta").or_insert_with(|| json!({}));
                if let Some(meta) = meta.as_object_mut() {
                    meta.insert("live".to_owned(), json!({ "droppedEntries": dropped }));
                }
                Value::Object(result)
            }
        };
        self.respond(request, &Ok(to_raw(&result)));
        self.ask_open_questions(request.client);
    }

    /// Asks a client the open questions.
    pub(super) fn ask_open_questions(&mut self, client: ClientId) {
        for question in self.questions.keys() {
            let content = EntryContent::Question(*question);
            self.log.push(Audience::Only(client), content);
        }
    }

    /// Appends a line that is no part of the history.
    pub(super) fn push_event(&mut self, audience: Audience, line: LiveLine) {
        self.rests = 0;
        self.log.push(audience, EntryContent::Event(line));
    }

    /// Returns the position in the log from which a client could continue, here or on another server.
    pub(super) fn position(&self, client: ClientId) -> Option<u64> {
        let position = self.attached.get(&client)?.position;
        Some(self.log.stored_position(position))
    }

    /// Returns the line that tells a client its position.
    pub(super) fn position_line(&self, client: ClientId) -> LiveLine {
        let position = self.position(client);
        let mut params = json!({ "sessionId": self.id, "position": position });
        if let Some(log) = self.log.id() {
            params["log"] = log.into();
        }
        notification(POSITION, &params)
    }

    /// Returns `true` if there is something to write to the store.
    pub(super) fn has_unwritten(&self) -> bool {
        let record = self.record.as_ref();
        record.is_some_and(|record| record.is_changed() || self.log.has_unwritten())
    }

    /// Appends a line to the log.
    pub(super) fn push(&mut self, audience: Audience, line: LiveLine) {
        self.rests = 0;
        self.log.push(audience, EntryContent::Line(line));
    }

    /// Sends the response to a client's request, after everything that is in the log.
    pub(super) fn respond(
        &mut self,
        request: &ClientRequestId,
        result: &Result<Box<RawValue>, jsonrpc::Error>,
    ) {
        if self.is_attached(request.client) {
            let line = response(&request.id, result);
            self.push_event(Audience::Only(request.client), line);
        }
    }

    /// Shows a prompt as the user's message.
    pub(super) fn push_prompt(&mut self, sender: &PromptSender, key: &str, params: &RawValue) {
        for content in prompt_content(params) {
            let update = json!({
                "sessionUpdate": "user_message_chunk",
                "content": content,
                "_meta": { "live": { "client": sender.name, "promptKey": key } },
            });
            let params = json!({ "sessionId": self.id, "update": update });
            let line = notification("session/update", &params);
            self.push(sender.others(), line);
        }
    }

    /// Compacts what all clients have read.
    pub(super) fn compact(&mut self) {
        let positions = self.attached.values().map(|attached| attached.position);
        let read_until = positions.min().unwrap_or(self.log.end());
        let merged = self.log.compact(read_until);
        if let Some(record) = &mut self.record {
            record.merged(merged);
        }
    }

    /// Adds a question, for all attached clients.
    pub(super) fn ask(&mut self, id: RequestId, method: &str, params: Option<&RawValue>) {
        let question = QuestionId(self.next_question);
        self.next_question += 1;
        let params = params.map_or_else(|| to_raw(&json!({})), ToOwned::to_owned);
        self.questions.insert(
            question,
            Question {
                id,
                method: method.to_owned(),
                params,
                asked: HashMap::new(),
                unable: HashSet::new(),
            },
        );
        let content = EntryContent::Question(question);
        self.log.push(Audience::All, content);
    }

    /// Returns the request for a client that is asked, or `None` if the question is no longer open.
    pub(super) fn question_line(
        &mut self,
        question: QuestionId,
        client: ClientId,
        id: i64,
    ) -> Option<LiveLine> {
        let question = self.questions.get_mut(&question)?;
        question.asked.insert(client, id);
        let params = Some(&*question.params);
        Some(super::message::request(id, &question.method, params))
    }

    /// Returns the line that shows a question to a client that is not asked, or `None` if it is no longer open.
    pub(super) fn shown_question_line(&self, id: QuestionId) -> Option<LiveLine> {
        let question = self.questions.get(&id)?;
        let params = json!({
            "sessionId": self.id,
            "question": id.0,
            "method": question.method,
            "params": question.params,
        });
        Some(notification("_live/question_opened", &params))
    }

    /// Returns `true` if the running turn was started by this client.
    pub(super) fn has_turn_of(&self, client: ClientId) -> bool {
        let turn = self.prompts.turn.as_ref();
        turn.is_some_and(|turn| turn.prompt.sender.client == client)
    }

    /// Records that a client is not asked a question.
    pub(super) fn skip_question(&mut self, question: QuestionId, client: ClientId) {
        if let Some(question) = self.questions.get_mut(&question) {
            question.unable.insert(client);
        }
    }

    /// Records that a client cannot answer a question. Returns `true` if another client still can.
    pub(super) fn withdraw(&mut self, question: QuestionId, client: ClientId) -> bool {
        let Some(question) = self.questions.get_mut(&question) else {
            return false;
        };
        question.asked.remove(&client);
        question.unable.insert(client);
        let mut attached = self.attached.keys();
        attached.any(|other| !question.unable.contains(other))
    }

    /// Closes a question, and tells all clients except the one that has answered it. Returns the question, or `None` if
    /// it is no longer open.
    pub(super) fn close_question(
        &mut self,
        question: QuestionId,
        answered_by: Option<(ClientId, Option<&str>)>,
    ) -> Option<Question> {
        let closed = self.questions.remove(&question)?;
        let answerer = answered_by.map(|(client, _)| client);
        for (client, id) in &closed.asked {
            if Some(*client) != answerer {
                let line = notification("$/cancel_request", &json!({ "requestId": id }));
                self.push_event(Audience::Only(*client), line);
            }
        }
        let name = answered_by.and_then(|(_, name)| name);
        let params = json!({
            "sessionId": self.id,
            "question": question.0,
            "method": closed.method,
            "answeredBy": name,
            "isAnswered": answered_by.is_some(),
        });
        let line = notification("_live/question_closed", &params);
        let audience = answerer.map_or(Audience::All, Audience::AllExcept);
        self.push_event(audience, line);
        Some(closed)
    }

    /// Returns an open question.
    pub(super) fn question(&self, question: QuestionId) -> Option<&Question> {
        self.questions.get(&question)
    }

    /// Returns the open questions.
    pub(super) fn questions(&self) -> impl Iterator<Item = (QuestionId, &Question)> {
        self.questions.iter().map(|(id, question)| (*id, question))
    }

    /// Returns the next line for a client, and moves its position past it. Returns `None` if the client has read
    /// everything.
    pub(super) fn next_line(
        &mut self,
        client: ClientId,
    ) -> Result<Option<ClientLine>, ClientTooSlow> {
        let Some(attachment) = self.attached.get_mut(&client) else {
            return Ok(None);
        };
        let mut entries = self
            .log
            .entries_from(attachment.position)
            .ok_or(ClientTooSlow)?;
        let next = entries.find_map(|entry| {
            let is_history = entry.number < attachment.live_from;
            let line = match &entry.content {
                EntryContent::Line(line) => ClientLine::Line(line.clone()),
                // Open questions follow the history.
                _ if is_history => return None,
                EntryContent::Event(line) => ClientLine::Line(line.clone()),
                EntryContent::Question(question) => ClientLine::Question(*question),
            };
            let is_for_client = match entry.audience {
                Audience::All => true,
                Audience::Only(only) => only == client,
                Audience::AllExcept(except) => except != client || is_history,
            } && !(is_history && attachment.has_sent(entry));
            is_for_client.then_some((entry.end, line))
        });
        let (position, line) = match next {
            Some((end, line)) => (end, Some(line)),
            None => (self.log.position_after(attachment.position), None),
        };
        attachment.position = position;
        Ok(line)
    }

    /// Returns the lines that a client has not read yet, except for questions, which it can no longer answer.
    pub(super) fn take_unread(&mut self, client: ClientId) -> Vec<u8> {
        let mut unread = Vec::new();
        while let Ok(Some(next)) = self.next_line(client) {
            if let ClientLine::Line(line) = next {
                unread.extend_from_slice(&line);
            }
        }
        unread
    }

    /// Returns the responses to a client that it cannot read yet.
    pub(super) fn unwritten_responses(&self, client: ClientId) -> Vec<LiveLine> {
        let Some(attachment) = self.attached.get(&client) else {
            return Vec::new();
        };
        let entries = self.log.unreadable_entries(attachment.position);
        let responses = entries.filter_map(|entry| match &entry.content {
            EntryContent::Event(line) if entry.audience == Audience::Only(client) => {
                Some(line.clone())
            }
            _ => None,
        });
        responses.collect()
    }
}

impl Attachment {
    /// Returns `true` if an entry shows a prompt that this client has sent itself.
    fn has_sent(&self, entry: &LiveLogEntry) -> bool {
        let EntryContent::Line(line) = &entry.content else {
            return false;
        };
        let mut own = self.own_prompts.iter();
        own.any(|key| {
            memchr::memmem::find(line, format!("\"promptKey\":\"{key}\"").as_bytes()).is_some()
        })
    }
}

//! A client of a live agent, and what is to be written to it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use acp::jsonrpc::RequestId;
use acp::v1::SessionId;
use acp_remote::CloseStatus;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use super::agent::LiveAgent;
use super::log::{ClientId, QuestionId};
use super::message::{LiveLine, notification};
use super::moved::MovedSession;
use super::session::{ClientLine, ClientTooSlow, POSITION};
use crate::users::ClientUser;

/// A connected client.
#[derive(Debug)]
pub(super) struct LiveClient {
    pub(super) id: ClientId,
    pub(super) name: Option<String>,
    pub(super) is_initialized: bool,
    /// The questions that it wants to be asked.
    pub(super) answers: AnsweredQuestions,
    /// The number of its requests that the agent has not answered yet.
    pub(super) requests: usize,
    /// The questions that it has been asked, by the id of the request.
    pub(super) questions: HashMap<i64, (SessionId, QuestionId)>,
    pub(super) next_request: i64,
    /// Messages that belong to no session.
    pub(super) out: Vec<u8>,
    pub(super) sessions: BTreeSet<SessionId>,
    /// The session that was written to last. The next one is written to next.
    pub(super) last_session: Option<SessionId>,
    pub(super) close: Option<CloseStatus>,
    pub(super) wake: Arc<Notify>,
    /// When it is told its position in the logs that it reads.
    pub(super) positions: ToldPositions,
    /// The user with a token of their own. `None` stands for whoever has the server's token.
    pub(super) user: Option<ClientUser>,
    /// Whether it is another server, which passes on messages of its clients.
    pub(super) is_node: bool,
    /// The sessions that another server owns now, to which the client is passed on.
    pub(super) moved: Vec<MovedSession>,
}

/// The questions that a client wants to be asked. A script answers by rules, which its user has set for the script's own
/// turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnsweredQuestions {
    #[default]
    All,
    /// Those of the turns that it has started.
    Own,
    None,
    /// None, but it is shown them all.
    Shown,
}

/// When a client is told its position in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToldPositions {
    Never,
    AfterParts,
    AfterLines,
}

/// What to write to a client.
#[derive(Debug, Default)]
pub(super) struct ClientOutput {
    pub(super) bytes: Vec<u8>,
    /// The connection ends after these bytes.
    pub(super) close: Option<CloseStatus>,
    /// Whether sessions of the client have moved to another server.
    pub(super) has_moved: bool,
}

impl LiveClient {
    /// Returns `true` if the client is asked a question of a turn, which it has started itself or not.
    fn is_asked(&self, is_own_turn: bool) -> bool {
        let may_answer = self.user.as_ref().is_none_or(|user| user.may_answer);
        may_answer
            && match self.answers {
                AnsweredQuestions::All => true,
                AnsweredQuestions::Own => is_own_turn,
                AnsweredQuestions::None | AnsweredQuestions::Shown => false,
            }
    }

    /// Returns `true` if the client may send prompts, and end turns.
    pub(super) fn may_prompt(&self) -> bool {
        self.user.as_ref().is_none_or(|user| user.may_prompt)
    }

    /// Returns the name of the user.
    pub(super) fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &*user.name)
    }

    /// Returns `true` if the client may see a session that this user has created.
    pub(super) fn may_see(&self, creator: Option<&str>) -> bool {
        self.user.as_ref().is_none_or(|user| user.may_see(creator))
    }

    /// Sends responses that do not wait for their session's log.
    pub(super) fn take_responses(&mut self, responses: Vec<LiveLine>) {
        for line in responses {
            self.out.extend_from_slice(&line);
        }
    }

    /// Returns the client's sessions, beginning after the one that was written to last.
    fn sessions_to_write(&self) -> Vec<SessionId> {
        let Some(last) = &self.last_session else {
            return self.sessions.iter().cloned().collect();
        };
        let after = (Bound::Excluded(last), Bound::Unbounded);
        let up_to = (Bound::Unbounded, Bound::Included(last));
        let sessions = self.sessions.range(after).chain(self.sessions.range(up_to));
        sessions.cloned().collect()
    }
}

impl LiveAgent {
    /// Adds a client. `wake` is notified when there is something to write to it.
    pub(super) fn add_client(&mut self, wake: Arc<Notify>) -> ClientId {
        let id = ClientId(self.next_client);
        self.next_client += 1;
        let client = LiveClient {
            id,
            name: None,
            is_initialized: false,
            answers: AnsweredQuestions::All,
            requests: 0,
            questions: HashMap::new(),
            next_request: 1,
            out: Vec::new(),
            sessions: BTreeSet::new(),
            last_session: None,
            close: None,
            wake,
            positions: ToldPositions::Never,
            user: None,
            is_node: false,
            moved: Vec::new(),
        };
        self.clients.insert(id, client);
        id
    }

    /// Sets the user of a client, who has a token of their own.
    pub(super) fn set_user(&mut self, client: ClientId, user: ClientUser) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.user = Some(user);
        }
    }

    /// Returns the name of a client's user.
    pub(super) fn user_name(&self, client: ClientId) -> Option<&str> {
        self.clients.get(&client)?.user_name()
    }

    /// Removes a client that has disconnected. Its turns and queued prompts go on.
    pub(super) fn remove_client(&mut self, id: ClientId) {
        let Some(client) = self.clients.remove(&id) else {
            return;
        };
        for session in client.sessions {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.detach(id);
            }
        }
    }

    /// Returns `true` if a client is another server, which passes on messages of its clients.
    pub(super) fn is_node(&self, client: ClientId) -> bool {
        self.clients
            .get(&client)
            .is_some_and(|client| client.is_node)
    }

    /// Returns the number of bytes that wait to be written to a client and belong to no session.
    pub(super) fn client_backlog(&self, client: ClientId) -> usize {
        self.clients
            .get(&client)
            .map_or(0, |client| client.out.len())
    }

    /// Returns up to about `max_bytes` for a client, and moves its positions past them.
    pub(super) fn take_client_output(&mut self, id: ClientId, max_bytes: usize) -> ClientOutput {
        let Self {
            clients, sessions, ..
        } = self;
        let Some(client) = clients.get_mut(&id) else {
            return ClientOutput::default();
        };
        let mut output = ClientOutput {
            bytes: std::mem::take(&mut client.out),
            close: None,
            has_moved: !client.moved.is_empty(),
        };
        if client.positions != ToldPositions::Never && !output.bytes.is_empty() {
            let line = notification(POSITION, &json!({}));
            output.bytes.extend_from_slice(&line);
        }
        for session_id in client.sessions_to_write() {
            let Some(session) = sessions.get_mut(&session_id) else {
                continue;
            };
            let before = output.bytes.len();
            while output.bytes.len() < max_bytes {
                let before_line = output.bytes.len();
                match session.next_line(id) {
                    Ok(None) => break,
                    Ok(Some(ClientLine::Line(line))) => {
                        output.bytes.extend_from_slice(&line);
                        client.last_session = Some(session_id.clone());
                    }
                    Ok(Some(ClientLine::Question(question))) => {
                        let number = client.next_request;
                        if !client.is_asked(session.has_turn_of(id)) {
                            session.skip_question(question, id);
                            if client.answers == AnsweredQuestions::Shown
                                && let Some(line) = session.shown_question_line(question)
                            {
                                output.bytes.extend_from_slice(&line);
                            }
                        } else if let Some(line) = session.question_line(question, id, number) {
                            client.next_request += 1;
                            client
                                .questions
                                .insert(number, (session_id.clone(), question));
                            output.bytes.extend_from_slice(&line);
                        }
                    }
                    Err(ClientTooSlow) => {
                        let reason = format!(
                            "too slow: updates of session {session_id} were dropped before they were read; load it again"
                        );
                        output.close = Some(CloseStatus::failed(reason));
                        return output;
                    }
                }
                if client.positions == ToldPositions::AfterLines && output.bytes.len() > before_line
                {
                    output.bytes.extend_from_slice(&session.position_line(id));
                }
            }
            if client.positions == ToldPositions::AfterParts && output.bytes.len() > before {
                output.bytes.extend_from_slice(&session.position_line(id));
            }
        }
        // Whatever is left is read in the next call. Until then, the connection stays open.
        if output.bytes.is_empty() {
            output.close.clone_from(&client.close);
        }
        output
    }

    /// Returns a new id for a request that this server passes on to a client.
    pub(super) fn next_request_id(&mut self, client: ClientId) -> Option<i64> {
        let client = self.clients.get_mut(&client)?;
        let id = client.next_request;
        client.next_request += 1;
        Some(id)
    }

    /// Takes the question that a client was asked with this id. Returns `None` if there is none, or it has been closed.
    pub(super) fn take_asked(
        &mut self,
        client: ClientId,
        id: &RequestId,
    ) -> Option<(SessionId, QuestionId)> {
        let RequestId::Number(id) = id else {
            return None;
        };
        self.clients.get_mut(&client)?.questions.remove(id)
    }
}

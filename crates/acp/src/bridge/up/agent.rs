//! What the agent sends, in version 1, and what the client gets of it.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, RequestId};
use serde_json::value::RawValue;

use super::super::json::{Line, Out, answer, emit, object, raw, session_of, update};
use super::super::method;
use super::{Asked, Asking, Question, Up, cancelled, content, state};

/// The result of an answer, as it came.
type Answered<'a> = Result<&'a &'a RawValue, &'a jsonrpc::Error>;

impl Up {
    pub(super) fn agent_says(
        &mut self,
        said: &str,
        params: &RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        let session = session_of(params).filter(|_| said == method::UPDATE);
        let Some(session) = session else {
            return line.pass(&mut out.client);
        };
        let emits = self
            .sessions
            .touch(&session)
            .update(object(params.get("update")));
        emit(&mut out.client, line, params, &session, emits);
    }

    pub(super) fn agent_asks(
        &mut self,
        id: &RequestId,
        asked: &str,
        params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        if method::lent_by_v1_client(asked) {
            // Not offered: the client has nothing of the kind.
            return Err(jsonrpc::Error::method_not_found(asked));
        }
        let permission = asked == method::PERMISSION;
        let session_id = session_of(&params).filter(|_| permission || asked == method::ELICITATION);
        let Some(session_id) = session_id else {
            line.pass(&mut out.client);
            return Ok(());
        };
        // An id that is used again after the bridge has answered it is a new question.
        if let Some(Question::Answered) = self.questions.get(id) {
            self.questions.take(id);
        }
        self.questions.room(id)?;
        let session = self.sessions.touch(&session_id);
        if session.turn.as_ref().is_some_and(|turn| turn.cancelled) {
            answer(&mut out.agent, id, &cancelled(permission));
            return Ok(());
        }
        if session.turn.is_some() && session.questions.is_empty() {
            update(&mut out.client, &session_id, &state("requires_action"));
        }
        session.questions.push(Asking {
            id: id.clone(),
            permission,
        });
        if permission {
            let params = session.permission(params);
            line.with_params(&mut out.client, &params);
        } else {
            line.pass(&mut out.client);
        }
        self.questions.add(
            id,
            Question::Open {
                session: session_id,
            },
        );
        Ok(())
    }

    pub(super) fn agent_answers(
        &mut self,
        id: &RequestId,
        result: Answered<'_>,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        let Some(asked) = self.asked.take(id) else {
            return line.pass(&mut out.client);
        };
        match asked {
            Asked::Prompt { session } => self.prompt_ended(id, &session, result, line, out),
            // The agent cannot know of it.
            Asked::Held { session } => self.asked.add(id, Asked::Held { session }),
            asked => match result {
                Ok(result) => self.answered(asked, object(Some(result)), line, out),
                Err(_) => {
                    if let Asked::Resume { session, .. } = asked
                        && let Some(session) = self.sessions.get(&session)
                    {
                        session.swallowing = false;
                    }
                    line.pass(&mut out.client);
                }
            },
        }
    }

    /// The agent has done what it was asked for.
    fn answered(&mut self, asked: Asked, mut result: RawObject, line: &Line<'_>, out: &mut Out) {
        match asked {
            Asked::Open { place } => {
                if let Some(id) = session_of(&result) {
                    let session = self.sessions.touch(&id);
                    session.place = Some(place);
                    session.config.answer(&mut result);
                }
                line.with_result(&mut out.client, &result);
            }
            Asked::Resume { session: id, place } => {
                let session = self.sessions.touch(&id);
                session.place = Some(place);
                session.swallowing = false;
                session.speaker = None;
                session.config.answer(&mut result);
                let now = match (&session.turn, session.questions.is_empty()) {
                    (None, _) => "idle",
                    (Some(_), true) => "running",
                    (Some(_), false) => "requires_action",
                };
                update(&mut out.client, &id, &state(now));
                line.with_result(&mut out.client, &result);
            }
            Asked::Set { session: id } => {
                let session = self.sessions.touch(&id);
                session.config.answer(&mut result);
                if !result.has("configOptions") {
                    result.set("configOptions", raw(&session.config.list()));
                }
                line.with_result(&mut out.client, &result);
            }
            Asked::Switch {
                session: id,
                switch,
                value,
            } => {
                let session = self.sessions.touch(&id);
                session.config.switched(switch, &value);
                result.set("configOptions", raw(&session.config.list()));
                line.with_result(&mut out.client, &result);
            }
            Asked::Close { session: id } => {
                if self.sessions.get(&id).is_some_and(|s| s.turn.is_some()) {
                    // The agent owes the end of its turn, but the session is closed with this answer.
                    let mut idle = state("idle");
                    idle.push("stopReason".to_owned(), raw("cancelled"));
                    update(&mut out.client, &id, &idle);
                }
                self.sessions.forget(&id);
                line.with_result(&mut out.client, &result);
            }
            Asked::Delete { session: id } => {
                if self.sessions.get(&id).is_some_and(|s| s.turn.is_none()) {
                    self.sessions.forget(&id);
                }
                line.with_result(&mut out.client, &result);
            }
            Asked::Plain | Asked::Prompt { .. } | Asked::Held { .. } => {
                // An empty result may be `null` in version 1.
                if line_result_is_null(line) {
                    line.with_result(&mut out.client, &result);
                } else {
                    line.pass(&mut out.client);
                }
            }
        }
    }

    /// The answer to a prompt is the end of its turn; what it says goes into `state_update`.
    fn prompt_ended(
        &mut self,
        id: &RequestId,
        session_id: &str,
        result: Answered<'_>,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        let turn = self
            .sessions
            .get(session_id)
            .and_then(|session| session.turn.as_ref())
            .filter(|turn| turn.id == *id);
        let Some(turn) = turn else {
            // The session was closed meanwhile.
            return;
        };
        let mut idle = state("idle");
        match result {
            Ok(result) => {
                for (key, value) in object(Some(result)).iter() {
                    if idle.get(key).is_none() && value.get() != "null" {
                        idle.push(key.to_owned(), value.to_owned());
                    }
                }
            }
            // Whatever cancelling has made fail, the turn was cancelled.
            Err(_) if turn.cancelled => idle.push("stopReason".to_owned(), raw("cancelled")),
            Err(_) => {
                idle.push("stopReason".to_owned(), raw("error"));
                let line: RawObject = super::read(line.bytes).unwrap_or_default();
                if let Some(error) = line.get("error") {
                    idle.push("error".to_owned(), error.to_owned());
                }
            }
        }
        self.end_turn(session_id, &idle, out);
    }
}

fn line_result_is_null(line: &Line<'_>) -> bool {
    matches!(
        &line.message,
        jsonrpc::Incoming::Response { result: Ok(result), .. } if result.get() == "null"
    )
}

impl super::Session {
    /// What a permission is asked for, in version 2's words.
    fn permission(&mut self, mut params: RawObject) -> RawObject {
        let call = content::without_nulls(object(params.take("toolCall").as_deref()));
        let id: Option<String> = call.field("toolCallId");
        let title = call
            .field::<String>("title")
            .or_else(|| self.titles.get(id.as_deref()?).cloned())
            .filter(|title| !title.is_empty())
            .or_else(|| call.field("kind"))
            .unwrap_or_else(|| "The agent asks for your permission".to_owned());
        let mut call = call;
        content::items_to_v2(&mut call);
        if !params.has("title") {
            params.set("title", raw(&title));
        }
        let subject = object! { "type": "tool_call", "toolCall": call };
        params.set("subject", raw(&subject));
        params
    }
}

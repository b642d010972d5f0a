//! What the client sends, in version 2, and what the agent gets of it.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, RequestId};

use super::super::json::{Line, Out, answer, notify, raw, session_asked, session_of, update};
use super::super::{method, setup};
use super::{Asked, HELD, HELD_BYTES, Held, Question, Switch, Up, cancelled_request, state};

impl Up {
    pub(super) fn client_asks(
        &mut self,
        id: &RequestId,
        asked: &str,
        params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        self.asked.room(id)?;
        match asked {
            method::INITIALIZE => Err(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                "Invalid request: the connection is initialized already",
            )),
            method::PROMPT => self.prompt(id, &params, line, out),
            method::NEW | method::FORK => {
                let place = place(&params);
                let mut params = params;
                setup::servers_to_v1(&mut params);
                line.with_params(&mut out.agent, &params);
                self.asked.add(id, Asked::Open { place });
                Ok(())
            }
            method::RESUME => self.resume(id, params, line, out),
            method::LIST if !self.offers.list => {
                answer(&mut out.client, id, &self.list(&params)?);
                Ok(())
            }
            method::CLOSE => self.close(id, &params, line, out),
            // It ends the session as closing it does.
            method::ARCHIVE => {
                let session = session_asked(&params)?;
                line.pass(&mut out.agent);
                let closed = session.clone();
                self.asked.add(id, Asked::Close { session: closed });
                self.cancel(&session, out);
                Ok(())
            }
            method::DELETE => {
                let session = session_asked(&params)?;
                line.pass(&mut out.agent);
                self.asked.add(id, Asked::Delete { session });
                Ok(())
            }
            method::SET_OPTION => self.set_option(id, params, line, out),
            method::LOGIN => {
                line.with_method(&mut out.agent, method::AUTHENTICATE, &params);
                self.asked.add(id, Asked::Plain);
                Ok(())
            }
            method::LOGOUT_V2 => {
                if !self.offers.logout {
                    return Err(not_offered(asked, "the agent cannot log out"));
                }
                line.with_method(&mut out.agent, method::LOGOUT_V1, &params);
                self.asked.add(id, Asked::Plain);
                Ok(())
            }
            // Version 1's, which a client of version 2 has no business to call.
            method::LOAD
            | method::SET_MODE
            | method::SET_MODEL
            | method::AUTHENTICATE
            | method::LOGOUT_V1 => Err(jsonrpc::Error::method_not_found(asked)),
            _ => {
                line.pass(&mut out.agent);
                self.asked.add(id, Asked::Plain);
                Ok(())
            }
        }
    }

    pub(super) fn client_says(
        &mut self,
        said: &str,
        params: &RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        match said {
            method::CANCEL => {
                // First the cancel, then what follows from it: an agent that reads `cancelled` as an
                // answer before it knows may take it for a mere no.
                line.pass(&mut out.agent);
                if let Some(session) = session_of(params) {
                    self.cancel(&session, out);
                }
            }
            method::CANCEL_REQUEST => {
                let Some(id) = cancelled_request(params) else {
                    return line.pass(&mut out.agent);
                };
                match self.asked.get(&id) {
                    Some(Asked::Held { .. }) => self.cancel_held(&id, out),
                    // Its answer has been given; there is nothing left to cancel.
                    Some(Asked::Prompt { .. }) => {}
                    _ => line.pass(&mut out.agent),
                }
            }
            _ => line.pass(&mut out.agent),
        }
    }

    pub(super) fn client_answers(&mut self, id: &RequestId, line: &Line<'_>, out: &mut Out) {
        match self.questions.take(id) {
            Some(Question::Answered) => {}
            Some(Question::Open { session }) => {
                line.pass(&mut out.agent);
                if let Some(open) = self.sessions.get(&session) {
                    let before = open.questions.len();
                    open.questions.retain(|asking| asking.id != *id);
                    let last = before > 0 && open.questions.is_empty();
                    if last && open.turn.is_some() {
                        update(&mut out.client, &session, &state("running"));
                    }
                }
            }
            None => line.pass(&mut out.agent),
        }
    }

    fn prompt(
        &mut self,
        id: &RequestId,
        params: &RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        let session_id = session_asked(params)?;
        let blocks: Option<Vec<serde::de::IgnoredAny>> = params.field("prompt");
        if blocks.is_none_or(|blocks| blocks.is_empty()) {
            // Once it is acknowledged it cannot be refused any more.
            let text = "Invalid params: the prompt is not a list of at least one content block";
            return Err(jsonrpc::Error::invalid_params(text));
        }
        let held = Held {
            id: id.clone(),
            line: line.bytes.into(),
        };
        let session = self.sessions.touch(&session_id);
        if session.turn.is_none() {
            self.begin(&session_id, &held, out);
            return Ok(());
        }
        if session.held.len() >= HELD {
            let text = format!("{HELD} prompts wait for the turn to end already");
            return Err(jsonrpc::Error::internal(text));
        }
        if self.held_bytes + held.line.len() > HELD_BYTES {
            let text = format!("the prompts that wait are over the limit of {HELD_BYTES} bytes");
            return Err(jsonrpc::Error::internal(text));
        }
        self.held_bytes += held.line.len();
        session.held.push_back(held);
        self.asked.add(
            id,
            Asked::Held {
                session: session_id,
            },
        );
        Ok(())
    }

    fn resume(
        &mut self,
        id: &RequestId,
        params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        let session = session_asked(&params)?;
        let place = place(&params);
        let from: Option<RawObject> = params.field("replayFrom");
        let from = from.map(|from| from.field::<String>("type").unwrap_or_default());
        let mut params = params.without(&["replayFrom"]);
        setup::servers_to_v1(&mut params);
        let known = self.sessions.touch(&session);
        match from.as_deref() {
            None if self.offers.resume => line.with_params(&mut out.agent, &params),
            None if self.offers.load => {
                known.swallowing = true;
                line.with_method(&mut out.agent, method::LOAD, &params);
            }
            Some("start") if self.offers.load => {
                known.speaker = None;
                line.with_method(&mut out.agent, method::LOAD, &params);
            }
            None => return Err(not_offered(method::RESUME, "the agent keeps no sessions")),
            Some("start") => {
                let text = "the agent cannot replay a conversation";
                return Err(not_offered(method::RESUME, text));
            }
            Some(other) => {
                let text =
                    format!("Invalid params: replayFrom of type {other:?} is not known here");
                return Err(jsonrpc::Error::invalid_params(text));
            }
        }
        self.asked.add(id, Asked::Resume { session, place });
        Ok(())
    }

    /// The sessions that were opened through the bridge: the agent itself tells none.
    fn list(&self, params: &RawObject) -> Result<RawObject, jsonrpc::Error> {
        if params.has("cursor") {
            let text = "Invalid params: there is one page only, and no cursor was given out";
            return Err(jsonrpc::Error::invalid_params(text));
        }
        let archived: Option<String> = params.field("archived");
        match archived.as_deref() {
            None | Some("exclude" | "include") => {}
            // What is archived has been closed, and is not known here.
            Some("only") => return Ok(object! { "sessions": Vec::<RawObject>::new() }),
            Some(_) => {
                let text = "Invalid params: unknown filter of archived sessions";
                return Err(jsonrpc::Error::invalid_params(text));
            }
        }
        let cwd: Option<String> = params.field("cwd");
        let mut sessions = Vec::new();
        for (id, session) in self.sessions.iter() {
            let Some(place) = &session.place else {
                continue;
            };
            if cwd.is_some() && place.field("cwd") != cwd {
                continue;
            }
            let mut info = object! { "sessionId": id };
            if self.offers.archive {
                info.push("archived".to_owned(), raw(&false));
            }
            for (key, value) in place.iter() {
                info.push(key.to_owned(), value.to_owned());
            }
            sessions.push(info);
        }
        Ok(object! { "sessions": sessions })
    }

    fn close(
        &mut self,
        id: &RequestId,
        params: &RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        let session_id = session_asked(params)?;
        if self.offers.close {
            line.pass(&mut out.agent);
            let session = session_id.clone();
            self.asked.add(id, Asked::Close { session });
            self.cancel(&session_id, out);
            return Ok(());
        }
        match self.sessions.get(&session_id) {
            Some(session) if session.turn.is_some() => {
                session.closing.push(id.clone());
                let params = object! { "sessionId": session_id };
                notify(&mut out.agent, method::CANCEL, &params);
                self.cancel(&session_id, out);
            }
            _ => {
                self.sessions.forget(&session_id);
                answer(&mut out.client, id, &RawObject::default());
            }
        }
        Ok(())
    }

    fn set_option(
        &mut self,
        id: &RequestId,
        params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) -> Result<(), jsonrpc::Error> {
        let session = session_asked(&params)?;
        let option: String = params.field("configId").unwrap_or_default();
        let switch = self
            .sessions
            .get(&session)
            .and_then(|session| session.config.switch_of(&option));
        let Some(switch) = switch else {
            let is_id = params.field::<String>("type").as_deref() == Some("id");
            let params = if is_id {
                params.without(&["type"])
            } else {
                params
            };
            line.with_params(&mut out.agent, &params);
            self.asked.add(id, Asked::Set { session });
            return Ok(());
        };
        let Some(value) = params.get("value").map(ToOwned::to_owned) else {
            return Err(jsonrpc::Error::invalid_params("Invalid params: no value"));
        };
        let (called, field) = match switch {
            Switch::Mode => (method::SET_MODE, "modeId"),
            Switch::Model => (method::SET_MODEL, "modelId"),
        };
        let params = params
            .without(&["configId", "type"])
            .renamed("value", field);
        line.with_method(&mut out.agent, called, &params);
        self.asked.add(
            id,
            Asked::Switch {
                session,
                switch,
                value,
            },
        );
        Ok(())
    }
}

/// Where a session works, as `session/list` tells it.
fn place(params: &RawObject) -> RawObject {
    let mut place = object! {};
    for key in ["cwd", "additionalDirectories"] {
        if let Some(value) = params.get(key).filter(|_| params.has(key)) {
            place.push(key.to_owned(), raw(value));
        }
    }
    place
}

/// Every agent of version 2 has it; this one, which is none, has not.
fn not_offered(method: &str, why: &str) -> jsonrpc::Error {
    let text = format!("Method not found: {method}: {why}");
    jsonrpc::Error::new(jsonrpc::Error::METHOD_NOT_FOUND, text)
}

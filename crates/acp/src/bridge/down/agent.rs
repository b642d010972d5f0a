//! What the agent sends, in version 2, and what the client gets of it.

use acp_wire::RawObject;
use acp_wire::jsonrpc::{self, RequestId};
use acp_wire::v1::StopReason;
use serde_json::value::RawValue;

use super::super::json::{Line, Out, answer, emit, note, object, raw, refuse, session_of, update};
use super::super::{method, setup};
use super::client::cancel_turn;
use super::{Asked, DEPTH, Down, ECHOES, Question, Session, set};

/// The result of an answer, as it came.
type Answered<'a> = Result<&'a &'a RawValue, &'a jsonrpc::Error>;

impl Down {
    pub(super) fn agent_says(
        &mut self,
        said: &str,
        params: &RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        let session_id = session_of(params).filter(|_| said == method::UPDATE);
        let Some(session_id) = session_id else {
            return line.pass(&mut out.client);
        };
        let update = object(params.get("update"));
        if update.field::<String>("sessionUpdate").as_deref() == Some("state_update") {
            return self.state(&session_id, update, out);
        }
        if update.field::<String>("sessionUpdate").as_deref() == Some("subagent_update")
            && let Some(subagent) = session_of(&update)
            && subagent != session_id
        {
            self.parents.touch(&subagent).clone_from(&session_id);
        }
        let session = self.sessions.touch(&session_id);
        let emits = session.update(&self.client, update);
        if self.asked_as(&session_id).is_none() {
            emit(&mut out.client, line, params, &session_id, emits);
        }
    }

    pub(super) fn agent_asks(
        &mut self,
        id: &RequestId,
        asked: &str,
        params: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        let Some(session) = session_of(&params) else {
            return line.pass(&mut out.client);
        };
        let asked_as = self.asked_as(&session);
        if asked != method::PERMISSION {
            return match asked_as {
                Some(known) => {
                    let mut params = params;
                    params.set("sessionId", raw(&known));
                    line.with_params(&mut out.client, &params);
                }
                None => line.pass(&mut out.client),
            };
        }
        let (mut params, hidden) = self.sessions.touch(&session).permission(params);
        if let Some(known) = asked_as {
            params.set("sessionId", raw(&known));
            return line.with_params(&mut out.client, &params);
        }
        line.with_params(&mut out.client, &params);
        // An agent that asks more than is remembered has its requests shown a little longer.
        if let Some(call) = hidden.filter(|_| self.questions.room(id).is_ok()) {
            self.questions.add(id, Question { session, call });
        }
    }

    /// The session in which a client that knows no subagents is asked what one of them asks; `None` for a session that
    /// is none, and where the client knows them.
    fn asked_as(&self, session: &str) -> Option<String> {
        if self.client.subagents {
            return None;
        }
        let mut top = self.parents.get(session)?;
        for _ in 0..DEPTH {
            match self.parents.get(top) {
                Some(parent) => top = parent,
                None => break,
            }
        }
        Some(top.clone())
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
        if let Asked::Resume {
            session,
            replayed: true,
        } = &asked
            && let Some(session) = self.sessions.get(session)
        {
            session.replays = session.replays.saturating_sub(1);
        }
        let result = match (&asked, result) {
            (Asked::Prompt { session: id_ }, Err(_)) => {
                if let Some(session) = self.sessions.get(id_) {
                    session.turns.retain(|turn| turn.id != *id);
                }
                return line.pass(&mut out.client);
            }
            (_, Err(_)) => return line.pass(&mut out.client),
            (_, Ok(result)) => object(Some(result)),
        };
        self.answered(id, asked, result, line, out);
    }

    fn answered(
        &mut self,
        id: &RequestId,
        asked: Asked,
        mut result: RawObject,
        line: &Line<'_>,
        out: &mut Out,
    ) {
        let booleans = self.client.booleans;
        match asked {
            Asked::Prompt { session: id_ } => {
                // The agent has taken it; the answer that version 1 means is the end of the turn.
                let session = self.sessions.touch(&id_);
                if let Some(turn) = session.turns.iter_mut().find(|turn| turn.id == *id) {
                    turn.taken = true;
                    if turn.cancelled {
                        // The cancel has crossed this answer.
                        cancel_turn(&id_, out);
                    }
                    // The draft of August 2026 has none.
                    let message: Option<String> = result.field("messageId");
                    turn.message = message.filter(|id| !id.is_empty()).or(turn.message.take());
                }
                self.asked.add(id, Asked::Prompt { session: id_ });
            }
            Asked::Open => {
                let Some(id) = session_of(&result) else {
                    return line.pass(&mut out.client);
                };
                self.opened(&id, result, line, out);
            }
            Asked::Resume { session, .. } => self.opened(&session, result, line, out),
            Asked::Set { session: id } => {
                let session = self.sessions.touch(&id);
                let mode = session.configured(&result);
                if result.has("configOptions") {
                    let options = session.config.list(booleans);
                    result.set("configOptions", raw(&options));
                }
                session.config.bound();
                line.with_result(&mut out.client, &result);
                if let Some(mode) = mode {
                    update(&mut out.client, &id, &mode);
                }
            }
            Asked::Switch { session: id } => {
                let session = self.sessions.touch(&id);
                let mode = session.configured(&result);
                let options = session.config.list(booleans);
                session.config.bound();
                line.with_result(&mut out.client, &result.without(&["configOptions"]));
                let changed = object! {
                    "sessionUpdate": "config_option_update", "configOptions": options,
                };
                update(&mut out.client, &id, &changed);
                if let Some(mode) = mode {
                    update(&mut out.client, &id, &mode);
                }
            }
            Asked::Close { session } => {
                if self
                    .sessions
                    .get(&session)
                    .is_some_and(|session| session.turns.is_empty())
                {
                    self.sessions.forget(&session);
                }
                line.pass(&mut out.client);
            }
            Asked::Plain => line.pass(&mut out.client),
        }
    }

    /// A session is open: its options in version 1's words, its modes beside them, and its commands
    /// behind the answer.
    fn opened(&mut self, id: &str, mut result: RawObject, line: &Line<'_>, out: &mut Out) {
        let session = self.sessions.touch(id);
        session.configured(&result);
        if result.has("configOptions") {
            let options = session.config.list(self.client.booleans);
            result.set("configOptions", raw(&options));
        }
        if let Some(modes) = session.config.modes() {
            result.set("modes", raw(&modes));
        }
        session.config.bound();
        let commands = result.take("availableCommands");
        line.with_result(&mut out.client, &result);
        if let Some(commands) = commands.filter(|commands| commands.get() != "null") {
            let mut told = object! {
                "sessionUpdate": "available_commands_update", "availableCommands": commands,
            };
            setup::commands_to_v1(&mut told);
            update(&mut out.client, id, &told);
        }
    }

    /// Whether the agent works. When it stops, the prompts that it has taken are answered.
    fn state(&mut self, session_id: &str, idle: RawObject, out: &mut Out) {
        let session = self.sessions.touch(session_id);
        if idle.field::<String>("state").as_deref() != Some("idle") {
            // Whatever it is called, it is not the end.
            session.active = true;
            return;
        }
        let active = std::mem::take(&mut session.active);
        if !active && set(&idle, "stopReason").is_none() {
            // How things are, not that something ended.
            return;
        }
        let (ended, open) = std::mem::take(&mut session.turns)
            .into_iter()
            .partition(|turn| turn.taken);
        session.turns = open;
        for turn in ended {
            session.echoes.extend(turn.message);
            self.asked.take(&turn.id);
            end(&mut out.client, &turn.id, &idle);
        }
        while session.echoes.len() > ECHOES {
            session.echoes.pop_front();
        }
    }
}

impl Session {
    /// Takes the options of an answer or an update; gives what version 1 is told if the mode is another.
    pub(super) fn configured(&mut self, told: &RawObject) -> Option<RawObject> {
        if !told.has("configOptions") {
            return None;
        }
        let before = self.config.mode().map(RawValue::get).map(str::to_owned);
        self.config
            .set(&super::super::json::items(told, "configOptions"));
        let mode = self.config.mode()?;
        if before.is_none_or(|before| before == mode.get()) {
            return None;
        }
        Some(object! { "sessionUpdate": "current_mode_update", "currentModeId": mode })
    }
}

/// Answers a prompt with what the agent has said at the end of its turn.
fn end(buf: &mut Vec<u8>, id: &RequestId, idle: &RawObject) {
    let reason = set(idle, "stopReason");
    let word: Option<String> = idle.field("stopReason");
    if word.as_deref() == Some("error") {
        let error = idle.field("error").unwrap_or_else(|| {
            jsonrpc::Error::internal("the agent stopped because of an error it did not tell")
        });
        return refuse(buf, id, &error);
    }
    let mut result = object! {};
    let known = word.filter(|word| {
        let mut known = StopReason::KNOWN.iter();
        known.any(|known| known.as_str() == &**word)
    });
    result.push(
        "stopReason".to_owned(),
        raw(known.as_deref().unwrap_or("end_turn")),
    );
    for (key, value) in idle.iter() {
        let told = matches!(
            key,
            "sessionUpdate" | "state" | "stopReason" | "background" | "error"
        );
        if !told && value.get() != "null" {
            result.push(key.to_owned(), value.to_owned());
        }
    }
    if let (None, Some(reason)) = (known, reason) {
        note(&mut result, "stopReason", reason);
    }
    answer(buf, id, &result);
}

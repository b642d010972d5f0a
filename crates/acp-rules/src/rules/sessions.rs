//! Sessions: which there are, and what is said of which.

use serde_json::Value;

use crate::schema::version::Version;
use crate::side::Side;

use super::config::Config;
use super::messages::Messages;
use super::permissions;
use super::requests::{Open, Requests};
use super::rule::{Findings, Moment, rules};
use super::states::States;
use super::table::{Table, id, text};
use super::terminals::{Shown, Terminals};
use super::tool_calls::ToolCalls;
use super::turns::Turns;

rules! {
    UNKNOWN = "session-unknown" Should "session-setup" "An agent speaks only of sessions that the client knows.";
    SET_UP = "session-not-set-up" Must "prompt-turn" "A client sends prompts only in sessions that were set up.";
    CLOSED = "session-closed" Should "session-setup" "Nothing comes of a session after it was closed.";
    TWICE = "session-id-twice" Must "session-setup" "A new session has an id of its own.";
}

/// How many sessions are remembered.
const SESSIONS: usize = 1024;

/// How many messages are remembered that may belong to a session being opened.
const EARLY: usize = 64;

/// What a session is opened with, whose id only the answer says.
const OPENING: &[&str] = &["session/new", "session/fork"];

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    /// It was opened, and is not closed.
    open: bool,
    closed: Option<Moment>,
    /// How many requests are under way that open it again: what it was is told once more.
    loading: u32,
    turns: Turns,
    calls: ToolCalls,
    config: Config,
    states: States,
    shown: Shown,
    messages: Messages,
}

impl Session {
    fn new() -> Self {
        Self {
            open: false,
            closed: None,
            loading: 0,
            turns: Turns::default(),
            calls: ToolCalls::new(),
            config: Config::default(),
            states: States::default(),
            shown: Shown::new(),
            messages: Messages::new(),
        }
    }
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    table: Table<Session>,
    /// What was said of sessions that may become known by an answer that is under way.
    early: Vec<(String, Moment)>,
    /// The client has asked which sessions there are: others than its own have names.
    listed: bool,
}

impl Sessions {
    pub(super) fn new() -> Self {
        Self {
            table: Table::of(SESSIONS),
            early: Vec::new(),
            listed: false,
        }
    }

    fn of(&mut self, id: &str) -> Option<&mut Session> {
        if self.table.get(id).is_none() {
            self.table.insert(id, Session::new());
        }
        self.table.get_mut(id)
    }

    pub(super) fn is_running(&self, id: &str) -> bool {
        self.table
            .get(id)
            .is_some_and(|session| session.turns.run())
    }

    pub(super) fn cancelled(&mut self, id: &str) {
        if let Some(session) = self.table.get_mut(id) {
            session.turns.cancelled();
        }
    }

    /// The client calls a method about a session.
    pub(super) fn client_calls(
        &mut self,
        found: &mut Findings,
        method: &str,
        id: &str,
        params: &Value,
    ) {
        match method {
            "session/load" | "session/resume" => {
                if let Some(session) = self.of(id) {
                    session.loading += 1;
                    session.closed = None;
                    session.calls = ToolCalls::new();
                    session.states = States::default();
                    session.messages = Messages::new();
                    session.shown = Shown::new();
                }
            }
            "session/prompt" | "session/set_mode" | "session/set_config_option" => {
                let known = self.table.get(id);
                if !known.map_or(!self.table.is_new(id), |session| session.open) {
                    let text =
                        format!("sends `{method}` in {id:?}, which is no session that was set up");
                    match known.and_then(|session| session.closed) {
                        Some(closed) => found.after(&SET_UP, Side::Client, closed, text),
                        None => found.add(&SET_UP, Side::Client, text),
                    }
                    return;
                }
                let Some(session) = self.of(id) else { return };
                match method {
                    "session/prompt" => {
                        session.turns.prompted(found);
                        session.states.prompted();
                    }
                    "session/set_mode" => session.config.set_mode(found, params),
                    _ => session.config.set_option(found, params),
                }
            }
            _ => {}
        }
    }

    /// The agent calls a method about a session, or sends an update.
    pub(super) fn agent_calls(
        &mut self,
        found: &mut Findings,
        method: &str,
        id: &str,
        params: &Value,
        requests: &Requests,
        terminals: &mut Terminals,
    ) {
        self.listed |= requests.waits(&["session/list"], None);
        let update = &params["update"];
        let kind = text(update, "sessionUpdate").unwrap_or_default();
        let known = self.table.get(id);
        if known.is_none_or(|session| !session.open && session.loading == 0) {
            match known.and_then(|session| session.closed) {
                Some(closed) => {
                    let text =
                        format!("sends `{method}` of the session {id:?} after it was closed");
                    found.after(&CLOSED, Side::Agent, closed, text);
                }
                None if !self.table.is_new(id) => {}
                // Titles of sessions that others have opened are told, too.
                None if kind == "session_info_update" && self.listed => {}
                None if requests.waits(OPENING, None) => {
                    if self.early.len() < EARLY {
                        self.early.push((id.to_owned(), found.now));
                    }
                }
                None => {
                    let text = format!(
                        "sends `{method}` of {id:?}, which is no session that the client knows"
                    );
                    found.add(&UNKNOWN, Side::Agent, text);
                }
            }
            if !requests.waits(OPENING, None) {
                // It is remembered, so that it is told once.
                let _ = self.of(id);
                return;
            }
        }
        let Some(session) = self.of(id) else { return };
        let replayed = session.loading > 0;
        match method {
            "session/request_permission" => {
                permissions::asked(found, params);
                session.calls.permission(found, params);
                session.states.permission(found);
            }
            "session/update" => {
                session.turns.update(found, kind, replayed);
                session.calls.update(found, kind, update, replayed);
                session.config.update(found, kind, update);
                match found.version {
                    Version::V1 => {
                        if !replayed && matches!(kind, "tool_call" | "tool_call_update") {
                            terminals.embedded(found, update);
                        }
                    }
                    Version::V2 => {
                        session.states.update(found, kind, update);
                        session.shown.update(found, kind, update);
                        session.messages.update(found, kind, update);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn answered(
        &mut self,
        found: &mut Findings,
        open: &Open,
        result: Result<&Value, &Value>,
        requests: &Requests,
    ) {
        match open.method.as_str() {
            "session/list" => self.listed = true,
            "session/new" | "session/fork" => self.opened(found, open, result, requests),
            _ => {}
        }
        let Some(asked) = &open.session else { return };
        let Some(session) = self.table.get_mut(asked) else {
            return;
        };
        match open.method.as_str() {
            "session/load" | "session/resume" => {
                session.loading = session.loading.saturating_sub(1);
                if let Ok(result) = result {
                    session.open = true;
                    session.config.opened(found, result);
                }
            }
            "session/close" if result.is_ok() => {
                session.open = false;
                session.closed = Some(found.now);
            }
            "session/prompt" if found.version == Version::V1 => {
                session.turns.answered(found, open, result);
            }
            "session/prompt" if result.is_err() => session.states.refused(),
            "session/set_config_option" => {
                if let Ok(result) = result {
                    session.config.told(found, result);
                }
            }
            "session/request_permission" | "elicitation/create" => session.turns.person_answered(),
            _ => {}
        }
    }

    /// A session was opened, or not: of what was said early, what is of none now is of none at all.
    fn opened(
        &mut self,
        found: &mut Findings,
        open: &Open,
        result: Result<&Value, &Value>,
        requests: &Requests,
    ) {
        if let Ok(result) = result
            && let Some(id) = id(result, "sessionId")
        {
            let method = &open.method;
            if let Some(session) = self.of(id) {
                if session.open {
                    let text =
                        format!("answers `{method}` with the id {id:?}, which another session has");
                    found.add(&TWICE, Side::Agent, text);
                }
                session.open = true;
                session.closed = None;
                session.config.opened(found, result);
            }
        }
        if requests.waits(OPENING, None) {
            return;
        }
        for (id, early) in std::mem::take(&mut self.early) {
            if self
                .table
                .get(&id)
                .is_some_and(|session| !session.open && session.loading == 0)
            {
                let text =
                    format!("speaks of {id:?}, which has become no session that the client knows");
                found.at(&UNKNOWN, Side::Agent, early, text);
            }
        }
    }

    /// The agent has closed its output.
    pub(super) fn agent_closed(&mut self, found: &mut Findings) {
        if found.version == Version::V2 {
            for session in self.table.values_mut() {
                session.states.agent_closed(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::Talk;

    const INFO: &str = r#"{"method":"session/update","params":{"sessionId":"t",
        "update":{"sessionUpdate":"agent_message_chunk","content":{}}}}"#;

    #[test]
    fn updates_are_of_sessions_that_are_known() {
        let mut talk = Talk::session();
        talk.says("session-unknown agent", INFO);
        talk.update("", r#"{"sessionUpdate":"available_commands_update"}"#);
    }

    #[test]
    fn what_comes_before_the_answer_belongs_to_the_session_that_is_opened() {
        let mut talk = Talk::v1();
        talk.ask(1, "session/new", "{}");
        talk.keeps(INFO);
        talk.keeps(r#"{"id":1,"result":{"sessionId":"t"}}"#);
        talk.keeps(INFO);
        let mut talk = Talk::v1();
        talk.ask(1, "session/new", "{}");
        talk.keeps(INFO);
        talk.says(
            "session-unknown agent",
            r#"{"id":1,"result":{"sessionId":"u"}}"#,
        );
    }

    #[test]
    fn prompts_are_sent_in_sessions_that_were_set_up() {
        let prompt = r#"{"id":9,"method":"session/prompt","params":{"sessionId":"t","prompt":[]}}"#;
        let mut talk = Talk::session();
        talk.hears("session-not-set-up client", prompt);
        let mut talk = Talk::session();
        talk.ask(1, "session/load", r#"{"sessionId":"t"}"#);
        talk.keeps(INFO);
        talk.keeps(r#"{"id":1,"result":{}}"#);
        talk.keeps_hearing(prompt);
    }

    #[test]
    fn a_session_that_was_closed_is_over() {
        let mut talk = Talk::session();
        talk.ask(1, "session/close", r#"{"sessionId":"s"}"#);
        let update = r#"{"sessionUpdate":"available_commands_update"}"#;
        talk.update("", update);
        talk.keeps(r#"{"id":1,"result":{}}"#);
        talk.update("session-closed agent", update);
        talk.hears(
            "session-not-set-up client",
            r#"{"id":9,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
        );
    }

    #[test]
    fn new_sessions_have_ids_of_their_own() {
        let mut talk = Talk::session();
        talk.ask(1, "session/new", "{}");
        talk.says(
            "session-id-twice agent",
            r#"{"id":1,"result":{"sessionId":"s"}}"#,
        );
        talk.ask(2, "session/new", "{}");
        talk.keeps(r#"{"id":2,"result":{"sessionId":"t"}}"#);
    }
}

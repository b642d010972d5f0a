//! Rules about terminals: client terminals, which agents create and release in version 1, and display terminals in
//! version 2.

use serde_json::Value;

use crate::schema::version::SchemaVersion;
use crate::side::Side;

use super::requests::RuleRequest;
use super::rule::{Findings, MessagePosition, rules};
use super::table::{BoundedTable, id_field, list_items, text_field};

rules! {
    UNKNOWN = "terminal-unknown" Must "terminals" "An agent uses only terminals that it created.";
    RELEASED = "terminal-after-release" Must "terminals" "An agent does not use a terminal again after releasing it.";
    KEPT = "terminal-not-released" Should "terminals" "An agent releases a terminal when it no longer needs it.";
    SHOWN = "terminal-shown-unknown" Should "terminals" "A tool call embeds only terminals that exist.";
    LATE = "terminal-shown-late" Must "terminals" "An agent embeds a terminal in a tool call before it releases the terminal.";
    CHUNK = "terminal-chunk-first" Should "terminals" "An agent sends output only for terminals that it has announced.";
}

/// The maximum number of terminals to remember.
const MAX_TERMINALS: usize = 4096;

/// A client terminal, with the information that the rules need about it.
#[derive(Debug)]
struct RuleTerminal {
    created_at: MessagePosition,
    session: Option<String>,
    released_at: Option<MessagePosition>,
    /// The message in which the client reported that the command had exited.
    exited_at: Option<MessagePosition>,
    /// Whether a tool call has embedded the terminal.
    is_embedded: bool,
}

/// All client terminals of a conversation.
#[derive(Debug)]
pub(super) struct RuleTerminals(BoundedTable<RuleTerminal>);

impl RuleTerminals {
    pub(super) fn new() -> Self {
        Self(BoundedTable::with_capacity(MAX_TERMINALS))
    }

    /// Checks an agent's request about a client terminal.
    pub(super) fn check_request(&mut self, found: &mut Findings, method: &str, params: &Value) {
        let Some(id) = id_field(params, "terminalId") else {
            return;
        };
        if self.0.is_new(id) {
            let text = format!("calls `{method}` for terminal {id:?}, which it did not create");
            found.report(&UNKNOWN, Side::Agent, text);
        }
        let Some(terminal) = self.0.get_mut(id) else {
            return;
        };
        if let Some(released) = terminal.released_at {
            let text = format!("calls `{method}` for terminal {id:?} after releasing it");
            found.report_with_earlier(&RELEASED, Side::Agent, released, text);
        } else if method == "terminal/release" {
            terminal.released_at = Some(found.position);
        }
    }

    pub(super) fn check_response(
        &mut self,
        found: &Findings,
        open: &RuleRequest,
        result: Result<&Value, &Value>,
    ) {
        if let ("terminal/create", Ok(result)) = (open.method.as_str(), result) {
            if let Some(id) = id_field(result, "terminalId") {
                let terminal = RuleTerminal {
                    created_at: found.position,
                    session: open.session.clone(),
                    released_at: None,
                    exited_at: None,
                    is_embedded: false,
                };
                self.0.insert(id, terminal);
            }
            return;
        }
        let terminal = open.ids.first().and_then(|id| self.0.get_mut(id));
        let Some(terminal) = terminal else { return };
        match (open.method.as_str(), result) {
            ("terminal/wait_for_exit", Ok(_)) => terminal.exited_at = Some(found.position),
            ("terminal/output", Ok(result)) if result["exitStatus"].is_object() => {
                terminal.exited_at = Some(found.position);
            }
            // The release failed, so the terminal still exists.
            ("terminal/release", Err(_)) => terminal.released_at = None,
            _ => {}
        }
    }

    /// Checks the terminals that a tool call embeds.
    pub(super) fn check_content(&mut self, found: &mut Findings, update: &Value) {
        for content in list_items(update, "content").filter(|content| content["type"] == "terminal")
        {
            let Some(id) = id_field(content, "terminalId") else {
                continue;
            };
            let is_new = self.0.is_new(id);
            match self.0.get_mut(id) {
                Some(terminal) => {
                    let shown = std::mem::replace(&mut terminal.is_embedded, true);
                    if let Some(released) = terminal.released_at.filter(|_| !shown) {
                        let text = format!("embeds terminal {id:?} after releasing it");
                        found.report_with_earlier(&LATE, Side::Agent, released, text);
                    }
                }
                // Several agents announce display terminals in `_meta`, under different names.
                None if is_new && update.get("_meta").is_none() => {
                    let text = format!("embeds terminal {id:?}, which it did not create");
                    found.report(&SHOWN, Side::Agent, text);
                }
                None => {}
            }
        }
    }

    /// Reports terminals that were not released although their command has exited. Skips sessions with a running turn,
    /// because it may still need its terminals.
    pub(super) fn end(&self, found: &mut Findings, runs: impl Fn(&str) -> bool) {
        for (id, terminal) in self.0.iter() {
            let needed = terminal.session.as_deref().is_some_and(&runs);
            let over = terminal
                .exited_at
                .is_some_and(|exited| found.must_have_arrived(exited));
            if terminal.released_at.is_none() && over && !needed {
                let text =
                    format!("never released terminal {id:?}, although its command had exited");
                found.report_earlier(&KEPT, Side::Agent, terminal.created_at, text);
            }
        }
    }
}

/// The display terminals of a session, in version 2.
#[derive(Debug)]
pub(super) struct DisplayTerminals(BoundedTable<()>);

impl DisplayTerminals {
    pub(super) fn new() -> Self {
        Self(BoundedTable::with_capacity(MAX_TERMINALS))
    }

    pub(super) fn update(&mut self, found: &mut Findings, kind: &str, update: &Value) {
        if found.version == SchemaVersion::V1 {
            return;
        }
        let Some(id) = text_field(update, "terminalId") else {
            return;
        };
        match kind {
            "terminal_update" => self.0.insert(id, ()),
            "terminal_output_chunk" if self.0.is_new(id) => {
                let text = format!("sends output for terminal {id:?}, which it did not announce");
                found.report(&CHUNK, Side::Agent, text);
                // Remember the terminal, so that it is reported only once.
                self.0.insert(id, ());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::ExpectedConversation;

    const TERMINAL_PARAMS: &str = r#"{"sessionId":"s","terminalId":"t"}"#;

    fn conversation_with_terminal() -> ExpectedConversation {
        let mut talk = ExpectedConversation::session();
        talk.agent_requests("c", "terminal/create", r#"{"sessionId":"s","command":"a"}"#);
        talk.client_sends_valid(r#"{"id":"c","result":{"terminalId":"t"}}"#);
        talk
    }

    fn terminal_call(method: &str) -> String {
        format!(r#"{{"id":"x","method":"terminal/{method}","params":{TERMINAL_PARAMS}}}"#)
    }

    #[test]
    fn terminal_may_be_used_only_until_its_release() {
        for method in ["output", "wait_for_exit", "kill", "release"] {
            ExpectedConversation::session()
                .agent_sends("terminal-unknown agent", &terminal_call(method));
            let mut talk = conversation_with_terminal();
            talk.agent_sends_valid(&terminal_call(method));
            talk.client_sends_valid(r#"{"id":"x","result":{}}"#);
            if method != "release" {
                talk.agent_requests("r", "terminal/output", TERMINAL_PARAMS);
            }
        }
    }

    #[test]
    fn released_terminal_must_not_be_used() {
        let mut talk = conversation_with_terminal();
        talk.agent_requests("r", "terminal/release", TERMINAL_PARAMS);
        talk.agent_sends("terminal-after-release agent", &terminal_call("output"));
        talk.client_sends_valid(r#"{"id":"r","result":{}}"#);
    }

    #[test]
    fn terminal_must_be_released_after_its_command() {
        for (release, expected) in [(false, "terminal-not-released agent"), (true, "")] {
            let mut talk = conversation_with_terminal();
            talk.agent_requests("w", "terminal/wait_for_exit", TERMINAL_PARAMS);
            talk.client_sends_valid(r#"{"id":"w","result":{"exitCode":0}}"#);
            if release {
                talk.agent_requests("r", "terminal/release", TERMINAL_PARAMS);
                talk.client_sends_valid(r#"{"id":"r","result":{}}"#);
            }
            talk.wait(2);
            talk.end_client_first(expected);
        }
        conversation_with_terminal().end_client_first("");
    }

    #[test]
    fn tool_call_must_embed_a_known_terminal() {
        let show = r#"{"sessionUpdate":"tool_call","toolCallId":"c","content":[{"type":"terminal","terminalId":"t"}]}"#;
        ExpectedConversation::session().update("terminal-shown-unknown agent", show);
        let own = show.replace("\"content\"", "\"_meta\":{},\"content\"");
        ExpectedConversation::session().update("", &own);
        let mut talk = conversation_with_terminal();
        talk.update("", show);
        let mut talk = conversation_with_terminal();
        talk.agent_requests("r", "terminal/release", TERMINAL_PARAMS);
        talk.update("terminal-shown-late agent", show);
    }

    #[test]
    fn version_2_agent_must_report_a_terminal_before_its_output() {
        let chunk = r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"t","data":""}"#;
        ExpectedConversation::session_v2().update("terminal-chunk-first agent", chunk);
        let mut talk = ExpectedConversation::session_v2();
        talk.update(
            "",
            r#"{"sessionUpdate":"terminal_update","terminalId":"t"}"#,
        );
        talk.update("", chunk);
    }
}

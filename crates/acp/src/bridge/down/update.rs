//! What happens in a session.

use acp_wire::RawObject;

use super::super::json::{Emit, raw};
use super::super::setup;
use super::initialize::Client;
use super::{Session, Turn};

impl Session {
    /// What the client is told of an update.
    pub(super) fn update(&mut self, client: &Client, update: RawObject) -> Vec<Emit> {
        let kind: String = update.field("sessionUpdate").unwrap_or_default();
        match &*kind {
            "user_message_chunk" | "user_message" if self.is_echo(&update) => Vec::new(),
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                vec![self.messages.chunk(update)]
            }
            "user_message" | "agent_message" | "agent_thought" => {
                self.messages.whole(&format!("{kind}_chunk"), &update)
            }
            "tool_call_update" => self.tool_call(update),
            "tool_call_content_chunk" => self.tool_call_chunk(&update),
            "terminal_update" | "terminal_output_chunk" => self.terminals.update(&update),
            "plan_update" => self.plans.update(update, client.plans),
            "plan_removed" => self.plans.removed(&update, client.plans),
            "available_commands_update" => {
                let mut update = update;
                setup::commands_to_v1(&mut update);
                vec![Emit::Changed(update)]
            }
            "config_option_update" | "config_options_update" => {
                let mode = self.configured(&update);
                let mut update = update;
                update.set("sessionUpdate", raw("config_option_update"));
                update.set("configOptions", raw(&self.config.list(client.booleans)));
                self.config.bound();
                let mut emits = vec![Emit::Changed(update)];
                emits.extend(mode.map(Emit::Own));
                emits
            }
            "usage_update" => match update.get("cost") {
                Some(cost) if cost.get() == "null" => {
                    vec![Emit::Changed(update.without(&["cost"]))]
                }
                _ => vec![Emit::Same],
            },
            "notice" if !client.notices => Vec::new(),
            "compaction_update" | "compaction_summary_chunk" if !client.compaction => Vec::new(),
            "subagent_update" | "session_message" | "session_message_chunk"
                if !client.subagents =>
            {
                Vec::new()
            }
            _ => vec![Emit::Same],
        }
    }

    /// Whether this is the client's own prompt, told again. In a replay it is history.
    fn is_echo(&mut self, message: &RawObject) -> bool {
        let Some(id) = message.field::<String>("messageId") else {
            return false;
        };
        if self.replays > 0 {
            return false;
        }
        let is_it = |turn: &Turn| turn.message.as_ref() == Some(&id);
        if self.echoes.contains(&id) || self.turns.iter().any(is_it) {
            return true;
        }
        // The agent may tell the message before it says which one it is.
        let unnamed = self.turns.iter_mut().find(|turn| turn.message.is_none());
        let found = unnamed.is_some();
        if let Some(turn) = unnamed {
            turn.message = Some(id);
        }
        found
    }
}

//! Translates session updates from version 2 to version 1.

use acp_wire::RawObject;

use super::super::json::{TranslatedUpdate, to_raw_value};
use super::super::setup;
use super::initialize::V1ClientFeatures;
use super::{V2ToV1Session, V2ToV1Turn};

impl V2ToV1Session {
    /// Translates one session update to version 1.
    pub(super) fn translate_update(
        &mut self,
        client: &V1ClientFeatures,
        update: RawObject,
    ) -> Vec<TranslatedUpdate> {
        let kind: String = update.field("sessionUpdate").unwrap_or_default();
        match &*kind {
            "user_message_chunk" | "user_message" if self.is_echo(&update) => Vec::new(),
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                vec![self.messages.translate_chunk(update)]
            }
            "user_message" | "agent_message" | "agent_thought" => self
                .messages
                .translate_message(&format!("{kind}_chunk"), &update),
            "tool_call_update" => self.translate_tool_call(update),
            "tool_call_content_chunk" => self.translate_tool_call_chunk(&update),
            "terminal_update" | "terminal_output_chunk" => self.terminals.translate_update(&update),
            "plan_update" => self.plans.translate_update(update, client.plans),
            "plan_removed" => self.plans.translate_removal(&update, client.plans),
            "available_commands_update" => {
                let mut update = update;
                setup::commands_to_v1(&mut update);
                vec![TranslatedUpdate::Changed(update)]
            }
            "config_option_update" | "config_options_update" => {
                let mode = self.apply_config_options(&update);
                let mut update = update;
                update.set("sessionUpdate", to_raw_value("config_option_update"));
                update.set(
                    "configOptions",
                    to_raw_value(&self.config.list(client.boolean_options)),
                );
                self.config.drop_oversized();
                let mut emits = vec![TranslatedUpdate::Changed(update)];
                emits.extend(mode.map(TranslatedUpdate::Generated));
                emits
            }
            "usage_update" => match update.get("cost") {
                Some(cost) if cost.get() == "null" => {
                    vec![TranslatedUpdate::Changed(update.without(&["cost"]))]
                }
                _ => vec![TranslatedUpdate::Unchanged],
            },
            "notice" if !client.notices => Vec::new(),
            "compaction_update" | "compaction_summary_chunk" if !client.compaction => Vec::new(),
            "subagent_update" | "session_message" | "session_message_chunk"
                if !client.subagents =>
            {
                Vec::new()
            }
            _ => vec![TranslatedUpdate::Unchanged],
        }
    }

    /// Returns `true` if a message is the echo of a prompt that the client sent. During a replay, there are no echoes.
    fn is_echo(&mut self, message: &RawObject) -> bool {
        let Some(id) = message.field::<String>("messageId") else {
            return false;
        };
        if self.replays > 0 {
            return false;
        }
        let is_it = |turn: &V2ToV1Turn| turn.message_id.as_ref() == Some(&id);
        if self.echoes.contains(&id) || self.turns.iter().any(is_it) {
            return true;
        }
        // The agent may send the message before the response that contains its id.
        let unnamed = self.turns.iter_mut().find(|turn| turn.message_id.is_none());
        let found = unnamed.is_some();
        if let Some(turn) = unnamed {
            turn.message_id = Some(id);
        }
        found
    }
}

//! Translates session updates from version 1 to version 2.

use acp_wire::RawObject;

use super::super::config::LegacySetting;
use super::super::json::{
    TranslatedUpdate, list_items, read_session_id, to_raw_value, truncate_text,
};
use super::super::setup;
use super::content::{content_to_v2, remove_nulls};
use super::{V1ToV2Session, new_message_id};

/// The fields of a tool call to clear when the agent reuses its id.
const TOOL_CALL_FIELDS: [&str; 7] = [
    "title",
    "kind",
    "status",
    "content",
    "locations",
    "rawInput",
    "rawOutput",
];

impl V1ToV2Session {
    /// Translates one session update to version 2.
    pub(super) fn translate_update(&mut self, update: RawObject) -> Vec<TranslatedUpdate> {
        let kind: String = update.field("sessionUpdate").unwrap_or_default();
        let conversation = matches!(
            &*kind,
            "user_message_chunk"
                | "agent_message_chunk"
                | "agent_thought_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        );
        if conversation && self.hides_replay {
            return Vec::new();
        }
        match &*kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                vec![self.assign_message_id(kind, update)]
            }
            "tool_call" => self.update_tool_call(update, true),
            "tool_call_update" => self.update_tool_call(update, false),
            "plan" => {
                self.current_message = None;
                vec![TranslatedUpdate::Changed(plan_to_v2(update))]
            }
            "subagent_update" => {
                if let Some(subagent) = read_session_id(&update) {
                    self.subagents.get_or_insert(&subagent);
                }
                vec![TranslatedUpdate::Unchanged]
            }
            "current_mode_update" => self.update_mode(&update),
            "config_option_update" | "config_options_update" => {
                self.config
                    .set_agent_options(&list_items(&update, "configOptions"));
                let mut update = update;
                update.set("sessionUpdate", to_raw_value("config_option_update"));
                update.set("configOptions", to_raw_value(&self.config.list()));
                self.config.drop_oversized();
                vec![TranslatedUpdate::Changed(update)]
            }
            "available_commands_update" => {
                let mut update = update;
                setup::commands_to_v2(&mut update);
                vec![TranslatedUpdate::Changed(update)]
            }
            "usage_update" => match update.get("cost") {
                Some(cost) if cost.get() == "null" => {
                    vec![TranslatedUpdate::Changed(remove_nulls(update))]
                }
                _ => vec![TranslatedUpdate::Unchanged],
            },
            _ => vec![TranslatedUpdate::Unchanged],
        }
    }

    /// Adds a message id to a chunk, because version 2 requires one.
    fn assign_message_id(&mut self, kind: String, mut update: RawObject) -> TranslatedUpdate {
        if update.has("messageId") {
            let id = update.field("messageId").unwrap_or_default();
            self.current_message = Some((kind, id));
            return TranslatedUpdate::Unchanged;
        }
        let id = match self.current_message.take() {
            Some((speaker, id)) if speaker == kind => id,
            _ => new_message_id(),
        };
        update.set("messageId", to_raw_value(&id));
        self.current_message = Some((kind, id));
        TranslatedUpdate::Changed(update)
    }

    fn update_tool_call(&mut self, update: RawObject, whole: bool) -> Vec<TranslatedUpdate> {
        self.current_message = None;
        let mut update = remove_nulls(update);
        update.set("sessionUpdate", to_raw_value("tool_call_update"));
        let id: String = update.field("toolCallId").unwrap_or_default();
        let is_known = self.titles.contains(&id);
        let title: Option<String> = update.field("title");
        let known = self.titles.get_or_insert(&id);
        if let Some(mut title) = title.filter(|title| !title.is_empty()) {
            // The title is stored for permission requests, in which nobody reads more than 1 KiB of it.
            truncate_text(&mut title, 1024);
            *known = title;
        }
        if whole && is_known {
            // A reused id means a new call, so clear the fields of the old call.
            for field in TOOL_CALL_FIELDS {
                if !update.has(field) {
                    update.set(field, serde_json::value::RawValue::NULL.to_owned());
                }
            }
        }
        content_to_v2(&mut update);
        let mut emits = Vec::new();
        let had_meta = update.has("_meta");
        self.take_terminal_updates(&mut update, &mut emits);
        // If the update was only about terminals, nothing is left to send.
        let says = |key: &str| !matches!(key, "sessionUpdate" | "toolCallId");
        if !had_meta || update.iter().any(|(key, _)| says(key)) {
            emits.push(TranslatedUpdate::Changed(update));
        }
        emits
    }

    /// Translates a mode change to version 2, where the mode is a config option.
    fn update_mode(&mut self, update: &RawObject) -> Vec<TranslatedUpdate> {
        let mode = update.get("currentModeId").or_else(|| update.get("modeId"));
        match mode {
            Some(mode) if self.config.set_current(LegacySetting::Mode, mode) => {
                vec![TranslatedUpdate::Generated(object! {
                    "sessionUpdate": "config_option_update",
                    "configOptions": self.config.list(),
                })]
            }
            // The mode is already current, or the session does not have it.
            _ => Vec::new(),
        }
    }
}

/// Converts a version 1 plan to a version 2 plan with a fixed id, because version 1 has only one plan per session.
fn plan_to_v2(mut update: RawObject) -> RawObject {
    let entries = list_items(&update, "entries");
    update.take("entries");
    let plan = object! { "type": "items", "planId": "plan", "entries": entries };
    update.set("sessionUpdate", to_raw_value("plan_update"));
    update.set("plan", to_raw_value(&plan));
    update
}

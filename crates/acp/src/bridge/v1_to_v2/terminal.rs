//! Translates display terminals, which version 1 agents report in the `_meta` of their tool calls. In version 2, they
//! are part of the protocol.

use acp_wire::RawObject;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::super::json::{TranslatedUpdate, to_object, to_raw_value};
use super::V1ToV2Session;

impl V1ToV2Session {
    /// Moves the terminals out of a tool call's `_meta`, and converts them to updates.
    pub(super) fn take_terminal_updates(
        &mut self,
        call: &mut RawObject,
        emits: &mut Vec<TranslatedUpdate>,
    ) {
        if !call.has("_meta") {
            return;
        }
        let own: String = call.field("toolCallId").unwrap_or_default();
        let mut meta = to_object(call.get("_meta"));
        let mut shown = false;
        if let Some(info) = take_object(&mut meta, "terminal_info", &mut shown) {
            let mut update = self.new_terminal_update(&info, &own);
            for key in ["command", "cwd"] {
                let value: Option<String> = info.field(key);
                // Version 2 accepts an absolute path or none.
                if let Some(value) = value.filter(|value| key != "cwd" || is_absolute(value)) {
                    update.push(key.to_owned(), to_raw_value(&value));
                }
            }
            emits.push(TranslatedUpdate::Generated(update));
        }
        for key in ["terminal_output", "terminal_output_delta"] {
            if let Some(output) = take_object(&mut meta, key, &mut shown) {
                let data: String = output.field("data").unwrap_or_default();
                let id = terminal_id(&output, &own);
                if !self.terminals.contains(&id) {
                    let update = self.new_terminal_update(&output, &own);
                    emits.push(TranslatedUpdate::Generated(update));
                }
                if !data.is_empty() {
                    emits.push(TranslatedUpdate::Generated(object! {
                        "sessionUpdate": "terminal_output_chunk",
                        "terminalId": id,
                        "data": STANDARD.encode(data),
                    }));
                }
            }
        }
        if let Some(exit) = take_object(&mut meta, "terminal_exit", &mut shown) {
            let mut status = object! {};
            if let Some(code) = exit.field::<i64>("exit_code") {
                status.push("exitCode".to_owned(), to_raw_value(&code));
            }
            if let Some(signal) = exit.field::<String>("signal") {
                status.push("signal".to_owned(), to_raw_value(&signal));
            }
            let mut update = self.new_terminal_update(&exit, &own);
            update.push("exitStatus".to_owned(), to_raw_value(&status));
            emits.push(TranslatedUpdate::Generated(update));
        }
        if shown {
            if meta.is_empty() {
                call.take("_meta");
            } else {
                call.set("_meta", to_raw_value(&meta));
            }
        }
    }

    /// Returns an update for a terminal, and marks the terminal as known to the client.
    fn new_terminal_update(&mut self, meta: &RawObject, call: &str) -> RawObject {
        let id = terminal_id(meta, call);
        self.terminals.get_or_insert(&id);
        object! { "sessionUpdate": "terminal_update", "terminalId": id }
    }
}

/// Returns the id of a terminal. Agents with one terminal per call may omit it, in which case the call's id is used.
fn terminal_id(meta: &RawObject, call: &str) -> String {
    meta.field("terminal_id").unwrap_or_else(|| call.to_owned())
}

fn take_object(meta: &mut RawObject, key: &str, shown: &mut bool) -> Option<RawObject> {
    // A value that is not an object does not come from the bridge.
    let value: &RawValue = meta.get(key)?;
    if !value.get().starts_with('{') {
        return None;
    }
    *shown = true;
    meta.take(key).map(|value| to_object(Some(&value)))
}

/// Returns `true` if a path is absolute on Unix or Windows, because the agent and the bridge may run on different
/// systems.
fn is_absolute(path: &str) -> bool {
    let windows = path.get(1..3).is_some_and(|s| matches!(s, ":\\" | ":/"));
    path.starts_with('/') || path.starts_with("\\\\") || windows
}

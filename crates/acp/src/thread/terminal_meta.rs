//! Reads display terminals that an agent reports in the `_meta` of its tool calls.
//!
//! This is not part of the specification of version 1, but the most widely used agents do it, and clients show the
//! terminals. The fields are a `terminal_info`, any number of `terminal_output` or `terminal_output_delta`, and a
//! `terminal_exit`. Each is an object with a `terminal_id`. In version 2, display terminals are part of the protocol.

use acp_wire::Meta;
use acp_wire::v1::{TerminalExitStatus, TerminalId, ToolCallId};
use serde_json::Value;

use super::Thread;

impl Thread {
    pub(super) fn apply_terminal_meta(&mut self, call: &ToolCallId, meta: &Meta) {
        // Agents with one terminal per call omit the terminal's id.
        let id = |value: &Value| {
            let id = value.get("terminal_id").and_then(Value::as_str);
            TerminalId::from(id.unwrap_or(call.as_str()))
        };
        let text =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        if let Some(info) = meta.get("terminal_info") {
            self.change_terminal(&id(info), |terminal| {
                terminal.cwd = text(info, "cwd").or_else(|| terminal.cwd.take());
            });
        }
        for key in ["terminal_output", "terminal_output_delta"] {
            if let Some(output) = meta.get(key) {
                self.append_terminal_output(&id(output), &text(output, "data").unwrap_or_default());
            }
        }
        if let Some(exit) = meta.get("terminal_exit") {
            let mut status = TerminalExitStatus::new();
            let code = exit.get("exit_code").and_then(Value::as_u64);
            status.exit_code = code.and_then(|code| u32::try_from(code).ok());
            status.signal = text(exit, "signal");
            self.set_terminal_exit_status(&id(exit), &status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp_wire::v1::SessionUpdate;
    use serde_json::json;

    fn apply_json(thread: &mut Thread, update: Value) {
        thread.apply(
            &serde_json::from_value::<SessionUpdate>(update)
                .unwrap()
                .into(),
        );
    }

    #[test]
    fn output_in_meta_is_shown_in_the_thread() {
        let mut thread = Thread::new();
        apply_json(
            &mut thread,
            json!({
                "sessionUpdate": "tool_call", "toolCallId": "call", "title": "Run it",
                "content": [{"type": "terminal", "terminalId": "t"}],
                "_meta": {"terminal_info": {"terminal_id": "t", "cwd": "/work"}},
            }),
        );
        for data in ["one\n", "two\n"] {
            apply_json(
                &mut thread,
                json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": "call",
                    "_meta": {"terminal_output": {"terminal_id": "t", "data": data}},
                }),
            );
        }
        apply_json(
            &mut thread,
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "call", "status": "completed",
                "_meta": {"terminal_exit": {"terminal_id": "t", "exit_code": 3, "signal": null}},
            }),
        );
        let terminal = thread.terminal(&"t".into()).unwrap();
        assert_eq!(terminal.output(), "one\ntwo\n");
        assert_eq!(terminal.cwd.as_deref(), Some("/work"));
        assert_eq!(terminal.exit_status.as_ref().unwrap().exit_code, Some(3));
    }

    #[test]
    fn a_terminal_without_an_id_belongs_to_its_call() {
        let mut thread = Thread::new();
        apply_json(
            &mut thread,
            json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "call",
                "_meta": {"terminal_output": {"data": "x"}, "terminal_exit": 7, "terminal_info": []},
            }),
        );
        assert_eq!(thread.terminal(&"call".into()).unwrap().output(), "x");
    }
}

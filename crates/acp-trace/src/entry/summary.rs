//! Summarizes messages for entries. Missing fields are left out.

use std::fmt::Write;

use acp_wire::jsonrpc::Error;
use serde_json::Value;

pub(super) struct EntrySummary(String);

impl EntrySummary {
    /// Summarizes the params of a request or notification.
    pub(super) fn summarize_params(method: &str, params: &Value) -> String {
        let mut summary = Self(String::new());
        summary.add_params(method, params);
        summary.0
    }

    /// Summarizes the result of a response.
    pub(super) fn summarize_result(method: &str, result: &Value) -> String {
        let mut summary = Self(String::new());
        summary.add_result(method, result);
        summary.0
    }

    /// Summarizes an error response.
    pub(super) fn summarize_error(error: &Error) -> String {
        let mut summary = format!("{} {}", error.code, error.message);
        match &error.data {
            None | Some(Value::Null) => {}
            Some(Value::String(data)) => {
                let _ = write!(summary, ": {data}");
            }
            Some(data) => {
                let _ = write!(summary, ": {data}");
            }
        }
        summary
    }

    /// Adds a part to the summary, after a comma unless it is the first part.
    fn add(&mut self, part: impl AsRef<str>) {
        let part = part.as_ref();
        if part.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        self.0.push_str(part);
    }

    /// Adds the value of the field `name`, if the field exists.
    fn add_member(&mut self, value: &Value, name: &str) {
        match value.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => self.add(text),
            Some(other) => self.add(other.to_string()),
        }
    }

    /// Adds the name and the value of the field `name`, if the field exists.
    fn add_with_name(&mut self, value: &Value, name: &str) {
        if let Some(member) = value.get(name).filter(|member| !member.is_null()) {
            let shown = member
                .as_str()
                .map_or_else(|| member.to_string(), str::to_owned);
            self.add(format!("{name} {shown}"));
        }
    }

    /// Adds the number of items in the list field `name`, unless the list is empty.
    fn add_count(&mut self, value: &Value, name: &str, what: &str) {
        let count = value
            .get(name)
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        if count > 0 {
            let s = if count == 1 { "" } else { "s" };
            self.add(format!("{count} {what}{s}"));
        }
    }

    /// Adds the whole value as JSON, for messages that have no better summary.
    fn add_json(&mut self, value: &Value) {
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        if !empty {
            self.add(value.to_string());
        }
    }

    /// Adds the name and version of an agent or client.
    fn add_peer(&mut self, value: &Value) {
        if let Some(version) = value.get("protocolVersion") {
            self.add(format!("version {version}"));
        }
        for name in ["clientInfo", "agentInfo", "info"] {
            if let Some(info) = value.get(name) {
                let text = |name: &str| info.get(name).and_then(Value::as_str).unwrap_or_default();
                self.add(format!("{} {}", text("name"), text("version")).trim());
            }
        }
    }

    fn add_params(&mut self, method: &str, params: &Value) {
        match method {
            "initialize" => self.add_peer(params),
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                self.add_member(params, "cwd");
                self.add_count(params, "mcpServers", "MCP server");
            }
            "session/prompt" => self.add(blocks_text(params.get("prompt"))),
            "session/update" => self.add_update(params.get("update").unwrap_or(&Value::Null)),
            "session/request_permission" => {
                for call in ["toolCall", "subject"] {
                    let call = params.get(call).unwrap_or(&Value::Null);
                    let call = call.get("toolCall").unwrap_or(call);
                    self.add_member(call, "title");
                }
                self.add_member(params, "title");
                let options = params.get("options").and_then(Value::as_array);
                let names = options
                    .into_iter()
                    .flatten()
                    .filter_map(|option| option.get("name").or(option.get("optionId"))?.as_str());
                self.add(format!("[{}]", names.collect::<Vec<_>>().join(" | ")));
            }
            "fs/read_text_file" => {
                self.add_member(params, "path");
                self.add_with_name(params, "line");
                self.add_with_name(params, "limit");
            }
            "fs/write_text_file" => {
                self.add_member(params, "path");
                self.add_size(params.get("content"));
            }
            "terminal/create" => {
                let command = params.get("command").and_then(Value::as_str);
                let args = params.get("args").and_then(Value::as_array);
                let args = args.into_iter().flatten().filter_map(Value::as_str);
                let words: Vec<&str> = command.into_iter().chain(args).collect();
                self.add(words.join(" "));
            }
            "session/cancel" | "session/close" | "session/delete" | "logout" => {}
            "session/set_mode" => self.add_member(params, "modeId"),
            "session/set_model" => self.add_member(params, "modelId"),
            "session/set_config_option" => {
                self.add_member(params, "configId");
                self.add_member(params, "value");
            }
            "authenticate" => self.add_member(params, "methodId"),
            "elicitation/create" => self.add_member(params, "message"),
            "$/cancel_request" => self.add_with_name(params, "requestId"),
            terminal if terminal.starts_with("terminal/") => self.add_member(params, "terminalId"),
            _ => self.add_json(params),
        }
    }

    fn add_update(&mut self, update: &Value) {
        let kind = update.get("sessionUpdate").and_then(Value::as_str);
        match kind.unwrap_or_default() {
            "tool_call" | "tool_call_update" => {
                self.add_member(update, "title");
                if let Some(kind) = update.get("kind").and_then(Value::as_str) {
                    self.add(format!("({kind})"));
                }
                self.add_member(update, "status");
                if self.0.is_empty() {
                    self.add_member(update, "toolCallId");
                }
                self.add_count(update, "content", "part");
            }
            "plan" | "plan_update" => {
                let plan = update.get("plan").unwrap_or(update);
                let entries = plan.get("entries").and_then(Value::as_array);
                for entry in entries.into_iter().flatten() {
                    let text = |name: &str| entry.get(name).and_then(Value::as_str);
                    let mark = match text("status") {
                        Some("completed") => "[x]",
                        Some("in_progress") => "[>]",
                        _ => "[ ]",
                    };
                    self.add(format!("{mark} {}", text("content").unwrap_or_default()));
                }
            }
            "available_commands_update" => {
                let commands = update.get("availableCommands").and_then(Value::as_array);
                for command in commands.into_iter().flatten() {
                    self.add_member(command, "name");
                }
            }
            "current_mode_update" => self.add_member(update, "currentModeId"),
            "state_update" => {
                self.add_member(update, "state");
                self.add_member(update, "stopReason");
            }
            "config_option_update" => self.add_count(update, "configOptions", "option"),
            "terminal_output_chunk" => self.add_size(update.get("data")),
            chunk if chunk.ends_with("_chunk") => self
                .0
                .push_str(&block_text(update.get("content").unwrap_or(&Value::Null))),
            "user_message" | "agent_message" | "agent_thought" => {
                self.add(blocks_text(update.get("content")));
            }
            _ => {
                let mut rest = update.clone();
                if let Some(rest) = rest.as_object_mut() {
                    rest.remove("sessionUpdate");
                }
                self.add_json(&rest);
            }
        }
    }

    fn add_size(&mut self, text: Option<&Value>) {
        if let Some(text) = text.and_then(Value::as_str) {
            self.add(format!("{} bytes", text.len()));
        }
    }

    fn add_result(&mut self, method: &str, result: &Value) {
        match method {
            "initialize" => {
                self.add_peer(result);
                self.add_count(result, "authMethods", "auth method");
            }
            "session/new" | "session/load" | "session/resume" | "session/fork" => {
                self.add_member(result, "sessionId");
                let mode = result
                    .get("modes")
                    .and_then(|modes| modes.get("currentModeId"));
                if let Some(mode) = mode.and_then(Value::as_str) {
                    self.add(format!("mode {mode}"));
                }
                self.add_count(result, "configOptions", "option");
            }
            "session/prompt" => {
                self.add_member(result, "stopReason");
                let total = result
                    .get("usage")
                    .and_then(|usage| usage.get("totalTokens"));
                if let Some(total) = total {
                    self.add(format!("{total} tokens"));
                }
            }
            "session/list" => self.add_count(result, "sessions", "session"),
            "session/request_permission" => {
                let outcome = result.get("outcome").unwrap_or(&Value::Null);
                self.add_member(outcome, "outcome");
                self.add_member(outcome, "optionId");
            }
            "fs/read_text_file" => self.add_size(result.get("content")),
            "terminal/create" => self.add_member(result, "terminalId"),
            "terminal/output" => {
                self.add_size(result.get("output"));
                let status = result.get("exitStatus").unwrap_or(&Value::Null);
                self.add_with_name(status, "exitCode");
                self.add_with_name(status, "signal");
            }
            "terminal/wait_for_exit" => {
                self.add_with_name(result, "exitCode");
                self.add_with_name(result, "signal");
            }
            "elicitation/create" => self.add_member(result, "action"),
            _ => self.add_json(result),
        }
    }
}

/// Returns the concatenated text of several content blocks.
fn blocks_text(content: Option<&Value>) -> String {
    let blocks = content.and_then(Value::as_array);
    let texts: Vec<String> = blocks.into_iter().flatten().map(block_text).collect();
    texts.join(" ")
}

/// Returns the text of a content block, or a description of the block if it has no text.
fn block_text(block: &Value) -> String {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    if let Some(said) = text("text") {
        return said.to_owned();
    }
    let resource = block
        .get("resource")
        .and_then(|resource| resource.get("uri"));
    let of = resource
        .and_then(Value::as_str)
        .or(text("uri"))
        .or(text("mimeType"));
    format!(
        "[{} {}]",
        text("type").unwrap_or("?"),
        of.unwrap_or_default()
    )
}

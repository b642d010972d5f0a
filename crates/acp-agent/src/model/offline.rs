//! A model that runs slash commands and uses no AI.

mod plan;
mod survey;

use std::collections::HashMap;

use acp::v1::{ContentBlock, EmbeddedResourceResource};
use serde_json::{Value, json};

use super::interface::{Model, RoundRequest};
use super::message::{ModelMessage, ToolRequest, ToolResult, ToolStatus};
use super::step::{FixedSteps, Step, Steps};
use crate::commands::{self, OfflineCommand, OfflineInput};
use crate::text::{first_line, to_code_block, truncate_to_head};
use crate::tools::list::entry_names;
use crate::tools::read::without_line_numbers;
use survey::{find_manifest, find_readme, survey};

/// The model used when there is no language model. It tells users that it is not an AI.
///
/// It runs slash commands (`/help` lists them) with the same tool calls, permissions and reports as any other model.
/// To anything else it responds that no language model is configured, with a short survey of the workspace.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

/// The maximum length of a tool result quoted in a response, in bytes.
const MAX_ECHO_BYTES: usize = 16 * 1024;

/// The number of lines that the survey reads from a file.
const SURVEY_MAX_LINES: u32 = 40;

impl OfflineModel {
    /// Creates the offline model.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Model for OfflineModel {
    fn name(&self) -> &str {
        "offline"
    }

    fn understands_language(&self) -> bool {
        false
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        let turn = TurnProgress::from_conversation(request.conversation);
        FixedSteps::fixed_steps(turn.next_steps().into_iter().map(Ok), false)
    }
}

/// The progress of a turn, which alone determines the next step.
struct TurnProgress<'a> {
    prompt: &'a [ContentBlock],
    /// The finished calls of the turn, with their results.
    calls: Vec<(&'a ToolRequest, &'a ToolResult)>,
    /// Whether the model has responded with text. After that, only a plan can follow.
    has_answered: bool,
}

impl<'a> TurnProgress<'a> {
    fn from_conversation(conversation: &'a [ModelMessage]) -> Self {
        let start = conversation
            .iter()
            .rposition(|message| matches!(message, ModelMessage::User(_)))
            .unwrap_or_default();
        let turn = conversation.get(start..).unwrap_or_default();
        let mut so_far = Self {
            prompt: &[],
            calls: Vec::new(),
            has_answered: false,
        };
        let mut open: HashMap<&str, &ToolRequest> = HashMap::new();
        for message in turn {
            match message {
                ModelMessage::User(prompt) => so_far.prompt = prompt,
                ModelMessage::Assistant { text, calls, .. } => {
                    so_far.has_answered |= !text.is_empty();
                    open.extend(calls.iter().map(|call| (call.id.as_str(), call)));
                }
                ModelMessage::ToolResult(result) => {
                    if let Some(call) = open.remove(result.id.as_str()) {
                        so_far.calls.push((call, result));
                    }
                }
            }
        }
        so_far
    }

    /// Returns the calls to a tool with their results, newest first.
    fn calls_of_tool(&self, tool: &str) -> impl Iterator<Item = (&'a ToolRequest, &'a ToolResult)> {
        self.calls
            .iter()
            .rev()
            .filter(move |(call, _)| call.tool == tool)
            .copied()
    }

    fn step_for_call(&self, tool: &str, arguments: Value) -> Step {
        self.nth_call_step(0, tool, arguments)
    }

    fn nth_call_step(&self, n: usize, tool: &str, arguments: Value) -> Step {
        Step::Call(ToolRequest::new(
            format!("offline_{}", self.calls.len() + n),
            tool,
            arguments,
        ))
    }

    fn next_steps(&self) -> Vec<Step> {
        let typed = self
            .prompt
            .iter()
            .find_map(ContentBlock::as_text)
            .unwrap_or_default();
        let command = match commands::parse(typed) {
            OfflineInput::Command(command) => command,
            OfflineInput::Text => return self.answer_steps(),
            _ if self.has_answered => return Vec::new(),
            OfflineInput::Incomplete(usage) => return text_step(usage.trim_end()),
            OfflineInput::Unknown(name) => {
                return text_step(format!(
                    "Unknown command `/{name}`. Available commands: {}. Type `/help` for details.",
                    commands::command_names()
                ));
            }
        };
        match command {
            OfflineCommand::Test => self.test_steps(),
            OfflineCommand::Plan { goal } => self.plan_steps(&goal),
            _ if self.has_answered => Vec::new(),
            OfflineCommand::Help => text_step(format!(
                "No language model is configured. These commands are available:\n\n{}",
                commands::help_text()
            )),
            command => self.command_steps(&command),
        }
    }

    /// Returns the steps of a command that consists of one tool call.
    fn command_steps(&self, command: &OfflineCommand) -> Vec<Step> {
        let (tool, arguments) = match command {
            OfflineCommand::List { dir } => (
                "list",
                json!({ "path": dir.as_deref().unwrap_or_default() }),
            ),
            OfflineCommand::Read { path, lines } => {
                let mut arguments = json!({ "path": path });
                if let (Some((first, last)), Value::Object(arguments)) = (lines, &mut arguments) {
                    let limit = last
                        .unwrap_or(*first)
                        .saturating_sub(*first)
                        .saturating_add(1);
                    arguments.insert("line".to_owned(), (*first).into());
                    arguments.insert("limit".to_owned(), limit.into());
                }
                ("read", arguments)
            }
            OfflineCommand::Search { pattern, glob } => {
                let mut arguments = json!({ "pattern": pattern });
                if let (Some(glob), Value::Object(arguments)) = (glob, &mut arguments) {
                    arguments.insert("glob".to_owned(), glob.as_str().into());
                }
                ("search", arguments)
            }
            OfflineCommand::Write { path, text } => {
                ("write", json!({ "path": path, "text": text }))
            }
            OfflineCommand::Edit {
                path,
                search,
                replacement,
            } => (
                "edit",
                json!({ "path": path, "search": search, "replacement": replacement }),
            ),
            OfflineCommand::Run { command } => ("run", json!({ "command": command })),
            OfflineCommand::Help | OfflineCommand::Test | OfflineCommand::Plan { .. } => {
                return Vec::new();
            }
        };
        let Some((_, result)) = self.calls_of_tool(tool).next() else {
            return vec![self.step_for_call(tool, arguments)];
        };
        text_step(match (result.status, command) {
            (ToolStatus::Done, OfflineCommand::List { .. })
                if entry_names(&result.data).is_empty() =>
            {
                "The directory is empty.".to_owned()
            }
            (ToolStatus::Done, OfflineCommand::Read { .. }) if result.data["lines"] == 0 => {
                "No such line: the file is empty or has fewer lines.".to_owned()
            }
            (ToolStatus::Done, OfflineCommand::Search { .. }) if result.data["matches"] == 0 => {
                "No matches. Quote patterns that contain spaces.".to_owned()
            }
            (ToolStatus::Done, OfflineCommand::Search { .. }) => format!(
                "Found {} in {}:\n\n{}",
                count_text(&result.data, "matches", "matching line"),
                count_text(&result.data, "files", "file"),
                quote(&result.text)
            ),
            (ToolStatus::Done, OfflineCommand::List { .. }) => quote(&result.text),
            (ToolStatus::Done, OfflineCommand::Read { .. }) => {
                quote(&without_line_numbers(&result.text))
            }
            (_, OfflineCommand::Run { command }) => summarize_command(command, result),
            (ToolStatus::Done, _) => result.text.clone(),
            (ToolStatus::Rejected, _) => format!("{} Nothing was changed.", result.text),
            (_, OfflineCommand::Write { .. } | OfflineCommand::Edit { .. }) => {
                format!("Nothing was changed. {}", result.text)
            }
            _ => result.text.clone(),
        })
    }

    /// Returns the steps for a prompt that is not a command.
    fn answer_steps(&self) -> Vec<Step> {
        if self.has_answered {
            return Vec::new();
        }
        let Some((_, listing)) = self.calls_of_tool("list").next() else {
            return vec![self.step_for_call("list", json!({}))];
        };
        let names = entry_names(&listing.data);
        let read: Vec<_> = self.calls_of_tool("read").collect();
        let worth: Vec<&str> = find_readme(&names)
            .into_iter()
            .chain(find_manifest(&names))
            .collect();
        if read.is_empty() && !worth.is_empty() {
            let look = |(n, name)| {
                self.nth_call_step(
                    n,
                    "read",
                    json!({ "path": name, "limit": SURVEY_MAX_LINES }),
                )
            };
            return worth.into_iter().enumerate().map(look).collect();
        }
        let mut answer_text =
            "No language model is configured, so I cannot work on this: I am the `offline` model, not an AI. To use a model, add a provider's key with `acp agent login`, or choose a local model with `--model` or in `config.toml`. Until then, I can run these commands:\n\n"
                .to_owned();
        answer_text.push_str(&commands::help_text());
        let attached = self.attachment_names();
        if !attached.is_empty() {
            answer_text.push_str(&format!("\nattached: {}\n", attached.join(", ")));
        }
        answer_text.push_str("\nThe workspace:\n\n");
        answer_text.push_str(&survey(listing, &names, &read));
        text_step(answer_text)
    }

    /// Returns the names of the prompt's attachments.
    fn attachment_names(&self) -> Vec<String> {
        self.prompt
            .iter()
            .filter_map(|block| match block {
                ContentBlock::ResourceLink(link) => Some(format!("`{}`", link.uri)),
                ContentBlock::Resource(embedded) => Some(match &embedded.resource {
                    EmbeddedResourceResource::Text(text) => {
                        format!("`{}` ({} lines)", text.uri, text.text.lines().count())
                    }
                    EmbeddedResourceResource::Blob(blob) => format!("`{}`", blob.uri),
                    _ => return None,
                }),
                _ => None,
            })
            .collect()
    }
}

fn text_step(text: impl Into<String>) -> Vec<Step> {
    vec![Step::Text(text.into())]
}

fn exit_code(result: &ToolResult) -> Option<u64> {
    result.data.get("exitCode").and_then(Value::as_u64)
}

fn summarize_command(command: &str, result: &ToolResult) -> String {
    let command = first_line(command);
    match (result.status, exit_code(result)) {
        (ToolStatus::Rejected, _) => format!("{} The command was not run.", result.text),
        (_, Some(code)) => format!("`{command}` exited with code {code}."),
        (_, None) => format!("`{command}` failed. {}", result.text),
    }
}

/// Formats a tool result as part of a response.
fn quote(text: &str) -> String {
    let excerpt = truncate_to_head(text, MAX_ECHO_BYTES);
    let more = if excerpt.len() < text.len() {
        "\n\nOutput truncated; see the tool call."
    } else {
        ""
    };
    format!("{}{more}", to_code_block(excerpt))
}

fn count_text(data: &Value, key: &str, what: &str) -> String {
    let count = data.get(key).and_then(Value::as_u64).unwrap_or_default();
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

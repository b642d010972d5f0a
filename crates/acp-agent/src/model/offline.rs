//! A model without AI: it carries out typed commands.

mod planned;
mod survey;

use std::collections::HashMap;

use acp::v1::{ContentBlock, EmbeddedResourceResource};
use serde_json::{Value, json};

use super::interface::{Model, Request};
use super::message::{Message, ToolRequest, ToolResult, ToolStatus};
use super::step::{Known, Step, Steps};
use crate::commands::{self, Command, Typed};
use crate::text::{fenced, head, one_line};
use crate::tools::list::names;
use survey::{manifest, readme, survey};

/// The model of an agent that has none: it is no AI, and says so.
///
/// It carries out slash commands (`/help` lists them) by the same tool calls, permissions and reports
/// as any other model, and answers anything else by saying that no language model is configured,
/// with a short survey of the workspace.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

/// The most of a result that is repeated in an answer, in bytes.
const REPEATED: usize = 16 * 1024;

/// How many lines of a file a survey reads.
const GLIMPSE: u32 = 40;

impl OfflineModel {
    /// The model.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Model for OfflineModel {
    fn name(&self) -> &str {
        "offline"
    }

    fn understands(&self) -> bool {
        false
    }

    fn respond<'a>(&'a self, request: Request<'a>) -> Steps<'a> {
        let turn = SoFar::of(request.conversation);
        Known::steps(turn.go_on().into_iter().map(Ok), false)
    }
}

/// The turn so far. What comes next follows from it alone.
struct SoFar<'a> {
    prompt: &'a [ContentBlock],
    /// What was called, and what came of it.
    calls: Vec<(&'a ToolRequest, &'a ToolResult)>,
    /// Something has been said already, which is always the last thing but for the plan.
    said: bool,
}

impl<'a> SoFar<'a> {
    fn of(conversation: &'a [Message]) -> Self {
        let start = conversation
            .iter()
            .rposition(|message| matches!(message, Message::User(_)))
            .unwrap_or_default();
        let turn = conversation.get(start..).unwrap_or_default();
        let mut so_far = Self {
            prompt: &[],
            calls: Vec::new(),
            said: false,
        };
        let mut open: HashMap<&str, &ToolRequest> = HashMap::new();
        for message in turn {
            match message {
                Message::User(prompt) => so_far.prompt = prompt,
                Message::Assistant { text, calls, .. } => {
                    so_far.said |= !text.is_empty();
                    open.extend(calls.iter().map(|call| (call.id.as_str(), call)));
                }
                Message::ToolResult(result) => {
                    if let Some(call) = open.remove(result.id.as_str()) {
                        so_far.calls.push((call, result));
                    }
                }
            }
        }
        so_far
    }

    /// What was called of a tool, the newest first.
    fn of_tool(&self, tool: &str) -> impl Iterator<Item = (&'a ToolRequest, &'a ToolResult)> {
        self.calls
            .iter()
            .rev()
            .filter(move |(call, _)| call.tool == tool)
            .copied()
    }

    fn call(&self, tool: &str, arguments: Value) -> Step {
        self.nth_call(0, tool, arguments)
    }

    fn nth_call(&self, n: usize, tool: &str, arguments: Value) -> Step {
        Step::Call(ToolRequest::new(
            format!("offline_{}", self.calls.len() + n),
            tool,
            arguments,
        ))
    }

    fn go_on(&self) -> Vec<Step> {
        let typed = self
            .prompt
            .iter()
            .find_map(ContentBlock::as_text)
            .unwrap_or_default();
        let command = match commands::parse(typed) {
            Typed::Command(command) => command,
            Typed::Text => return self.answer(),
            _ if self.said => return Vec::new(),
            Typed::Incomplete(usage) => return say(usage.trim_end()),
            Typed::Unknown(name) => {
                return say(format!(
                    "There is no command `/{name}`. There are {}; `/help` says more.",
                    commands::names()
                ));
            }
        };
        match command {
            Command::Test => self.test(),
            Command::Plan { goal } => self.plan(&goal),
            _ if self.said => Vec::new(),
            Command::Help => say(format!(
                "This agent has no language model configured. It carries out these commands:\n\n{}",
                commands::help()
            )),
            command => self.single(&command),
        }
    }

    /// A command that is one tool call.
    fn single(&self, command: &Command) -> Vec<Step> {
        let (tool, arguments) = match command {
            Command::List { dir } => (
                "list",
                json!({ "path": dir.as_deref().unwrap_or_default() }),
            ),
            Command::Read { path, lines } => {
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
            Command::Search { pattern, glob } => {
                let mut arguments = json!({ "pattern": pattern });
                if let (Some(glob), Value::Object(arguments)) = (glob, &mut arguments) {
                    arguments.insert("glob".to_owned(), glob.as_str().into());
                }
                ("search", arguments)
            }
            Command::Write { path, text } => ("write", json!({ "path": path, "text": text })),
            Command::Edit {
                path,
                search,
                replacement,
            } => (
                "edit",
                json!({ "path": path, "search": search, "replacement": replacement }),
            ),
            Command::Run { command } => ("run", json!({ "command": command })),
            Command::Help | Command::Test | Command::Plan { .. } => return Vec::new(),
        };
        let Some((_, result)) = self.of_tool(tool).next() else {
            return vec![self.call(tool, arguments)];
        };
        say(match (result.status, command) {
            (ToolStatus::Done, Command::List { .. }) if names(&result.data).is_empty() => {
                "The directory is empty.".to_owned()
            }
            (ToolStatus::Done, Command::Read { .. }) if result.data["lines"] == 0 => {
                "There is nothing there: the file is empty, or ends before that line.".to_owned()
            }
            (ToolStatus::Done, Command::Search { .. }) if result.data["matches"] == 0 => {
                "Nothing was found. A pattern with spaces goes in quotes.".to_owned()
            }
            (ToolStatus::Done, Command::Search { .. }) => format!(
                "Found {} in {}:\n\n{}",
                counted(&result.data, "matches", "matching line"),
                counted(&result.data, "files", "file"),
                repeated(&result.text)
            ),
            (ToolStatus::Done, Command::List { .. } | Command::Read { .. }) => {
                repeated(&result.text)
            }
            (_, Command::Run { command }) => ran(command, result),
            (ToolStatus::Done, _) => result.text.clone(),
            (ToolStatus::Rejected, _) => format!("{} Nothing was changed.", result.text),
            (_, Command::Write { .. } | Command::Edit { .. }) => {
                format!("Nothing was changed. {}", result.text)
            }
            _ => result.text.clone(),
        })
    }

    /// Anything that is no command.
    fn answer(&self) -> Vec<Step> {
        if self.said {
            return Vec::new();
        }
        let Some((_, listing)) = self.of_tool("list").next() else {
            return vec![self.call("list", json!({}))];
        };
        let names = names(&listing.data);
        let read: Vec<_> = self.of_tool("read").collect();
        let worth: Vec<&str> = readme(&names).into_iter().chain(manifest(&names)).collect();
        if read.is_empty() && !worth.is_empty() {
            let look =
                |(n, name)| self.nth_call(n, "read", json!({ "path": name, "limit": GLIMPSE }));
            return worth.into_iter().enumerate().map(look).collect();
        }
        let mut said =
            "No language model is configured, so I cannot work on this: I am the `offline` \
             model, which is no AI. For one, type a provider's key with `acp agent login`, or name a model at \
             home with `--model` or in `config.toml`. Until then I carry out typed commands:\n\n"
                .to_owned();
        said.push_str(&commands::help());
        let attached = self.attached();
        if !attached.is_empty() {
            said.push_str(&format!("\nattached: {}\n", attached.join(", ")));
        }
        said.push_str("\nWhat I see of the workspace:\n\n");
        said.push_str(&survey(listing, &names, &read));
        say(said)
    }

    /// What came with the prompt beside its text.
    fn attached(&self) -> Vec<String> {
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

fn say(text: impl Into<String>) -> Vec<Step> {
    vec![Step::Text(text.into())]
}

fn exit_code(result: &ToolResult) -> Option<u64> {
    result.data.get("exitCode").and_then(Value::as_u64)
}

fn ran(command: &str, result: &ToolResult) -> String {
    let command = one_line(command);
    match (result.status, exit_code(result)) {
        (ToolStatus::Rejected, _) => format!("{} The command was not run.", result.text),
        (_, Some(code)) => format!("`{command}` ended with exit code {code}."),
        (_, None) => format!("`{command}` failed. {}", result.text),
    }
}

/// A result as part of an answer.
fn repeated(text: &str) -> String {
    let kept = head(text, REPEATED);
    let more = if kept.len() < text.len() {
        "\n\nThere is more; the tool call shows it."
    } else {
        ""
    };
    format!("{}{more}", fenced(kept))
}

fn counted(data: &Value, key: &str, what: &str) -> String {
    let count = data.get(key).and_then(Value::as_u64).unwrap_or_default();
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

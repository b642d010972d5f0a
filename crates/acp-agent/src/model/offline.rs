//! A model without AI: it carries out typed commands.

mod survey;

use std::collections::HashMap;

use acp::v1::{ContentBlock, EmbeddedResourceResource};
use serde_json::{Value, json};

use super::{Known, Message, Model, Request, Step, Steps, ToolRequest, ToolResult, ToolStatus};
use crate::commands::{self, Command, Typed};
use crate::permission::one_line;
use crate::project::{self, Clues, Finding};
use crate::tools::{self, fenced};
use survey::{manifest, quoted, readme, survey, words};

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
            (ToolStatus::Done, Command::List { .. })
                if tools::listed_names(&result.data).is_empty() =>
            {
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

    /// `/test`.
    fn test(&self) -> Vec<Step> {
        let ran = self.of_tool("run").next();
        let allowed = ran.is_none_or(|(_, result)| result.status != ToolStatus::Rejected);
        let (finding, look) = match self.find_test_command(0) {
            Ok(finding) => (Some(finding), None),
            Err(step) => (None, Some(step)),
        };
        let nothing = matches!(finding, Some(Finding::Nothing));
        let steps = |find, run, report| {
            let mut plan = vec![("Find the project's test command", "medium", find)];
            // Where there are no tests there is nothing more to be done.
            if !nothing {
                plan.push(("Run the tests", "high", run));
                plan.push(("Report the result", "medium", report));
            }
            plan
        };
        if let Some(look) = look {
            return self.with_plan(&steps("in_progress", "pending", "pending"), look);
        }
        let Some(Finding::Command { command, .. }) = finding else {
            return self.end_with(
                &steps("completed", "", ""),
                &format!(
                    "I found no test command: in {} there is none of {}. `/run COMMAND` runs any other.",
                    "the working directory",
                    project::LOOKED_FOR
                ),
            );
        };
        let Some((_, result)) = ran else {
            let run = self.nth_call(1, "run", json!({ "command": command }));
            return self.with_plan(&steps("completed", "in_progress", "pending"), vec![run]);
        };
        if !allowed {
            let said = format!("{} The tests were not run.", result.text);
            return self.end_with(&steps("completed", "pending", "pending"), &said);
        }
        let reporting = steps("completed", "completed", "in_progress");
        if !self.said && !self.plan_is(&reporting) {
            return vec![self.call("plan", plan_arguments(&reporting))];
        }
        let said = match exit_code(result) {
            Some(0) => format!("The tests passed: `{command}` ended with exit code 0."),
            Some(code) => {
                format!("The tests failed: `{command}` ended with exit code {code}.")
            }
            None => format!(
                "The tests did not end by themselves: `{command}` has no exit code. {}",
                result.text
            ),
        };
        self.end_with(&steps("completed", "completed", "completed"), &said)
    }

    /// `/plan GOAL`.
    fn plan(&self, goal: &str) -> Vec<Step> {
        let short = one_line(goal);
        let words = words(goal);
        let finding = self.find_test_command(0);
        let listed = self.of_tool("list").next().is_some();
        let searched = self.of_tool("search").next();
        let test = match &finding {
            Ok(Finding::Command { command, .. }) => format!("Run the tests with `{command}`"),
            Ok(_) => "Write a way to test it, since none was found".to_owned(),
            Err(_) => "Run the tests".to_owned(),
        };
        let done = |done: bool, before: bool| match (done, before) {
            (true, _) => "completed",
            (false, true) => "in_progress",
            (false, false) => "pending",
        };
        let found = finding.is_ok();
        let search = format!("Find the places that mention {}", quoted(&words));
        let work = format!("Decide what has to change for: {short}");
        let check = format!("Review the result against the goal: {short}");
        let mut plan = vec![
            ("Survey the working directory", "medium", done(listed, true)),
            (
                "Find out how the project is tested",
                "medium",
                done(found, listed),
            ),
        ];
        if !words.is_empty() {
            plan.push((search.as_str(), "medium", done(searched.is_some(), found)));
        }
        plan.extend([
            (work.as_str(), "high", "pending"),
            ("Make the change, in small steps", "high", "pending"),
            (test.as_str(), "high", "pending"),
            (check.as_str(), "medium", "pending"),
        ]);
        if let Err(look) = finding {
            return self.with_plan(&plan, look);
        }
        if searched.is_none() && !words.is_empty() {
            let pattern = format!("(?i)({})", words.join("|"));
            let search = self.nth_call(1, "search", json!({ "pattern": pattern }));
            return self.with_plan(&plan, vec![search]);
        }
        let mut said = format!(
            "This is a plan for: {short}\n\nIt was made without a language model, by looking and not by \
             understanding: the first steps are done, and the others are what such work takes. "
        );
        match &finding {
            Ok(Finding::Command { command, because }) => {
                said.push_str(&format!("The tests run with `{command}`: {because}. "));
            }
            _ => said.push_str("I found no way to test it. "),
        }
        match searched {
            Some((_, result))
                if result.data["matches"] != 0 && result.status == ToolStatus::Done =>
            {
                said.push_str(&format!(
                    "{} in {} mention {}:\n\n{}",
                    counted(&result.data, "matches", "line"),
                    counted(&result.data, "files", "file"),
                    quoted(&words),
                    fenced(&first_lines(&result.text, 12))
                ));
            }
            Some(_) => said.push_str(&format!("No file mentions {}.", quoted(&words))),
            None => {}
        }
        self.end_with(&plan, said.trim_end())
    }

    /// Anything that is no command.
    fn answer(&self) -> Vec<Step> {
        if self.said {
            return Vec::new();
        }
        let Some((_, listing)) = self.of_tool("list").next() else {
            return vec![self.call("list", json!({}))];
        };
        let names = tools::listed_names(&listing.data);
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

    /// How the project is tested, or the calls that find out more. `ahead` calls are made before
    /// them.
    fn find_test_command(&self, ahead: usize) -> Result<Finding, Vec<Step>> {
        // The plan comes first.
        let call = |tool, arguments| vec![self.nth_call(ahead + 1, tool, arguments)];
        let of = |call: &ToolRequest| -> Option<String> {
            Some(call.arguments.get("path")?.as_str()?.to_owned())
        };
        let mut listings: HashMap<String, Option<Vec<String>>> = HashMap::new();
        for (request, result) in self.of_tool("list") {
            let names =
                (result.status == ToolStatus::Done).then(|| tools::listed_names(&result.data));
            listings.insert(of(request).unwrap_or_default(), names);
        }
        let Some(names) = listings.remove("") else {
            return Err(call("list", json!({})));
        };
        let names = names.unwrap_or_default();
        let files: HashMap<String, Option<&str>> = self
            .of_tool("read")
            .filter_map(|(request, result)| {
                let text = (result.status == ToolStatus::Done).then_some(result.text.as_str());
                Some((of(request)?, text))
            })
            .collect();
        let clues = Clues {
            names: names.iter().map(String::as_str).collect(),
            texts: files
                .iter()
                .map(|(name, text)| (name.as_str(), *text))
                .collect(),
            lists: listings
                .iter()
                .map(|(name, names)| {
                    let names = names
                        .as_ref()
                        .map(|names| names.iter().map(String::as_str).collect());
                    (name.as_str(), names)
                })
                .collect(),
        };
        match project::test_command(&clues) {
            Finding::Read(name) => Err(call("read", json!({ "path": name }))),
            Finding::List(name) => Err(call("list", json!({ "path": name }))),
            finding => Ok(finding),
        }
    }

    /// These steps, and before them the plan if it has changed.
    fn with_plan(&self, plan: &[(&str, &str, &str)], steps: Vec<Step>) -> Vec<Step> {
        let mut all = Vec::new();
        if !self.plan_is(plan) {
            all.push(self.call("plan", plan_arguments(plan)));
        }
        all.extend(steps);
        all
    }

    /// The last words, and the plan if it has changed.
    fn end_with(&self, plan: &[(&str, &str, &str)], said: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        if !self.said {
            steps.push(Step::Text(said.to_owned()));
        }
        self.with_plan(plan, Vec::new())
            .into_iter()
            .for_each(|step| steps.push(step));
        steps
    }

    fn plan_is(&self, plan: &[(&str, &str, &str)]) -> bool {
        let last = self.of_tool("plan").next();
        last.is_some_and(|(call, _)| call.arguments == plan_arguments(plan))
    }
}

fn say(text: impl Into<String>) -> Vec<Step> {
    vec![Step::Text(text.into())]
}

/// Entries of content, priority and status, as the tool `plan` takes them.
fn plan_arguments(plan: &[(&str, &str, &str)]) -> Value {
    let entries: Vec<Value> = plan
        .iter()
        .map(|(content, priority, status)| {
            json!({ "content": content, "priority": priority, "status": status })
        })
        .collect();
    json!({ "entries": entries })
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
    let kept = tools::head(text, REPEATED);
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

fn first_lines(text: &str, most: usize) -> String {
    let mut lines: Vec<&str> = text.lines().take(most).collect();
    if text.lines().count() > most {
        lines.push("…");
    }
    lines.join("\n")
}

//! A model that follows a script, for tests.

use std::path::Path;

use acp::v1::{ContentBlock, StopReason};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{ModelError, ModelErrorKind};
use super::interface::{Model, RoundRequest};
use super::message::{ModelMessage, ToolRequest};
use super::step::{FixedSteps, Step, Steps, TokenUsage};
use crate::context::compaction::summary_span;
use crate::context::summary::is_summary_request;

/// A model that follows a JSON script, for testing programs that communicate with an agent.
///
/// The script is an object with the key `turns`. The first turn is played for the first prompt of a session, the second
/// for the second prompt, and so on. A prompt after the last turn fails. Each turn is a list of steps, and each step is
/// an object with one member:
///
/// | step                                     | what happens                                        |
/// |------------------------------------------|-----------------------------------------------------|
/// | `{"say": "text"}`                        | sends a chunk of the agent's message; a list of texts is a chunk each |
/// | `{"think": "text"}`                      | sends a chunk of the agent's thoughts, or several   |
/// | `{"plan": [{"content": "…", "priority": "high", "status": "pending"}]}` | sends the whole plan |
/// | `{"list": {"path": "src"}}`              | calls the tool `list`                               |
/// | `{"read": {"path": "a.rs", "line": 3, "limit": 9}}` | calls the tool `read`                    |
/// | `{"search": {"pattern": "fn", "glob": "*.rs"}}` | calls the tool `search`                      |
/// | `{"write": {"path": "a.rs", "text": "…"}}` | calls the tool `write`                            |
/// | `{"edit": {"path": "a.rs", "search": "…", "replacement": "…"}}` | calls the tool `edit`        |
/// | `{"run": {"command": "cargo test"}}`     | calls the tool `run`                                |
/// | `{"switch_mode": {"mode": "code", "plan": "…"}}` | calls the tool `switch_mode`                |
/// | `{"call": {"tool": "…", "arguments": {}}}` | calls any tool, even one that does not exist      |
/// | `{"hang": true}`                         | sends nothing more until the turn is cancelled      |
/// | `{"stop": "max_tokens"}`                 | ends the turn with this stop reason                 |
/// | `{"usage": {"input": 900, "output": 40}}` | reports how many tokens the round has used         |
/// | `{"error": "text"}`                      | fails with this error                               |
/// | `{"expect": "text"}`                     | fails unless the system prompt or the prompt contains this text |
///
/// Consecutive tool calls are made in one round, just as a model makes several calls at once. The steps after them are
/// played once their results are known. A script with an unknown step, or a step with more than one member, is rejected
/// when it is read.
///
/// In addition to `turns`, a script can have the key `window`. The model then has a context window of that many tokens,
/// reports after each round how many of them are used (assuming four bytes per token), and fails if the request does
/// not fit. It can also have `summary`: steps that are played when the agent asks for a summary of the conversation.
///
/// ```
/// use acp_agent::{CodingAgent, ScriptedModel};
///
/// let script = r#"{
///   "turns": [
///     [
///       {"say": "I look first."},
///       {"read": {"path": "README.md"}},
///       {"edit": {"path": "README.md", "search": "helo", "replacement": "hello"}},
///       {"say": ["Do", "ne."]}
///     ],
///     [{"think": "This takes long."}, {"hang": true}]
///   ]
/// }"#;
/// let agent = CodingAgent::with_model(ScriptedModel::parse(script)?);
/// # drop(agent);
/// assert!(ScriptedModel::parse(r#"{"turns": [[{"shout": "no"}]]}"#).is_err());
/// # Ok::<(), acp_agent::ScriptError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    turns: Vec<Vec<ScriptStep>>,
    window: Option<u64>,
    summary: Vec<ScriptStep>,
}

/// An error that prevents the use of a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The script file cannot be read.
    #[error("cannot read script {path}: {error}")]
    Unreadable {
        /// The path of the script file.
        path: String,
        /// The error from the operating system.
        error: std::io::Error,
    },
    /// The text is not a valid script. The error contains the line and column.
    #[error("invalid script: {0}")]
    Invalid(#[from] serde_json::Error),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelScript {
    turns: Vec<Vec<ScriptStep>>,
    #[serde(default)]
    window: Option<u64>,
    #[serde(default)]
    summary: Vec<ScriptStep>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScriptStep {
    Say(ScriptText),
    Think(ScriptText),
    Plan(Value),
    List(Value),
    Read(Value),
    Search(Value),
    Write(Value),
    Edit(Value),
    Run(Value),
    SwitchMode(Value),
    Call(ScriptCall),
    Hang(bool),
    Stop(String),
    Usage(ScriptUsage),
    Error(String),
    Expect(String),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptUsage {
    input: u64,
    output: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    tool: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum ScriptText {
    One(String),
    Many(Vec<String>),
}

impl ScriptText {
    fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl ScriptStep {
    /// Returns the tool's name and arguments if the step is a tool call.
    fn call(&self) -> Option<(&str, Value)> {
        Some(match self {
            Self::Plan(entries) => ("plan", json!({ "entries": entries })),
            Self::List(arguments) => ("list", arguments.clone()),
            Self::Read(arguments) => ("read", arguments.clone()),
            Self::Search(arguments) => ("search", arguments.clone()),
            Self::Write(arguments) => ("write", arguments.clone()),
            Self::Edit(arguments) => ("edit", arguments.clone()),
            Self::Run(arguments) => ("run", arguments.clone()),
            Self::SwitchMode(arguments) => ("switch_mode", arguments.clone()),
            Self::Call(call) => (call.tool.as_str(), call.arguments.clone()),
            Self::Say(_)
            | Self::Think(_)
            | Self::Hang(_)
            | Self::Stop(_)
            | Self::Usage(_)
            | Self::Error(_)
            | Self::Expect(_) => return None,
        })
    }
}

impl ScriptedModel {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a valid script.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError::Unreadable {
            path: path.display().to_string(),
            error,
        })?;
        Self::parse(&text)
    }

    /// Parses the JSON text of a script.
    ///
    /// # Errors
    /// The text is not a valid script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: ModelScript = serde_json::from_str(text)?;
        Ok(Self {
            turns: script.turns,
            window: script.window,
            summary: script.summary,
        })
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        let given = estimate_tokens(&request);
        if self.window.is_some_and(|window| given > window) {
            let message = format!("{given} tokens exceed the script's context window");
            let error = ModelError::with_kind(ModelErrorKind::ContextFull, message);
            return FixedSteps::fixed_steps([Err(error)], false);
        }
        if is_summary_request(&request) {
            return self.run_script(&self.summary, "summary", &request);
        }
        let (mut prompts, mut round, mut rounds) = (0_usize, 0_usize, 0_usize);
        for message in request.conversation {
            if let Some(before) = summary_span(message) {
                (prompts, rounds) = (before.prompts, before.rounds);
                continue;
            }
            match message {
                ModelMessage::User(_) => {
                    prompts += 1;
                    round = std::mem::take(&mut rounds);
                }
                ModelMessage::Assistant { .. } => round += 1,
                ModelMessage::ToolResult(_) => {}
            }
        }
        let Some(turn) = prompts.checked_sub(1).and_then(|turn| self.turns.get(turn)) else {
            let message = format!(
                "the script has no turn for prompt {prompts} (turns in the script: {})",
                self.turns.len()
            );
            return FixedSteps::fixed_steps([Err(ModelError::new(message))], false);
        };
        let name = format!("{prompts}_{round}");
        self.run_script(round_steps(turn, round), &name, &request)
    }
}

impl ScriptedModel {
    /// Runs `script` for one round. The ids of its tool calls contain `name`.
    fn run_script<'a>(
        &self,
        script: &[ScriptStep],
        name: &str,
        request: &RoundRequest<'_>,
    ) -> Steps<'a> {
        let mut steps = Vec::new();
        let mut hang = false;
        let mut output_bytes = 0;
        for (n, step) in script.iter().enumerate() {
            if let Some((tool, arguments)) = step.call() {
                let id = format!("script_{name}_{n}");
                steps.push(Ok(Step::Call(ToolRequest::new(id, tool, arguments))));
                continue;
            }
            match step {
                ScriptStep::Say(pieces) => {
                    output_bytes += pieces.texts().iter().map(String::len).sum::<usize>();
                    steps.extend(pieces.texts().iter().cloned().map(Step::Text).map(Ok));
                }
                ScriptStep::Think(pieces) => {
                    steps.extend(pieces.texts().iter().cloned().map(Step::Thought).map(Ok));
                }
                ScriptStep::Hang(true) => {
                    hang = true;
                    break;
                }
                ScriptStep::Stop(reason) => {
                    steps.push(Ok(Step::Stop(StopReason::from(reason.as_str()))));
                }
                ScriptStep::Usage(usage) => steps.push(Ok(Step::Usage(TokenUsage {
                    input: usage.input,
                    output: usage.output,
                    ..TokenUsage::default()
                }))),
                ScriptStep::Expect(text) if !contains_text(request, text) => {
                    let message = format!("the script expects the prompt to contain {text:?}");
                    steps.push(Err(ModelError::new(message)));
                }
                ScriptStep::Error(message) => steps.push(Err(ModelError::new(message.clone()))),
                _ => {}
            }
        }
        let states = script
            .iter()
            .any(|step| matches!(step, ScriptStep::Usage(_)));
        if self.window.is_some() && !states {
            // The usage comes first, because no more steps are read after `Stop`.
            let usage = TokenUsage {
                input: estimate_tokens(request),
                output: bytes_to_tokens(output_bytes),
                ..TokenUsage::default()
            };
            steps.insert(0, Ok(Step::Usage(usage)));
        }
        FixedSteps::fixed_steps(steps, hang)
    }
}

/// Returns `true` if the system prompt or the user's prompt contains `text`.
fn contains_text(request: &RoundRequest<'_>, text: &str) -> bool {
    let mut messages = request.conversation.iter().rev();
    let prompt = messages.find_map(|message| match message {
        ModelMessage::User(content) => Some(content),
        _ => None,
    });
    let mut prompt = prompt
        .into_iter()
        .flatten()
        .filter_map(ContentBlock::as_text);
    request.instructions.contains(text) || prompt.any(|told| told.contains(text))
}

/// Estimates the number of tokens in a request.
fn estimate_tokens(request: &RoundRequest<'_>) -> u64 {
    let lengths = request.conversation.iter().map(|message| match message {
        ModelMessage::User(content) => content
            .iter()
            .filter_map(ContentBlock::as_text)
            .map(str::len)
            .sum(),
        ModelMessage::Assistant { text, calls, .. } => {
            text.len()
                + calls
                    .iter()
                    .map(|call| call.arguments.to_string().len())
                    .sum::<usize>()
        }
        ModelMessage::ToolResult(result) => result.text.len(),
    });
    bytes_to_tokens(request.instructions.len() + lengths.sum::<usize>())
}

fn bytes_to_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes / 4).unwrap_or(u64::MAX)
}

/// Returns the steps of one round. A round ends after a series of consecutive tool calls.
fn round_steps(turn: &[ScriptStep], round: usize) -> &[ScriptStep] {
    let mut rest = turn;
    for n in 0.. {
        let calls = rest.iter().position(|step| step.call().is_some());
        let end = calls.map_or(rest.len(), |first| {
            let tail = rest.get(first..).unwrap_or_default();
            first
                + tail
                    .iter()
                    .position(|step| step.call().is_none())
                    .unwrap_or(tail.len())
        });
        let (this, next) = rest.split_at(end);
        if n == round {
            return this;
        }
        if next.is_empty() {
            return &[];
        }
        rest = next;
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_is_split_into_rounds_after_tool_calls() {
        let model = ScriptedModel::parse(
            r#"{"turns": [[{"say": "a"}, {"list": {}}, {"read": {}}, {"say": "b"}, {"run": {}}]]}"#,
        )
        .unwrap();
        let lengths: Vec<_> = (0..4)
            .map(|n| round_steps(&model.turns[0], n).len())
            .collect();
        assert_eq!(lengths, [3, 2, 0, 0]);
    }

    #[test]
    fn unknown_step_is_named_in_the_error() {
        let error = ScriptedModel::parse(r#"{"turns": [[{"shout": "no"}]]}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown variant `shout`"),
            "{error}"
        );
        assert!(ScriptedModel::parse(r#"{"turns": [[{"say": "a", "think": "b"}]]}"#).is_err());
        assert!(ScriptedModel::parse(r#"{"turnes": []}"#).is_err());
    }
}

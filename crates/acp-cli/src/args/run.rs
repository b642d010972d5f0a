//! What can be typed behind `acp run`.

use std::path::PathBuf;

use acp::v1::{ContentBlock, SystemPrompt, SystemPromptMode};
use acp_config::SessionName;
use acp_host::Policy;
use clap::ValueEnum;

use super::agent_choice::AgentChoiceArgs;
use super::shared::{SessionArgs, policy};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp run [OPTIONS] PROMPT... [-- AGENT COMMAND...]",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct RunArgs {
    /// What to say to the agent; `-` reads it from stdin. What is piped in is added behind it; where nothing comes for 3
    /// seconds, the prompt goes without it (`< /dev/null` waits for nothing).
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Read what to say from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// Go on with an old session of the agent's, by its id; `acp sessions` lists them. What was said in it
    /// before is not shown again.
    #[arg(long, value_name = "SESSION ID")]
    pub(crate) resume: Option<String>,

    /// Go on with the session of this name, or begin it if there is none yet. The name is one of this agent in
    /// this directory. Takes an agent that keeps its sessions.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,

    /// Begin another session under the name, also if there is one.
    #[arg(long, requires = "session")]
    pub(crate) new: bool,

    /// What the agent may do where no rule of yours says it (see `acp permissions`): `ask` asks you each
    /// time, `reads` allows what only looks and rejects the rest, `all` allows everything, `none` rejects
    /// everything, whatever your rules say. By default `ask` on a terminal and `reads` elsewhere. Typed here,
    /// `reads` and `none` also start the agent in a sandbox in which neither the project nor the rest of the
    /// disk can be written, as --sandbox=read-only does, or say that this is not possible here; the default
    /// does not. --sandbox says otherwise.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    /// Give the agent a file with the prompt: text, image or sound; can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// Add this text to the agent's system prompt. The agent must support it (systemPrompt). Agents may keep it with the
    /// session, as the bundled one does: it holds when the session is resumed without the option.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt")]
    pub(crate) append_system_prompt: Option<String>,

    /// Replace the agent's default system prompt with this text. The agent must support it
    /// (systemPrompt.mode.override), and may keep it with the session.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    /// Give up after this time.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// What to print: `text` for people; `json` for programs, the messages received from the agent,
    /// one a line; `quiet` the text of the agent's message alone.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: RunFormat,
}

impl RunArgs {
    /// What the model is told of this person's.
    pub(crate) fn system_prompt(&self) -> Option<SystemPrompt> {
        let (mode, text) = match (&self.system_prompt, &self.append_system_prompt) {
            (Some(text), _) => (SystemPromptMode::Override, text),
            (None, Some(text)) => (SystemPromptMode::Append, text),
            (None, None) => return None,
        };
        Some(SystemPrompt::new(mode, vec![ContentBlock::text(text)]))
    }
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the agent has finished (end_turn)
    1  the agent answered with an error, or the output cannot be written
    2  wrong usage, or something the agent does not offer or take
    3  the agent could not be started, or broke the connection
    4  the agent refused (refusal)
    5  a limit of the agent's was reached (max_tokens, max_turn_requests)
    6  --timeout was reached
  130  cancelled: Ctrl-C cancels the turn, a second one ends everything at once";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Text,
    Json,
    Quiet,
}

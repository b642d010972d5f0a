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
    /// Prompt to send; `-` reads it from stdin. Piped input is appended to the prompt. If no input arrives
    /// within 3 seconds, the prompt is sent without it (use `< /dev/null` to avoid waiting).
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Read the prompt from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// Resume a session by its id, without printing its history; list sessions with `acp sessions`.
    #[arg(long, value_name = "SESSION ID")]
    pub(crate) resume: Option<String>,

    /// Resume the session with this name, or create it. Names are per agent and directory. Requires an agent
    /// that stores sessions.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,

    /// Start a new session under the name, even if one exists.
    #[arg(long, requires = "session")]
    pub(crate) new: bool,

    /// What the agent may do if none of your rules apply (see `acp permissions`): `ask` asks each time;
    /// `reads` allows reading and rejects the rest; `all` allows everything; `none` rejects everything,
    /// regardless of your rules. Default: `ask` on a terminal, otherwise `reads`. If given, `reads` and
    /// `none` also run the agent in a read-only sandbox, like --sandbox=read-only, or warn if sandboxing is
    /// not available; the default does not. Override with --sandbox.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    /// Attach a text, image or audio file to the prompt; can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// Append this text to the agent's system prompt. Requires agent support (systemPrompt). Some agents,
    /// including the bundled one, store it with the session, so it also applies when the session is resumed.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt")]
    pub(crate) append_system_prompt: Option<String>,

    /// Replace the agent's default system prompt with this text. Requires agent support
    /// (systemPrompt.mode.override). The agent may store it with the session.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system_prompt: Option<String>,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    /// Timeout in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Output format: `text`; `json` for the messages from the agent, one per line; or `quiet` for the
    /// agent's message text only.
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
    0  the agent finished (end_turn)
    1  the agent returned an error, or the output could not be written
    2  invalid command line, or not supported by the agent
    3  the agent could not be started, or broke the connection
    4  the agent refused (refusal)
    5  a limit was reached (max_tokens, max_turn_requests)
    6  --timeout was reached
  130  cancelled; Ctrl-C cancels the turn, a second Ctrl-C exits immediately";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Text,
    Json,
    Quiet,
}

//! What can be typed behind `acp run`.

use std::path::PathBuf;

use acp_host::Policy;
use clap::ValueEnum;

use super::SandboxArgs;
use crate::agents::WhichArgs;
use crate::names::SessionName;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp run [OPTIONS] PROMPT... [-- AGENT COMMAND...]",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct RunArgs {
    /// What to say to the agent; `-` reads it from stdin.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) which: WhichArgs,

    /// Read what to say from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    pub(crate) file: Option<PathBuf>,

    /// Where the agent works.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) cwd: PathBuf,

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
    /// everything, whatever your rules say. By default `ask` on a terminal and `reads` elsewhere.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    /// The mode to work in, by its id. By default, in a new session, what is configured of the agent.
    #[arg(long, value_name = "ID")]
    pub(crate) mode: Option<String>,

    /// Set a config option of the agent's; can be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,

    /// Give the agent a file with the prompt: text, image or sound; can be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// MCP servers for the agent, as a JSON file: a list of servers as the protocol writes them, or
    /// {"mcpServers": {NAME: {...}}} as editors do.
    #[arg(long, value_name = "JSON FILE")]
    pub(crate) mcp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Give up after this time.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// What to print: `text` for people; `json` for programs, the messages received from the agent,
    /// one a line; `quiet` the text of the agent's message alone.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the agent has finished (end_turn)
    1  the agent answered with an error
    2  wrong usage, or something the agent does not offer or take
    3  the agent could not be started, or broke the connection
    4  the agent refused (refusal)
    5  a limit of the agent's was reached (max_tokens, max_turn_requests)
    6  --timeout was reached
  130  cancelled: Ctrl-C cancels the turn, a second one ends everything at once";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Quiet,
}

pub(super) fn policy(name: &str) -> Result<Policy, acp_host::ParsePolicyError> {
    name.parse()
}

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

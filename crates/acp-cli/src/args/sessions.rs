//! What can be typed behind `acp sessions`.

use std::path::PathBuf;

use super::{ListFormat, ProtocolArg};
use crate::environment::EnvArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp sessions [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct SessionsArgs {
    /// The agent, with its arguments; without one, the bundled agent.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,

    /// Only sessions that work in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,

    /// What to print: `text` for people; `json` for programs, a session a line as the protocol writes it.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ListFormat,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  all sessions, or the first 10,000 of them, are listed
    1  the agent answered with an error
    2  wrong usage, or the agent does not list sessions
    3  the agent could not be started, or broke the connection
  130  cancelled by Ctrl-C";

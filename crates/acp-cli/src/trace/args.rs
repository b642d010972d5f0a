//! What can be typed behind `acp trace`.

use std::path::PathBuf;

use crate::environment::EnvArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp trace [OPTIONS] FILE -- AGENT COMMAND...",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// The file to record into, one JSON object a line. You alone can read it.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Write over FILE if it is there.
    #[arg(long)]
    pub(crate) force: bool,

    /// Record secrets, too. Otherwise values of environment variables and of HTTP headers, what stands under names
    /// such as `apiKey`, `token` or `password`, and what looks like a key are replaced in what is recorded.
    #[arg(long)]
    pub(crate) secrets: bool,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// The agent to run, with its arguments.
    #[arg(last = true, required = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the client has closed the connection
    1  FILE cannot be written
    2  wrong usage, or FILE is there already
    3  the agent could not be started, or has ended by itself
  130  ended by a signal, and the agent with it";

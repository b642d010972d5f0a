//! What can be typed behind `acp login` and `acp logout`.

use super::ProtocolArg;
use crate::environment::EnvArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp login [OPTIONS] -- AGENT COMMAND...",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct LoginArgs {
    /// The agent, with its arguments.
    #[arg(last = true, required = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,

    /// Which way to log in, by its id.
    #[arg(long, value_name = "ID")]
    pub(crate) method: Option<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp logout [OPTIONS] -- AGENT COMMAND...",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct LogoutArgs {
    /// The agent, with its arguments.
    #[arg(last = true, required = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  logged in, or out
    1  the agent answered with an error, or its program did not end with 0
    2  wrong usage, a way the agent does not offer, or no terminal where one is needed
    3  the agent could not be started, or broke the connection
  130  cancelled by Ctrl-C";

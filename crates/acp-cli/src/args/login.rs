//! What can be typed behind `acp login` and `acp logout`.

use super::agent_choice::AgentChoiceArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp login [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Auth method id.
    #[arg(long, value_name = "ID")]
    pub(crate) method: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp logout [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  logged in, or out
    1  the agent returned an error, or its program failed
    2  invalid command line, unknown auth method, or no terminal
    3  the agent could not be started, or closed the connection
  130  cancelled by Ctrl-C";

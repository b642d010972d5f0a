//! Arguments of `acp login` and `acp logout`.

use super::agent_choice::AgentChoiceArgs;

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp login [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = LOGIN_EXAMPLES
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Auth method to log in with.
    #[arg(long, value_name = "ID")]
    pub(crate) method: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp logout [OPTIONS] [-- AGENT COMMAND...]",
    after_long_help = LOGOUT_EXAMPLES
)]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,
}

/// Appends the exit codes, which both commands share, to a command's examples.
macro_rules! with_exit_codes {
    ($examples:literal) => {
        concat!(
            $examples,
            "

Exit codes:
    0  success
    1  the agent returned an error, or its login program failed
    2  invalid command line, unknown auth method, or no terminal
    3  the agent could not be started, exited, or closed the connection
  130  cancelled with Ctrl-C, or terminated by a signal"
        )
    };
}

const LOGIN_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp login --agent codex                            # list the auth methods
  acp login --agent codex --method chatgpt
  acp login -- my-agent --acp"
);

const LOGOUT_EXAMPLES: &str = with_exit_codes!(
    "\
Examples:
  acp logout --agent codex
  acp logout -- my-agent --acp"
);

//! Arguments of `acp inspect`.

use std::path::PathBuf;

use clap::ValueHint;

use super::agent_choice::AgentChoiceArgs;
use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(
    after_long_help = EXAMPLES,
    override_usage = "acp inspect [OPTIONS] [-- AGENT COMMAND...]"
)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Working directory of the session.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,

    /// Open no session.
    ///
    /// Modes, models, config options and commands belong to a session, so they are not shown.
    #[arg(long)]
    pub(crate) no_session: bool,

    /// Output format.
    ///
    /// JSON is one object.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,

    /// Seconds to wait for each response.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}

const EXAMPLES: &str = "\
Examples:
  acp inspect --agent goose
  acp inspect -- gemini --acp
  acp inspect --protocol 2 -- my-agent
  acp inspect --no-session --url ws://127.0.0.1:7180/acp
  acp inspect --format json -- my-agent | jq .session.commands

Exit codes:
    0  success, even if a session needs a login
    1  the agent could not open a session
    2  invalid command line or configuration
    3  the agent could not be started, exited, or did not respond
  130  cancelled with Ctrl-C, or terminated by a signal";

//! What can be typed behind `acp chat`.

use acp_config::{Background, SessionName};
use acp_host::Policy;

use super::agent_choice::AgentChoiceArgs;
use super::shared::{SessionArgs, policy};

#[derive(Debug, clap::Args)]
#[command(override_usage = "acp chat [OPTIONS] [PROMPT]... [-- AGENT COMMAND...]")]
pub(crate) struct ChatArgs {
    /// First prompt.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Resume a session by its id; list sessions with `acp sessions`.
    #[arg(long, value_name = "SESSION ID")]
    pub(crate) resume: Option<String>,

    /// Resume the session with this name, or create it; as in `acp run --session`.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,

    /// What the agent may do if none of your rules apply (see `acp permissions`): `ask` asks each time;
    /// `reads` allows reading and rejects the rest; `all` allows everything; `none` rejects everything,
    /// regardless of your rules. Default: `ask`. `reads` and `none` also run the agent in a read-only
    /// sandbox, like --sandbox=read-only, or warn if sandboxing is not available. Override with --sandbox.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    /// Colors for a dark or light terminal. Default: as configured, or as detected.
    #[arg(long, value_enum)]
    pub(crate) theme: Option<ThemeArg>,

    /// Scroll with the mouse wheel; hold Shift to select text.
    #[arg(long)]
    pub(crate) mouse: bool,
}

/// What the colours are to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ThemeArg {
    Dark,
    Light,
}

impl From<ThemeArg> for Background {
    fn from(theming: ThemeArg) -> Self {
        match theming {
            ThemeArg::Dark => Self::Dark,
            ThemeArg::Light => Self::Light,
        }
    }
}

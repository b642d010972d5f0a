//! What can be typed behind `acp chat`.

use acp_config::{Background, SessionName};
use acp_host::Policy;

use super::agent_choice::AgentChoiceArgs;
use super::shared::{SessionArgs, policy};

#[derive(Debug, clap::Args)]
#[command(override_usage = "acp chat [OPTIONS] [PROMPT]... [-- AGENT COMMAND...]")]
pub(crate) struct ChatArgs {
    /// What to say first.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Go on with an old session of the agent's, by its id; `acp sessions` lists them.
    #[arg(long, value_name = "SESSION ID")]
    pub(crate) resume: Option<String>,

    /// Go on with the session of this name here, or begin one: the same as in `acp run --session`.
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) session: Option<SessionName>,

    /// What the agent may do where no rule of yours says it (see `acp permissions`): `ask` asks you each
    /// time, `reads` allows what only looks and rejects the rest, `all` allows everything, `none` rejects
    /// everything, whatever your rules say. By default `ask`. `reads` and `none` also start the agent in a
    /// sandbox in which neither the project nor the rest of the disk can be written, as --sandbox=read-only
    /// does, or say that this is not possible here. --sandbox says otherwise.
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    pub(crate) allow: Option<Policy>,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    /// Colours for a dark or a light terminal. By default what is configured, or what the terminal says.
    #[arg(long, value_enum)]
    pub(crate) theme: Option<ThemeArg>,

    /// Scroll with the mouse's wheel. Text is then selected with Shift held down.
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

//! Arguments of `acp chat`.

use acp_config::SessionName;
use acp_config::themes::ThemeSetting;
use acp_host::Policy;

use super::agent_choice::AgentChoiceArgs;
use super::candidates;
use super::shared::{DirectoryArgs, ForkArgs, LocalServerArgs, SessionArgs, parse_policy};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp chat [OPTIONS] [PROMPT]... [-- AGENT COMMAND...]",
    after_long_help = EXAMPLES
)]
pub(crate) struct ChatArgs {
    /// First prompt.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) agent_choice: AgentChoiceArgs,

    /// Continue a session by its id.
    ///
    /// List sessions with `acp sessions`.
    #[arg(long, short, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// Continue the session with this name, or start it.
    ///
    /// Names are per agent and directory. The session is live: other commands with this name can join it, and it goes
    /// on when the chat is closed during a turn.
    #[arg(long, short, value_name = "NAME", conflicts_with = "resume", add = candidates::session_names())]
    pub(crate) session: Option<SessionName>,

    /// Continue the latest session of this directory.
    ///
    /// It is the session that changed last, or one whose turn is running. If it has a name, this is the same as
    /// --session with that name, otherwise as --resume with its id. The agent must support listing sessions. It is
    /// started once more to list them, unless it is running already.
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["session", "resume"])]
    pub(crate) continue_latest: bool,

    #[command(flatten)]
    pub(crate) fork: ForkArgs,

    #[command(flatten)]
    pub(crate) server: LocalServerArgs,

    /// What the agent may do: ask, reads, all or none.
    ///
    /// The policy applies where none of your rules does (see `acp permissions`). `ask` asks each time. `reads`
    /// allows reading and rejects the rest. `all` allows everything. `none` rejects everything, whatever your
    /// rules say. The default is the one in your permissions.toml, or else `ask`.
    ///
    /// `reads` and `none` also run the agent in a read-only sandbox, as --sandbox=read-only does, or warn if
    /// sandboxing is not available. --sandbox overrides this.
    #[arg(long, value_name = "POLICY", value_parser = parse_policy, add = candidates::policy_names())]
    pub(crate) allow: Option<Policy>,

    /// Use this model.
    ///
    /// The value is one that the agent offers. The agent must offer a choice of models.
    #[arg(long, short, value_name = "VALUE")]
    pub(crate) model: Option<String>,

    #[command(flatten)]
    pub(crate) session_args: SessionArgs,

    #[command(flatten)]
    pub(crate) directories: DirectoryArgs,

    /// Theme, or `auto` to choose one by the terminal's background.
    ///
    /// Your own themes are TOML files in the directory `themes` of your configuration directory. The default is the
    /// configured theme, or else `auto`.
    #[arg(long, value_name = "NAME", add = candidates::theme_names())]
    pub(crate) theme: Option<ThemeSetting>,

    #[command(flatten)]
    pub(crate) mouse: MouseArgs,
}

// Whether to use the mouse. No doc comment: clap would use it as the description of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct MouseArgs {
    /// Leave the mouse to the terminal.
    ///
    /// By default, the chat uses the mouse: the wheel scrolls, and a click expands an item or selects one in a list.
    /// To select text, hold Shift while you drag. With this option, Shift is not needed. The option `mouse = false`
    /// under `[chat]` in config.toml has the same effect.
    #[arg(long)]
    no_mouse: bool,

    /// Use the mouse, even if it is turned off in config.toml.
    #[arg(long, conflicts_with = "no_mouse")]
    mouse: bool,
}

impl MouseArgs {
    /// Returns whether to use the mouse, or `None` if no option says so.
    pub(crate) fn choice(&self) -> Option<bool> {
        match (self.mouse, self.no_mouse) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  acp chat                                           # the bundled agent
  acp chat --agent goose                             # another agent, by name
  acp chat \"Why does the build fail?\" -- gemini --acp
  acp chat --session build                           # start or continue a session
  acp chat --continue                                # continue the latest session";

//! The modes of a session. See "Session Modes" in the specification.

use std::fmt;
use std::str::FromStr;

use acp::v1::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOption,
};

/// The id of the config option that selects the mode.
pub(crate) const MODE_OPTION: &str = "mode";

/// A mode of a session, which determines what the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// The agent asks before every change and every command.
    #[default]
    Ask,
    /// The agent does not change or run anything. To do so, it must first ask the user to leave the mode.
    Architect,
    /// The agent changes the session's files without asking. It runs commands without asking if they are sandboxed or
    /// the user's rules allow them, and asks about everything else.
    Code,
}

impl Mode {
    /// All modes, in the order in which they are offered.
    pub const ALL: [Self; 3] = [Self::Ask, Self::Architect, Self::Code];

    /// Returns the id of the mode: `ask`, `architect` or `code`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Architect => "architect",
            Self::Code => "code",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ask => "Ask",
            Self::Architect => "Architect",
            Self::Code => "Code",
        }
    }

    /// Returns a description of the mode, as a sentence for the user.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::Ask => "Request permission before making any changes or running commands",
            Self::Architect => "Read and plan without changing files or running commands",
            Self::Code => {
                "Change files without asking, and run commands without asking if they are sandboxed or allowed by a rule"
            }
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = ParseModeError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        let mode = Self::ALL.into_iter().find(|mode| mode.as_str() == id);
        mode.ok_or_else(|| ParseModeError(id.to_owned()))
    }
}

/// The error for an unknown mode id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode `{0}`; expected ask, architect or code")]
pub struct ParseModeError(String);

/// Creates the config option of a session in this mode.
pub(crate) fn config_option(mode: Mode) -> SessionConfigOption {
    let values = Mode::ALL
        .into_iter()
        .map(|mode| {
            SessionConfigSelectOption::new(mode.as_str(), mode.name())
                .description(mode.description())
        })
        .collect();
    let select = SessionConfigSelect::new(mode.as_str(), values);
    SessionConfigOption::new(MODE_OPTION, "Mode", select)
        .description("What the agent may do without asking you")
        .category(SessionConfigOptionCategory::Mode)
}

//! What `acp inspect` has found out about an agent, in the form of the JSON output.

use acp::v1::{
    AuthMethod, AvailableCommand, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelectOptions,
};
use acp_config::AgentChoice;
use serde::Serialize;
use serde_json::Value;

use super::capabilities::CapabilityReport;

/// Everything about an agent.
#[derive(Debug, Serialize)]
pub(super) struct InspectReport {
    pub(super) agent: ProgramReport,
    pub(super) protocol: ProtocolReport,
    pub(super) capabilities: CapabilityReport,
    pub(super) logins: Vec<LoginReport>,
    /// `None` with `--no-session`.
    pub(super) session: Option<SessionReport>,
    /// The result of `initialize`, as received.
    pub(super) initialize: Value,
}

/// The agent's program.
#[derive(Debug, Serialize)]
pub(super) struct ProgramReport {
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) version: Option<String>,
    /// The command that starts the agent. Empty for a remote agent.
    pub(super) command: Vec<String>,
    pub(super) url: Option<String>,
}

/// The protocol versions.
#[derive(Debug, Serialize)]
pub(super) struct ProtocolReport {
    /// The version in which the agent was inspected.
    pub(super) inspected: u16,
    /// All versions that it accepts.
    pub(super) accepted: Vec<u16>,
}

/// An auth method.
#[derive(Debug, Serialize)]
pub(super) struct LoginReport {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// The type of the method: `agent`, `terminal`, or one that is not in the specification.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Whether the method needs a terminal.
    pub(super) needs_terminal: bool,
}

/// The session that was opened, or the reason why there is none.
#[derive(Debug, Default, Serialize)]
pub(super) struct SessionReport {
    pub(super) is_open: bool,
    pub(super) needs_login: bool,
    /// Why the session could not be opened.
    pub(super) error: Option<String>,
    pub(super) mode: Option<OptionReport>,
    pub(super) model: Option<OptionReport>,
    pub(super) options: Vec<OptionReport>,
    /// The slash commands, or `None` if the agent did not report them in time.
    pub(super) commands: Option<Vec<CommandReport>>,
}

/// A config option. Modes and models are config options, too.
#[derive(Debug, Serialize)]
pub(super) struct OptionReport {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) category: Option<String>,
    /// The type of the option: `select`, `boolean`, or one that is not in the specification.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// A string or a boolean. Null for an unknown type.
    pub(super) current: Value,
    pub(super) values: Vec<ValueReport>,
}

/// A value of a config option.
#[derive(Debug, Serialize)]
pub(super) struct ValueReport {
    pub(super) value: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// The name of the group that contains the value.
    pub(super) group: Option<String>,
}

/// A slash command.
#[derive(Debug, Serialize)]
pub(super) struct CommandReport {
    /// The name without the slash.
    pub(super) name: String,
    pub(super) description: String,
    /// The hint for the input that follows the name.
    pub(super) hint: Option<String>,
}

impl ProgramReport {
    pub(super) fn new(info: Option<&acp::v1::Implementation>, choice: &AgentChoice) -> Self {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let command = match choice.is_bundled() {
            true => vec!["acp".to_owned(), "agent".to_owned()],
            false => choice.command.clone(),
        };
        Self {
            name: info.and_then(|info| known(&info.name)),
            title: info.and_then(|info| info.title.clone()),
            version: info.and_then(|info| known(&info.version)),
            command,
            url: choice
                .remote
                .as_ref()
                .map(|remote| remote.url.as_str().to_owned()),
        }
    }
}

impl LoginReport {
    /// Returns `None` for a method of an unknown type that has no id or name.
    pub(super) fn new(method: &AuthMethod) -> Option<Self> {
        let (id, name) = method.id_and_name()?;
        let (kind, description) = match method {
            AuthMethod::Terminal(method) => ("terminal".to_owned(), method.description.clone()),
            AuthMethod::Agent(method) => ("agent".to_owned(), method.description.clone()),
            AuthMethod::Unknown(method) => (
                method.field("type").unwrap_or_default(),
                method.field("description"),
            ),
            _ => (String::new(), None),
        };
        Some(Self {
            id: id.to_string(),
            name,
            description,
            needs_terminal: kind == "terminal",
            kind,
        })
    }
}

impl SessionReport {
    /// Creates the report of a session that could not be opened.
    pub(super) fn failed(error: String, needs_login: bool) -> Self {
        Self {
            needs_login,
            error: Some(error),
            ..Self::default()
        }
    }

    /// Creates the report of an open session.
    pub(super) fn open(
        options: &[SessionConfigOption],
        commands: Option<&[AvailableCommand]>,
    ) -> Self {
        let mut report = Self {
            is_open: true,
            commands: commands.map(|commands| commands.iter().map(CommandReport::new).collect()),
            ..Self::default()
        };
        for option in options {
            let (mode, model) = (&mut report.mode, &mut report.model);
            let slot = match option.category {
                Some(SessionConfigOptionCategory::Mode) if mode.is_none() => mode,
                Some(SessionConfigOptionCategory::Model) if model.is_none() => model,
                _ => {
                    report.options.push(OptionReport::new(option));
                    continue;
                }
            };
            *slot = Some(OptionReport::new(option));
        }
        report
    }
}

impl OptionReport {
    fn new(option: &SessionConfigOption) -> Self {
        let (kind, current, values) = match &option.kind {
            SessionConfigKind::Select(select) => (
                "select".to_owned(),
                Value::from(select.current_value.as_str()),
                ValueReport::all(&select.options),
            ),
            SessionConfigKind::Boolean { current_value } => (
                "boolean".to_owned(),
                Value::from(*current_value),
                Vec::new(),
            ),
            SessionConfigKind::Unknown(object) => (
                object.field("type").unwrap_or_default(),
                Value::Null,
                Vec::new(),
            ),
            _ => (String::new(), Value::Null, Vec::new()),
        };
        Self {
            id: option.id.to_string(),
            name: option.name.clone(),
            description: option.description.clone(),
            category: option.category.as_ref().map(ToString::to_string),
            kind,
            current,
            values,
        }
    }
}

impl ValueReport {
    fn all(options: &SessionConfigSelectOptions) -> Vec<Self> {
        let report = |option: &acp::v1::SessionConfigSelectOption, group: Option<&String>| Self {
            value: option.value.to_string(),
            name: option.name.clone(),
            description: option.description.clone(),
            group: group.cloned(),
        };
        match options {
            SessionConfigSelectOptions::Ungrouped(options) => {
                options.iter().map(|option| report(option, None)).collect()
            }
            SessionConfigSelectOptions::Grouped(groups) => {
                let values = groups.iter().flat_map(|group| {
                    let options = group.options.iter();
                    options.map(|option| report(option, Some(&group.name)))
                });
                values.collect()
            }
            _ => Vec::new(),
        }
    }
}

impl CommandReport {
    fn new(command: &AvailableCommand) -> Self {
        Self {
            name: command.name.clone(),
            description: command.description.clone(),
            hint: command.input.as_ref().map(|input| input.hint.clone()),
        }
    }
}

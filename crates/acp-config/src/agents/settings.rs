//! `[agents.NAME]`: the settings of an agent.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::path_mapping::PathMapping;
use super::remote_url::{PIN_REQUIRES_TLS, RemoteUrl, TokenHeader, parse_pin};
use crate::mcp_servers::McpServerSettings;

/// The maximum length of an agent's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The settings of an agent: its command, environment, mode and options.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentSettings {
    /// The agent's program and arguments. Optional for well-known agents.
    #[serde(default, deserialize_with = "deserialize_command")]
    pub command: Option<Vec<String>>,
    /// The URL of a remote agent, instead of a command.
    pub url: Option<String>,
    /// The name of the environment variable that contains the token for the URL.
    pub token_env: Option<String>,
    /// The file that contains the token for the URL.
    pub token_file: Option<PathBuf>,
    /// How the token is sent.
    pub token_header: Option<TokenHeader>,
    /// The fingerprint of the only certificate to trust.
    pub pin: Option<String>,
    /// Local directories and their paths on the remote agent's machine.
    #[serde(default)]
    pub(crate) paths: BTreeMap<String, String>,
    /// The environment variables to set for the agent.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The names of environment variables to pass on to the agent.
    #[serde(default)]
    pub pass: Vec<String>,
    /// The mode in which the agent's sessions start.
    pub mode: Option<String>,
    /// The config options to set when a session starts, by id.
    #[serde(default)]
    options: BTreeMap<String, OptionValue>,
    /// The latest protocol version to use.
    #[serde(default, deserialize_with = "deserialize_version")]
    pub protocol: Option<u16>,
    /// The MCP servers for the agent's sessions.
    #[serde(default)]
    pub mcp_servers: Vec<McpServerSettings>,
}

/// Omits the URL and the values of environment variables, which may contain secrets.
impl fmt::Debug for AgentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSettings")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl AgentSettings {
    /// Returns the config options as pairs of id and value, in the form used on the command line.
    pub fn options(&self) -> impl Iterator<Item = (String, String)> {
        let typed = |(key, value): (&String, &OptionValue)| (key.clone(), value.to_string());
        self.options.iter().map(typed)
    }

    /// Returns the URL of a remote agent, or `None` if the agent has a command. A relative path is resolved against
    /// `base`.
    ///
    /// # Errors
    /// The URL or the fingerprint is invalid, or there are settings that do not fit together.
    pub(crate) fn remote_url(&self, base: Option<&Path>) -> Result<Option<RemoteUrl>, String> {
        let Some(url) = &self.url else {
            let only_for_url = [
                ("token_env", self.token_env.is_some()),
                ("token_file", self.token_file.is_some()),
                ("token_header", self.token_header.is_some()),
                ("pin", self.pin.is_some()),
                ("paths", !self.paths.is_empty()),
            ];
            return match only_for_url.iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => Err(format!("`{key}` requires `url`")),
                None => Ok(None),
            };
        };
        if self.command.is_some() {
            return Err("`command` and `url` are mutually exclusive".to_owned());
        }
        if !self.env.is_empty() || !self.pass.is_empty() {
            return Err(
                "`env` and `pass` do not apply to a remote agent; set variables on its server"
                    .to_owned(),
            );
        }
        let url = RemoteUrl::parse(url, base).map_err(|e| format!("url: {e}"))?;
        let tokens = [
            self.token_env.is_some(),
            self.token_file.is_some(),
            url.token.is_some(),
        ];
        if tokens.iter().filter(|is_set| **is_set).count() > 1 {
            return Err(
                "`token_env`, `token_file` and a token in `url` are mutually exclusive".to_owned(),
            );
        }
        if tokens.contains(&true) && !url.takes_token() {
            return Err(format!("no token can be sent to {}", url.key()));
        }
        if let Some(pin) = &self.pin {
            let pin = parse_pin(pin).map_err(|e| format!("pin: {e}"))?;
            if !url.has_tls() {
                return Err(format!("pin: {PIN_REQUIRES_TLS}"));
            }
            if url.pin.as_ref().is_some_and(|other| *other != pin) {
                return Err("pin: the URL has a different fingerprint".to_owned());
            }
        }
        self.path_mappings().map_err(|e| format!("paths: {e}"))?;
        Ok(Some(url))
    }

    /// Returns the directories whose paths differ on a remote agent's machine.
    ///
    /// # Errors
    /// A path is relative.
    pub(crate) fn path_mappings(&self) -> Result<Vec<PathMapping>, String> {
        let mapping = |(local, remote): (&String, &String)| {
            PathMapping::new(&home_path(Path::new(local))?, remote)
        };
        self.paths.iter().map(mapping).collect()
    }
}

/// Resolves a path in the user's configuration so that it refers to the same file from any directory.
///
/// # Errors
/// The path is relative, or there is no home directory.
pub(super) fn home_path(written: &Path) -> Result<PathBuf, String> {
    if let Ok(rest) = written.strip_prefix("~") {
        let home = std::env::home_dir().ok_or("no home directory")?;
        return Ok(home.join(rest));
    }
    match written.is_absolute() {
        true => Ok(written.to_owned()),
        false => Err(format!(
            "{}: use an absolute path, or one that starts with ~/",
            written.display()
        )),
    }
}

/// The value of a config option: a string, an integer or a boolean.
#[derive(Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "option values must be strings, integers or booleans"
)]
enum OptionValue {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A command, given as a single string or as a list.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "command must be a string, or a list of the program and its arguments"
)]
enum CommandSetting {
    Line(String),
    Words(Vec<String>),
}

fn deserialize_command<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    use serde::de::Error;
    let words = match CommandSetting::deserialize(deserializer)? {
        CommandSetting::Line(line) => {
            acp_host::split_command_line(&line).map_err(D::Error::custom)?
        }
        CommandSetting::Words(words) => words,
    };
    match words.first() {
        Some(program) if !program.is_empty() => Ok(Some(words)),
        _ => Err(D::Error::custom("the command is empty")),
    }
}

fn deserialize_version<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u16>, D::Error> {
    use serde::de::Error;
    match u16::deserialize(deserializer)? {
        version @ (1 | 2) => Ok(Some(version)),
        other => Err(D::Error::custom(format!(
            "unsupported protocol version {other}"
        ))),
    }
}

/// Checks that an agent name is valid: a single word that is easy to type and safe to print.
///
/// # Errors
/// Fails if the name is invalid. The error says which characters are allowed.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if begins && name.chars().all(plain) && name.len() <= MAX_NAME_CHARS {
        return Ok(());
    }
    Err(format!(
        "invalid agent name {name:?}: use at most {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`"
    ))
}

/// Resolves a program's path so that it can be started from any directory.
///
/// A name is looked up in `PATH`. A path that starts with `~/` is resolved against the user's home directory, and any
/// other relative path against `base`, if given.
///
/// # Errors
/// Fails if the path is relative and there is no `base`, or if the home directory is unknown.
pub(crate) fn resolve_program(written: &str, base: Option<&Path>) -> Result<String, String> {
    if let Some(rest) = written.strip_prefix("~/") {
        let home = std::env::home_dir().ok_or("no home directory")?;
        return Ok(home.join(rest).to_string_lossy().into_owned());
    }
    let path = Path::new(written);
    let is_name = path.components().count() == 1 && !path.has_root() && !written.starts_with('.');
    match base {
        _ if is_name || path.is_absolute() => Ok(written.to_owned()),
        Some(base) => {
            // Remove a leading `.`.
            let file: PathBuf = base.join(path).components().collect();
            Ok(file.to_string_lossy().into_owned())
        }
        None => Err(format!(
            "command {written:?} is a relative path; use an absolute path, or the name of a program in PATH"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_settings(text: &str) -> Result<AgentSettings, String> {
        toml::from_str(text).map_err(|e: toml::de::Error| e.message().to_owned())
    }

    #[test]
    fn command_is_a_line_or_a_list() {
        let words = |text: &str| parse_settings(text).unwrap().command.unwrap();
        assert_eq!(
            words("command = \"npx -y 'my agent' --acp\""),
            ["npx", "-y", "my agent", "--acp"]
        );
        assert_eq!(
            words("command = ['my agent', '--key', '']"),
            ["my agent", "--key", ""]
        );
        assert!(parse_settings("mode = 'plan'").unwrap().command.is_none());
    }

    #[test]
    fn options_are_converted_to_strings() {
        let settings =
            parse_settings("[options]\nmodel = 'small'\nfast = true\nturns = 3").unwrap();
        let options: Vec<(String, String)> = settings.options().collect();
        let expected = [("fast", "true"), ("model", "small"), ("turns", "3")];
        assert_eq!(
            options,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn invalid_settings_are_explained() {
        for (text, said) in [
            ("commnad = 'x'", "unknown field"),
            ("command = ''", "empty"),
            ("command = []", "empty"),
            ("command = ['']", "empty"),
            ("command = \"'open\"", "unclosed quote"),
            ("command = 3", "a string, or a list"),
            ("protocol = 3", "unsupported protocol version 3"),
            ("options = { a = [] }", "strings, integers or booleans"),
        ] {
            let error = parse_settings(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn agent_name_needs_no_quoting() {
        for name in ["claude", "my-agent_2.1", "2"] {
            check_name(name).unwrap();
        }
        for name in ["", "-x", ".x", "a b", "a\u{202e}b", "a/b", &"x".repeat(65)] {
            check_name(name).unwrap_err();
        }
    }

    #[cfg(unix)]
    #[test]
    fn relative_program_is_resolved_against_the_config() {
        let here = Some(Path::new("/project"));
        for base in [None, here] {
            assert_eq!(resolve_program("goose", base).unwrap(), "goose");
            assert_eq!(resolve_program("/bin/agent", base).unwrap(), "/bin/agent");
            assert!(
                resolve_program("~/bin/agent", base)
                    .unwrap()
                    .ends_with("/bin/agent")
            );
        }
        for written in ["./agent", "tools/agent"] {
            assert!(
                resolve_program(written, None)
                    .unwrap_err()
                    .contains("absolute path")
            );
            let found = resolve_program(written, here).unwrap();
            assert_eq!(
                found,
                format!("/project/{}", written.trim_start_matches("./"))
            );
        }
    }
}

//! Determines which environment variables an agent gets: those that every program needs, those in the user's
//! configuration, and those requested on the command line.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::str::FromStr;

use acp_host::{Environment, process_secrets};
use serde::Deserialize;

use crate::agents::settings::AgentSettings;
use crate::error::ConfigError;

/// `[environment]` in `config.toml`: the environment variables for all agents.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct EnvironmentSettings {
    /// The names of the variables to pass on. A trailing `*` matches any suffix.
    #[serde(default)]
    pub pass: Vec<String>,
}

/// A variable requested on the command line, as `NAME` or `NAME=VALUE`.
///
/// The variable is validated when an agent's environment is created. Errors do not show its value.
#[derive(Clone)]
pub struct EnvRequest(String);

impl fmt::Debug for EnvRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split_once('=').map_or(&*self.0, |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for EnvRequest {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// The environment variables to set for an agent.
#[derive(Debug, Clone, Default)]
pub struct AgentEnvironment {
    environment: Environment,
    /// Command-line arguments that set up the same environment for another run. They never contain the values of
    /// variables.
    args: Vec<String>,
    /// The requests of the command line, with the values that they stand for.
    requests: Vec<(EnvRequest, OsString)>,
}

impl AgentEnvironment {
    /// Creates the environment from the configuration and the command line.
    ///
    /// # Errors
    /// Fails if a name is invalid or a variable requested without a value is not set.
    pub fn from_config(
        everyone: &EnvironmentSettings,
        requests: &[EnvRequest],
    ) -> Result<Self, ConfigError> {
        Self::add_requests(configured_environment(everyone)?, requests)
    }

    /// Creates the environment for an agent with its own settings. `wrong` creates an error about these settings.
    pub(crate) fn for_agent(
        everyone: &EnvironmentSettings,
        settings: &AgentSettings,
        requests: &[EnvRequest],
        wrong: impl Fn(String) -> ConfigError,
    ) -> Result<Self, ConfigError> {
        let mut environment = configured_environment(everyone)?;
        for name in &settings.pass {
            environment = environment
                .pass_variable(name)
                .map_err(|e| wrong(format!("pass: {e}")))?;
        }
        for (name, value) in &settings.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(wrong(format!(
                    "env: invalid environment variable name {name:?}"
                )));
            }
            environment = environment.set(name, value);
        }
        Self::add_requests(environment, requests)
    }

    /// Creates an environment with all of this process's variables, plus those given on the command line.
    ///
    /// # Errors
    /// Fails if a name is invalid or a variable requested without a value is not set.
    pub fn inherit_all(requests: &[EnvRequest]) -> Result<Self, ConfigError> {
        Self::add_requests(Environment::inherit(), requests)
    }

    fn add_requests(
        mut environment: Environment,
        requests: &[EnvRequest],
    ) -> Result<Self, ConfigError> {
        let mut typed = Vec::new();
        let mut requested = Vec::new();
        for EnvRequest(request) in requests {
            let (name, value) = match request.split_once('=') {
                Some((name, value)) => (name, Some(value.into())),
                None => (request.as_str(), process_secrets::variable(request)),
            };
            if name.is_empty() || name.contains('\0') {
                return Err(ConfigError::usage("--env: expected NAME or NAME=VALUE"));
            }
            let Some(value) = value else {
                let message = format!("--env {name}: variable not set; use --env {name}=VALUE");
                return Err(ConfigError::usage(message));
            };
            requested.push((EnvRequest(request.clone()), value.clone()));
            environment = environment.set(name, value);
            typed.push(match request == name {
                true => format!("--env {name}"),
                // Omit the value, because the arguments are shown to the user.
                false => format!("--env {name}=..."),
            });
        }
        Ok(Self {
            environment,
            args: typed,
            requests: requested,
        })
    }

    /// Returns the environment to start the agent with.
    #[must_use]
    pub fn environment(&self) -> Environment {
        self.environment.clone()
    }

    /// Returns command-line arguments that set up the same environment for another run. They never contain the values
    /// of variables.
    #[must_use]
    pub fn to_args(&self) -> &[String] {
        &self.args
    }

    /// Returns the variables requested on the command line, as `NAME` or `NAME=VALUE`, with their values.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        let requests = self.requests.iter();
        requests.map(|(request, value)| (request.0.as_str(), value.as_os_str()))
    }

    /// Returns advice for an authentication failure, if an API key is set in this process but was not passed to the
    /// agent.
    ///
    /// The hint is about the variables in the agent's message. If there are none, it is about variables that look like
    /// a key for this agent.
    #[must_use]
    pub fn missing_key_hint(&self, agent: &[String], said: &str) -> Option<String> {
        let is_missing = |name: &str| {
            process_secrets::variable(name).is_some() && !self.environment.includes(name)
        };
        let words = said.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut names: BTreeSet<String> = words
            .filter(|word| word.contains('_') && *word == word.to_ascii_uppercase())
            .filter(|word| is_missing(word))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            let agent = agent.join(" ").to_ascii_lowercase();
            let ours = process_secrets::variables().filter_map(|(name, _)| name.into_string().ok());
            names = ours
                .filter(|name| looks_like_key(name, &agent) && is_missing(name))
                .collect();
        }
        if names.is_empty() {
            return None;
        }
        let flags: Vec<String> = names.iter().map(|name| format!("--env {name}")).collect();
        let names: Vec<String> = names.into_iter().collect();
        let (is, does) = match names.len() {
            1 => ("is", "to pass it"),
            _ => ("are", "to pass them"),
        };
        Some(format!(
            "{} {is} set, but not passed to the agent; add {} {does}",
            names.join(", "),
            flags.join(" ")
        ))
    }
}

/// Returns the environment that the user's configuration passes on to every agent.
fn configured_environment(everyone: &EnvironmentSettings) -> Result<Environment, ConfigError> {
    let mut environment = Environment::new();
    for name in &everyone.pass {
        environment = environment
            .pass_variable(name)
            .map_err(|e| ConfigError::usage(format!("config.toml, environment.pass: {e}")))?;
    }
    Ok(environment)
}

/// Returns `true` if a variable's name looks like that of an API key for the agent.
fn looks_like_key(name: &str, agent: &str) -> bool {
    let is_key = ["_API_KEY", "_TOKEN", "_KEY"]
        .iter()
        .any(|end| name.ends_with(end));
    let of = name
        .split('_')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    is_key && of.len() > 2 && agent.contains(&of)
}

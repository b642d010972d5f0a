//! The environment of agents: what the platform needs, what the user's configuration passes on, and what
//! was asked for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use acp_host::{Environment, own_process};

use crate::agents::settings::Settings;
use crate::config;
use crate::exit::Exit;

// `--env`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct EnvArgs {
    /// Give the agent an environment variable, with its value here or with another; can be given several
    /// times. Keys are not passed on otherwise. Others on this machine can see the command line: a secret is
    /// better set before.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<Asked>,
}

/// A variable that was asked for. What is wrong with it is said later, without its value.
#[derive(Clone)]
struct Asked(String);

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.split_once('=').map_or(&*self.0, |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Asked {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// What an agent is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForAgent {
    environment: Environment,
    /// What is to be typed to give another run the same.
    typed: Vec<String>,
}

impl ForAgent {
    /// What the configuration and the command line say.
    pub(crate) fn of(args: &EnvArgs) -> Result<Self, Exit> {
        Self::with(configured(&config::read()?.environment)?, args)
    }

    /// The same for an agent with settings of its own; `wrong` says what is wrong with them.
    pub(crate) fn of_agent(
        everyone: &config::Environment,
        settings: &Settings,
        args: &EnvArgs,
        wrong: impl Fn(String) -> Exit,
    ) -> Result<Self, Exit> {
        let mut environment = configured(everyone)?;
        for name in &settings.pass {
            environment = environment
                .pass(name)
                .map_err(|e| wrong(format!("pass: {e}")))?;
        }
        for (name, value) in &settings.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(wrong(format!("env: {name:?} is no environment variable")));
            }
            environment = environment.set(name, value);
        }
        Self::with(environment, args)
    }

    /// All that there is here, and what the command line adds.
    pub(crate) fn all(args: &EnvArgs) -> Result<Self, Exit> {
        Self::with(Environment::inherit(), args)
    }

    fn with(mut environment: Environment, args: &EnvArgs) -> Result<Self, Exit> {
        let mut typed = Vec::new();
        for Asked(asked) in &args.env {
            let (name, value) = match asked.split_once('=') {
                Some((name, value)) => (name, Some(value.into())),
                None => (asked.as_str(), own_process::variable(asked)),
            };
            if name.is_empty() || name.contains('\0') {
                return Err(Exit::usage("--env: expected NAME or NAME=VALUE"));
            }
            let Some(value) = value else {
                let message = format!("--env {name}: it is not set here; give --env {name}=VALUE");
                return Err(Exit::usage(message));
            };
            environment = environment.set(name, value);
            typed.push(match asked == name {
                true => format!("--env {name}"),
                // Not the value: this is shown.
                false => format!("--env {name}=..."),
            });
        }
        Ok(Self { environment, typed })
    }

    pub(crate) fn environment(&self) -> Environment {
        self.environment.clone()
    }

    pub(crate) fn typed(&self) -> &[String] {
        &self.typed
    }

    /// What to do about a login if a variable with the key is set here and was not passed on: one that is
    /// named in what the agent says, or, if none is, one that looks like a key of this agent's.
    pub(crate) fn hint(&self, agent: &[String], said: &str) -> Option<String> {
        let is_missing =
            |name: &str| own_process::variable(name).is_some() && !self.environment.gives(name);
        let words = said.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let mut names: BTreeSet<String> = words
            .filter(|word| word.contains('_') && *word == word.to_ascii_uppercase())
            .filter(|word| is_missing(word))
            .map(str::to_owned)
            .collect();
        if names.is_empty() {
            let agent = agent.join(" ").to_ascii_lowercase();
            let ours = own_process::variables().filter_map(|(name, _)| name.into_string().ok());
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
            1 => ("is", "passes it on"),
            _ => ("are", "passes them on"),
        };
        Some(format!(
            "{} {is} set here and not passed on to the agent; {} {does}",
            names.join(", "),
            flags.join(" ")
        ))
    }
}

/// What the user passes on to all agents.
fn configured(everyone: &config::Environment) -> Result<Environment, Exit> {
    let mut environment = Environment::new();
    for name in &everyone.pass {
        environment = environment
            .pass(name)
            .map_err(|e| Exit::usage(format!("config.toml, environment.pass: {e}")))?;
    }
    Ok(environment)
}

/// Whether a variable is named as a key of the agent with this command.
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

//! `--agent NAME` and `-- AGENT COMMAND...`: which agent is meant, and what it is given.

use std::path::Path;

use acp::v1::McpServer;
use sha2::{Digest, Sha256};

use super::known::{BUNDLED, KNOWN, known, known_by_command, runner_of};
use super::own::{self, Own};
use super::project::ProjectAgents;
use super::settings::{self, Settings, check_name};
use crate::args::ProtocolArg;
use crate::config::{self, Config};
use crate::environment::{EnvArgs, ForAgent};
use crate::exit::Exit;
use crate::{ask, mcp_servers, places};

// Which agent; not documented, or it would be the text of whatever it is put into.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WhichArgs {
    /// The agent, by its name; `acp agents` lists those there are. Without it, and without AGENT COMMAND, it is the
    /// one that is configured as `default_agent`, or else the bundled agent.
    #[arg(long, value_name = "NAME", conflicts_with = "agent_command")]
    pub(crate) agent: Option<String>,

    /// The command of an agent that has no name here, with its arguments.
    #[arg(last = true, value_name = "AGENT COMMAND")]
    pub(crate) agent_command: Vec<String>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// The latest version of the protocol to speak; what the other side speaks decides. Version 2 is a
    /// draft. By default what is configured of the agent, or else 1.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: Option<u16>,
}

/// An agent that was chosen.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// What it is called, if it was chosen by a name.
    pub(crate) name: Option<String>,
    /// Its program and arguments; nothing for the bundled agent.
    pub(crate) command: Vec<String>,
    pub(crate) protocol: ProtocolArg,
    /// The version has to be typed to have it again.
    pub(crate) protocol_typed: bool,
    pub(crate) given: ForAgent,
    /// The mode in which its sessions begin.
    pub(crate) mode: Option<String>,
    /// The options that are set when a session begins.
    pub(crate) options: Vec<(String, String)>,
    /// MCP servers for its sessions.
    pub(crate) mcp_servers: Vec<McpServer>,
    /// How it is installed, if that is known.
    pub(crate) install: Option<&'static str>,
    /// What the person is to be told of the choice.
    pub(crate) note: Option<String>,
}

impl WhichArgs {
    /// The agent of this name.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            agent: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// Whether the command line says which.
    pub(crate) fn says(&self) -> bool {
        self.agent.is_some() || !self.agent_command.is_empty()
    }

    /// The agent that is meant, for someone who works in `cwd`.
    ///
    /// If it is one of a project that the person has not yet said yes to, they are asked.
    ///
    /// # Errors
    /// There is none of that name; what is configured is not understood; the project's is not allowed.
    pub(crate) fn choose(&self, cwd: &Path) -> Result<Chosen, Exit> {
        let mut config = config::read()?;
        if !self.agent_command.is_empty() {
            let mut chosen = self.with(&config, Settings::default(), Exit::usage)?;
            chosen.command.clone_from(&self.agent_command);
            return Ok(chosen);
        }
        if let Some(name) = &self.agent {
            return self.by_name(&mut config, name, cwd);
        }
        let (name, note) = default_agent(&mut config, cwd)?;
        let mut chosen = match &name {
            Some(name) => self.by_name(&mut config, name, cwd)?,
            None => {
                let bundled = self.by_name(&mut config, BUNDLED, cwd)?;
                // Nothing has to be typed to have it again.
                Chosen {
                    name: None,
                    ..bundled
                }
            }
        };
        chosen.note = note;
        Ok(chosen)
    }

    fn by_name(&self, config: &mut Config, name: &str, cwd: &Path) -> Result<Chosen, Exit> {
        let known = known(name);
        let canonical = known.map_or(name, |known| known.name);
        let users = match config.agents.contains_key(name) {
            true => name,
            false => canonical,
        };
        if let Some(settings) = config.agents.remove(users) {
            return self.users(config, users, settings);
        }
        if let Some(known) = known {
            let mut chosen = self.with(config, Settings::default(), Exit::usage)?;
            chosen.name = Some(known.name.to_owned());
            chosen.command = owned(known.command);
            chosen.install = Some(known.install);
            return Ok(chosen);
        }
        let project = ProjectAgents::of(cwd)?;
        if let Some(mut project) = project {
            if project.agents.contains_key(name) {
                allow(&project)?;
            }
            if let Some(mut settings) = project.agents.remove(name) {
                let command = settings.command.take().unwrap_or_default();
                let wrong = |what: String| {
                    Exit::usage(format!(
                        "{}: [agents.{name}]: {what}",
                        project.file.display()
                    ))
                };
                let mut chosen = self.with(config, settings, wrong)?;
                chosen.name = Some(name.to_owned());
                chosen.command = command;
                return Ok(chosen);
            }
            return Err(unknown(name, config, Some(&project)));
        }
        Err(unknown(name, config, None))
    }

    /// An agent of the user's own.
    fn users(&self, config: &Config, name: &str, mut settings: Settings) -> Result<Chosen, Exit> {
        let known = known(name);
        let wrong = |what: String| {
            let file = config::file().map(|file| places::short(&file));
            let file = file.unwrap_or_else(|| config::FILE.to_owned());
            Exit::usage(format!("{file}: [agents.{name}]: {what}"))
        };
        check_name(name).map_err(wrong)?;
        let command = match (settings.command.take(), known) {
            (Some(_), Some(known)) if known.name == BUNDLED => {
                let what = format!("`{BUNDLED}` is the bundled agent, which has no `command`");
                return Err(wrong(what));
            }
            (Some(mut command), _) => {
                if let Some(program) = command.first_mut() {
                    *program = settings::program(program, None).map_err(wrong)?;
                }
                command
            }
            (None, Some(known)) => owned(known.command),
            (None, None) => {
                let what = "it needs a `command`: no agent of that name is known";
                return Err(wrong(what.to_owned()));
            }
        };
        let mut chosen = self.with(config, settings, wrong)?;
        chosen.install = known
            .filter(|known| command == known.command)
            .map(|known| known.install);
        chosen.name = Some(name.to_owned());
        chosen.command = command;
        Ok(chosen)
    }

    /// An agent with these settings, and what the command line adds; still without name and command.
    fn with(
        &self,
        config: &Config,
        settings: Settings,
        wrong: impl Fn(String) -> Exit,
    ) -> Result<Chosen, Exit> {
        let given = ForAgent::of_agent(&config.environment, &settings, &self.env, &wrong)?;
        let protocol = self.protocol.or(settings.protocol).unwrap_or(1);
        Ok(Chosen {
            name: None,
            command: Vec::new(),
            protocol: ProtocolArg { protocol },
            protocol_typed: self.protocol.is_some_and(|typed| {
                // One is what is spoken if nothing is said.
                typed != settings.protocol.unwrap_or(1)
            }),
            given,
            options: settings.options().collect(),
            mode: settings.mode,
            mcp_servers: mcp_servers::definitions(settings.mcp_servers).map_err(wrong)?,
            install: None,
            note: None,
        })
    }
}

impl Chosen {
    /// Whether it is the bundled agent.
    pub(crate) fn is_bundled(&self) -> bool {
        self.command.is_empty()
    }

    /// What it must be able to write of its own, if that is known. Directories that are not there are made.
    pub(crate) fn own(&self, cwd: &Path) -> Own {
        let named = self.name.as_deref().and_then(known);
        let known = match self.command.is_empty() {
            true => known(BUNDLED),
            false => known_by_command(&self.command).or(named),
        };
        let places = known.map(|known| known.keeps).unwrap_or_default();
        let places = places.iter().chain(runner_of(&self.command));
        own::prepare(places, &self.given.environment(), cwd)
    }

    /// What it is remembered by. Of a command only its program can be read: the rest may have a key in it.
    pub(crate) fn key(&self) -> String {
        match (&self.name, self.command.split_first()) {
            (Some(name), _) => name.clone(),
            (None, None) => BUNDLED.to_owned(),
            (None, Some((program, _))) => {
                let mut digest = Sha256::new();
                for word in &self.command {
                    digest.update(word.len().to_le_bytes());
                    digest.update(word);
                }
                let digest = digest.finalize();
                let digest = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
                format!("{program} {}", digest.collect::<String>())
            }
        }
    }

    /// What it is called in a sentence.
    pub(crate) fn title(&self) -> String {
        match (&self.name, self.command.first()) {
            (Some(name), _) => format!("the agent {name}"),
            (None, None) => "the bundled agent".to_owned(),
            (None, Some(program)) => format!("the agent `{program}`"),
        }
    }

    /// What is to be added to a message that its program was not found.
    pub(crate) fn how_to_install(&self) -> String {
        match self.install {
            Some(install) if !install.is_empty() => format!("\nto install it: {install}"),
            _ => String::new(),
        }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The agent that is configured as the default, if any is; with what is to be said of it. The project's, if the person
/// has said yes to it, goes before the user's own.
fn default_agent(
    config: &mut Config,
    cwd: &Path,
) -> Result<(Option<String>, Option<String>), Exit> {
    let users = config.default_agent.take();
    let not_used = |why: String| Some(format!("the project's default agent is not used: {why}"));
    let project = match ProjectAgents::of(cwd) {
        Ok(Some(project)) if project.default_agent.is_some() => project,
        Ok(_) => return Ok((users, None)),
        // What is not understood was never said yes to.
        Err(exit) => return Ok((users, not_used(exit.message.unwrap_or_default()))),
    };
    if project.is_allowed()? {
        return Ok((project.default_agent, None));
    }
    let why = format!(
        "{} has not been allowed; `acp agents allow` shows what it says",
        project.shown_file()
    );
    Ok((users, not_used(why)))
}

/// Asks whether a project's agents may be used, if that was not said yet.
fn allow(project: &ProjectAgents) -> Result<(), Exit> {
    if project.is_allowed()? {
        return Ok(());
    }
    let file = project.shown_file();
    if ask::possible() {
        if ask::says_yes(&project.question()) {
            return project.allow();
        }
        return Err(Exit::usage("the project's agents are not allowed"));
    }
    Err(Exit::usage(format!(
        "this agent is the project's, which says in {file} what is to be run; that has not been allowed. To look at it and allow it, type: acp agents allow{}",
        elsewhere(&project.directory)
    )))
}

/// `--cwd DIR`, for a project that is not where this is typed.
fn elsewhere(directory: &Path) -> String {
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    match here {
        Ok(here) if here.starts_with(directory) => String::new(),
        _ => format!(
            " --cwd {}",
            crate::start::quoted(&directory.to_string_lossy())
        ),
    }
}

/// There is no such agent; which one may be meant.
fn unknown(name: &str, config: &Config, project: Option<&ProjectAgents>) -> Exit {
    let aliases = KNOWN.iter().flat_map(|known| known.aliases.iter().copied());
    let names = KNOWN.iter().map(|known| known.name).chain(aliases);
    let names = names.chain(config.agents.keys().map(String::as_str));
    let projects = project
        .into_iter()
        .flat_map(|project| project.agents.keys());
    let nearest = nearest(name, names.chain(projects.map(String::as_str)));
    let meant = nearest.map(|nearest| format!("; did you mean `{nearest}`?"));
    Exit::usage(format!(
        "no agent is called `{name}`{} `acp agents` lists those there are",
        meant.unwrap_or_else(|| ";".to_owned())
    ))
}

/// The name that is most like this one, if any is like it at all.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// From 0, nothing in common, to 1, the same.
    const ALIKE: f64 = 0.75;
    let name = name.to_lowercase();
    let rated = names.map(|other| (strsim::jaro_winkler(&name, &other.to_lowercase()), other));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(alike, _)| *alike >= ALIKE)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_is_like_it() {
        let names = || ["claude", "codex", "gemini", "goose"].into_iter();
        assert_eq!(nearest("cluade", names()), Some("claude"));
        assert_eq!(nearest("Goose", names()), Some("goose"));
        assert_eq!(nearest("gemni", names()), Some("gemini"));
        assert_eq!(nearest("xyzzy", names()), None);
        assert_eq!(nearest("", names()), None);
    }

    #[test]
    fn a_command_is_remembered_without_what_may_be_secret_in_it() {
        let key = |words: &[&str]| {
            let which = WhichArgs::default();
            let chosen = which.with(&Config::default(), Settings::default(), Exit::usage);
            let mut chosen = chosen.unwrap();
            chosen.command = owned(words);
            chosen.key()
        };
        let one = key(&["agent", "--key=hush"]);
        assert!(one.starts_with("agent ") && !one.contains("hush"), "{one}");
        assert_eq!(one, key(&["agent", "--key=hush"]));
        assert_ne!(one, key(&["agent", "--key", "hush"]));
        assert_ne!(key(&["a", "bc"]), key(&["ab", "c"]));
        assert_eq!(key(&[]), BUNDLED);
    }
}

//! `acp agents`: which agents there are, and what a project's may do.

use std::path::{Path, PathBuf};

use acp_host::{AgentCommand, clean, literal};
use serde_json::json;

use super::args::{AgentsArgs, AgentsCommand, AllowAgentsArgs, ListAgentsArgs, RevokeAgentsArgs};
use super::choice::WhichArgs;
use super::known::{BUNDLED, KNOWN, known};
use super::project::ProjectAgents;
use crate::args::ListFormat;
use crate::ask;
use crate::config;
use crate::exit::Exit;
use crate::places::short;
use crate::screen::print;
use crate::start::quoted;

pub(crate) fn agents(args: &AgentsArgs) -> Exit {
    let done = match &args.command {
        None => list(&args.list),
        Some(AgentsCommand::Allow(args)) => allow(args),
        Some(AgentsCommand::Revoke(args)) => revoke(args),
    };
    match done {
        Ok(()) => Exit::SUCCESS,
        Err(exit) => exit,
    }
}

/// The names of the agents that can be used in a directory: the user's own, the project's if they are allowed, and
/// the well-known ones that are installed.
pub(crate) fn usable(cwd: &Path) -> Result<Vec<String>, Exit> {
    let all = All::of(cwd)?;
    let allowed = all.allowed;
    let usable = |agent: &Listed| {
        agent.wrong.is_none()
            && match agent.by {
                By::User => true,
                By::Project => allowed,
                By::Known => agent.is_installed(),
            }
    };
    let agents = all.agents.into_iter().filter(usable);
    Ok(agents.map(|agent| agent.name).collect())
}

/// Who says that there is an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    User,
    Project,
    Known,
}

impl By {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Known => "known",
        }
    }
}

/// An agent as it is listed.
struct Listed {
    name: String,
    by: By,
    title: Option<&'static str>,
    /// Nothing for the bundled agent.
    command: Vec<String>,
    /// Where its program is.
    found: Option<PathBuf>,
    install: Option<&'static str>,
    default: bool,
    /// What is wrong with it.
    wrong: Option<String>,
}

impl Listed {
    fn is_bundled(&self) -> bool {
        self.command.is_empty() && self.wrong.is_none()
    }

    fn is_installed(&self) -> bool {
        self.is_bundled() || self.found.is_some()
    }

    fn state(&self) -> &'static str {
        match (self.is_bundled(), &self.found, &self.wrong) {
            (_, _, Some(_)) => "cannot be used",
            (true, _, _) => "built in",
            (false, Some(_), _) => "installed",
            (false, None, _) => "not installed",
        }
    }

    fn what(&self) -> String {
        if let Some(wrong) = &self.wrong {
            return wrong.clone();
        }
        let words: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        let command = words.join(" ");
        let what = match (self.title, self.by) {
            _ if self.is_bundled() => "the bundled agent".to_owned(),
            (Some(title), By::Known) if self.is_installed() => format!("{title}: {command}"),
            (Some(title), By::Known) => title.to_owned(),
            _ => command,
        };
        match self.install {
            Some(install) if !self.is_installed() => format!("{what}; to install it: {install}"),
            _ => what,
        }
    }
}

/// All that there are for someone who works in a directory.
struct All {
    agents: Vec<Listed>,
    project: Option<ProjectAgents>,
    /// The project's may be used.
    allowed: bool,
    /// What the person is to be told.
    notes: Vec<String>,
}

impl All {
    fn of(cwd: &Path) -> Result<Self, Exit> {
        let config = config::read()?;
        let mut notes = Vec::new();
        let project = ProjectAgents::of(cwd).unwrap_or_else(|exit| {
            notes.extend(exit.message);
            None
        });
        let allowed = match &project {
            Some(project) => project.is_allowed()?,
            None => false,
        };
        let projects_default = project
            .as_ref()
            .filter(|_| allowed)
            .and_then(|project| project.default_agent.clone());
        let default = projects_default
            .or_else(|| config.default_agent.clone())
            .unwrap_or_else(|| BUNDLED.to_owned());
        let default = match config.agents.contains_key(&default) {
            true => default,
            false => known(&default).map_or(default, |known| known.name.to_owned()),
        };
        let mut agents = Vec::new();
        for name in config.agents.keys() {
            agents.push(choose(name, By::User, cwd));
        }
        for name in project.iter().flat_map(|project| project.agents.keys()) {
            let mut listed = projects(name, project.as_ref());
            let hidden = ProjectAgents::hidden_by(name, &config.agents);
            listed.wrong = hidden.map(|by| format!("hidden by {by}"));
            agents.push(listed);
        }
        for known in KNOWN {
            if !config.agents.contains_key(known.name) {
                agents.push(choose(known.name, By::Known, cwd));
            }
        }
        for agent in &mut agents {
            agent.default = agent.name == default && agent.wrong.is_none();
        }
        if !agents.iter().any(|agent| agent.default) {
            notes.push(format!(
                "the default agent is `{default}`, and there is none of that name that can be used; change `default_agent` in {}",
                config::file().map_or_else(|| config::FILE.to_owned(), |file| short(&file))
            ));
        }
        Ok(Self {
            agents,
            project,
            allowed,
            notes,
        })
    }

    fn in_text(&self) -> String {
        let mut text = String::new();
        let file = config::file().map_or_else(|| config::FILE.to_owned(), |file| short(&file));
        let project = self.project.as_ref().map(ProjectAgents::shown_file);
        let project = project.unwrap_or_default();
        let unless = match self.allowed {
            true => "",
            false => ", not allowed yet (see: acp agents allow)",
        };
        for (by, title) in [
            (By::User, format!("Yours, in {file}:")),
            (By::Project, format!("The project's, in {project}{unless}:")),
            (By::Known, "Well-known:".to_owned()),
        ] {
            let agents: Vec<&Listed> = self.agents.iter().filter(|agent| agent.by == by).collect();
            if agents.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&title);
            text.push('\n');
            table(&agents, &mut text);
        }
        text.push_str(match self.agents.iter().any(|agent| agent.default) {
            true => "\n* is used where no agent is named. Another: --agent NAME\n",
            false => "\nNone is used where no agent is named: the default agent is not there. One of these: --agent NAME\n",
        });
        text
    }

    fn in_json(&self) -> String {
        let mut text = String::new();
        for agent in &self.agents {
            let is_projects = agent.by == By::Project;
            let line = json!({
                "name": agent.name,
                "by": agent.by.as_str(),
                "title": agent.title,
                "command": agent.command,
                "installed": agent.is_installed(),
                "program": agent.found.as_ref().map(|found| found.to_string_lossy()),
                "install": agent.install.filter(|install| !install.is_empty()),
                "default": agent.default,
                "allowed": !is_projects || self.allowed,
                "wrong": agent.wrong,
            });
            text.push_str(&line.to_string());
            text.push('\n');
        }
        text
    }
}

fn table(agents: &[&Listed], text: &mut String) {
    let names = agents.iter().map(|agent| agent.name.len());
    let names = names.max().unwrap_or_default();
    let states = agents.iter().map(|agent| agent.state().len());
    let states = states.max().unwrap_or_default();
    for agent in agents {
        let default = if agent.default { "*" } else { " " };
        let (name, state) = (literal::line(&agent.name), agent.state());
        // Someone may allow it by what they read here.
        let what = literal::line(&agent.what());
        let line = format!("{default} {name:names$}  {state:states$}  {what}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// What the name means, as if it had been typed.
fn choose(name: &str, by: By, cwd: &Path) -> Listed {
    let which = WhichArgs {
        agent: Some(name.to_owned()),
        ..WhichArgs::default()
    };
    let known = known(name);
    let mut listed = Listed {
        name: name.to_owned(),
        by,
        title: known.map(|known| known.title),
        command: Vec::new(),
        found: None,
        install: known.map(|known| known.install),
        default: false,
        wrong: None,
    };
    match which.choose(cwd) {
        Ok(chosen) => {
            if let Some((program, args)) = chosen.command.split_first() {
                let command = AgentCommand::new(program).args(args);
                let command = command.environment(chosen.given.environment());
                listed.found = command.find().ok();
            }
            listed.install = chosen.install;
            listed.command = chosen.command;
        }
        Err(exit) => listed.wrong = exit.message,
    }
    listed
}

/// One of a project's, whether it is allowed or not: nothing is started.
fn projects(name: &str, project: Option<&ProjectAgents>) -> Listed {
    let settings = project.and_then(|project| project.agents.get(name));
    let command = settings.and_then(|settings| settings.command.clone());
    let command = command.unwrap_or_default();
    let found = command.first().map(AgentCommand::new);
    Listed {
        name: name.to_owned(),
        by: By::Project,
        title: None,
        found: found.and_then(|command| command.find().ok()),
        command,
        install: None,
        default: false,
        wrong: None,
    }
}

fn list(args: &ListAgentsArgs) -> Result<(), Exit> {
    let all = All::of(&directory(&args.cwd)?)?;
    let shown = match args.format {
        ListFormat::Text => all.in_text(),
        ListFormat::Json => all.in_json(),
    };
    let seen = print(shown.as_bytes());
    for note in &all.notes {
        eprintln!("acp: {}", clean::line(note));
    }
    match seen {
        true => Ok(()),
        false => Err(Exit::UNREAD),
    }
}

/// What a project says, which has to say something.
fn of_project(cwd: &Path) -> Result<ProjectAgents, Exit> {
    let cwd = directory(cwd)?;
    ProjectAgents::of(&cwd)?.ok_or_else(|| {
        Exit::usage(format!(
            "the project of {} has no .acp/config.toml",
            cwd.display()
        ))
    })
}

fn allow(args: &AllowAgentsArgs) -> Result<(), Exit> {
    let project = of_project(&args.cwd)?;
    let file = project.shown_file();
    if project.is_allowed()? {
        print(format!("{file} is allowed already:\n{}", project.in_words()).as_bytes());
        return Ok(());
    }
    if !args.yes {
        if !ask::possible() {
            return Err(Exit::usage(format!(
                "there is no terminal to ask on; --yes allows this, in {file}:\n{}",
                project.in_words()
            )));
        }
        if !ask::says_yes(&project.question()) {
            return Err(Exit::usage("not allowed"));
        }
    }
    project.allow()?;
    print(format!("allowed, until it changes: {file}\n").as_bytes());
    Ok(())
}

fn revoke(args: &RevokeAgentsArgs) -> Result<(), Exit> {
    let project = of_project(&args.cwd)?;
    let file = project.shown_file();
    let told = match project.revoke()? {
        true => format!("not allowed any more: {file}\n"),
        false => format!("{file} was not allowed\n"),
    };
    print(told.as_bytes());
    Ok(())
}

fn directory(cwd: &Path) -> Result<PathBuf, Exit> {
    std::fs::canonicalize(cwd).map_err(|e| Exit::usage(format!("--cwd {}: {e}", cwd.display())))
}

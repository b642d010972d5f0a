//! `acp agents`: which agents there are, and what a project's may do.

use std::path::Path;

use acp_config::{AgentList, AgentOrigin, Config, ListedAgent, ProjectAgents};
use acp_host::{clean, literal};
use serde_json::json;

use crate::args::agents::{
    AgentsArgs, AgentsCommand, AllowAgentsArgs, ListAgentsArgs, RevokeAgentsArgs,
};
use crate::args::shared::{ListFormat, directory};
use crate::exit::Exit;
use crate::screen::print;
use crate::{ask, config};

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

/// The agents, for people.
fn in_text(list: &AgentList) -> String {
    let mut text = String::new();
    let file = Config::shown_file();
    let project = list.project.as_ref().map(ProjectAgents::shown_file);
    let project = project.unwrap_or_default();
    let unless = match list.allowed {
        true => "",
        false => ", not allowed yet (see: acp agents allow)",
    };
    for (by, title) in [
        (AgentOrigin::User, format!("Yours, in {file}:")),
        (
            AgentOrigin::Project,
            format!("The project's, in {project}{unless}:"),
        ),
        (AgentOrigin::Known, "Well-known:".to_owned()),
    ] {
        let agents: Vec<&ListedAgent> = list.agents.iter().filter(|agent| agent.by == by).collect();
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
    text.push_str(match list.agents.iter().any(|agent| agent.default) {
        true => "\n* is used where no agent is named. Another: --agent NAME\n",
        false => "\nNone is used where no agent is named: the default agent is not there. One of these: --agent NAME\n",
    });
    text
}

/// The agents, an object a line.
fn in_json(list: &AgentList) -> String {
    let mut text = String::new();
    for agent in &list.agents {
        let is_projects = agent.by == AgentOrigin::Project;
        let line = json!({
            "name": agent.name,
            "by": agent.by.as_str(),
            "title": agent.title,
            "command": agent.command,
            "installed": agent.is_installed(),
            "program": agent.found.as_ref().map(|found| found.to_string_lossy()),
            "install": agent.install.filter(|install| !install.is_empty()),
            "default": agent.default,
            "allowed": !is_projects || list.allowed,
            "wrong": agent.wrong,
        });
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

fn table(agents: &[&ListedAgent], text: &mut String) {
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

fn list(args: &ListAgentsArgs) -> Result<(), Exit> {
    let all = AgentList::of(&config::read()?, &directory(&args.cwd)?)?;
    let shown = match args.format {
        ListFormat::Text => in_text(&all),
        ListFormat::Json => in_json(&all),
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

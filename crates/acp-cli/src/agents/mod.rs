//! `acp agents`: lists the available agents, allows or revokes a project's agents, and installs agents from a registry.

mod install;
mod question;
mod registry;
mod search;
mod update;

use std::path::Path;

use acp_config::{AgentList, AgentOrigin, ListedAgent, ProjectAgents, UserConfig};
use acp_host::{literal, terminal_text};
use serde_json::json;

use crate::args::agents::{
    AgentsArgs, AgentsSubcommand, AllowAgentsArgs, ListAgentsArgs, RevokeAgentsArgs,
};
use crate::args::shared::{ListFormat, absolute_directory};
use crate::exit::CommandExit;
use crate::screen::print;
use crate::{config, terminal_user};

pub(crate) async fn run_agents(args: AgentsArgs) -> CommandExit {
    let done = match &args.command {
        None => list_agents(&args.list),
        Some(AgentsSubcommand::Allow(args)) => allow_agents(args),
        Some(AgentsSubcommand::Revoke(args)) => revoke_agents(args),
        Some(AgentsSubcommand::Search(args)) => search::search_agents(args).await,
        Some(AgentsSubcommand::Install(args)) => install::install_agent(args).await,
        Some(AgentsSubcommand::Update(args)) => update::update_agents(args).await,
        Some(AgentsSubcommand::Remove(args)) => install::remove_agent(args),
    };
    match done {
        Ok(()) => CommandExit::SUCCESS,
        Err(exit) => exit,
    }
}

/// Renders the agents as text.
fn render_text(list: &AgentList) -> String {
    let mut text = String::new();
    let file = UserConfig::display_path();
    let project = list.project.as_ref().map(ProjectAgents::display_file);
    let project = project.unwrap_or_default();
    let unless = match list.is_allowed {
        true => "",
        false => ", not allowed yet; see `acp agents allow`",
    };
    for (by, title) in [
        (AgentOrigin::User, format!("Your agents ({file}):")),
        (
            AgentOrigin::Installed,
            "Installed from a registry:".to_owned(),
        ),
        (
            AgentOrigin::Project,
            format!("Project agents ({project}{unless}):"),
        ),
        (AgentOrigin::WellKnown, "Well-known:".to_owned()),
    ] {
        let agents: Vec<&ListedAgent> = list
            .agents
            .iter()
            .filter(|agent| agent.origin == by)
            .collect();
        if agents.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&title);
        text.push('\n');
        render_table(&agents, &mut text);
    }
    text.push_str(match list.agents.iter().any(|agent| agent.is_default) {
        true => "\n* default agent; choose another with --agent NAME\n",
        false => "\nThe default agent was not found; choose an agent with --agent NAME\n",
    });
    text
}

/// Renders the agents as JSON, one object on each line.
fn render_json(list: &AgentList) -> String {
    let mut text = String::new();
    for agent in &list.agents {
        let is_projects = agent.origin == AgentOrigin::Project;
        let line = json!({
            "name": agent.name,
            "by": agent.origin.as_str(),
            "title": agent.title,
            "command": agent.command,
            "url": agent.url,
            "installed": agent.is_installed(),
            "program": agent.program_path.as_ref().map(|found| found.to_string_lossy()),
            "install": agent.install.filter(|install| !install.is_empty()),
            "version": agent.installed.as_ref().map(|agent| &agent.version),
            "registry": agent.installed.as_ref().map(|agent| &agent.registry),
            "source": agent.installed.as_ref().map(|agent| agent.distribution.source()),
            "sha256": agent.installed.as_ref().and_then(|agent| agent.distribution.sha256()),
            "default": agent.is_default,
            "allowed": !is_projects || list.is_allowed,
            "wrong": agent.error,
        });
        text.push_str(&line.to_string());
        text.push('\n');
    }
    text
}

fn render_table(agents: &[&ListedAgent], text: &mut String) {
    let names = agents.iter().map(|agent| agent.name.len());
    let names = names.max().unwrap_or_default();
    let states = agents.iter().map(|agent| agent.availability().len());
    let states = states.max().unwrap_or_default();
    for agent in agents {
        let default = if agent.is_default { "*" } else { " " };
        let (name, state) = (literal::escape_line(&agent.name), agent.availability());
        // The user may decide to allow the agent by this text.
        let what = literal::escape_line(&agent.summary());
        let line = format!("{default} {name:names$}  {state:states$}  {what}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn list_agents(args: &ListAgentsArgs) -> Result<(), CommandExit> {
    let all = AgentList::discover(
        &config::read_user_config()?,
        &absolute_directory(&args.cwd)?,
    )?;
    let shown = match args.format {
        ListFormat::Text => render_text(&all),
        ListFormat::Json => render_json(&all),
    };
    let seen = print(shown.as_bytes());
    for note in &all.notes {
        eprintln!("acp: {}", terminal_text::clean_line(note));
    }
    match seen {
        true => Ok(()),
        false => Err(CommandExit::STDOUT_CLOSED),
    }
}

/// Returns the agents that the project defines, or an error if it defines none.
fn project_agents(cwd: &Path) -> Result<ProjectAgents, CommandExit> {
    let cwd = absolute_directory(cwd)?;
    ProjectAgents::load(&cwd)?.ok_or_else(|| {
        CommandExit::usage(format!(
            "no .acp/config.toml in the project that contains {}",
            cwd.display()
        ))
    })
}

fn allow_agents(args: &AllowAgentsArgs) -> Result<(), CommandExit> {
    let project = project_agents(&args.cwd)?;
    let file = project.display_file();
    if project.is_allowed()? {
        print(format!("{file} is already allowed:\n{}", project.to_text()).as_bytes());
        return Ok(());
    }
    if !args.yes {
        if !terminal_user::can_ask() {
            return Err(CommandExit::usage(format!(
                "not a terminal: cannot ask for confirmation; use --yes to allow these agents from {file}:\n{}",
                project.to_text()
            )));
        }
        if !terminal_user::confirm(&project.confirmation_question()) {
            return Err(CommandExit::usage("not allowed"));
        }
    }
    project.allow()?;
    print(format!("allowed {file} until it changes\n").as_bytes());
    Ok(())
}

fn revoke_agents(args: &RevokeAgentsArgs) -> Result<(), CommandExit> {
    let project = project_agents(&args.cwd)?;
    let file = project.display_file();
    let message = match project.revoke()? {
        true => format!("revoked {file}\n"),
        false => format!("{file} was not allowed\n"),
    };
    print(message.as_bytes());
    Ok(())
}

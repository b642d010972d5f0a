//! `acp agents install` and `acp agents remove`.

use acp_config::{InstalledAgent, InstalledAgents, InstalledDistribution, split_version};
use acp_host::AgentCommand;
use acp_registry::{
    AgentOffer, CacheUse, DownloadPreview, Downloader, OfferedDistribution, RegistryAgent,
    RegistrySource, check_id, check_version, install, remove,
};

use super::question::InstallQuestion;
use super::registry::{OpenRegistry, installed_agents, print_note};
use crate::args::agents::{InstallAgentArgs, RemoveAgentArgs};
use crate::exit::CommandExit;
use crate::screen::print;
use crate::signals::Signals;
use crate::{config, terminal_user};

pub(super) async fn install_agent(args: &InstallAgentArgs) -> Result<(), CommandExit> {
    let (id, version) = split_version(&args.agent);
    check_id(id).map_err(CommandExit::usage)?;
    version
        .map_or(Ok(()), check_version)
        .map_err(CommandExit::usage)?;
    let agents = installed_agents()?;
    let downloader = Downloader::new();
    let registry = OpenRegistry::open(&args.registry, &downloader, CacheUse::Confirmed).await?;
    let agent = find_agent(&registry, id, version)?;
    let offer = AgentOffer::new(agent)?;
    let installed = agents.find(id)?;
    if let Some(installed) = &installed {
        offer.check_unchanged(installed)?;
        let is_same = offer.is_installed_as(installed, &registry.source);
        if is_same && !agents.is_missing_files(installed) {
            let version = &installed.version;
            print(format!("{id} {version} is already installed\n").as_bytes());
            return Ok(());
        }
    }
    let installation = Installation {
        offer: &offer,
        registry: &registry.source,
        agents: &agents,
        installed: installed.as_ref(),
        downloader: &downloader,
    };
    match installation.run(args.yes).await? {
        true => Ok(()),
        false => Err(CommandExit::usage("not installed")),
    }
}

pub(super) fn remove_agent(args: &RemoveAgentArgs) -> Result<(), CommandExit> {
    let id = args.id.as_str();
    check_id(id).map_err(CommandExit::usage)?;
    match remove(id, &installed_agents()?)? {
        true => {
            print(format!("removed {id}\n").as_bytes());
            Ok(())
        }
        false => Err(not_installed(id)),
    }
}

/// Builds the error for an agent that is not installed.
pub(super) fn not_installed(id: &str) -> CommandExit {
    CommandExit::usage(format!(
        "agent not installed: `{id}`; run `acp agents` to list installed agents"
    ))
}

/// Finds an agent in the registry. With a version, it must be this one.
fn find_agent<'a>(
    registry: &'a OpenRegistry,
    id: &str,
    version: Option<&str>,
) -> Result<&'a RegistryAgent, CommandExit> {
    let Some(agent) = registry.index.find(id) else {
        let name = format!("{id:?}");
        let mut notes = registry.index.notes.iter();
        let why = notes.find(|note| note.contains(&name));
        let why = why.map(|note| format!("; {note}")).unwrap_or_default();
        return Err(CommandExit::usage(format!(
            "agent not found in the registry {}: `{id}`{why}; run `acp agents search` to list agents",
            registry.source
        )));
    };
    match version {
        Some(version) if version != agent.version => Err(CommandExit::usage(format!(
            "version not found: the registry {} has {id} {}, not {version}; to install an older version, use --registry with a copy of the registry from then",
            registry.source, agent.version
        ))),
        _ => Ok(agent),
    }
}

/// An agent that is about to be installed or updated.
pub(super) struct Installation<'a> {
    pub(super) offer: &'a AgentOffer,
    pub(super) registry: &'a RegistrySource,
    pub(super) agents: &'a InstalledAgents,
    pub(super) installed: Option<&'a InstalledAgent>,
    pub(super) downloader: &'a Downloader,
}

impl Installation<'_> {
    /// Asks the user and installs the agent. Returns `false` if the user does not want it.
    pub(super) async fn run(&self, is_confirmed: bool) -> Result<bool, CommandExit> {
        let config = config::read_user_config()?;
        let preview = self.preview().await;
        let question = InstallQuestion {
            offer: self.offer,
            registry: self.registry,
            agents: self.agents,
            installed: self.installed,
            preview: preview.as_ref(),
            config: &config,
        };
        if is_confirmed {
            eprint!("{}", question.details());
        } else if !terminal_user::can_ask() {
            eprint!("{}", question.details());
            return Err(CommandExit::usage(
                "not a terminal: cannot ask for confirmation; use --yes to install the agent as shown above",
            ));
        } else if !terminal_user::confirm(&question.text()) {
            return Ok(false);
        }
        let announced = preview.and_then(|preview| preview.size);
        let mut signals = Signals::listen()
            .map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
        let work = install(
            self.offer,
            self.registry,
            self.agents,
            self.downloader,
            announced,
        );
        let agent = tokio::select! {
            agent = work => agent?,
            _ = signals.next() => return Err(CommandExit::CANCELLED),
        };
        let did = if self.installed.is_some() {
            "updated"
        } else {
            "installed"
        };
        let id = &agent.id;
        let text = format!(
            "{did} {id} {}; start it with: acp run --agent {id} PROMPT\n",
            agent.version
        );
        print(text.as_bytes());
        note_missing_runner(&agent);
        Ok(true)
    }

    /// Asks the server about the download. Without an answer, the question shows less.
    async fn preview(&self) -> Option<DownloadPreview> {
        let OfferedDistribution::Binary { url, .. } = &self.offer.distribution else {
            return None;
        };
        self.downloader.preview(url).await.ok()
    }
}

/// Tells the user if the package runner that starts the agent is missing.
fn note_missing_runner(agent: &InstalledAgent) {
    let from = match agent.distribution {
        InstalledDistribution::Binary { .. } => return,
        InstalledDistribution::Npx { .. } => "Node.js (https://nodejs.org)",
        InstalledDistribution::Uvx { .. } => "uv (https://docs.astral.sh/uv)",
    };
    if AgentCommand::new(&agent.program).find_executable().is_err() {
        print_note(&format!(
            "{} was not found in PATH; to start the agent, install {from}",
            agent.program
        ));
    }
}

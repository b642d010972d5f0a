//! `acp agents update`.

use std::collections::BTreeMap;

use acp_registry::{AgentOffer, CacheUse, Downloader};

use super::install::{Installation, not_installed};
use super::registry::{OpenRegistry, installed_agents, print_note};
use crate::args::agents::UpdateAgentsArgs;
use crate::exit::CommandExit;
use crate::screen::print;

pub(super) async fn update_agents(args: &UpdateAgentsArgs) -> Result<(), CommandExit> {
    let agents = installed_agents()?;
    let mut installed = agents.list()?;
    if let Some(id) = &args.id {
        installed.retain(|agent| agent.id == *id);
        if installed.is_empty() {
            return Err(not_installed(id));
        }
    }
    if installed.is_empty() {
        print(b"no agents are installed from a registry\n");
        return Ok(());
    }
    let downloader = Downloader::new();
    let mut registries: BTreeMap<&str, OpenRegistry> = BTreeMap::new();
    let mut failure = None;
    for agent in &installed {
        let address = args.registry.as_deref().unwrap_or(&agent.registry);
        let registry = match registries.remove(address) {
            Some(registry) => registry,
            None => OpenRegistry::open(address, &downloader, CacheUse::Confirmed).await?,
        };
        let offered = registry.index.find(&agent.id).map(AgentOffer::new);
        let updated = match offered {
            None => {
                print_note(&format!("{} is not in the registry {address}", agent.id));
                Ok(true)
            }
            Some(Err(error)) => Err(error.into()),
            Some(Ok(offer)) => {
                let is_same = offer.is_installed_as(agent, &registry.source);
                if let Err(error) = offer.check_unchanged(agent) {
                    Err(error.into())
                } else if is_same && !agents.is_missing_files(agent) {
                    print(format!("{} {} is up to date\n", agent.id, agent.version).as_bytes());
                    Ok(true)
                } else {
                    let installation = Installation {
                        offer: &offer,
                        registry: &registry.source,
                        agents: &agents,
                        installed: Some(agent),
                        downloader: &downloader,
                    };
                    installation.run(args.yes).await
                }
            }
        };
        registries.insert(address, registry);
        match updated {
            Ok(true) => {}
            Ok(false) => print_note(&format!("{} was not updated", agent.id)),
            Err(exit) if exit.code == CommandExit::CANCELLED.code => return Err(exit),
            // The other agents are updated all the same.
            Err(exit) => {
                if let Some(message) = exit.message.as_deref().filter(|_| args.id.is_none()) {
                    print_note(message);
                }
                failure = Some(exit);
            }
        }
    }
    match failure {
        Some(exit) if args.id.is_some() => Err(exit),
        Some(exit) => Err(CommandExit {
            code: exit.code,
            message: Some("not all agents were updated".to_owned()),
        }),
        None => Ok(()),
    }
}

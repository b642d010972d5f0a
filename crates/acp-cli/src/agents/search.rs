//! `acp agents search`: lists the agents of a registry.

use acp_config::InstalledAgent;
use acp_host::literal;
use acp_registry::{AgentOffer, CacheUse, Downloader, RegistryAgent, current_platform};
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::registry::{OpenRegistry, installed_agents, print_note};
use crate::args::agents::SearchAgentsArgs;
use crate::args::shared::ListFormat;
use crate::exit::CommandExit;
use crate::screen::print;

pub(super) async fn search_agents(args: &SearchAgentsArgs) -> Result<(), CommandExit> {
    let downloader = Downloader::new();
    let registry = OpenRegistry::open(&args.registry, &downloader, CacheUse::Recent).await?;
    let installed = installed_agents()?.list()?;
    let found: Vec<FoundAgent<'_>> = registry
        .index
        .search(&args.words)
        .map(|agent| FoundAgent {
            agent,
            installed: installed.iter().find(|one| one.id == agent.id),
            is_available: AgentOffer::new(agent).is_ok(),
        })
        .collect();
    let text = match args.format {
        ListFormat::Text => render_text(&found),
        ListFormat::Json => found.iter().map(FoundAgent::to_json).collect(),
    };
    let seen = print(text.as_bytes());
    registry
        .index
        .notes
        .iter()
        .for_each(|note| print_note(note));
    if found.is_empty() {
        print_note("no agent in the registry matches");
    }
    match seen {
        true => Ok(()),
        false => Err(CommandExit::STDOUT_CLOSED),
    }
}

/// An agent in the registry, and whether it is installed here.
struct FoundAgent<'a> {
    agent: &'a RegistryAgent,
    installed: Option<&'a InstalledAgent>,
    /// Whether the agent can be installed on this machine.
    is_available: bool,
}

impl FoundAgent<'_> {
    fn state(&self) -> String {
        match (self.installed, self.is_available) {
            (Some(installed), _) if installed.version == self.agent.version => {
                "installed".to_owned()
            }
            (Some(installed), _) => format!("installed {}", installed.version),
            (None, true) => "not installed".to_owned(),
            (None, false) => {
                format!(
                    "not for {}",
                    current_platform().unwrap_or(std::env::consts::ARCH)
                )
            }
        }
    }

    fn columns(&self) -> [String; 4] {
        let kinds = self.agent.distributions.names().join(", ");
        let kinds = if kinds.is_empty() { "unknown" } else { &kinds };
        [&self.agent.id, &self.agent.version, kinds, &self.state()].map(literal::escape_line)
    }

    /// Returns the agent as a line of JSON.
    fn to_json(&self) -> String {
        let agent = self.agent;
        let line = json!({
            "id": agent.id,
            "name": agent.name,
            "version": agent.version,
            "description": agent.description,
            "distributions": agent.distributions.names(),
            "available": self.is_available,
            "installed": self.installed.map(|installed| &installed.version),
            "license": agent.license,
            "authors": agent.authors,
            "repository": agent.repository,
            "website": agent.website,
        });
        format!("{line}\n")
    }
}

fn render_text(found: &[FoundAgent<'_>]) -> String {
    let rows: Vec<[String; 4]> = found.iter().map(FoundAgent::columns).collect();
    let widths: Vec<usize> = (0..4)
        .map(|at| {
            let columns = rows.iter().filter_map(|row| row.get(at));
            columns
                .map(|column| column.width())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let mut text = String::new();
    for (row, found) in rows.iter().zip(found) {
        for (column, width) in row.iter().zip(&widths) {
            text.push_str(column);
            text.push_str(&" ".repeat(width.saturating_sub(column.width()) + 2));
        }
        let what = format!("{}: {}", found.agent.name, found.agent.description);
        text.push_str(&literal::escape_line(&what));
        text.push('\n');
    }
    text
}

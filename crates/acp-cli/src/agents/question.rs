//! The question whether an agent of a registry may be installed. It shows everything that will be downloaded and run.

use acp_config::{
    InstalledAgent, InstalledAgents, InstalledDistribution, UserConfig, find_well_known, quote,
};
use acp_host::literal;
use acp_registry::{AgentOffer, DownloadPreview, OfferedDistribution, RegistrySource};

/// The width of the column with the labels.
const LABEL_WIDTH: usize = 13;

/// What a question is about.
pub(super) struct InstallQuestion<'a> {
    pub(super) offer: &'a AgentOffer,
    pub(super) registry: &'a RegistrySource,
    pub(super) agents: &'a InstalledAgents,
    /// What is installed now.
    pub(super) installed: Option<&'a InstalledAgent>,
    /// What the server says about the download, if there is one and the server has answered.
    pub(super) preview: Option<&'a DownloadPreview>,
    pub(super) config: &'a UserConfig,
}

/// The rows of a table with labels.
#[derive(Default)]
struct LabelledRows(String);

impl LabelledRows {
    fn push(&mut self, label: &str, value: &str) {
        // Nothing that the registry says may look like another row.
        let value = literal::escape_line(value);
        self.0.push_str(&format!("  {label:LABEL_WIDTH$}{value}\n"));
    }

    /// Adds a row, and the value that it replaces, if that differs.
    fn push_changed(&mut self, label: &str, value: &str, before: Option<&str>) {
        self.push(label, value);
        if let Some(before) = before.filter(|before| *before != value) {
            self.push("  instead of", before);
        }
    }

    fn push_optional(&mut self, label: &str, value: Option<&str>) {
        self.push(label, value.unwrap_or("not stated"));
    }
}

impl InstallQuestion<'_> {
    /// Returns the details of the agent, as a table.
    pub(super) fn details(&self) -> String {
        let mut rows = LabelledRows::default();
        let agent = &self.offer.agent;
        let record = self.offer.to_record(self.registry, "");
        let before = self.installed;
        rows.push("agent", &format!("{}: {}", agent.name, agent.description));
        let version = before.map(|before| before.version.as_str());
        rows.push_changed("version", &agent.version, version);
        let words = |agent| command_line(&self.agents.command(agent));
        rows.push_changed("command", &words(&record), before.map(words).as_deref());
        let sets = |agent: &InstalledAgent| {
            let set = agent
                .env
                .iter()
                .map(|(name, value)| format!("{name}={}", quote(value)));
            set.collect::<Vec<String>>()
        };
        self.push_environment(&mut rows, &sets(&record), before.map(sets));
        self.push_distribution(&mut rows);
        let registry = self.registry.to_string();
        let from = before.map(|before| before.registry.as_str());
        rows.push_changed("registry", &registry, from);
        let license = agent.license.as_deref().unwrap_or("not stated");
        match &agent.license_url {
            Some(url) => rows.push("license", &format!("{license} ({url})")),
            None => rows.push("license", license),
        }
        rows.push_optional("authors", some_text(&agent.authors.join(", ")));
        rows.push_optional("repository", agent.repository.as_deref());
        if let Some(website) = &agent.website {
            rows.push("website", website);
        }
        if before.is_none() {
            self.push_name(&mut rows);
        }
        rows.0
    }

    /// Returns the question, which ends with the details.
    pub(super) fn text(&self) -> String {
        let agent = &self.offer.agent;
        let what = match self.installed {
            Some(_) => format!(
                "Update the agent {} to version {}?",
                agent.id, agent.version
            ),
            None => format!("Install the agent {} {}?", agent.id, agent.version),
        };
        format!(
            "{what}\n{}The agent runs with your permissions. The registry and the download are not checked by acp beyond the above. Go on?",
            self.details()
        )
    }

    fn push_environment(
        &self,
        rows: &mut LabelledRows,
        now: &[String],
        before: Option<Vec<String>>,
    ) {
        for variable in now {
            rows.push("environment", variable);
        }
        if now.is_empty() {
            rows.push("environment", "sets no variables");
        }
        for variable in before.iter().flatten() {
            if !now.contains(variable) {
                rows.push("  no longer", variable);
            }
        }
    }

    fn push_distribution(&self, rows: &mut LabelledRows) {
        let before = self.installed.map(|before| &before.distribution);
        let source = before.map(InstalledDistribution::source);
        let sum_before = before.and_then(InstalledDistribution::sha256);
        match &self.offer.distribution {
            OfferedDistribution::Binary { url, sha256 } => {
                rows.push_changed("download", url, source);
                if let Some(host) = self.preview.and_then(|p| p.redirected_to.as_deref()) {
                    rows.push("  served by", host);
                }
                let size = self.preview.and_then(|preview| preview.size);
                let size = size.map(|size| format!("{size} bytes ({:.1} MB)", in_megabytes(size)));
                rows.push("size", size.as_deref().unwrap_or("the server does not say"));
                let sum = sha256.as_deref().unwrap_or(
                    "none in the registry; the one of this download will be recorded, and later downloads of this version must have it",
                );
                rows.push_changed("SHA-256", sum, sum_before);
            }
            OfferedDistribution::Npx { package } => {
                rows.push_changed("npm package", package, source);
                let sum = "none; npx downloads the package and what it depends on";
                rows.push_changed("SHA-256", sum, sum_before);
            }
            OfferedDistribution::Uvx { package } => {
                rows.push_changed("PyPI package", package, source);
                let sum = "none; uvx downloads the package and what it depends on";
                rows.push_changed("SHA-256", sum, sum_before);
            }
        }
    }

    /// Says what the agent's name means so far.
    fn push_name(&self, rows: &mut LabelledRows) {
        let id = self.offer.agent.id.as_str();
        let settings = self.config.agents.get(id);
        let is_users = settings.is_some_and(|one| one.command.is_some() || one.url.is_some());
        if is_users {
            let file = UserConfig::display_path();
            rows.push(
                "note",
                &format!("--agent {id} still starts your own agent from {file}"),
            );
        } else if let Some(known) = find_well_known(id) {
            let command: Vec<String> = known
                .command
                .iter()
                .map(|word| (*word).to_owned())
                .collect();
            let command = command_line(&command);
            rows.push(
                "note",
                &format!("--agent {id} will start it instead of `{command}`"),
            );
        }
    }
}

fn command_line(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

fn some_text(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[allow(clippy::cast_precision_loss)]
fn in_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}

//! Arguments of `acp agents`.

use std::path::PathBuf;

use acp_registry::OFFICIAL_REGISTRY;
use clap::{Subcommand, ValueHint};

use super::candidates;
use super::shared::ListFormat;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) list: ListAgentsArgs,

    #[command(subcommand)]
    pub(crate) command: Option<AgentsSubcommand>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListAgentsArgs {
    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,

    /// Output format.
    ///
    /// JSON has one agent per line.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsSubcommand {
    Allow(AllowAgentsArgs),
    Revoke(RevokeAgentsArgs),
    Search(SearchAgentsArgs),
    Install(InstallAgentArgs),
    Update(UpdateAgentsArgs),
    Remove(RemoveAgentArgs),
}

/// Search the registry for agents.
///
/// Lists the agents whose id, name or description contains all words. A copy of the registry that is less than an hour
/// old is used without asking the server.
#[derive(Debug, clap::Args)]
#[command(after_long_help = SEARCH_EXAMPLES)]
pub(crate) struct SearchAgentsArgs {
    /// Words to search for. Without any, all agents are listed.
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    /// URL or file of the registry.
    #[arg(long, value_name = "URL|FILE", default_value = OFFICIAL_REGISTRY, value_hint = ValueHint::FilePath)]
    pub(crate) registry: String,

    /// Output format.
    ///
    /// JSON has one agent per line.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: ListFormat,
}

/// Install an agent from the registry.
///
/// Shows what would be downloaded and run, and asks. A download is checked against the checksum in the registry, if it
/// has one, and against the one of the first installation. Exit codes: 1 if the agent could not be installed, 2 if the
/// registry does not have it or you have not confirmed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = INSTALL_EXAMPLES)]
pub(crate) struct InstallAgentArgs {
    /// Agent to install. With a version, fails if the registry has another one.
    #[arg(value_name = "ID[@VERSION]")]
    pub(crate) agent: String,

    /// Install without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// URL or file of the registry.
    #[arg(long, value_name = "URL|FILE", default_value = OFFICIAL_REGISTRY, value_hint = ValueHint::FilePath)]
    pub(crate) registry: String,
}

/// Update installed agents.
///
/// Shows what would change and asks, for each agent.
#[derive(Debug, clap::Args)]
#[command(after_long_help = UPDATE_EXAMPLES)]
pub(crate) struct UpdateAgentsArgs {
    /// Agent to update. Without one, all installed agents are updated.
    #[arg(value_name = "ID", add = candidates::installed_agents())]
    pub(crate) id: Option<String>,

    /// Update without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// URL or file of the registry. The default is the one from which the agent was installed.
    #[arg(long, value_name = "URL|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<String>,
}

/// Remove an installed agent.
///
/// Removes its files and its entry in the lock file. What the agent itself has stored remains.
#[derive(Debug, clap::Args)]
#[command(after_long_help = REMOVE_EXAMPLES)]
pub(crate) struct RemoveAgentArgs {
    /// Agent to remove.
    #[arg(value_name = "ID", add = candidates::installed_agents())]
    pub(crate) id: String,
}

/// Review and allow a project's agents.
///
/// Shows the agents in the project's .acp/config.toml and asks whether they may be used. The answer holds until
/// the file changes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = ALLOW_EXAMPLES)]
pub(crate) struct AllowAgentsArgs {
    /// Allow without asking.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

/// Stop using a project's agents.
#[derive(Debug, clap::Args)]
#[command(after_long_help = REVOKE_EXAMPLES)]
pub(crate) struct RevokeAgentsArgs {
    /// Project directory, or a directory in it.
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  acp agents
  acp agents --format json
  acp agents allow                                   # use the project's agents
  acp agents install goose                           # from the registry
  acp run --agent goose \"Why does the build fail?\"";

const ALLOW_EXAMPLES: &str = "\
Examples:
  acp agents allow
  acp agents allow --yes --cwd ~/src/project";

const REVOKE_EXAMPLES: &str = "\
Examples:
  acp agents revoke
  acp agents revoke --cwd ~/src/project";

const SEARCH_EXAMPLES: &str = "\
Examples:
  acp agents search
  acp agents search open source
  acp agents search --registry registry.json --format json";

const INSTALL_EXAMPLES: &str = "\
Examples:
  acp agents install goose
  acp agents install goose@1.50.1 --yes              # in a script
  acp agents install reviewer --registry https://agents.example.com/registry.json";

const UPDATE_EXAMPLES: &str = "\
Examples:
  acp agents update
  acp agents update goose --yes";

const REMOVE_EXAMPLES: &str = "\
Examples:
  acp agents remove goose";

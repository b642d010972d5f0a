//! Reads the user's configuration for an [Agent Client Protocol](https://agentclientprotocol.com) client, and the state
//! stored for the user between runs. Validates everything that can be validated without an agent or a screen, and
//! passes on the rest unchanged.
//!
//! | type                    | purpose                                                     | configured in |
//! |-------------------------|-------------------------------------------------------------|---------------------|
//! | [`UserConfig`]          | all of the user's configuration                             | `config.toml` |
//! | [`AgentSettings`]       | an agent by name                                            | `[agents.NAME]` |
//! | [`ProjectAgents`]       | the agents of a project                              | a project's `.acp/config.toml` |
//! | [`KnownAgent`]          | a well-known agent                                          | this crate |
//! | [`InstalledAgents`]   | the agents installed from a registry                        | stored |
//! | [`AgentSelector`]       | selects an agent; the result is an [`AgentChoice`]          | – |
//! | [`RemoteAgent`]         | an agent on the network                                     | `url` in `[agents.NAME]` |
//! | [`AgentList`]           | the available agents                                        | – |
//! | [`AgentEnvironment`]    | the environment of an agent                                 | `[environment]` |
//! | [`McpServerSettings`]   | an MCP server                                               | `[[mcp_servers]]` |
//! | [`BundledSettings`]     | the bundled agent and its models                            | `[agent]` |
//! | [`ChatSettings`]        | the terminal client                                         | `[chat]` |
//! | [`themes`]              | color themes of the terminal client                         | `themes/NAME.toml` |
//! | [`PermissionSources`]   | what agents may do in a project                             | `permissions.toml` |
//! | [`SessionNames`]        | names of an agent's sessions                                | stored |
//!
//! The caller parses the command line and prints.

mod agents;
mod bundled;
mod chat;
mod config;
mod environment;
mod error;
mod mcp_file;
mod mcp_servers;
mod names;
pub mod paths;
mod permissions;
mod quote;
mod source;
pub mod themes;

pub use toml::Spanned;

pub use agents::choice::{AgentChoice, AgentSelector, ConfirmFn};
pub use agents::installed::{
    InstalledAgent, InstalledAgents, InstalledDistribution, split_version,
};
pub use agents::list::{AgentList, AgentOrigin, ListedAgent};
pub use agents::path_mapping::PathMapping;
pub use agents::project::ProjectAgents;
pub use agents::remote::{AgentToken, RemoteAgent, RemoteOptions, TOKEN_VARIABLE, TypedUrl};
pub use agents::remote_url::{RemoteUrl, TokenHeader};
pub use agents::settings::AgentSettings;
pub use agents::state_paths::{AgentStatePath, AgentStatePaths};
pub use agents::well_known::{BUNDLED_AGENT, KNOWN_AGENTS, KnownAgent, find_well_known};
pub use bundled::{BundledSettings, ModelSettings};
pub use chat::{ChatSettings, EditingMode, ImageMode, NotifyMode};
pub use config::UserConfig;
pub use environment::{AgentEnvironment, EnvRequest, EnvironmentSettings};
pub use error::ConfigError;
pub use mcp_file::read_mcp_file;
pub use mcp_servers::{McpServerSettings, mcp_definitions};
pub use names::{NamedSession, SessionName, SessionNames};
pub use permissions::{PermissionSources, answers_directory, rules_file};
pub use quote::quote;
pub use themes::Background;

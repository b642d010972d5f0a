//! What the user of an [Agent Client Protocol](https://agentclientprotocol.com) client has configured, and what is kept
//! for them from run to run. It is read here and understood as far as no agent and no screen is needed for that: whoever
//! has one is told the rest as it is written.
//!
//! | type                    | what it is                                                  | where it is written |
//! |-------------------------|-------------------------------------------------------------|---------------------|
//! | [`UserConfig`]              | all of the user's configuration                             | `config.toml` |
//! | [`AgentSettings`]       | an agent by name                                            | `[agents.NAME]` |
//! | [`ProjectAgents`]       | the agents that a project brings                            | `.acp/config.toml` there |
//! | [`KnownAgent`]          | a well-known agent                                          | here |
//! | [`AgentSelector`]        | which agent is meant, and of it an [`AgentChoice`] is made  | – |
//! | [`AgentList`]           | the agents that there are                                   | – |
//! | [`AgentEnvironment`]    | what an agent is given of the environment                   | `[environment]` |
//! | [`McpServerSettings`]   | an MCP server                                               | `[[mcp_servers]]` |
//! | [`BundledSettings`]     | the bundled agent and its models                            | `[agent]` |
//! | [`ChatSettings`]        | the terminal client                                         | `[chat]` |
//! | [`PermissionSources`]   | what agents may do in a project                             | `permissions.toml` |
//! | [`SessionNames`]        | names of an agent's sessions                                | kept |
//!
//! Arguments of a command line, and what is printed, are for whoever has one.

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

pub use toml::Spanned;

pub use agents::choice::{AgentChoice, AgentSelector, ConfirmFn};
pub use agents::list::{AgentList, AgentOrigin, ListedAgent};
pub use agents::project::ProjectAgents;
pub use agents::settings::AgentSettings;
pub use agents::state_paths::{AgentStatePath, AgentStatePaths};
pub use agents::well_known::{BUNDLED, KNOWN, KnownAgent, find_well_known};
pub use bundled::{BundledSettings, ModelSettings};
pub use chat::{Background, ChatSettings, Images};
pub use config::UserConfig;
pub use environment::{AgentEnvironment, EnvRequest, EnvironmentSettings};
pub use error::ConfigError;
pub use mcp_file::read_mcp_file;
pub use mcp_servers::{McpServerSettings, mcp_definitions};
pub use names::{NamedSession, SessionName, SessionNames};
pub use permissions::{PermissionSources, answers_directory, rules_file};
pub use quote::quoted;

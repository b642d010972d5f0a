//! What the user of an [Agent Client Protocol](https://agentclientprotocol.com) client has configured, and what is kept
//! for them from run to run. It is read here and understood as far as no agent and no screen is needed for that: whoever
//! has one is told the rest as it is written.
//!
//! | type                    | what it is                                                  | where it is written |
//! |-------------------------|-------------------------------------------------------------|---------------------|
//! | [`Config`]              | all of the user's configuration                             | `config.toml` |
//! | [`AgentSettings`]       | an agent by name                                            | `[agents.NAME]` |
//! | [`ProjectAgents`]       | the agents that a project brings                            | `.acp/config.toml` there |
//! | [`KnownAgent`]          | a well-known agent                                          | here |
//! | [`AgentRequest`]        | which agent is meant, and of it an [`AgentChoice`] is made  | – |
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
mod permissions;
pub mod places;
mod quote;
mod source;

pub use toml::Spanned;

pub use agents::choice::{AgentChoice, AgentRequest, Ask};
pub use agents::known::{BUNDLED, KNOWN, KnownAgent, known};
pub use agents::list::{AgentList, AgentOrigin, ListedAgent};
pub use agents::own::{OwnPlace, OwnPlaces};
pub use agents::project::ProjectAgents;
pub use agents::settings::AgentSettings;
pub use bundled::{BundledSettings, ModelSettings};
pub use chat::{Background, ChatSettings, Images};
pub use config::Config;
pub use environment::{AgentEnvironment, EnvRequest, EnvironmentSettings};
pub use error::ConfigError;
pub use mcp_file::mcp_servers_of;
pub use mcp_servers::{McpServerSettings, mcp_definitions};
pub use names::{NamedSession, SessionName, SessionNames};
pub use permissions::{PermissionSources, answers_directory, rules_file};
pub use quote::quoted;

//! `acp agent`: the bundled agent on stdin and stdout.

use std::path::PathBuf;
use std::sync::Arc;

use acp_agent::store::{LazyStore, MemoryStore, PostgresStore, SqliteStore};
use acp_agent::{CodingAgent, ModelConfig};
use acp_config::{AgentEnvironment, EnvironmentSettings, mcp_definitions, paths};
use etcetera::BaseStrategy;

use crate::args::agent::AgentArgs;
use crate::args::store_address::{StoreAddress, StoreChoice};
use crate::exit::CommandExit;
use crate::models::BundledAgentConfig;
use crate::start::default_connection_options;
use crate::{config, permissions, store};

/// The bundled agent, ready to serve a client.
pub(crate) struct PreparedAgent {
    agent: CodingAgent,
    options: acp::Options,
}

impl PreparedAgent {
    /// Creates the agent described by the arguments.
    pub(crate) fn new(args: AgentArgs) -> Result<Self, CommandExit> {
        let config = config::read_user_config()?;
        let models = BundledAgentConfig::from_config(&config)?;
        let (option, model) = match args.script {
            Some(script) => ("--script", ModelConfig::Scripted(script)),
            None => ("--model", models.model_config(args.model)?),
        };
        let mut agent =
            CodingAgent::new(&model).map_err(|e| CommandExit::usage(format!("{option}: {e}")))?;
        let servers = mcp_definitions(config.mcp_servers);
        agent = agent
            .mcp_servers(servers.map_err(|e| CommandExit::usage(format!("config.toml: {e}")))?);
        if let Some(mode) = models.mode {
            agent = agent.mode(mode);
        }
        if let Some(requests) = args.max_requests.or(models.max_requests) {
            agent = agent.max_requests(requests.get());
        }
        if let Some((server, tool)) = args.exempt_tool {
            agent = agent.exempt_tool(server, tool);
        }
        if let Some(config) = paths::config_dir() {
            agent = agent.user_instructions(config.join("AGENTS.md"));
        }
        let rules = permissions::rule_files();
        let rules = match args.allow {
            Some(policy) if args.allow_gives_way => rules.default_policy(policy),
            Some(policy) => rules.policy(policy),
            None => rules,
        };
        agent = agent.rules(match args.client_has_rules {
            true => rules.enforced_by_client(),
            false => rules,
        });
        let environment =
            AgentEnvironment::from_config(&EnvironmentSettings::default(), &args.env)?;
        agent = agent.command_environment(environment.environment());
        if let Some(rules) = args.sandbox.rules(None)? {
            agent = agent
                .sandbox(rules)
                .map_err(|e| CommandExit::usage(format!("--sandbox: {e}")))?;
        }
        Ok(Self {
            agent: configure_storage(agent, args.sessions.as_ref())?,
            options: args
                .protocol
                .apply(default_connection_options().limits(acp::agent::default_limits())),
        })
    }

    /// Serves the client on stdin and stdout until it closes the connection.
    pub(crate) async fn serve(self) -> CommandExit {
        let served = match acp::transport::stdio() {
            Ok(transport) => acp::agent::serve_with(transport, self.agent, self.options).await,
            Err(e) => Err(e),
        };
        match served {
            Ok(()) => CommandExit::SUCCESS,
            Err(e) => CommandExit::agent_failed(format!("connection to the client failed: {e}")),
        }
    }
}

/// Configures where the agent stores its sessions: as chosen or, without a choice, in the default directory if possible.
fn configure_storage(
    agent: CodingAgent,
    choice: Option<&StoreChoice>,
) -> Result<CodingAgent, CommandExit> {
    match choice {
        Some(StoreChoice::None) => Ok(agent),
        Some(StoreChoice::At(StoreAddress::File(directory))) => {
            match SqliteStore::open(directory) {
                Ok(store) => Ok(agent.keep_sessions(store)),
                Err(e) => Err(CommandExit::usage(format!("--sessions: {e}"))),
            }
        }
        Some(StoreChoice::At(StoreAddress::Postgres(url))) => {
            match PostgresStore::new(url, store::password().as_deref()) {
                Ok(store) => Ok(agent.keep_sessions(store)),
                Err(e) => Err(CommandExit::usage(format!("--sessions: {e}"))),
            }
        }
        None => Ok(match default_store() {
            Ok(store) => agent.keep_sessions(store),
            Err(why) => {
                warn_not_stored(&why);
                agent
            }
        }),
    }
}

/// Returns the store in the default directory. It is opened when the first session needs it, because that takes as long
/// as half of the agent's start.
fn default_store() -> Result<LazyStore, String> {
    let directory = sessions_directory().ok_or("no home directory")?;
    SqliteStore::prepare_directory(&directory).map_err(|e| e.to_string())?;
    Ok(LazyStore::new(move || {
        Ok(match SqliteStore::open(&directory) {
            Ok(store) => Arc::new(store),
            // The client has been told that sessions can be loaded: they can, as long as this process lives.
            Err(e) => {
                warn_not_stored(&e.to_string());
                Arc::new(MemoryStore::new())
            }
        })
    }))
}

/// Warns that sessions will not be stored. The agent runs anyway, since it is useful even without a session store.
fn warn_not_stored(why: &str) {
    eprintln!("acp: warning: sessions will not be stored: {why}");
}

/// Returns the default directory for sessions.
fn sessions_directory() -> Option<PathBuf> {
    let directories = etcetera::choose_base_strategy().ok()?;
    // Windows has no directory for local state; use the data directory there.
    let state = directories.state_dir();
    Some(state.unwrap_or_else(|| directories.data_dir()).join("acp"))
}

/// Returns the reason why the bundled agent cannot store sessions, or `None` if it can.
pub(crate) fn storage_problem() -> Option<String> {
    let Some(directory) = sessions_directory() else {
        return Some("no home directory".to_owned());
    };
    let made = std::fs::create_dir_all(&directory);
    let tried = made.and_then(|()| tempfile::tempfile_in(&directory).map(drop));
    let error = tried.err()?;
    Some(format!("cannot write {}: {error}", directory.display()))
}

/// Returns `true` if the default directory contains any sessions of the bundled agent.
pub(crate) fn has_stored_sessions() -> bool {
    sessions_directory().is_some_and(|directory| directory.join("sessions.db").is_file())
}

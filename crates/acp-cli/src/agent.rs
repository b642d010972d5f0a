//! `acp agent`: the bundled agent on stdin and stdout.

use std::path::{Path, PathBuf};

use acp_agent::store::SqliteStore;
use acp_agent::{CodingAgent, ModelConfig};
use etcetera::BaseStrategy;

use crate::args::AgentArgs;
use crate::exit::Exit;

pub(crate) async fn agent(args: AgentArgs) -> Exit {
    let model = args
        .script
        .map_or(ModelConfig::Offline, ModelConfig::Scripted);
    let agent = match CodingAgent::new(&model) {
        Ok(agent) => agent,
        Err(e) => return Exit::usage(format!("--script: {e}")),
    };
    let agent = match args.sandbox.writable() {
        Ok(None) => agent,
        Ok(Some(writable)) => match agent.sandboxed(writable) {
            Ok(agent) => agent,
            Err(e) => return Exit::usage(format!("--sandbox: {e}")),
        },
        Err(exit) => return exit,
    };
    let agent = match with_sessions(agent, args.sessions.as_deref()) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    let options = args
        .protocol
        .set(acp::Options::new().limits(acp::agent::limits()));
    let served = match acp::transport::stdio() {
        Ok(transport) => acp::agent::serve_with(transport, agent, options).await,
        Err(e) => Err(e),
    };
    match served {
        Ok(()) => Exit::SUCCESS,
        Err(e) => Exit::broken(format!("the connection to the client failed: {e}")),
    }
}

/// Has the agent keep its sessions where that was asked for, or else where it can.
fn with_sessions(agent: CodingAgent, asked: Option<&Path>) -> Result<CodingAgent, Exit> {
    let opened = match asked {
        Some(none) if none == Path::new("none") => return Ok(agent),
        Some(directory) => match SqliteStore::open(directory) {
            Ok(store) => return Ok(agent.keep_sessions(store)),
            Err(e) => return Err(Exit::usage(format!("--sessions: {e}"))),
        },
        None => match sessions_directory() {
            Some(directory) => SqliteStore::open(directory).map_err(|e| e.to_string()),
            None => Err("there is no home directory".to_owned()),
        },
    };
    match opened {
        Ok(store) => Ok(agent.keep_sessions(store)),
        Err(why) => {
            // An agent that forgets is better than none.
            eprintln!("acp: warning: sessions are not kept: {why}");
            Ok(agent)
        }
    }
}

/// Where sessions are kept if nothing else is said.
fn sessions_directory() -> Option<PathBuf> {
    let directories = etcetera::choose_base_strategy().ok()?;
    // Windows has no place for what is of this machine alone and no cache.
    let state = directories.state_dir();
    Some(state.unwrap_or_else(|| directories.data_dir()).join("acp"))
}

/// Whether the bundled agent has kept any session there.
pub(crate) fn keeps_sessions() -> bool {
    sessions_directory().is_some_and(|directory| directory.join("sessions.db").is_file())
}

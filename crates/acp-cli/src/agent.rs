//! `acp agent`: the bundled agent on stdin and stdout.

use acp_agent::{CodingAgent, ModelConfig};

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
    match acp::agent::serve_stdio(agent).await {
        Ok(()) => Exit::SUCCESS,
        Err(e) => Exit::broken(format!("the connection to the client failed: {e}")),
    }
}

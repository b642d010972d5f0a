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
    let agent = match args.sandbox.writable() {
        Ok(None) => agent,
        Ok(Some(writable)) => match agent.sandboxed(writable) {
            Ok(agent) => agent,
            Err(e) => return Exit::usage(format!("--sandbox: {e}")),
        },
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

//! `acp mcp-proxy`: the program that an agent starts to reach its client's tools.

use acp_mcp::proxy::{self, ProxyError};

use crate::args::relays::McpProxyArgs;
use crate::exit::CommandExit;

pub(crate) async fn run_mcp_proxy(args: McpProxyArgs) -> CommandExit {
    match proxy::run_proxy(&args.connect).await {
        Ok(()) => CommandExit::SUCCESS,
        Err(error @ ProxyError::MissingToken) => CommandExit::usage(error.to_string()),
        Err(error) => CommandExit::agent_failed(error.to_string()),
    }
}

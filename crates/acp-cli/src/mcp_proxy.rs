//! `acp mcp-proxy`: what an agent starts to reach the tools of its client.

use acp_mcp::proxy::{self, ProxyError};

use crate::args::between::McpProxyArgs;
use crate::exit::Exit;

pub(crate) async fn mcp_proxy(args: McpProxyArgs) -> Exit {
    match proxy::run(&args.connect).await {
        Ok(()) => Exit::SUCCESS,
        Err(error @ ProxyError::NoToken) => Exit::usage(error.to_string()),
        Err(error) => Exit::broken(error.to_string()),
    }
}

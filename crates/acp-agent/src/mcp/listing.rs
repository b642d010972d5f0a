//! Lists the tools and prompts of a server, within limits.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{PaginatedRequestParams, Prompt, Tool};
use rmcp::service::{Peer, ServiceError};

use super::handler::McpConnectionState;

/// The maximum number of tools that a server may provide. The same limit applies to its prompts.
const MAX_ITEMS: usize = 256;

/// The maximum number of pages in a list.
const MAX_PAGES: usize = 64;

/// The maximum size of a tool's schema, in bytes. All schemas are sent to the model in each round.
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// The tools, prompts and other features of a connected MCP server.
pub(super) struct McpListing {
    pub(super) peer: Peer<RoleClient>,
    pub(super) shared: Arc<McpConnectionState>,
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) has_resources: bool,
}

impl std::fmt::Debug for McpListing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready")
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

/// Requests a server's tools and prompts.
pub(super) async fn list_server(
    name: &str,
    peer: &Peer<RoleClient>,
    shared: &Arc<McpConnectionState>,
) -> Result<McpListing, String> {
    let info = peer.peer_info();
    let offered = info
        .map(|info| info.capabilities.clone())
        .unwrap_or_default();
    let mut tools = Vec::new();
    if offered.tools.is_some() {
        let listed = list_pages(name, "tools", |page| async {
            let listed = peer.list_tools(page).await?;
            Ok((listed.tools, listed.next_cursor))
        });
        tools = listed
            .await
            .map_err(|e| format!("Cannot list its tools: {e}."))?;
        tools.retain(|tool: &Tool| {
            let size = serde_json::to_vec(&tool.input_schema).map_or(usize::MAX, |text| text.len());
            if size > MAX_SCHEMA_BYTES {
                tracing::warn!(server = name, tool = %tool.name, size, "a tool's schema is too large");
            }
            size <= MAX_SCHEMA_BYTES
        });
    }
    let mut prompts = Vec::new();
    if offered.prompts.is_some() {
        let listed = list_pages(name, "prompts", |page| async {
            let listed = peer.list_prompts(page).await?;
            Ok((listed.prompts, listed.next_cursor))
        });
        // The server's tools can be used without its prompts.
        prompts = listed.await.unwrap_or_else(|error| {
            tracing::warn!(server = name, %error, "cannot list an MCP server's prompts");
            Vec::new()
        });
    }
    Ok(McpListing {
        peer: peer.clone(),
        shared: Arc::clone(shared),
        tools,
        prompts,
        has_resources: offered.resources.is_some(),
    })
}

/// Requests all pages of a list, within limits.
pub(super) async fn list_pages<T, F>(
    server: &str,
    what: &str,
    page: impl Fn(Option<PaginatedRequestParams>) -> F,
) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let (more, next) = page(Some(params)).await?;
        all.extend(more);
        if all.len() > MAX_ITEMS {
            tracing::warn!(
                server,
                what,
                "too many items (limit: {MAX_ITEMS}); ignoring the rest"
            );
            all.truncate(MAX_ITEMS);
            return Ok(all);
        }
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(all),
        }
    }
    tracing::warn!(
        server,
        what,
        "too many pages (limit: {MAX_PAGES}); ignoring the rest"
    );
    Ok(all)
}

//! Waits for a session's MCP servers during a turn, and reports their failures.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acp::v1::{ToolCall, ToolCallStatus, ToolKind};

use super::server::SessionMcpServer;
use super::servers::SessionMcpServers;
use super::state::McpServerChange;
use crate::model::interface::ToolSpec;
use crate::reported_call::text_content;
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// How long a turn waits for servers before it reports that it is waiting.
const REPORT_DELAY: Duration = Duration::from_secs(1);

/// Returns the tools to offer to the model in a round. Reports to the user which servers were lost or have recovered
/// since the last round.
pub(crate) async fn tools_for_round<'a>(
    servers: &SessionMcpServers,
    workspace: &Workspace,
    own: &'a [ToolSpec],
) -> acp::Result<Cow<'a, [ToolSpec]>> {
    for server in &servers.servers {
        if let Some(news) = server.take_unreported_change() {
            report_server_change(workspace, server, &news).await?;
        }
    }
    Ok(servers.offered_tools(own))
}

/// Retries lost servers before a turn, and waits for servers that are still starting. Waits for each server only once.
pub(crate) async fn wait_for_servers(
    servers: &SessionMcpServers,
    workspace: &Workspace,
) -> acp::Result<()> {
    let begun = tokio::time::Instant::now();
    let deadline = begun + servers.limits.first_prompt;
    let unsaid = (begun + REPORT_DELAY).min(deadline);
    let tried = servers.servers.iter().map(|server| server.retry_and_wait());
    let tried = futures_util::future::join_all(tried);
    // The tools of slower servers are offered in a later round.
    let tried = workspace.run_unless_cancelled(tokio::time::timeout_at(unsaid, tried));
    let _ = stop_if_cancelled(tried.await)?;
    let waiting = servers
        .servers
        .iter()
        .filter(|server| !server.was_awaited.swap(true, Ordering::Relaxed));
    for server in waiting {
        let until = |at| {
            let started = tokio::time::timeout_at(at, server.wait_until_started());
            workspace.run_unless_cancelled(async move { started.await.is_ok() })
        };
        if stop_if_cancelled(until(unsaid).await)? {
            continue;
        }
        let call = ToolCall::new(
            workspace.memory.next_call_id(),
            format!("Waiting for the MCP server `{}`", server.name),
        );
        let call = call
            .kind(ToolKind::Other)
            .status(ToolCallStatus::InProgress);
        let handle = workspace.turn.report_tool_call(call).await?;
        match stop_if_cancelled(until(deadline).await) {
            Ok(true) => match server.take_unreported_change() {
                Some(McpServerChange::Lost { why, .. }) => handle.fail(&*why).await?,
                _ => handle.complete().await?,
            },
            Ok(false) => {
                let why = format!(
                    "It did not start within {} s. Its tools will be added once it has started.",
                    servers.limits.first_prompt.as_secs_f32()
                );
                handle.fail(why).await?;
            }
            Err(error) => {
                handle.cancel(Vec::new()).await?;
                return Err(error);
            }
        }
    }
    Ok(())
}

fn stop_if_cancelled<T>(done: Result<T, ToolFailure>) -> acp::Result<T> {
    done.map_err(|fault| match fault {
        ToolFailure::Stop(error) => error,
        ToolFailure::Failed(why) | ToolFailure::NotFound(why) => acp::Error::internal(why),
    })
}

/// Tells the user that a server was lost or has recovered. This appears as a tool call, which has the status "failed"
/// if the server was lost, so that clients show it in the right place in the conversation but separate from the model's
/// message.
async fn report_server_change(
    workspace: &Workspace,
    server: &SessionMcpServer,
    news: &McpServerChange,
) -> acp::Result<()> {
    let call = ToolCall::new(
        workspace.memory.next_call_id(),
        format!("MCP server `{}`", server.name),
    );
    let status = match news {
        McpServerChange::Lost { .. } => ToolCallStatus::Failed,
        McpServerChange::Recovered { .. } => ToolCallStatus::Completed,
    };
    let call = call
        .kind(ToolKind::Other)
        .status(status)
        .content(vec![text_content(news.to_string())]);
    workspace.turn.report_tool_call(call).await?;
    Ok(())
}

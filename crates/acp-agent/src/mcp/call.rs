//! Handles calls to the tools of MCP servers, and to the agent's own tools for listing and reading resources.

use acp::v1::ToolKind;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult, ToolAnnotations,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::content::{self, McpResult};
use super::limits::McpLimits;
use super::listing::list_pages;
use super::server::ConnectedMcpServer;
use crate::model::interface::ToolSpec;
use crate::model::message::ToolStatus;
use crate::permission::action::ToolAction;
use crate::permission::permit::Permit;
use crate::permission::subject::AlwaysSubject;
use crate::text::first_line;
use crate::tools::schema::parameter_schema;
use crate::tools::tool::{CallDescription, ToolExecution, ToolFuture, ToolInvocation, ToolOutput};
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;

/// The name of the agent's tool that lists resources. It is offered if a server has resources.
pub(super) const LIST_RESOURCES: &str = "list_resources";

/// The name of the agent's tool that reads a resource. It is offered if a server has resources.
pub(super) const READ_RESOURCE: &str = "read_resource";

/// The maximum number of resources to list for the model.
const MAX_RESOURCES: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// Name of the server. Default: all servers.
    pub(super) server: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// URI of the resource.
    pub(super) uri: String,
    /// Name of the server that provides the resource. Required only if several servers have resources.
    pub(super) server: Option<String>,
}

/// Returns the descriptions of the two tools that list and read resources.
pub(super) fn resource_tools() -> [ToolSpec; 2] {
    [
        ToolSpec {
            name: LIST_RESOURCES.into(),
            description: "List the resources of the MCP servers, such as documents and data. Read them with `read_resource`.".into(),
            parameters: parameter_schema::<ListArguments>(),
        },
        ToolSpec {
            name: READ_RESOURCE.into(),
            description: "Read a resource of an MCP server. Get its URI from `list_resources` or from a link.".into(),
            parameters: parameter_schema::<ReadArguments>(),
        },
    ]
}

/// A call to an MCP server's tool, or to one of the two tools that list and read resources.
#[derive(Debug)]
pub(crate) struct ServerCall {
    pub(super) call: McpCall,
    pub(super) limits: McpLimits,
    /// Whether the call needs no permission.
    pub(super) is_exempt: bool,
}

#[derive(Debug)]
pub(super) enum McpCall {
    Tool {
        at: ConnectedMcpServer,
        /// The tool's name as the model knows it.
        called_name: String,
        /// The tool's name on the server.
        tool: String,
        title: Option<String>,
        annotations: Option<ToolAnnotations>,
        arguments: Option<JsonObject>,
    },
    List(Vec<ConnectedMcpServer>),
    Read(ConnectedMcpServer, String),
}

impl ToolInvocation for ServerCall {
    fn tool(&self) -> &str {
        match &self.call {
            McpCall::Tool {
                called_name: called,
                ..
            } => called,
            McpCall::List(_) => LIST_RESOURCES,
            McpCall::Read(..) => READ_RESOURCE,
        }
    }

    fn describe(&self, _: &Workspace) -> CallDescription {
        self.call_description()
    }

    fn action(&self, _: &Workspace) -> Option<ToolAction> {
        self.kind().map(ToolAction::Other)
    }

    /// Returns the subject of a permission request. Even a tool that the server declares read-only needs permission,
    /// because the server is not trusted and the arguments send data to it.
    fn subject(&self) -> Option<AlwaysSubject> {
        match &self.call {
            McpCall::Tool { .. } if self.is_exempt => None,
            McpCall::Tool {
                called_name: called,
                ..
            } => Some(AlwaysSubject::Tool(called.clone())),
            // No tool has this name.
            McpCall::Read(at, _) => Some(AlwaysSubject::Tool(format!(
                "{READ_RESOURCE} of {}",
                at.server.key
            ))),
            // Servers send their lists without being asked, so listing needs no permission.
            McpCall::List(_) => None,
        }
    }

    /// Returns `false` if the server declares the tool read-only. Such a tool may run in architect mode, with
    /// permission.
    fn may_change(&self) -> bool {
        let only_reads = match &self.call {
            McpCall::Tool { annotations, .. } => is_read_only(annotations.as_ref()),
            McpCall::List(_) | McpCall::Read(..) => true,
        };
        !only_reads
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, permit: Permit) -> ToolFuture<'a> {
        Box::pin(async move { self.execute(execution, &permit).await })
    }
}

impl ServerCall {
    /// Returns the description of the call to show to the user.
    pub(crate) fn call_description(&self) -> CallDescription {
        let (title, kind) = match &self.call {
            McpCall::Tool {
                at,
                tool,
                title,
                annotations,
                ..
            } => {
                let annotated_title = annotations.as_ref().and_then(|a| a.title.as_ref());
                let title = title.as_ref().or(annotated_title).unwrap_or(tool);
                (
                    format!("{}: {}", at.server.name, first_line(title)),
                    tool_kind(annotations.as_ref()),
                )
            }
            McpCall::List(_) => ("List resources of MCP servers".to_owned(), ToolKind::Read),
            McpCall::Read(at, uri) => (
                format!("{}: read `{}`", at.server.name, first_line(uri)),
                ToolKind::Read,
            ),
        };
        CallDescription {
            title,
            kind,
            locations: Vec::new(),
            content: Vec::new(),
        }
    }

    /// Returns the tool kind that the rules apply to, or `None` if the call needs no permission.
    fn kind(&self) -> Option<ToolKind> {
        match &self.call {
            McpCall::Tool { .. } if self.is_exempt => None,
            McpCall::Tool { annotations, .. } => Some(tool_kind(annotations.as_ref())),
            McpCall::Read(..) => Some(ToolKind::Read),
            McpCall::List(_) => None,
        }
    }

    async fn execute(
        &self,
        execution: &ToolExecution<'_>,
        permit: &Permit,
    ) -> Result<ToolOutput, ToolFailure> {
        let given = match &self.call {
            McpCall::Tool {
                at,
                tool,
                arguments,
                ..
            } => {
                self.call_tool(execution, permit, at, tool, arguments.clone())
                    .await?
            }
            McpCall::List(servers) => self.list_resources(execution, servers).await?,
            McpCall::Read(at, uri) => self.read_resource(execution, permit, at, uri).await?,
        };
        Ok(ToolOutput {
            status: if given.is_error {
                ToolStatus::Failed
            } else {
                ToolStatus::Done
            },
            images: given.images(),
            text: given.text,
            content: Some(given.content),
            locations: None,
            data: given.data,
        })
    }

    async fn call_tool(
        &self,
        execution: &ToolExecution<'_>,
        permit: &Permit,
        at: &ConnectedMcpServer,
        tool: &str,
        arguments: Option<JsonObject>,
    ) -> Result<McpResult, ToolFailure> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.send_request(execution, permit, at, request).await? {
            ServerResult::CallToolResult(result) => Ok(content::from_tool_result(&result)),
            _ => Err(unexpected_response_error(at)),
        }
    }

    async fn read_resource(
        &self,
        execution: &ToolExecution<'_>,
        permit: &Permit,
        at: &ConnectedMcpServer,
        uri: &str,
    ) -> Result<McpResult, ToolFailure> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match self.send_request(execution, permit, at, request).await? {
            ServerResult::ReadResourceResult(result) => Ok(content::from_resource(result)),
            _ => Err(unexpected_response_error(at)),
        }
    }

    async fn send_request(
        &self,
        execution: &ToolExecution<'_>,
        _: &Permit,
        at: &ConnectedMcpServer,
        request: ClientRequest,
    ) -> Result<ServerResult, ToolFailure> {
        at.server
            .request_with_retry(
                &at.listing,
                execution.workspace,
                request,
                &self.limits,
                Some(execution.handle),
            )
            .await
    }

    /// Lists the resources of the servers, with one resource per line.
    async fn list_resources(
        &self,
        execution: &ToolExecution<'_>,
        servers: &[ConnectedMcpServer],
    ) -> Result<McpResult, ToolFailure> {
        let mut lines = Vec::new();
        for ConnectedMcpServer {
            server,
            listing: ready,
        } in servers
        {
            let peer = &ready.peer;
            let all = async {
                let resources = list_pages(&server.name, "resources", |page| async {
                    let listed = peer.list_resources(page).await?;
                    Ok((listed.resources, listed.next_cursor))
                });
                let mut lines = vec![format!("Resources of `{}`:", server.key)];
                for resource in resources.await? {
                    let what = resource
                        .description
                        .or(resource.title)
                        .unwrap_or(resource.name);
                    lines.push(resource_line(&resource.uri, &what));
                }
                let templates = list_pages(&server.name, "templates", |page| async {
                    let listed = peer.list_resource_templates(page).await?;
                    Ok((listed.resource_templates, listed.next_cursor))
                });
                // Not all servers support resource templates.
                for template in templates.await.unwrap_or_default() {
                    let what = template
                        .description
                        .or(template.title)
                        .unwrap_or(template.name);
                    lines.push(resource_line(&template.uri_template, &what));
                }
                Ok::<_, rmcp::service::ServiceError>(lines)
            };
            let all = tokio::time::timeout(self.limits.call, all);
            match execution.workspace.run_unless_cancelled(all).await? {
                Ok(Ok(all)) => lines.extend(all),
                Ok(Err(error)) => {
                    lines.push(format!("`{}`: cannot list resources: {error}", server.key))
                }
                Err(_) => lines.push(format!("`{}` is not responding.", server.key)),
            }
        }
        if lines.len() > MAX_RESOURCES {
            lines.truncate(MAX_RESOURCES);
            lines.push("[more resources omitted]".to_owned());
        }
        Ok(content::from_text(&lines.join("\n")))
    }
}

fn resource_line(uri: &str, what: &str) -> String {
    format!("- `{}`: {}", first_line(uri), first_line(what))
}

fn unexpected_response_error(at: &ConnectedMcpServer) -> ToolFailure {
    ToolFailure::failed(format!(
        "The MCP server `{}` requires a feature that this agent does not support.",
        at.server.name
    ))
}

/// Returns the kind of the tool, which clients use to choose an icon. It is based on the server's annotations, which
/// are only hints.
fn tool_kind(annotations: Option<&ToolAnnotations>) -> ToolKind {
    let open_world = annotations.and_then(|a| a.open_world_hint);
    match (is_read_only(annotations), open_world) {
        (true, Some(true)) => ToolKind::Fetch,
        (true, _) => ToolKind::Read,
        (false, _) => ToolKind::Other,
    }
}

fn is_read_only(annotations: Option<&ToolAnnotations>) -> bool {
    annotations.and_then(|a| a.read_only_hint) == Some(true)
}

/// Returns the arguments as a JSON object, as MCP requires.
pub(super) fn to_json_object(tool: &str, arguments: &Value) -> Result<Option<JsonObject>, String> {
    match arguments {
        Value::Null => Ok(None),
        Value::Object(object) => Ok(Some(object.clone())),
        _ => Err(format!("`{tool}`: arguments must be an object.")),
    }
}

//! Calls of servers' tools, and of the two with which a model gets at their resources.

use acp::v1::ToolKind;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult, ToolAnnotations,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::content::{self, Given};
use super::limits::McpLimits;
use super::listing::pages;
use super::server::At;
use crate::model::interface::ToolSpec;
use crate::model::message::ToolStatus;
use crate::permission::deed::Deed;
use crate::permission::permit::Permit;
use crate::permission::subject::Subject;
use crate::text::one_line;
use crate::tools::tool::{About, Call, Execution, Outcome, Output};
use crate::workspace::Workspace;
use crate::workspace::fault::Fault;

/// The names of the agent's own tools for resources. They are there if a server has resources.
pub(super) const LIST: &str = "list_resources";
pub(super) const READ: &str = "read_resource";

/// How many resources are listed to a model.
const LISTED: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// The server; without it, all of them.
    pub(super) server: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArguments {
    /// The resource's URI.
    pub(super) uri: String,
    /// The server that has it. It can be left out if only one has resources.
    pub(super) server: Option<String>,
}

/// How a model is told of the tools for resources.
pub(super) fn resource_tools() -> [ToolSpec; 2] {
    [
        ToolSpec {
            name: LIST.into(),
            description: "Lists the resources that MCP servers have: documents and data that can be read with `read_resource`.".into(),
            parameters: schemars::schema_for!(ListArguments).to_value(),
        },
        ToolSpec {
            name: READ.into(),
            description: "Reads a resource of an MCP server: one that `list_resources` has listed, or that a link leads to.".into(),
            parameters: schemars::schema_for!(ReadArguments).to_value(),
        },
    ]
}

/// A call.
#[derive(Debug)]
pub(crate) struct ServerCall {
    pub(super) what: What,
    pub(super) limits: McpLimits,
}

#[derive(Debug)]
pub(super) enum What {
    Tool {
        at: At,
        /// As the model calls it.
        called: String,
        /// As the server does.
        tool: String,
        title: Option<String>,
        annotations: Option<ToolAnnotations>,
        arguments: Option<JsonObject>,
    },
    List(Vec<At>),
    Read(At, String),
}

impl Call for ServerCall {
    fn tool(&self) -> &str {
        match &self.what {
            What::Tool { called, .. } => called,
            What::List(_) => LIST,
            What::Read(..) => READ,
        }
    }

    fn about(&self, _: &Workspace) -> About {
        self.about_call()
    }

    fn deed(&self, _: &Workspace) -> Option<Deed> {
        self.kind().map(Deed::Other)
    }

    /// What permission is needed for. Also for what a server says only reads: its word is nobody's here, and
    /// what it is asked it is told.
    fn subject(&self) -> Option<Subject> {
        match &self.what {
            What::Tool { called, .. } => Some(Subject::Tool(called.clone())),
            // No tool has such a name.
            What::Read(at, _) => Some(Subject::Tool(format!("{READ} of {}", at.server.key))),
            // Which it has told all the time.
            What::List(_) => None,
        }
    }

    /// What changes nothing by the server's own word can be asked for in architect mode.
    fn may_change(&self) -> bool {
        let only_reads = match &self.what {
            What::Tool { annotations, .. } => only_reads(annotations.as_ref()),
            What::List(_) | What::Read(..) => true,
        };
        !only_reads
    }

    fn run<'a>(&'a self, execution: &'a mut Execution<'_>, permit: Permit) -> Outcome<'a> {
        Box::pin(async move { self.carry_out(execution, &permit).await })
    }
}

impl ServerCall {
    /// What it is, for people.
    pub(crate) fn about_call(&self) -> About {
        let (title, kind) = match &self.what {
            What::Tool {
                at,
                tool,
                title,
                annotations,
                ..
            } => {
                let said = annotations.as_ref().and_then(|a| a.title.as_ref());
                let title = title.as_ref().or(said).unwrap_or(tool);
                (
                    format!("{}: {}", at.server.name, one_line(title)),
                    kind(annotations.as_ref()),
                )
            }
            What::List(_) => ("List resources of MCP servers".to_owned(), ToolKind::Read),
            What::Read(at, uri) => (
                format!("{}: read `{}`", at.server.name, one_line(uri)),
                ToolKind::Read,
            ),
        };
        About {
            title,
            kind,
            locations: Vec::new(),
            content: Vec::new(),
        }
    }

    /// What kind of thing it does, for rules; `None` for what is not asked about.
    fn kind(&self) -> Option<ToolKind> {
        match &self.what {
            What::Tool { annotations, .. } => Some(kind(annotations.as_ref())),
            What::Read(..) => Some(ToolKind::Read),
            What::List(_) => None,
        }
    }

    async fn carry_out(&self, execution: &Execution<'_>, permit: &Permit) -> Result<Output, Fault> {
        let given = match &self.what {
            What::Tool {
                at,
                tool,
                arguments,
                ..
            } => {
                self.call(execution, permit, at, tool, arguments.clone())
                    .await?
            }
            What::List(servers) => self.list(execution, servers).await?,
            What::Read(at, uri) => self.read(execution, permit, at, uri).await?,
        };
        Ok(Output {
            status: if given.failed {
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

    async fn call(
        &self,
        execution: &Execution<'_>,
        permit: &Permit,
        at: &At,
        tool: &str,
        arguments: Option<JsonObject>,
    ) -> Result<Given, Fault> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.ask(execution, permit, at, request).await? {
            ServerResult::CallToolResult(result) => Ok(content::of_tool(&result)),
            _ => Err(unexpected(at)),
        }
    }

    async fn read(
        &self,
        execution: &Execution<'_>,
        permit: &Permit,
        at: &At,
        uri: &str,
    ) -> Result<Given, Fault> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match self.ask(execution, permit, at, request).await? {
            ServerResult::ReadResourceResult(result) => Ok(content::of_resource(result)),
            _ => Err(unexpected(at)),
        }
    }

    async fn ask(
        &self,
        execution: &Execution<'_>,
        _: &Permit,
        at: &At,
        request: ClientRequest,
    ) -> Result<ServerResult, Fault> {
        at.server
            .ask(
                &at.ready,
                execution.workspace,
                request,
                &self.limits,
                Some(execution.handle),
            )
            .await
    }

    /// What the servers have, a line each.
    async fn list(&self, execution: &Execution<'_>, servers: &[At]) -> Result<Given, Fault> {
        let mut lines = Vec::new();
        for At { server, ready } in servers {
            let peer = &ready.peer;
            let all = async {
                let resources = pages(&server.name, "resources", |page| async {
                    let listed = peer.list_resources(page).await?;
                    Ok((listed.resources, listed.next_cursor))
                });
                let mut lines = vec![format!("Resources of `{}`:", server.key)];
                for resource in resources.await? {
                    let what = resource
                        .description
                        .or(resource.title)
                        .unwrap_or(resource.name);
                    lines.push(line(&resource.uri, &what));
                }
                let templates = pages(&server.name, "templates", |page| async {
                    let listed = peer.list_resource_templates(page).await?;
                    Ok((listed.resource_templates, listed.next_cursor))
                });
                // Not all have them.
                for template in templates.await.unwrap_or_default() {
                    let what = template
                        .description
                        .or(template.title)
                        .unwrap_or(template.name);
                    lines.push(line(&template.uri_template, &what));
                }
                Ok::<_, rmcp::service::ServiceError>(lines)
            };
            let all = tokio::time::timeout(self.limits.call, all);
            match execution.workspace.unless_cancelled(all).await? {
                Ok(Ok(all)) => lines.extend(all),
                Ok(Err(error)) => {
                    lines.push(format!("`{}` does not list them: {error}", server.key))
                }
                Err(_) => lines.push(format!("`{}` does not answer.", server.key)),
            }
        }
        if lines.len() > LISTED {
            lines.truncate(LISTED);
            lines.push("There are more.".to_owned());
        }
        Ok(content::of_text(&lines.join("\n")))
    }
}

fn line(uri: &str, what: &str) -> String {
    format!("- `{}`: {}", one_line(uri), one_line(what))
}

fn unexpected(at: &At) -> Fault {
    Fault::failed(format!(
        "The MCP server `{}` wants something first that this agent cannot do.",
        at.server.name
    ))
}

/// The kind that clients show by an icon. What a server says of its tool is a hint and no more.
fn kind(annotations: Option<&ToolAnnotations>) -> ToolKind {
    let open_world = annotations.and_then(|a| a.open_world_hint);
    match (only_reads(annotations), open_world) {
        (true, Some(true)) => ToolKind::Fetch,
        (true, _) => ToolKind::Read,
        (false, _) => ToolKind::Other,
    }
}

fn only_reads(annotations: Option<&ToolAnnotations>) -> bool {
    annotations.and_then(|a| a.read_only_hint) == Some(true)
}

/// The arguments as a server takes them.
pub(super) fn object(tool: &str, arguments: &Value) -> Result<Option<JsonObject>, String> {
    match arguments {
        Value::Null => Ok(None),
        Value::Object(object) => Ok(Some(object.clone())),
        _ => Err(format!("`{tool}` takes an object as its arguments.")),
    }
}

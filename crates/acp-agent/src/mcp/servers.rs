//! Manages the MCP servers of a session, and the tools that are offered to the model.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use acp::agent::Session;
use acp::v1::McpServer;
use rmcp::model::Tool;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::call::{self, McpCall, ServerCall};
use super::limits::McpLimits;
use super::names::{SEPARATOR, UniqueNames};
use super::server::{ConnectedMcpServer, SessionMcpServer};
use crate::model::interface::ToolSpec;
use crate::text::truncate_to_head;
use crate::tools::tool::parse_arguments;

/// The maximum length of a tool description that is sent to the model, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024;

/// The MCP servers of a session. Dropping this shuts the servers down.
pub(crate) struct SessionMcpServers {
    pub(super) servers: Vec<Arc<SessionMcpServer>>,
    /// A counter that changes whenever the client or the model may need an update.
    changes: watch::Receiver<u64>,
    pub(super) limits: McpLimits,
    /// The tool that needs no permission, if any.
    exempt: Option<ExemptTool>,
    announce_task: Mutex<Option<AbortHandle>>,
}

/// A tool of an MCP server that needs no permission, because the client has said so when it started the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExemptTool {
    pub(crate) server: String,
    pub(crate) tool: String,
}

impl ExemptTool {
    /// Returns `true` if the call is to this tool.
    fn covers(&self, call: &McpCall) -> bool {
        match call {
            McpCall::Tool { at, tool, .. } => at.server.name == self.server && *tool == self.tool,
            McpCall::List(_) | McpCall::Read(..) => false,
        }
    }
}

impl Default for SessionMcpServers {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            changes: watch::channel(0).1,
            limits: McpLimits::default(),
            exempt: None,
            announce_task: Mutex::default(),
        }
    }
}

impl Drop for SessionMcpServers {
    fn drop(&mut self) {
        self.stop_announcing();
    }
}

impl SessionMcpServers {
    /// Starts all servers of a session at the same time, without waiting for them.
    pub(crate) fn start(
        definitions: Vec<McpServer>,
        session: &Session,
        limits: McpLimits,
        exempt: Option<ExemptTool>,
    ) -> Self {
        let (change, changes) = watch::channel(0);
        let mut keys = UniqueNames::default();
        let all = definitions
            .into_iter()
            .enumerate()
            .map(|(nth, definition)| {
                let key = keys.server_key(definition.name().unwrap_or_default(), nth);
                let session = session.clone();
                Arc::new(SessionMcpServer::start(
                    definition,
                    key,
                    session,
                    limits,
                    change.clone(),
                ))
            });
        Self {
            servers: all.collect(),
            changes,
            limits,
            exempt,
            announce_task: Mutex::default(),
        }
    }

    /// Shuts down all servers in parallel. When this returns, none of their processes is running.
    pub(crate) async fn close(&self) {
        self.stop_announcing();
        let closing: Vec<_> = self
            .servers
            .iter()
            .map(|server| {
                let server = Arc::clone(server);
                tokio::spawn(async move { server.close().await })
            })
            .collect();
        for closed in closing {
            // Errors are logged by the server itself.
            let _ = closed.await;
        }
    }

    /// Calls `change` whenever the tools or prompts of a server may have changed. Stops when `change` returns `None` or
    /// its future returns `false`.
    pub(crate) fn on_change<F>(&self, change: impl Fn() -> Option<F> + Send + 'static)
    where
        F: Future<Output = bool> + Send,
    {
        if self.servers.is_empty() {
            return;
        }
        let mut changes = self.changes.clone();
        let task = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(changed) = change() else {
                    return;
                };
                if !changed.await {
                    return;
                }
            }
        });
        let mut announcing = self
            .announce_task
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = announcing.replace(task.abort_handle()) {
            before.abort();
        }
    }

    fn stop_announcing(&self) {
        let mut announcing = self
            .announce_task
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(announcing) = announcing.take() {
            announcing.abort();
        }
    }

    /// Returns the servers that are currently connected.
    pub(super) fn connected(&self) -> impl Iterator<Item = ConnectedMcpServer> {
        self.servers.iter().filter_map(|server| {
            let ready = server.listing()?;
            let server = Arc::clone(server);
            Some(ConnectedMcpServer {
                server,
                listing: ready,
            })
        })
    }

    /// Returns the servers' tools, each with its name for the model. Names in `own`, the agent's own tools, cannot be
    /// reused.
    fn named_tools(&self, own: &[ToolSpec]) -> Vec<(String, ConnectedMcpServer, Tool)> {
        let taken = own.iter().map(|tool| tool.name.as_ref());
        let mut names =
            UniqueNames::excluding(taken.chain([call::LIST_RESOURCES, call::READ_RESOURCE]));
        let mut all = Vec::new();
        for at in self.connected() {
            for (nth, tool) in at.listing.tools.iter().enumerate() {
                let twice = at
                    .listing
                    .tools
                    .iter()
                    .take(nth)
                    .any(|before| before.name == tool.name);
                if !twice {
                    let name = names.tool_name(&at.server.key, &tool.name);
                    all.push((name, at.clone(), tool.clone()));
                }
            }
        }
        all
    }

    /// Returns the tools to offer to the model: the agent's own and those of the servers.
    pub(super) fn offered_tools<'a>(&self, own: &'a [ToolSpec]) -> Cow<'a, [ToolSpec]> {
        if self.servers.is_empty() {
            return Cow::Borrowed(own);
        }
        let mut offered = own.to_vec();
        if self.connected().any(|at| at.listing.has_resources) {
            offered.extend(call::resource_tools());
        }
        for (name, at, tool) in self.named_tools(own) {
            let described = tool.description.as_deref().or(tool.title.as_deref());
            let described =
                truncate_to_head(described.unwrap_or(&tool.name), MAX_DESCRIPTION_BYTES);
            offered.push(ToolSpec {
                name: name.into(),
                description: format!(
                    "{described}\n(Provided by the MCP server `{}`.)",
                    at.server.name
                )
                .into(),
                parameters: Value::Object(tool.input_schema.as_ref().clone()),
            });
        }
        Cow::Owned(offered)
    }

    /// Creates a call to a server's tool. Returns `None` if no server has a tool with this name.
    ///
    /// # Errors
    /// The tool cannot be called. The error tells the model why.
    pub(crate) fn call(
        &self,
        own: &[ToolSpec],
        called: &str,
        arguments: &Value,
    ) -> Option<Result<ServerCall, String>> {
        if self.servers.is_empty() || own.iter().any(|tool| tool.name == called) {
            return None;
        }
        let what = match called {
            call::LIST_RESOURCES => self.parse_list_call(arguments),
            call::READ_RESOURCE => self.parse_read_call(arguments),
            _ => self.tool_call(own, called, arguments)?,
        };
        let limits = self.limits;
        Some(what.map(|what| ServerCall {
            is_exempt: self.exempt.as_ref().is_some_and(|tool| tool.covers(&what)),
            call: what,
            limits,
        }))
    }

    fn tool_call(
        &self,
        own: &[ToolSpec],
        called: &str,
        arguments: &Value,
    ) -> Option<Result<McpCall, String>> {
        let tool = self
            .named_tools(own)
            .into_iter()
            .find(|(name, ..)| name == called);
        let Some((called, at, tool)) = tool else {
            let server = self.servers.iter().find(|server| {
                let rest = called.strip_prefix(&server.key);
                rest.is_some_and(|rest| rest.starts_with(SEPARATOR))
            })?;
            return Some(Err(match server.unavailable_reason() {
                Some(why) => why,
                None => format!("The MCP server `{}` has no tool `{called}`.", server.name),
            }));
        };
        let arguments = call::to_json_object(&called, arguments);
        Some(arguments.map(|arguments| McpCall::Tool {
            at,
            called_name: called,
            tool: tool.name.into_owned(),
            title: tool.title,
            annotations: tool.annotations,
            arguments,
        }))
    }

    fn parse_list_call(&self, arguments: &Value) -> Result<McpCall, String> {
        let arguments: call::ListArguments = parse_arguments(call::LIST_RESOURCES, arguments)?;
        self.servers_with_resources(arguments.server.as_deref())
            .map(McpCall::List)
    }

    fn parse_read_call(&self, arguments: &Value) -> Result<McpCall, String> {
        let arguments: call::ReadArguments = parse_arguments(call::READ_RESOURCE, arguments)?;
        let mut servers = self.servers_with_resources(arguments.server.as_deref())?;
        match (servers.pop(), servers.is_empty()) {
            (Some(at), true) => Ok(McpCall::Read(at, arguments.uri)),
            (last, _) => {
                let keys = servers.iter().chain(&last).map(|at| at.server.key.as_str());
                let keys: Vec<&str> = keys.collect();
                Err(format!("Set `server` to one of: {}.", keys.join(", ")))
            }
        }
    }

    /// Returns the connected servers that have resources. If a server name is given, returns only that server.
    fn servers_with_resources(
        &self,
        named: Option<&str>,
    ) -> Result<Vec<ConnectedMcpServer>, String> {
        let is_meant = |at: &ConnectedMcpServer| {
            named.is_none_or(|named| named == at.server.key || named == at.server.name)
        };
        let all = self.connected().filter(|at| at.listing.has_resources);
        let all: Vec<ConnectedMcpServer> = all.filter(is_meant).collect();
        match (all.is_empty(), named) {
            (false, _) => Ok(all),
            (true, Some(named)) => Err(format!("No MCP server called `{named}` has resources.")),
            (true, None) => Err("No MCP server has resources at the moment.".to_owned()),
        }
    }
}

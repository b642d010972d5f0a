//! MCP servers: those that the client names for a session and those of the user's own, in each session.
//!
//! A server is started for a session and ends with it (Session setup, "MCP Servers"). Each lives by itself
//! (`server.rs`); one that does not start or dies costs its own tools and nothing else, and the person is told.

mod ask;
mod call;
mod connect;
mod content;
mod failure;
mod handler;
mod http;
mod life;
mod listing;
mod names;
mod prompts;
mod server;
mod sse;

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp::agent::Session;
use acp::v1::{McpServer, ToolCall, ToolCallStatus, ToolKind};
use rmcp::model::Tool;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::context::commands;
use crate::model::interface::ToolSpec;
use crate::tools;
use crate::workspace::{Fault, Workspace};
use call::{At, What};
use names::{BETWEEN, Names};
use server::{News, Server};

use crate::reported::text;
use crate::text::head;
pub(crate) use call::ServerCall;
pub(crate) use connect::joined;
pub(crate) use prompts::Typed;

/// How long a turn waits for servers without saying so.
const UNSAID: Duration = Duration::from_secs(1);

/// The longest description of a tool that the model is given, in bytes.
const LONGEST_DESCRIPTION: usize = 8 * 1024;

/// How long MCP servers are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpLimits {
    /// How long a server may take to start, and to say what it has: two minutes, since many are downloaded when
    /// they are first started. No session waits for that.
    pub start: Duration,
    /// How long the first prompt of a session waits for servers that still start: fifteen seconds. Then the turn
    /// goes on without them, and their tools come when they do.
    pub first_prompt: Duration,
    /// How long a call of a tool may take without a word of progress: five minutes. With progress it may take
    /// ten times as long.
    pub call: Duration,
    /// How long a call that could not be delivered waits for the connection to be there again: five seconds.
    pub reconnect: Duration,
    /// How long passes between the first two tries to have a server again that is gone: a second, and twice as
    /// long each further time. The first try is made at once.
    pub retry: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(120),
            first_prompt: Duration::from_secs(15),
            call: Duration::from_secs(300),
            reconnect: Duration::from_secs(5),
            retry: Duration::from_secs(1),
        }
    }
}

/// The servers of a session. Dropping this ends them.
pub(crate) struct Servers {
    all: Vec<Arc<Server>>,
    /// Counts what the client or the model may have to be told anew.
    changes: watch::Receiver<u64>,
    limits: McpLimits,
    announcing: Mutex<Option<AbortHandle>>,
}

impl Default for Servers {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            changes: watch::channel(0).1,
            limits: McpLimits::default(),
            announcing: Mutex::default(),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.announce_no_more();
    }
}

impl Servers {
    /// Has the servers of a session start, all at once. This waits for none of them.
    pub(crate) fn start(definitions: Vec<McpServer>, session: &Session, limits: McpLimits) -> Self {
        let (change, changes) = watch::channel(0);
        let mut keys = Names::default();
        let all = definitions
            .into_iter()
            .enumerate()
            .map(|(nth, definition)| {
                let key = keys.key(definition.name().unwrap_or_default(), nth);
                let session = session.clone();
                Arc::new(Server::start(
                    definition,
                    key,
                    session,
                    limits,
                    change.clone(),
                ))
            });
        Self {
            all: all.collect(),
            changes,
            limits,
            announcing: Mutex::default(),
        }
    }

    /// Ends them, all at once. When this returns none of their processes runs.
    pub(crate) async fn close(&self) {
        self.announce_no_more();
        let closing: Vec<_> = self
            .all
            .iter()
            .map(|server| {
                let server = Arc::clone(server);
                tokio::spawn(async move { server.close().await })
            })
            .collect();
        for closed in closing {
            // What is left of it is logged where it happens.
            let _ = closed.await;
        }
    }

    /// Announces the commands anew each time when the servers have other prompts.
    pub(crate) fn announce(&self, session: Session, state: &Arc<crate::session::SessionState>) {
        if self.all.is_empty() {
            return;
        }
        let mut changes = self.changes.clone();
        // It must not keep alive what it watches.
        let state = Arc::downgrade(state);
        let task = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(state) = state.upgrade() else {
                    return;
                };
                let understands = state.understands();
                if let Err(error) = commands::announce(&session, &state, understands).await {
                    tracing::debug!(%error, "the servers' prompts were not announced");
                    return;
                }
            }
        });
        let mut announcing = self
            .announcing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = announcing.replace(task.abort_handle()) {
            before.abort();
        }
    }

    fn announce_no_more(&self) {
        let mut announcing = self
            .announcing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(announcing) = announcing.take() {
            announcing.abort();
        }
    }

    /// Those that answer.
    fn answering(&self) -> impl Iterator<Item = At> {
        self.all.iter().filter_map(|server| {
            let ready = server.ready()?;
            let server = Arc::clone(server);
            Some(At { server, ready })
        })
    }

    /// Their tools, under the names by which the model calls them. `own` are the agent's, which none of theirs
    /// takes the place of.
    fn tools(&self, own: &[ToolSpec]) -> Vec<(String, At, Tool)> {
        let taken = own.iter().map(|tool| tool.name.as_ref());
        let mut names = Names::without(taken.chain([call::LIST, call::READ]));
        let mut all = Vec::new();
        for at in self.answering() {
            for (nth, tool) in at.ready.tools.iter().enumerate() {
                let twice = at
                    .ready
                    .tools
                    .iter()
                    .take(nth)
                    .any(|before| before.name == tool.name);
                if !twice {
                    let name = names.tool(&at.server.key, &tool.name);
                    all.push((name, at.clone(), tool.clone()));
                }
            }
        }
        all
    }

    /// What the model is offered: the agent's own tools, and the servers'.
    fn offer<'a>(&self, own: &'a [ToolSpec]) -> Cow<'a, [ToolSpec]> {
        if self.all.is_empty() {
            return Cow::Borrowed(own);
        }
        let mut offered = own.to_vec();
        if self.answering().any(|at| at.ready.has_resources) {
            offered.extend(call::resource_tools());
        }
        for (name, at, tool) in self.tools(own) {
            let described = tool.description.as_deref().or(tool.title.as_deref());
            let described = head(described.unwrap_or(&tool.name), LONGEST_DESCRIPTION);
            offered.push(ToolSpec {
                name: name.into(),
                description: format!(
                    "{described}\n(A tool of the MCP server `{}`.)",
                    at.server.name
                )
                .into(),
                parameters: Value::Object(tool.input_schema.as_ref().clone()),
            });
        }
        Cow::Owned(offered)
    }

    /// The call of a tool that is a server's; `None` if the name is none of theirs.
    ///
    /// # Errors
    /// Why it cannot be called, for the model.
    pub(crate) fn call(
        &self,
        own: &[ToolSpec],
        called: &str,
        arguments: &Value,
    ) -> Option<Result<ServerCall, String>> {
        if self.all.is_empty() || own.iter().any(|tool| tool.name == called) {
            return None;
        }
        let what = match called {
            call::LIST => self.list_call(arguments),
            call::READ => self.read_call(arguments),
            _ => self.tool_call(own, called, arguments)?,
        };
        let limits = self.limits;
        Some(what.map(|what| ServerCall { what, limits }))
    }

    fn tool_call(
        &self,
        own: &[ToolSpec],
        called: &str,
        arguments: &Value,
    ) -> Option<Result<What, String>> {
        let tool = self
            .tools(own)
            .into_iter()
            .find(|(name, ..)| name == called);
        let Some((called, at, tool)) = tool else {
            let server = self.all.iter().find(|server| {
                let rest = called.strip_prefix(&server.key);
                rest.is_some_and(|rest| rest.starts_with(BETWEEN))
            })?;
            return Some(Err(match server.absence() {
                Some(why) => why,
                None => format!("The MCP server `{}` has no tool `{called}`.", server.name),
            }));
        };
        let arguments = call::object(&called, arguments);
        Some(arguments.map(|arguments| What::Tool {
            at,
            called,
            tool: tool.name.into_owned(),
            title: tool.title,
            annotations: tool.annotations,
            arguments,
        }))
    }

    fn list_call(&self, arguments: &Value) -> Result<What, String> {
        let arguments: call::ListArguments = tools::read_arguments(call::LIST, arguments)?;
        self.with_resources(arguments.server.as_deref())
            .map(What::List)
    }

    fn read_call(&self, arguments: &Value) -> Result<What, String> {
        let arguments: call::ReadArguments = tools::read_arguments(call::READ, arguments)?;
        let mut servers = self.with_resources(arguments.server.as_deref())?;
        match (servers.pop(), servers.is_empty()) {
            (Some(at), true) => Ok(What::Read(at, arguments.uri)),
            (last, _) => {
                let keys = servers.iter().chain(&last).map(|at| at.server.key.as_str());
                let keys: Vec<&str> = keys.collect();
                Err(format!(
                    "Say in `server` which has it: {}.",
                    keys.join(", ")
                ))
            }
        }
    }

    /// The servers with resources, or the one of this name.
    fn with_resources(&self, named: Option<&str>) -> Result<Vec<At>, String> {
        let is_meant =
            |at: &At| named.is_none_or(|named| named == at.server.key || named == at.server.name);
        let all = self.answering().filter(|at| at.ready.has_resources);
        let all: Vec<At> = all.filter(is_meant).collect();
        match (all.is_empty(), named) {
            (false, _) => Ok(all),
            (true, Some(named)) => Err(format!("There is no MCP server `{named}` with resources.")),
            (true, None) => Err("No MCP server has resources now.".to_owned()),
        }
    }
}

/// What the model is offered in a round. What has become of servers since the last is shown to the person.
pub(crate) async fn offered<'a>(
    workspace: &Workspace,
    own: &'a [ToolSpec],
) -> acp::Result<Cow<'a, [ToolSpec]>> {
    let servers = &workspace.state.servers;
    for server in &servers.all {
        if let Some(news) = server.to_report() {
            report(workspace, server, &news).await?;
        }
    }
    Ok(servers.offer(own))
}

/// Before a turn: has the servers that are gone tried again, and waits for those that still start, once for each.
pub(crate) async fn started(workspace: &Workspace) -> acp::Result<()> {
    let servers = &workspace.state.servers;
    let begun = tokio::time::Instant::now();
    let deadline = begun + servers.limits.first_prompt;
    let unsaid = (begun + UNSAID).min(deadline);
    let tried = servers.all.iter().map(|server| server.tried());
    let tried = futures_util::future::join_all(tried);
    // Those that take longer come in a later round.
    let tried = workspace.unless_cancelled(tokio::time::timeout_at(unsaid, tried));
    let _ = stop(tried.await)?;
    let waiting = servers
        .all
        .iter()
        .filter(|server| !server.awaited.swap(true, Ordering::Relaxed));
    for server in waiting {
        let until = |at| {
            let started = tokio::time::timeout_at(at, server.started());
            workspace.unless_cancelled(async move { started.await.is_ok() })
        };
        if stop(until(unsaid).await)? {
            continue;
        }
        let call = ToolCall::new(
            workspace.state.next_call_id(),
            format!("Wait for the MCP server `{}`", server.name),
        );
        let call = call
            .kind(ToolKind::Other)
            .status(ToolCallStatus::InProgress);
        let handle = workspace.turn.tool_call(call).await?;
        match stop(until(deadline).await) {
            Ok(true) => match server.to_report() {
                Some(News::Gone { why, .. }) => handle.fail(&*why).await?,
                _ => handle.complete().await?,
            },
            Ok(false) => {
                let why = format!(
                    "It has not started after {} s. Its tools come as soon as it does.",
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

fn stop<T>(done: Result<T, Fault>) -> acp::Result<T> {
    done.map_err(|fault| match fault {
        Fault::Stop(error) => error,
        Fault::Failed(why) | Fault::Missing(why) => acp::Error::internal(why),
    })
}

/// Shows the person what has become of a server: as a tool call, failed if the server is gone, which clients show where
/// it happened, and which is no part of what the model says.
async fn report(workspace: &Workspace, server: &Server, news: &News) -> acp::Result<()> {
    let call = ToolCall::new(
        workspace.state.next_call_id(),
        format!("MCP server `{}`", server.name),
    );
    let status = match news {
        News::Gone { .. } => ToolCallStatus::Failed,
        News::Back { .. } => ToolCallStatus::Completed,
    };
    let call = call
        .kind(ToolKind::Other)
        .status(status)
        .content(vec![text(news.to_string())]);
    workspace.turn.tool_call(call).await?;
    Ok(())
}

//! The tool with which an agent gives an answer that must match a schema (`--output-schema`).
//!
//! The tool only stores the answer, so the agent may call it without permission, even with `--allow none`. The name of its
//! server contains random characters, so that no other MCP server can have the name: the exception applies to this tool
//! alone. The bundled agent gets the name when it is started. Other agents ask, and `acp run` answers.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use acp::client::PermissionRequest;
use acp::thread::ThreadToolCallContent;
use acp::v1::{McpServer, PermissionOptionKind, RequestPermissionOutcome, ToolKind};
use acp_mcp::rmcp::model::{Tool, ToolAnnotations};
use acp_mcp::{LocalToken, ProxyCommand, ToolError, ToolServer};
use serde_json::Value;

use super::answer_schema::{AnswerSchema, SERVER_PREFIX, TOOL_NAME};
use crate::exit::CommandExit;
use crate::this_program::this_program;

/// The number of random characters in the name of the server.
const RANDOM_CHARS: usize = 20;

/// The MCP server with the tool, and the last valid answer. Dropping it stops the server.
pub(super) struct AnswerTool {
    server: ToolServer,
    names: AnswerToolNames,
    answer: Arc<Mutex<Option<Value>>>,
}

impl AnswerTool {
    /// Starts the server.
    pub(super) fn start(schema: Arc<AnswerSchema>) -> Result<Self, CommandExit> {
        let failed = |e: std::io::Error| {
            CommandExit::failed(format!("cannot offer a tool for the answer: {e}"))
        };
        let names = AnswerToolNames::random();
        let proxy = ProxyCommand::new(this_program()?, ["mcp-proxy"]).map_err(failed)?;
        let answer = Arc::new(Mutex::new(None));
        let tool = Tool::new(
            TOOL_NAME,
            "Give the answer to the task. Call this tool once, when everything else is done.",
            Arc::new(schema.tool_schema()),
        )
        .annotate(ToolAnnotations::new().read_only(true).open_world(false));
        let stored = Arc::clone(&answer);
        let submit = move |arguments: Value| {
            let checked = schema.check_arguments(arguments);
            if let Ok(value) = &checked {
                let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
                *stored = Some(value.clone());
            }
            std::future::ready(match checked {
                Ok(_) => Ok("The answer was accepted."),
                Err(mismatch) => Err(ToolError::from(mismatch.tool_error())),
            })
        };
        let server = ToolServer::tools(&names.server)
            .tool_with_definition(tool, submit)
            .start(proxy)
            .map_err(failed)?;
        Ok(Self {
            server,
            names,
            answer,
        })
    }

    pub(super) fn mcp_server(&self) -> McpServer {
        self.server.mcp_server()
    }

    pub(super) fn names(&self) -> &AnswerToolNames {
        &self.names
    }

    /// Returns the last valid answer.
    pub(super) fn answer(&self) -> Option<Value> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clone()
    }
}

/// The names by which the tool is known to an agent. Written as SERVER/TOOL.
#[derive(Debug, Clone)]
pub(super) struct AnswerToolNames {
    server: String,
}

impl fmt::Display for AnswerToolNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{TOOL_NAME}", self.server)
    }
}

impl AnswerToolNames {
    fn random() -> Self {
        // A token consists of random hexadecimal digits.
        let token = LocalToken::random().reveal();
        let random: String = token.chars().take(RANDOM_CHARS).collect();
        Self {
            server: format!("{SERVER_PREFIX}{random}"),
        }
    }

    /// If the request is about this tool, returns the answer that allows it.
    pub(super) fn allow(&self, request: &PermissionRequest) -> Option<RequestPermissionOutcome> {
        if !self.is_meant_by(request) {
            return None;
        }
        let once = PermissionOptionKind::AllowOnce;
        let option = request.options.iter().find(|option| option.kind == once)?;
        Some(RequestPermissionOutcome::selected(option.option_id.clone()))
    }

    /// Returns `true` if the request is about this tool. The title must be exactly one of the names that agents give to a
    /// tool of an MCP server, and nothing else in the request may suggest another action.
    fn is_meant_by(&self, request: &PermissionRequest) -> bool {
        let call = &request.tool_call;
        let has_effect = |content: &ThreadToolCallContent| {
            matches!(
                content,
                ThreadToolCallContent::Diff(_) | ThreadToolCallContent::Terminal(_)
            )
        };
        matches!(
            call.kind,
            ToolKind::Other | ToolKind::Read | ToolKind::Think
        ) && request.command.is_none()
            && call.locations.is_empty()
            && !call.content.iter().any(has_effect)
            && self.titles().contains(&call.title)
    }

    /// Returns the titles that agents use for a call of the tool.
    fn titles(&self) -> [String; 6] {
        let (server, tool) = (&self.server, TOOL_NAME);
        [
            format!("{server}: {tool}"),
            format!("{server}/{tool}"),
            format!("{server}__{tool}"),
            format!("{server}_{tool}"),
            format!("mcp__{server}__{tool}"),
            format!("{tool} ({server} MCP Server)"),
        ]
    }
}

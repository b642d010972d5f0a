//! What a client asks for, whichever version it speaks.

use acp_wire::v1::{
    self, AuthMethodId, CloseSessionRequest, ContentBlock, DeleteSessionRequest, Extension,
    ListSessionsRequest, McpServer, ProtocolVersion, SessionConfigId, SessionConfigOptionValue,
    SessionId, TerminalId, ToolCallId,
};
use acp_wire::{Meta, ReadError, jsonrpc, v2};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::convert;
use crate::error::{Error, Result};
use crate::session_setup::SessionSetup;

/// A request of a client's. `initialize` is none of them: it comes before the version is known.
#[allow(clippy::enum_variant_names, reason = "tool calls are called so")]
pub(crate) enum Call {
    Authenticate(AuthMethodId),
    Logout,
    NewSession(SessionSetup),
    Reopen(SessionId, SessionSetup, Reopen),
    Fork(SessionId, SessionSetup),
    List(ListSessionsRequest),
    Close(CloseSessionRequest),
    Delete(DeleteSessionRequest),
    SetMode(SessionId, String),
    SetModel(SessionId, String),
    SetOption(SessionId, SessionConfigId, SessionConfigOptionValue),
    Prompt(PromptCall),
    CancelToolCall(SessionId, ToolCallId),
    CancelTerminal(SessionId, TerminalId),
    Extension(Extension),
}

pub(crate) struct PromptCall {
    pub(crate) session: SessionId,
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) meta: Option<Meta>,
}

/// How an old session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reopen {
    /// Replayed (`session/load`; in version 2 `replayFrom` the start).
    Load,
    /// Not replayed.
    Resume,
}

/// An answer in the words of the version that is spoken.
#[derive(Debug, Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Answer {
    V1(v1::AgentResponse),
    V2(v2::AgentResponse),
}

/// `Answer::V1` of a variant.
macro_rules! v1_answer {
    ($var:ident($answer:expr)) => {
        $crate::agent::request::Answer::V1(acp_wire::v1::AgentResponse::$var($answer))
    };
}
pub(crate) use v1_answer;

/// `Answer::V2` of a variant.
macro_rules! v2_answer {
    ($var:ident($answer:expr)) => {
        $crate::agent::request::Answer::V2(acp_wire::v2::AgentResponse::$var($answer))
    };
}
pub(crate) use v2_answer;

fn setup(
    cwd: String,
    additional_directories: Vec<String>,
    mcp_servers: Vec<McpServer>,
    meta: Option<Meta>,
) -> SessionSetup {
    SessionSetup {
        cwd,
        additional_directories,
        mcp_servers,
        meta,
    }
}

fn servers(servers: Vec<v2::McpServer>) -> Vec<McpServer> {
    let servers = servers.into_iter();
    servers.filter_map(convert::mcp_server_from_v2).collect()
}

fn unknown(method: &str) -> Error {
    Error::Rpc(jsonrpc::Error::method_not_found(method))
}

impl Call {
    pub(crate) fn read(
        version: ProtocolVersion,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Self> {
        if version == ProtocolVersion::V2 {
            Self::of_v2(read(v2::ClientRequest::read(method, params))?)
        } else {
            Self::of_v1(read(v1::ClientRequest::read(method, params))?)
        }
    }

    fn of_v1(request: v1::ClientRequest) -> Result<Self> {
        use v1::ClientRequest as Request;
        Ok(match request {
            Request::Authenticate(r) => Self::Authenticate(r.method_id),
            Request::Logout(_) => Self::Logout,
            Request::NewSession(r) => Self::NewSession(setup(
                r.cwd,
                r.additional_directories,
                r.mcp_servers,
                r.meta,
            )),
            Request::LoadSession(r) => Self::Reopen(
                r.session_id,
                setup(r.cwd, r.additional_directories, r.mcp_servers, r.meta),
                Reopen::Load,
            ),
            Request::ResumeSession(r) => Self::Reopen(
                r.session_id,
                setup(r.cwd, r.additional_directories, r.mcp_servers, r.meta),
                Reopen::Resume,
            ),
            Request::ForkSession(r) => Self::Fork(
                r.session_id,
                setup(r.cwd, r.additional_directories, r.mcp_servers, r.meta),
            ),
            Request::ListSessions(r) => Self::List(r),
            Request::CloseSession(r) => Self::Close(r),
            Request::DeleteSession(r) => Self::Delete(r),
            Request::SetSessionMode(r) => {
                Self::SetMode(r.session_id, r.mode_id.as_str().to_owned())
            }
            Request::SetSessionModel(r) => {
                Self::SetModel(r.session_id, r.model_id.as_str().to_owned())
            }
            Request::SetSessionConfigOption(r) => {
                Self::SetOption(r.session_id, r.config_id, r.value)
            }
            Request::Prompt(r) => Self::Prompt(PromptCall {
                session: r.session_id,
                content: r.prompt,
                meta: r.meta,
            }),
            Request::Extension(extension) => Self::Extension(extension),
            other => return Err(unknown(other.method())),
        })
    }

    fn of_v2(request: v2::ClientRequest) -> Result<Self> {
        use v2::ClientRequest as Request;
        Ok(match request {
            Request::Login(r) => Self::Authenticate(r.method_id),
            Request::Logout(_) => Self::Logout,
            Request::NewSession(r) => Self::NewSession(setup(
                r.cwd,
                r.additional_directories,
                servers(r.mcp_servers),
                r.meta,
            )),
            Request::ResumeSession(r) => {
                let way = match &r.replay_from {
                    None => Reopen::Resume,
                    Some(v2::ReplayFrom::Start(_)) => Reopen::Load,
                    Some(_) => {
                        return Err(Error::invalid_params(
                            "this agent replays a session from its start, or not at all",
                        ));
                    }
                };
                let (cwd, servers) = (r.cwd, servers(r.mcp_servers));
                let setup = setup(cwd, r.additional_directories, servers, r.meta);
                Self::Reopen(r.session_id, setup, way)
            }
            Request::ForkSession(r) => {
                let (cwd, servers) = (r.cwd, servers(r.mcp_servers));
                let setup = setup(cwd, r.additional_directories, servers, r.meta);
                Self::Fork(r.session_id, setup)
            }
            Request::ListSessions(r) => Self::List(r),
            Request::CloseSession(r) => Self::Close(r),
            Request::DeleteSession(r) => Self::Delete(r),
            Request::SetSessionConfigOption(r) => {
                let value = match r.value {
                    v2::SessionConfigOptionValue::Id(id) => SessionConfigOptionValue::Id(id),
                    v2::SessionConfigOptionValue::Boolean(value) => {
                        SessionConfigOptionValue::Boolean(value)
                    }
                    _ => {
                        let option = r.config_id;
                        return Err(Error::invalid_params(format!(
                            "the config option {option} has no values of this type"
                        )));
                    }
                };
                Self::SetOption(r.session_id, r.config_id, value)
            }
            Request::Prompt(r) => Self::Prompt(PromptCall {
                session: r.session_id,
                content: r.prompt,
                meta: r.meta,
            }),
            Request::CancelToolCall(r) => Self::CancelToolCall(r.session_id, r.tool_call_id),
            Request::CancelTerminal(r) => Self::CancelTerminal(r.session_id, r.terminal_id),
            Request::Extension(extension) => Self::Extension(extension),
            other => return Err(unknown(other.method())),
        })
    }
}

fn read<T>(read: Result<T, ReadError>) -> Result<T> {
    read.map_err(Error::from)
}

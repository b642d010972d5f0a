//! Negotiates the version and the capabilities. See the specification's page "Initialization".

use std::sync::{Arc, OnceLock};

use acp_wire::v1::{
    AgentCapabilities, AuthMethod, ClientCapabilities, Implementation, InitializeRequest,
    InitializeResponse, ProtocolVersion,
};
use acp_wire::{RawObject, Request, jsonrpc, v2};
use serde::Serialize;
use serde_json::Value;

use crate::capabilities::library_implementation;
use crate::connection::{Connection, RequestOptions};
use crate::dialect;
use crate::error::{Error, Result};

/// An agent's capabilities, always in version 1 form.
#[derive(Debug)]
pub(crate) struct NegotiatedCapabilities {
    pub(crate) version: ProtocolVersion,
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: AgentCapabilities,
    /// The agent's capabilities as JSON, to check methods against the method table.
    pub(crate) capabilities_json: Value,
    pub(crate) auth_methods: Vec<AuthMethod>,
    /// Whether the agent supports sessions at all.
    pub(crate) has_sessions: bool,
    /// Whether the agent supports MCP servers on stdio.
    pub(crate) supports_mcp_stdio: bool,
    /// The `_meta` of the response as JSON, to check extensions against the table of extension methods.
    pub(crate) meta: Value,
}

/// The negotiated version, once it is known, shared with the code that handles messages.
pub(crate) type NegotiatedVersion = Arc<OnceLock<ProtocolVersion>>;

/// An `initialize` request for agents of either version, each of which reads the fields of its own version.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BothVersionsRequest<'a> {
    #[serde(flatten)]
    v1: &'a InitializeRequest,
    info: Implementation,
    capabilities: v2::ClientCapabilities,
}

/// Negotiates the version and the capabilities. Sets `spoken` to the negotiated version before the next message is
/// handled.
pub(crate) async fn initialize(
    conn: &Connection,
    latest: ProtocolVersion,
    capabilities: ClientCapabilities,
    info: Option<Implementation>,
    spoken: NegotiatedVersion,
) -> Result<NegotiatedCapabilities> {
    let mut request = InitializeRequest::new(latest).client_capabilities(capabilities);
    request.client_info = info;
    let read = move |answer: Result<&serde_json::value::RawValue>| {
        let agreed = match answer {
            Ok(answer) => negotiate(answer, latest)?,
            Err(Error::Rpc(error)) => return Err(version_error(error, latest)),
            Err(error) => return Err(error),
        };
        let _ = spoken.set(agreed.version);
        Ok(agreed)
    };
    let method = InitializeRequest::METHOD;
    if latest < ProtocolVersion::V2 {
        return conn
            .request_any(method, &request, RequestOptions::default(), read)
            .await;
    }
    let both = BothVersionsRequest {
        info: request
            .client_info
            .clone()
            .unwrap_or_else(library_implementation),
        capabilities: dialect::client_to_v2(&request.client_capabilities),
        v1: &request,
    };
    conn.request_any(method, &both, RequestOptions::default(), read)
        .await
}

fn negotiate(
    answer: &serde_json::value::RawValue,
    latest: ProtocolVersion,
) -> Result<NegotiatedCapabilities> {
    let unreadable = |reason: String| Error::InvalidResponse {
        method: InitializeRequest::METHOD.to_owned(),
        reason,
    };
    let object: RawObject =
        serde_json::from_str(answer.get()).map_err(|e| unreadable(e.to_string()))?;
    let said: InitializeResponse = object.read().map_err(|e| unreadable(e.to_string()))?;
    // Some agents return whatever version was requested. The fields of the response show which version they speak. A
    // version 2 agent sends its name and version.
    let has = |key| object.get(key).is_some();
    let echoes = !has("capabilities") && (has("agentCapabilities") || !has("info"));
    match said.protocol_version {
        ProtocolVersion::V1 => Ok(from_v1_response(said)),
        ProtocolVersion::V2 if latest >= ProtocolVersion::V2 && echoes => {
            Ok(from_v1_response(said))
        }
        ProtocolVersion::V2 if latest >= ProtocolVersion::V2 => {
            let said = object.read().map_err(|e| unreadable(e.to_string()))?;
            Ok(from_v2_response(
                said,
                &crate::object::to_object(object.get("capabilities")),
            ))
        }
        theirs => Err(Error::Version {
            theirs: theirs.0,
            ours: latest.0,
        }),
    }
}

/// Converts an error response to `initialize`. If the agent supports only other versions, returns a version error.
fn version_error(error: jsonrpc::Error, latest: ProtocolVersion) -> Error {
    if error.code != jsonrpc::Error::UNSUPPORTED_PROTOCOL_VERSION {
        return Error::Rpc(error);
    }
    let supported = error.data.as_ref().and_then(|data| data.get("supported"));
    let supported = supported.and_then(serde_json::Value::as_array);
    let versions = supported
        .into_iter()
        .flatten()
        .filter_map(|version| u16::try_from(version.as_u64()?).ok());
    match versions.max() {
        Some(theirs) => Error::Version {
            theirs,
            ours: latest.0,
        },
        None => Error::Rpc(error),
    }
}

fn from_v1_response(said: InitializeResponse) -> NegotiatedCapabilities {
    NegotiatedCapabilities {
        version: ProtocolVersion::V1,
        info: said.agent_info,
        capabilities_json: serde_json::to_value(&said.agent_capabilities).unwrap_or_default(),
        capabilities: said.agent_capabilities,
        auth_methods: said.auth_methods,
        has_sessions: true,
        supports_mcp_stdio: true,
        meta: said.meta.map(Value::Object).unwrap_or_default(),
    }
}

fn from_v2_response(
    said: v2::InitializeResponse,
    capabilities: &RawObject,
) -> NegotiatedCapabilities {
    let session = said.capabilities.session.as_ref();
    let mcp = session.and_then(|session| session.mcp.as_ref());
    let capabilities = dialect::agent_from_v2(capabilities, !said.auth_methods.is_empty());
    NegotiatedCapabilities {
        version: ProtocolVersion::V2,
        has_sessions: session.is_some(),
        supports_mcp_stdio: mcp.is_some_and(|mcp| mcp.stdio.is_some()),
        meta: said.meta.map(Value::Object).unwrap_or_default(),
        capabilities_json: serde_json::to_value(&capabilities).unwrap_or_default(),
        capabilities: capabilities.read().unwrap_or_default(),
        info: Some(said.info).filter(|info| !info.name.is_empty()),
        auth_methods: said
            .auth_methods
            .into_iter()
            .filter_map(dialect::auth_method_from_v2)
            .collect(),
    }
}

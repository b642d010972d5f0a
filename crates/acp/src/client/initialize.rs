//! Which version is spoken, and what the agent can do: the specification's page Initialization.

use std::sync::{Arc, OnceLock};

use acp_wire::v1::{
    AgentCapabilities, AuthMethod, ClientCapabilities, Implementation, InitializeRequest,
    InitializeResponse, ProtocolVersion,
};
use acp_wire::{Meta, RawObject, Request, jsonrpc, v2};
use serde::Serialize;
use serde_json::Value;

use crate::capabilities::this_library;
use crate::connection::{Ask, Connection};
use crate::dialect;
use crate::error::{Error, Result};

/// What the two sides have agreed on, in the words of version 1.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) version: ProtocolVersion,
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: AgentCapabilities,
    /// The same, for the gates of the method table.
    pub(crate) offered: Value,
    pub(crate) auth_methods: Vec<AuthMethod>,
    /// Whether the agent has sessions at all.
    pub(crate) sessions: bool,
    /// Whether it connects to MCP servers on stdio.
    pub(crate) mcp_stdio: bool,
    /// Whether it takes messages for a turn that runs (`_session/steering`).
    pub(crate) steering: bool,
}

/// The version that has been agreed on, for whoever reads what comes in.
pub(crate) type Spoken = Arc<OnceLock<ProtocolVersion>>;

/// What is asked of an agent that may speak either version: it reads the fields of its own.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Both<'a> {
    #[serde(flatten)]
    v1: &'a InitializeRequest,
    info: Implementation,
    capabilities: v2::ClientCapabilities,
}

/// Negotiates. `spoken` is set before anything that comes after the answer is looked at.
pub(crate) async fn initialize(
    conn: &Connection,
    latest: ProtocolVersion,
    capabilities: ClientCapabilities,
    info: Option<Implementation>,
    spoken: Spoken,
) -> Result<Agreed> {
    let mut request = InitializeRequest::new(latest).client_capabilities(capabilities);
    request.client_info = info;
    let read = move |answer: Result<&serde_json::value::RawValue>| {
        let agreed = match answer {
            Ok(answer) => agree(answer, latest)?,
            Err(Error::Rpc(error)) => return Err(refused(error, latest)),
            Err(error) => return Err(error),
        };
        let _ = spoken.set(agreed.version);
        Ok(agreed)
    };
    let method = InitializeRequest::METHOD;
    if latest < ProtocolVersion::V2 {
        return conn.call(method, &request, Ask::default(), read).await;
    }
    let both = Both {
        info: request.client_info.clone().unwrap_or_else(this_library),
        capabilities: dialect::client_to_v2(&request.client_capabilities),
        v1: &request,
    };
    conn.call(method, &both, Ask::default(), read).await
}

fn agree(answer: &serde_json::value::RawValue, latest: ProtocolVersion) -> Result<Agreed> {
    let unreadable = |reason: String| Error::Unreadable {
        method: InitializeRequest::METHOD.to_owned(),
        reason,
    };
    let object: RawObject =
        serde_json::from_str(answer.get()).map_err(|e| unreadable(e.to_string()))?;
    let said: InitializeResponse = object.read().map_err(|e| unreadable(e.to_string()))?;
    // There are agents that say whatever number they are asked for; the answer shows what they speak. One
    // of version 2 says who it is.
    let has = |key| object.get(key).is_some();
    let echoes = !has("capabilities") && (has("agentCapabilities") || !has("info"));
    match said.protocol_version {
        ProtocolVersion::V1 => Ok(agreed_on_v1(said)),
        ProtocolVersion::V2 if latest >= ProtocolVersion::V2 && echoes => Ok(agreed_on_v1(said)),
        ProtocolVersion::V2 if latest >= ProtocolVersion::V2 => {
            let said = object.read().map_err(|e| unreadable(e.to_string()))?;
            Ok(agreed_on_v2(
                said,
                &crate::object::object(object.get("capabilities")),
            ))
        }
        theirs => Err(Error::Version {
            theirs: theirs.0,
            ours: latest.0,
        }),
    }
}

/// An agent that speaks only newer versions says so by an error.
fn refused(error: jsonrpc::Error, latest: ProtocolVersion) -> Error {
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

fn offers_steering(meta: Option<&Meta>) -> bool {
    let steering = meta.and_then(|meta| meta.get("steering"));
    steering.is_some_and(|steering| steering.get("supported") == Some(&Value::Bool(true)))
}

fn agreed_on_v1(said: InitializeResponse) -> Agreed {
    Agreed {
        version: ProtocolVersion::V1,
        info: said.agent_info,
        offered: serde_json::to_value(&said.agent_capabilities).unwrap_or_default(),
        capabilities: said.agent_capabilities,
        auth_methods: said.auth_methods,
        sessions: true,
        mcp_stdio: true,
        steering: offers_steering(said.meta.as_ref()),
    }
}

fn agreed_on_v2(said: v2::InitializeResponse, capabilities: &RawObject) -> Agreed {
    let session = said.capabilities.session.as_ref();
    let mcp = session.and_then(|session| session.mcp.as_ref());
    let capabilities = dialect::agent_from_v2(capabilities, !said.auth_methods.is_empty());
    Agreed {
        version: ProtocolVersion::V2,
        sessions: session.is_some(),
        mcp_stdio: mcp.is_some_and(|mcp| mcp.stdio.is_some()),
        steering: offers_steering(said.meta.as_ref()),
        offered: serde_json::to_value(&capabilities).unwrap_or_default(),
        capabilities: capabilities.read().unwrap_or_default(),
        info: Some(said.info).filter(|info| !info.name.is_empty()),
        auth_methods: said
            .auth_methods
            .into_iter()
            .filter_map(dialect::auth_method_from_v2)
            .collect(),
    }
}

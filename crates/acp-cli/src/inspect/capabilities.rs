//! An agent's capabilities, in words.

use acp::v1::{AgentCapabilities, ProtocolVersion};
use serde::Serialize;
use serde_json::{Map, Value};

/// What an agent can do.
#[derive(Debug, Serialize)]
pub(super) struct CapabilityReport {
    /// The types of content that prompts may contain, as in the protocol.
    pub(super) prompt: Vec<&'static str>,
    /// The methods of sessions, without `session/`.
    pub(super) session_methods: Vec<&'static str>,
    /// The optional params for opening a session.
    pub(super) session_params: Vec<&'static str>,
    /// The transports to MCP servers.
    pub(super) mcp: Vec<&'static str>,
    /// The other methods, in full.
    pub(super) other_methods: Vec<&'static str>,
    /// What the specification does not define: the path in the result of `initialize`, and the value.
    pub(super) extensions: Map<String, Value>,
}

impl CapabilityReport {
    /// Creates the report from the capabilities in version 1 form and the result of `initialize` as received.
    pub(super) fn new(
        version: ProtocolVersion,
        capabilities: &AgentCapabilities,
        initialize: &Value,
    ) -> Self {
        let is_v2 = version == ProtocolVersion::V2;
        let sessions = &initialize["capabilities"]["session"];
        let has_sessions = !is_v2 || sessions.is_object();
        let has_stdio = !is_v2 || sessions["mcp"]["stdio"].is_object();
        let prompt = &capabilities.prompt_capabilities;
        let session = &capabilities.session_capabilities;
        let auth = &capabilities.auth;
        Self {
            prompt: select([
                ("text", has_sessions),
                ("resource_link", has_sessions),
                ("image", prompt.image),
                ("audio", prompt.audio),
                ("resource", prompt.embedded_context),
            ]),
            session_methods: select([
                ("new", has_sessions),
                // In version 2, a replay is a param of `session/resume`.
                ("load", capabilities.load_session && !is_v2),
                ("resume", session.resume.is_some()),
                ("fork", session.fork.is_some()),
                ("list", session.list.is_some()),
                ("close", session.close.is_some()),
                ("delete", session.delete.is_some()),
                ("set_title", session.title.is_some()),
                ("archive", session.archive.is_some()),
                ("unarchive", session.archive.is_some()),
                ("status", session.status.is_some()),
            ]),
            session_params: select([
                (
                    "additionalDirectories",
                    session.additional_directories.is_some(),
                ),
                ("systemPrompt", session.system_prompt.is_some()),
            ]),
            mcp: select([
                ("stdio", has_stdio),
                ("http", capabilities.mcp_capabilities.http),
                ("sse", capabilities.mcp_capabilities.sse),
            ]),
            other_methods: select([
                (
                    if is_v2 { "auth/logout" } else { "logout" },
                    auth.logout.is_some(),
                ),
                ("auth/status", auth.status.is_some()),
                ("providers/list", capabilities.providers.is_some()),
                ("providers/set", capabilities.providers.is_some()),
                ("providers/disable", capabilities.providers.is_some()),
                (
                    "_session/steering",
                    initialize["_meta"]["steering"]["supported"] == true,
                ),
            ]),
            extensions: extensions(is_v2, initialize),
        }
    }
}

fn select<const N: usize>(all: [(&'static str, bool); N]) -> Vec<&'static str> {
    let supported = all.into_iter().filter(|(_, is_supported)| *is_supported);
    supported.map(|(name, _)| name).collect()
}

/// Returns the entries of each `_meta`, and the fields that the specification does not define.
fn extensions(is_v2: bool, initialize: &Value) -> Map<String, Value> {
    const SESSION_FIELDS: [&str; 12] = [
        "list",
        "delete",
        "additionalDirectories",
        "resume",
        "close",
        "fork",
        "title",
        "archive",
        "status",
        "systemPrompt",
        "prompt",
        "mcp",
    ];
    let (capabilities, session, fields): (&str, &str, &[&str]) = if is_v2 {
        ("capabilities", "session", &["session", "auth", "providers"])
    } else {
        (
            "agentCapabilities",
            "sessionCapabilities",
            &[
                "loadSession",
                "promptCapabilities",
                "mcpCapabilities",
                "mcp",
                "sessionCapabilities",
                "auth",
                "providers",
            ],
        )
    };
    let mut found = Map::new();
    let offered = &initialize[capabilities];
    for (path, object, known) in [
        (String::new(), initialize, None),
        (format!("{capabilities}."), offered, Some(fields)),
        (
            format!("{capabilities}.{session}."),
            &offered[session],
            Some(&SESSION_FIELDS[..]),
        ),
    ] {
        let entries = object.as_object().into_iter().flatten();
        for (name, value) in entries {
            match (name.as_str(), known) {
                ("_meta", _) => {
                    let meta = value.as_object().into_iter().flatten();
                    for (name, value) in meta {
                        found.insert(format!("{path}_meta.{name}"), value.clone());
                    }
                }
                (name, Some(known)) if !known.contains(&name) => {
                    found.insert(format!("{path}{name}"), value.clone());
                }
                _ => {}
            }
        }
    }
    found
}

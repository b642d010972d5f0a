//! Converts client and agent capabilities between protocol versions.

use acp_wire::{RawObject, v1, v2};

use crate::object::{to_object, to_raw_value};

/// Converts a client's capabilities to version 2, which has none for files and client terminals.
pub(crate) fn client_to_v2(capabilities: &v1::ClientCapabilities) -> v2::ClientCapabilities {
    let mut new = v2::ClientCapabilities::new();
    if capabilities.auth.terminal {
        new.auth =
            Some(v2::ClientAuthCapabilities::new().terminal(v2::TerminalAuthCapabilities::new()));
    }
    new.elicitation.clone_from(&capabilities.elicitation);
    new.meta.clone_from(&capabilities.meta);
    new
}

/// Converts a client's capabilities from version 2, where every client supports all config options, plans, notices,
/// compactions and subagents.
pub(crate) fn client_from_v2(capabilities: v2::ClientCapabilities) -> v1::ClientCapabilities {
    let terminal = capabilities
        .auth
        .is_some_and(|auth| auth.terminal.is_some());
    let options = v1::SessionConfigOptionsCapabilities::new()
        .boolean(v1::BooleanConfigOptionCapabilities::new());
    let session = v1::ClientSessionCapabilities::new()
        .config_options(options)
        .compaction(v1::CompactionCapabilities::new())
        .notices(v1::NoticeCapabilities::new());
    let mut new = v1::ClientCapabilities::new()
        .session(session)
        .plan(v1::PlanCapabilities::new())
        .subagents(v1::SubagentCapabilities::new())
        .auth(v1::AuthCapabilities::new().terminal(terminal));
    new.elicitation = capabilities.elicitation;
    new.meta = capabilities.meta;
    new
}

/// Converts an agent's capabilities to version 2. Omits those that every version 2 agent has, and keeps unknown ones.
pub(crate) fn agent_to_v2(v1_capabilities: &RawObject, mcp_stdio: bool) -> RawObject {
    let part = |name| to_object(v1_capabilities.get(name));
    let prompt = flags_to_objects(&part("promptCapabilities"), &[]);
    let mut mcp = object! {};
    if mcp_stdio {
        mcp.push("stdio".to_owned(), to_raw_value(&object! {}));
    }
    // Version 2 has no MCP servers over SSE.
    for (name, offered) in flags_to_objects(&part("mcpCapabilities"), &["stdio", "sse"]).iter() {
        mcp.push(name.to_owned(), offered.to_owned());
    }
    let mut session = object! {};
    for (name, part) in [("prompt", prompt), ("mcp", mcp)] {
        if !part.is_empty() {
            session.push(name.to_owned(), to_raw_value(&part));
        }
    }
    for (name, offered) in part("sessionCapabilities").iter() {
        if offered.get() != "null" && !is_in_every_v2_session(name) {
            session.push(name.to_owned(), offered.to_owned());
        }
    }
    let mut capabilities = object! { "session": session };
    // In version 2, an agent that supports login also supports logout.
    let auth = part("auth").without(&["logout"]);
    if !auth.is_empty() {
        capabilities.push("auth".to_owned(), to_raw_value(&auth));
    }
    for (name, value) in v1_capabilities.iter() {
        let has_words = name == "loadSession" || name == "auth" || name.ends_with("Capabilities");
        if !has_words && value.get() != "null" {
            capabilities.push(name.to_owned(), value.to_owned());
        }
    }
    capabilities
}

/// Converts an agent's capabilities from version 2. Omits MCP servers on stdio, which every version 1 agent supports,
/// and keeps unknown capabilities.
pub(crate) fn agent_from_v2(v2_capabilities: &RawObject, authenticates: bool) -> RawObject {
    let session: Option<RawObject> = v2_capabilities.field("session");
    let part = |name| session.as_ref().and_then(|session| session.field(name));
    let mut prompt = object! {};
    let mut mcp = object! {};
    for (objects, flags, known) in [
        (
            part("prompt"),
            &mut prompt,
            &["image", "audio", "embeddedContext"][..],
        ),
        (part("mcp"), &mut mcp, &["http"][..]),
    ] {
        let objects: RawObject = objects.unwrap_or_default();
        for name in known {
            flags.push((*name).to_owned(), to_raw_value(&objects.has(name)));
        }
        for (name, offered) in objects.iter() {
            if !flags.has(name) && name != "stdio" {
                flags.push(name.to_owned(), offered.to_owned());
            }
        }
    }
    mcp.set("sse", to_raw_value(&false));
    let mut sessions = object! {};
    if let Some(session) = &session {
        let always = v1::METHODS.iter().filter_map(session_capability);
        for name in always.filter(|name| is_in_every_v2_session(name)) {
            sessions.push(name.to_owned(), to_raw_value(&object! {}));
        }
        for (name, offered) in session.iter() {
            let has_words = name == "prompt" || name == "mcp" || sessions.has(name);
            if !has_words && offered.get() != "null" {
                sessions.push(name.to_owned(), offered.to_owned());
            }
        }
    }
    let mut auth = to_object(v2_capabilities.get("auth"));
    if authenticates {
        auth.set("logout", to_raw_value(&object! {}));
    }
    let mut capabilities = object! {
        // In version 2, `session/resume` can replay like `session/load`.
        "loadSession": session.is_some(),
        "promptCapabilities": prompt,
        "mcpCapabilities": mcp,
        "sessionCapabilities": sessions,
        "auth": auth,
    };
    for (name, value) in v2_capabilities.iter() {
        if name != "session" && !capabilities.has(name) && value.get() != "null" {
            capabilities.push(name.to_owned(), value.to_owned());
        }
    }
    capabilities
}

/// Returns the version 1 session capability that a method requires.
fn session_capability(method: &acp_wire::Method) -> Option<&'static str> {
    method.capability?.path.strip_prefix("sessionCapabilities.")
}

/// Returns `true` if a version 1 session capability covers a method that every version 2 agent with sessions supports.
fn is_in_every_v2_session(name: &str) -> bool {
    v1::METHODS
        .iter()
        .filter(|method| session_capability(method) == Some(name))
        .filter_map(|method| v2::method(method.name)?.capability)
        .any(|capability| capability.path == "session")
}

/// Converts boolean version 1 capabilities to version 2 objects, omitting unsupported ones and those in `but`.
fn flags_to_objects(flags: &RawObject, but: &[&str]) -> RawObject {
    let mut objects = object! {};
    for (name, flag) in flags.iter().filter(|(name, _)| !but.contains(name)) {
        match flag.get() {
            "false" | "null" => {}
            "true" => objects.push(name.to_owned(), to_raw_value(&object! {})),
            _ => objects.push(name.to_owned(), flag.to_owned()),
        }
    }
    objects
}

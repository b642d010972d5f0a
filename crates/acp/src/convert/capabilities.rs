//! What each side says it can do.

use acp_wire::v1;
use acp_wire::v2;

/// What a client can do, in the words of version 2. Files and terminals of the client's are not part of
/// it.
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

/// What a client of version 2 can do. It understands every config option, plan, notice and compaction
/// that there is: they are part of the version.
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
        .auth(v1::AuthCapabilities::new().terminal(terminal));
    new.elicitation = capabilities.elicitation;
    new.meta = capabilities.meta;
    new
}

/// What an agent can do, in the words of version 2. What every agent of version 2 has is not told.
pub(crate) fn agent_to_v2(
    capabilities: &v1::AgentCapabilities,
    mcp_stdio: bool,
) -> v2::AgentCapabilities {
    let prompt = &capabilities.prompt_capabilities;
    let mut takes = v2::PromptCapabilities::new();
    takes.image = prompt.image.then(Default::default);
    takes.audio = prompt.audio.then(Default::default);
    takes.embedded_context = prompt.embedded_context.then(Default::default);
    let mut mcp = v2::McpCapabilities::new();
    mcp.stdio = mcp_stdio.then(Default::default);
    mcp.http = capabilities.mcp_capabilities.http.then(Default::default);
    let sessions = &capabilities.session_capabilities;
    let mut session = v2::SessionCapabilities::new();
    session.prompt = (takes != v2::PromptCapabilities::new()).then_some(takes);
    session.mcp = (mcp != v2::McpCapabilities::new()).then_some(mcp);
    session.delete.clone_from(&sessions.delete);
    session
        .additional_directories
        .clone_from(&sessions.additional_directories);
    session.fork.clone_from(&sessions.fork);
    let mut new = v2::AgentCapabilities::new().session(session);
    new.meta.clone_from(&capabilities.meta);
    new
}

/// What an agent of version 2 can do. Whether it connects to MCP servers on stdio, which version 1
/// takes for granted, is not part of it.
pub(crate) fn agent_from_v2(
    capabilities: &v2::AgentCapabilities,
    authenticates: bool,
) -> v1::AgentCapabilities {
    let mut new = v1::AgentCapabilities::new();
    if authenticates {
        new.auth = v1::AgentAuthCapabilities::new().logout(v1::LogoutCapabilities::new());
    }
    new.meta.clone_from(&capabilities.meta);
    let Some(session) = &capabilities.session else {
        return new;
    };
    if let Some(prompt) = &session.prompt {
        new.prompt_capabilities = v1::PromptCapabilities::new()
            .image(prompt.image.is_some())
            .audio(prompt.audio.is_some())
            .embedded_context(prompt.embedded_context.is_some());
    }
    let http = session.mcp.as_ref().is_some_and(|mcp| mcp.http.is_some());
    new.mcp_capabilities = v1::McpCapabilities::new().http(http);
    // `session/resume` replays when it is asked to, which is what `session/load` was.
    new.load_session = true;
    let mut sessions = v1::SessionCapabilities::new()
        .list(v1::SessionListCapabilities::new())
        .resume(v1::SessionResumeCapabilities::new())
        .close(v1::SessionCloseCapabilities::new());
    sessions.delete.clone_from(&session.delete);
    sessions
        .additional_directories
        .clone_from(&session.additional_directories);
    sessions.fork.clone_from(&session.fork);
    new.session_capabilities = sessions;
    new
}

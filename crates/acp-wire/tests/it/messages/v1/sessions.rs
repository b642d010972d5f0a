//! Tests of initialization, authentication and session setup.

use serde_json::json;

use super::*;

#[test]
fn initialization_messages_round_trip() {
    let all = message!("a client that can do everything", ClientRequest::Initialize);
    assert_eq!(all.protocol_version, ProtocolVersion::V1);
    let can = all.client_capabilities;
    assert!(can.fs.read_text_file && can.fs.write_text_file && can.terminal && can.auth.terminal);
    assert!(
        can.session
            .unwrap()
            .config_options
            .unwrap()
            .boolean
            .is_some()
    );
    let elicitation = can.elicitation.unwrap();
    assert!(elicitation.form.is_some() && elicitation.url.is_some());
    assert_eq!(can.meta.unwrap()["example.org"], json!({"theme": "dark"}));
    let info = all.client_info.unwrap();
    assert_eq!(
        (info.name.as_str(), info.version.as_str()),
        ("quill", "4.2.0")
    );
    assert_eq!(info.title.as_deref(), Some("Quill"));

    let old = message!("a client of the first pages", ClientRequest::Initialize);
    let can = old.client_capabilities;
    assert!(
        can.fs.read_text_file && !can.fs.write_text_file && !can.terminal && !can.auth.terminal
    );
    assert!(can.session.is_none() && can.elicitation.is_none() && old.client_info.is_none());

    let all = message!("an agent that can do everything", AgentResponse::Initialize);
    let can = all.agent_capabilities;
    assert!(can.load_session);
    let prompt = can.prompt_capabilities;
    assert!(prompt.image && prompt.audio && prompt.embedded_context);
    assert!(can.mcp_capabilities.http && can.mcp_capabilities.sse);
    let sessions = can.session_capabilities;
    assert!(sessions.list.is_some() && sessions.delete.is_some() && sessions.resume.is_some());
    assert!(sessions.additional_directories.is_some());
    assert_eq!(sessions.close.unwrap().meta.unwrap()["graceful"], true);
    assert!(can.auth.logout.is_some());
    let [
        AuthMethod::Agent(browser),
        AuthMethod::Terminal(tty),
        AuthMethod::Terminal(bare),
    ] = &all.auth_methods[..]
    else {
        panic!("{:?}", all.auth_methods)
    };
    assert_eq!(browser.id.as_str(), "browser");
    assert_eq!(
        browser.description.as_deref(),
        Some("Opens the provider's page")
    );
    assert_eq!(tty.args, ["--login", "--quiet"]);
    assert_eq!(tty.env["LOGIN_MODE"], "token");
    assert!(bare.args.is_empty() && bare.env.is_empty());
    assert_eq!(all.agent_info.unwrap().name, "hazel");

    let old = message!("an agent of the first pages", AgentResponse::Initialize);
    assert_eq!(old, InitializeResponse::new(ProtocolVersion::V1));
}

#[test]
fn authentication_messages_round_trip() {
    let request = message!("authenticate", ClientRequest::Authenticate);
    assert_eq!(request.method_id.as_str(), "browser");
    for response in [
        message!("authenticated", AgentResponse::Authenticate),
        message!("authenticated, as null", AgentResponse::Authenticate),
    ] {
        assert_eq!(response, AuthenticateResponse::new());
    }
    assert_eq!(
        message!("log out", ClientRequest::Logout),
        LogoutRequest::new()
    );
    let request = message!("log out, with custom data", ClientRequest::Logout);
    assert_eq!(request.meta.unwrap()["everywhere"], true);
    let response = message!("logged out", AgentResponse::Logout);
    assert_eq!(response.meta.unwrap()["sessionsEnded"], 3);
}

#[test]
fn new_session_messages_round_trip() {
    let request = message!(
        "a new session with every kind of MCP server",
        ClientRequest::NewSession
    );
    assert_eq!(request.cwd, "/home/ada/garden");
    assert_eq!(request.additional_directories, ["/home/ada/shed"]);
    let names: Vec<_> = request
        .mcp_servers
        .iter()
        .filter_map(McpServer::name)
        .collect();
    assert_eq!(names, ["seeds", "weather", "almanac"]);
    let [
        McpServer::Stdio(stdio),
        McpServer::Http(http),
        McpServer::Sse(sse),
    ] = &request.mcp_servers[..]
    else {
        panic!("{:?}", request.mcp_servers)
    };
    assert_eq!(stdio.command, "/opt/seeds/bin/serve");
    assert_eq!(stdio.args, ["--stdio", "--quiet"]);
    assert_eq!(stdio.env, [EnvVariable::new("SEEDS_TOKEN", "t-1")]);
    assert_eq!(http.url, "https://weather.example.org/mcp");
    assert_eq!(
        http.headers,
        [HttpHeader::new("Authorization", "Bearer t-2")]
    );
    assert_eq!(
        (sse.url.as_str(), sse.headers.len()),
        ("https://almanac.example.org/events", 0)
    );

    let request = message!("a new session without more", ClientRequest::NewSession);
    assert_eq!(request, NewSessionRequest::new("/home/ada/garden", []));

    let response = message!("the new session", AgentResponse::NewSession);
    assert_eq!(response, NewSessionResponse::new("sess_01"));
    let response = message!(
        "the new session with modes and options",
        AgentResponse::NewSession
    );
    let modes = response.modes.unwrap();
    assert_eq!(modes.current_mode_id.as_str(), "look");
    assert_eq!(
        modes.available_modes[0].description.as_deref(),
        Some("Changes nothing")
    );
    assert_eq!(modes.available_modes[1], SessionMode::new("dig", "Dig"));
    assert_eq!(
        response.config_options,
        Some(vec![]),
        "none is not the same as not told"
    );
}

#[test]
fn stored_session_messages_round_trip() {
    let request = message!("load a session", ClientRequest::LoadSession);
    assert_eq!(
        (request.session_id.as_str(), request.cwd.as_str()),
        ("sess_00", "/home/ada/garden")
    );
    assert_eq!(request.mcp_servers.len(), 1);
    let response = message!("the loaded session", AgentResponse::LoadSession);
    assert_eq!(
        response.modes.unwrap().available_modes,
        [SessionMode::new("look", "Look")]
    );
    let response = message!("the loaded session, as null", AgentResponse::LoadSession);
    assert_eq!(response, LoadSessionResponse::new());

    assert_eq!(
        message!("list sessions", ClientRequest::ListSessions),
        ListSessionsRequest::new()
    );
    let request = message!(
        "list the next sessions of a directory",
        ClientRequest::ListSessions
    );
    assert_eq!(
        request,
        ListSessionsRequest::new()
            .cwd("/home/ada/garden")
            .cursor("page-2")
    );
    let page = message!("a page of sessions", AgentResponse::ListSessions);
    assert_eq!(page.next_cursor.as_deref(), Some("page-3"));
    assert_eq!(
        page.sessions[0].title.as_deref(),
        Some("Where the beans go")
    );
    assert_eq!(
        page.sessions[0].updated_at.as_deref(),
        Some("2026-03-01T08:15:00Z")
    );
    assert_eq!(page.sessions[0].additional_directories, ["/home/ada/shed"]);
    assert_eq!(
        page.sessions[1],
        SessionInfo::new("sess_01", "/home/ada/garden")
    );
    let page = message!("the last page of sessions", AgentResponse::ListSessions);
    assert_eq!(page, ListSessionsResponse::new([]));

    let request = message!("delete a session", ClientRequest::DeleteSession);
    assert_eq!(request, DeleteSessionRequest::new("sess_00"));
    let response = message!("session deleted", AgentResponse::DeleteSession);
    assert_eq!(response, DeleteSessionResponse::new());

    let request = message!("resume a session", ClientRequest::ResumeSession);
    assert_eq!(
        request,
        ResumeSessionRequest::new("sess_00", "/home/ada/garden")
    );
    let request = message!(
        "resume a session with roots and servers",
        ClientRequest::ResumeSession
    );
    assert_eq!(request.additional_directories, ["/home/ada/shed"]);
    assert_eq!(request.mcp_servers[0].name(), Some("seeds"));
    let response = message!("the resumed session", AgentResponse::ResumeSession);
    assert_eq!(response.modes, None);
    assert_eq!(response.config_options.unwrap()[0].id.as_str(), "tidy");

    let request = message!("close a session", ClientRequest::CloseSession);
    assert_eq!(request, CloseSessionRequest::new("sess_00"));
    let response = message!("the session is closed", AgentResponse::CloseSession);
    assert_eq!(response, CloseSessionResponse::new());
}

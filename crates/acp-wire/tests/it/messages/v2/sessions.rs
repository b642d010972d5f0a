//! Tests of initialization, authentication, session setup and config options.

use acp_wire::v1::{SessionConfigKind, SessionConfigSelectOptions};

use super::*;

#[test]
fn initialization_messages_round_trip() {
    let request = message!("a client that can do everything", ClientRequest::Initialize);
    assert_eq!(request.protocol_version, ProtocolVersion::V2);
    assert_eq!(
        request.info,
        Implementation::new("quill", "4.2.0").title("Quill")
    );
    let can = request.capabilities;
    assert!(can.auth.unwrap().terminal.is_some());
    let elicitation = can.elicitation.unwrap();
    assert!(elicitation.form.is_some() && elicitation.url.is_some());
    assert_eq!(can.meta.unwrap()["example.org"], json!({"theme": "dark"}));
    let request = message!("a client that says little", ClientRequest::Initialize);
    assert_eq!(request.capabilities, ClientCapabilities::new());

    let response = message!("an agent that can do everything", AgentResponse::Initialize);
    let session = response.capabilities.session.unwrap();
    let prompt = session.prompt.unwrap();
    assert!(prompt.image.is_some() && prompt.audio.is_some());
    assert_eq!(
        prompt.embedded_context.unwrap().meta.unwrap()["maxBytes"],
        65536
    );
    let mcp = session.mcp.unwrap();
    assert!(mcp.stdio.is_some() && mcp.http.is_some());
    assert!(session.delete.is_some() && session.additional_directories.is_some());
    assert!(session.fork.is_some() && response.capabilities.auth.is_some());
    let [
        AuthMethod::Agent(browser),
        AuthMethod::Terminal(tty),
        AuthMethod::Terminal(bare),
    ] = &response.auth_methods[..]
    else {
        panic!("{:?}", response.auth_methods)
    };
    assert_eq!(
        *browser,
        AuthMethodAgent::new("browser", "Log in with a browser")
            .description("Opens the provider's page")
    );
    assert_eq!(tty.args, ["--login", "--quiet"]);
    assert_eq!(tty.env, [EnvVariable::new("LOGIN_MODE", "token")]);
    assert_eq!(*bare, AuthMethodTerminal::new("bare-tty", "Log in"));

    let response = message!("an agent without sessions", AgentResponse::Initialize);
    assert_eq!(
        response,
        InitializeResponse::new(ProtocolVersion::V2, Implementation::new("stone", "1"))
    );
}

#[test]
fn authentication_messages_round_trip() {
    let request = message!("log in", ClientRequest::Login);
    assert_eq!(request, LoginAuthRequest::new("browser"));
    for response in [
        message!("logged in", AgentResponse::Login),
        message!("logged in, as null", AgentResponse::Login),
    ] {
        assert_eq!(response, LoginAuthResponse::new());
    }
    assert_eq!(
        message!("log out", ClientRequest::Logout),
        LogoutAuthRequest::new()
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
    assert_eq!(request.additional_directories, ["/home/ada/shed"]);
    assert_eq!(
        request.mcp_servers,
        [
            McpServer::Stdio(
                McpServerStdio::new("seeds", "/opt/seeds/bin/serve")
                    .args(["--stdio".to_owned(), "--quiet".to_owned()])
                    .env([EnvVariable::new("SEEDS_TOKEN", "t-1")])
            ),
            McpServer::Http(
                McpServerHttp::new("weather", "https://weather.example.org/mcp")
                    .headers([HttpHeader::new("Authorization", "Bearer t-2")])
            ),
        ]
    );
    let request = message!("a new session without more", ClientRequest::NewSession);
    assert_eq!(request, NewSessionRequest::new("/home/ada/garden"));
    let request = message!(
        "a new session, as version 1 writes it",
        ClientRequest::NewSession
    );
    assert_eq!(
        request.mcp_servers,
        [McpServer::Stdio(McpServerStdio::new("seeds", "/seeds"))]
    );

    let response = message!("the new session", AgentResponse::NewSession);
    assert_eq!(response, NewSessionResponse::new("sess_01"));
    let response = message!(
        "the new session with options and commands",
        AgentResponse::NewSession
    );
    assert_eq!(response.config_options[0].0.id.as_str(), "tidy");
    assert_eq!(
        response.available_commands,
        [AvailableCommand::Command(Command::new(
            "rain",
            "Says whether it rains"
        ))]
    );
}

#[test]
fn stored_session_messages_round_trip() {
    let request = message!("resume a session", ClientRequest::ResumeSession);
    assert_eq!(
        request,
        ResumeSessionRequest::new("sess_00", "/home/ada/garden")
    );
    let request = message!(
        "resume a session from its start",
        ClientRequest::ResumeSession
    );
    assert_eq!(request.replay_from, Some(ReplayFrom::start()));
    assert_eq!(request.mcp_servers.len(), 1);
    let response = message!("the resumed session", AgentResponse::ResumeSession);
    assert_eq!(response.config_options.len(), 1);
    assert_eq!(response.available_commands.len(), 1);
    let response = message!("the resumed session, as null", AgentResponse::ResumeSession);
    assert_eq!(response, ResumeSessionResponse::new());

    let request = message!("fork a session", ClientRequest::ForkSession);
    assert_eq!(request.session_id.as_str(), "sess_01");
    assert_eq!(request.additional_directories, ["/home/ada/shed"]);
    let response = message!("the forked session", AgentResponse::ForkSession);
    assert_eq!(response.session_id.as_str(), "sess_02");
    assert_eq!(response.available_commands.len(), 1);

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
        page.sessions[1],
        SessionInfo::new("sess_01", "/home/ada/garden")
    );
    let request = message!("delete a session", ClientRequest::DeleteSession);
    assert_eq!(request, DeleteSessionRequest::new("sess_00"));
    let request = message!("close a session", ClientRequest::CloseSession);
    assert_eq!(request, CloseSessionRequest::new("sess_00"));
}

#[test]
fn config_option_messages_round_trip() {
    for request in [
        message!("choose a value", ClientRequest::SetSessionConfigOption),
        message!(
            "choose a value, as version 1 writes it",
            ClientRequest::SetSessionConfigOption
        ),
    ] {
        assert_eq!(
            request,
            SetSessionConfigOptionRequest::new("sess_01", "model", "large")
        );
    }
    let request = message!("say yes", ClientRequest::SetSessionConfigOption);
    assert_eq!(request.value, SessionConfigOptionValue::Boolean(true));
    assert_eq!(request.meta.unwrap()["by"], "key");

    let response = message!("all options", AgentResponse::SetSessionConfigOption);
    let categories: Vec<_> = response
        .config_options
        .iter()
        .map(|option| option.0.category.clone().unwrap())
        .collect();
    assert_eq!(
        categories,
        [
            SessionConfigOptionCategory::Mode,
            SessionConfigOptionCategory::Model,
            SessionConfigOptionCategory::ModelConfig,
            SessionConfigOptionCategory::ThoughtLevel,
            SessionConfigOptionCategory::Unknown("_garden".to_owned()),
        ]
    );
    let SessionConfigKind::Select(select) = &response.config_options[1].0.kind else {
        panic!("{:?}", response.config_options[1])
    };
    let SessionConfigSelectOptions::Grouped(groups) = &select.options else {
        panic!("{:?}", select.options)
    };
    assert_eq!(
        (groups[1].group.as_str(), groups[1].options.len()),
        ("thorough", 2)
    );
    assert_eq!(groups[1].meta.as_ref().unwrap()["paid"], true);

    let update = update!("options have changed", ConfigOptionUpdate);
    assert_eq!(
        update.config_options[0].0.kind,
        SessionConfigKind::Boolean {
            current_value: true
        }
    );
}

#[test]
fn elicitation_messages_round_trip() {
    let request = message!(
        "a form with every kind of field",
        AgentRequest::CreateElicitation
    );
    let ElicitationMode::Form { requested_schema } = request.mode else {
        panic!("{:?}", request.mode)
    };
    assert_eq!(requested_schema.properties.len(), 10);
    let request = message!("a page", AgentRequest::CreateElicitation);
    assert!(matches!(request.scope, ElicitationScope::Request { .. }));
    let response = message!("filled in", ClientResponse::CreateElicitation);
    let ElicitationAction::Accept(accept) = response.action else {
        panic!("{:?}", response.action)
    };
    assert_eq!(
        accept.content.unwrap()["colour"],
        ElicitationContentValue::Other(json!({"r": 0.5}))
    );
    let done = message!("the page is done", AgentNotification::CompleteElicitation);
    assert_eq!(done, CompleteElicitationNotification::new("el_1"));
}

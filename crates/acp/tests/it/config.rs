//! Tests that modes and config options are kept in sync, and that invalid requests are never sent.

use std::collections::HashSet;
use std::sync::Mutex;

use acp::agent::{OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, ListSessionsRequest, McpServer, McpServerHttp, McpServerSse, McpServerStdio,
    PromptCapabilities, SessionConfigId, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionConfigSelect,
    SessionConfigSelectOption, StopReason,
};
use acp::{Agent, Error, Result};
use serde_json::{Value, json};

use crate::common::{
    NoopClient, PIPE_CAPACITY, TestPeer, connect_pipes, idle_agent, limits_with, wait_until_idle,
    with_timeout,
};

/// An agent with a mode, a model and a boolean option. The model "small" lacks the mode "plan".
struct ConfigAgent(Mutex<Vec<SessionConfigOption>>);

fn select_option(id: &str, current: &str, values: &[&str]) -> SessionConfigOption {
    let values = values
        .iter()
        .map(|v| SessionConfigSelectOption::new(*v, v.to_uppercase()))
        .collect();
    SessionConfigOption::new(
        id,
        id.to_uppercase(),
        SessionConfigSelect::new(current, values),
    )
}

fn sample_options() -> Vec<SessionConfigOption> {
    vec![
        select_option("how", "ask", &["ask", "plan", "code"])
            .category(SessionConfigOptionCategory::Mode),
        select_option("model", "large", &["large", "small"])
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::new(
            "web",
            "Web",
            SessionConfigKind::Boolean {
                current_value: false,
            },
        ),
    ]
}

fn set_value(options: &mut [SessionConfigOption], id: &str, value: &SessionConfigOptionValue) {
    let option = options.iter_mut().find(|o| o.id.as_str() == id).unwrap();
    match (&mut option.kind, value) {
        (SessionConfigKind::Select(select), SessionConfigOptionValue::Id(value)) => {
            select.current_value = value.clone();
        }
        (
            SessionConfigKind::Boolean { current_value },
            SessionConfigOptionValue::Boolean(value),
        ) => {
            *current_value = *value;
        }
        other => panic!("{other:?} has been let through"),
    }
}

impl Agent for ConfigAgent {
    type State = ();

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let mut options = turn.config_options();
        let text = prompt.text();
        let (id, value) = text.split_once('=').unwrap();
        set_value(&mut options, id, &value.into());
        turn.set_config_options(options).await?;
        Ok(StopReason::EndTurn)
    }
    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        let mut meta = serde_json::Map::new();
        meta.insert("agent".to_owned(), json!("says"));
        let mut opened = OpenedSession::new().config_options(self.0.lock().unwrap().clone());
        opened.meta = Some(meta);
        Ok(opened)
    }
    async fn set_config_option(
        &self,
        (): &(),
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        let mut options = session.config_options();
        set_value(&mut options, option.as_str(), &value);
        if value == "small".into() {
            set_value(&mut options, "how", &"ask".into());
        }
        Ok(options)
    }
}

fn config_agent() -> ConfigAgent {
    ConfigAgent(Mutex::new(sample_options()))
}

fn boolean_capabilities() -> Value {
    json!({"session": {"configOptions": {"boolean": {}}}})
}

/// Returns each option's id and value.
fn option_values(options: &Value) -> Vec<String> {
    let options = options.as_array().unwrap_or_else(|| panic!("{options}"));
    options
        .iter()
        .map(|o| format!("{}={}", o["id"].as_str().unwrap(), o["currentValue"]))
        .collect()
}

/// Connects a client to a `ConfigAgent` and opens a session. Also returns the response to `session/new`.
async fn open_session(capabilities: Value) -> (TestPeer, String, Value) {
    let (_, mut peer) = TestPeer::connect_to_agent(config_agent());
    peer.initialize(capabilities).await;
    peer.send_request(1, "session/new", json!({"cwd": "/work", "mcpServers": []}))
        .await;
    let answer = peer.expect_result(1).await;
    (
        peer,
        answer["sessionId"].as_str().unwrap().to_owned(),
        answer,
    )
}

#[tokio::test(start_paused = true)]
async fn the_mode_option_is_also_sent_as_modes() {
    let (_, _, answer) = open_session(boolean_capabilities()).await;
    assert_eq!(
        option_values(&answer["configOptions"]),
        [r#"how="ask""#, r#"model="large""#, "web=false"]
    );
    let modes = json!([{"id": "ask", "name": "ASK"}, {"id": "plan", "name": "PLAN"}, {"id": "code", "name": "CODE"}]);
    assert_eq!(
        answer["modes"],
        json!({"currentModeId": "ask", "availableModes": modes})
    );
    assert_eq!(answer["_meta"], json!({"agent": "says"}));
    // A client that does not support booleans gets none.
    let (_, _, answer) = open_session(json!({})).await;
    assert_eq!(
        option_values(&answer["configOptions"]),
        [r#"how="ask""#, r#"model="large""#]
    );
    // Without options, there are no modes.
    let (_, mut peer) = TestPeer::connect_to_agent(idle_agent());
    peer.initialize(json!({})).await;
    peer.send_request(1, "session/new", json!({"cwd": "/work", "mcpServers": []}))
        .await;
    let answer = peer.expect_result(1).await;
    assert_eq!(
        answer.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["sessionId"]
    );
}

#[tokio::test(start_paused = true)]
async fn setting_a_mode_reports_the_options() {
    let (mut peer, s, _) = open_session(json!({})).await;
    peer.send_request(
        2,
        "session/set_mode",
        json!({"sessionId": s, "modeId": "code"}),
    )
    .await;
    let told = peer.expect_notification("session/update").await;
    assert_eq!(told["update"]["sessionUpdate"], "config_option_update");
    assert_eq!(
        option_values(&told["update"]["configOptions"]),
        [r#"how="code""#, r#"model="large""#]
    );
    assert_eq!(peer.expect_result(2).await, json!({}));
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn setting_the_mode_option_reports_the_mode() {
    let (mut peer, s, _) = open_session(boolean_capabilities()).await;
    let set = async |peer: &mut TestPeer, id: &str, value: Value| {
        let params = json!({"sessionId": s, "configId": id, "value": value});
        peer.send_request(2, "session/set_config_option", params)
            .await;
    };
    set(&mut peer, "how", json!("plan")).await;
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"});
    assert_eq!(
        peer.expect_notification("session/update").await["update"],
        update
    );
    let answer = peer.expect_result(2).await;
    assert_eq!(
        option_values(&answer["configOptions"]),
        [r#"how="plan""#, r#"model="large""#, "web=false"]
    );
    // The same value again changes nothing.
    set(&mut peer, "how", json!("plan")).await;
    peer.expect_result(2).await;
    // Another value, which also changes the mode.
    set(&mut peer, "model", json!("small")).await;
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"});
    assert_eq!(
        peer.expect_notification("session/update").await["update"],
        update
    );
    let answer = peer.expect_result(2).await;
    assert_eq!(
        option_values(&answer["configOptions"]),
        [r#"how="ask""#, r#"model="small""#, "web=false"]
    );
    // An option that does not affect the mode.
    set(&mut peer, "web", json!(true)).await;
    let answer = peer.expect_result(2).await;
    assert_eq!(option_values(&answer["configOptions"])[2], "web=true");
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn the_agents_changes_are_reported_in_both_forms() {
    let (mut peer, s, _) = open_session(json!({})).await;
    peer.send_prompt(2, &s, "how=code").await;
    let told = peer.expect_notification("session/update").await["update"].clone();
    assert_eq!(told["sessionUpdate"], "config_option_update");
    assert_eq!(
        option_values(&told["configOptions"]),
        [r#"how="code""#, r#"model="large""#]
    );
    let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"});
    assert_eq!(
        peer.expect_notification("session/update").await["update"],
        update
    );
    peer.expect_result(2).await;
    peer.send_prompt(3, &s, "model=small").await;
    let told = peer.expect_notification("session/update").await["update"].clone();
    assert_eq!(
        option_values(&told["configOptions"]),
        [r#"how="code""#, r#"model="small""#]
    );
    peer.expect_result(3).await;
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn clients_set_only_existing_options() {
    let (mut peer, s, _) = open_session(boolean_capabilities()).await;
    for (method, mut params, what) in [
        (
            "session/set_mode",
            json!({"modeId": "dance"}),
            "invalid value for config option how: dance",
        ),
        (
            "session/set_config_option",
            json!({"configId": "how", "value": "dance"}),
            "invalid value for config option how: dance",
        ),
        (
            "session/set_config_option",
            json!({"configId": "how", "value": true, "type": "boolean"}),
            "invalid value for config option how: true",
        ),
        (
            "session/set_config_option",
            json!({"configId": "web", "value": "maybe"}),
            "invalid value for config option web: maybe",
        ),
        (
            "session/set_config_option",
            json!({"configId": "size", "value": "xl"}),
            "config option not found: size",
        ),
    ] {
        params["sessionId"] = json!(s);
        peer.send_request(2, method, params).await;
        let (code, text) = peer.expect_error(2).await;
        assert_eq!(code, -32602);
        assert!(text.contains(what), "{text}");
    }
    let (_, mut peer, s) = TestPeer::open_agent_session(idle_agent()).await;
    peer.send_request(
        2,
        "session/set_mode",
        json!({"sessionId": s, "modeId": "code"}),
    )
    .await;
    assert_eq!(
        peer.expect_error(2).await,
        (-32602, "this session has no mode option".to_owned())
    );
    peer.check_alive().await;
}

// The client's side.

const MODES_JSON: &str = r#"{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"https://agent/code","name":"Code"}]}"#;

fn modes_value() -> Value {
    serde_json::from_str(MODES_JSON).unwrap()
}

fn model_option(current: &str) -> Value {
    let options = json!([{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]);
    json!({"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": current, "options": options})
}

/// Opens a client session with an agent that has the given modes and options.
async fn open_session_with(
    modes: Option<Value>,
    options: Option<Value>,
) -> (acp::client::ClientSession, TestPeer) {
    let (conn, mut peer) = TestPeer::connect_to_client(NoopClient).await;
    let mut answer = json!({"sessionId": "s"});
    if let Some(modes) = modes {
        answer["modes"] = modes;
    }
    if let Some(options) = options {
        answer["configOptions"] = options;
    }
    let session = peer.open_session(&conn, answer).await;
    (session, peer)
}

/// Returns each of the thread's config options with its value.
fn option_lines(session: &acp::client::ClientSession) -> Vec<String> {
    session.thread().read(|thread| {
        let options = thread.config_options().iter();
        options
            .map(|option| match &option.kind {
                SessionConfigKind::Select(select) => {
                    format!("{}={}", option.id, select.current_value)
                }
                SessionConfigKind::Boolean { current_value } => {
                    format!("{}={current_value}", option.id)
                }
                other => format!("{other:?}"),
            })
            .collect()
    })
}

/// Sets a mode or an option, expects a `method` request with `params`, and responds to it.
async fn set_and_answer(
    peer: &mut TestPeer,
    work: impl Future<Output = Result<()>> + Send + 'static,
    method: &str,
    params: Value,
    answer: Value,
) {
    let work = tokio::spawn(work);
    let (id, asked) = peer.expect_request(method).await;
    assert_eq!(asked, params);
    peer.answer(&id, answer).await;
    with_timeout("it is set", work).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_only_modes_gets_set_mode() {
    let (session, mut peer) = open_session_with(Some(modes_value()), None).await;
    assert_eq!(option_lines(&session), ["mode=ask"]);
    let s = session.clone();
    let set = async move { s.set_mode("https://agent/code").await };
    let params = json!({"sessionId": "s", "modeId": "https://agent/code"});
    set_and_answer(
        &mut peer,
        set,
        "session/set_mode",
        params.clone(),
        json!({}),
    )
    .await;
    assert_eq!(option_lines(&session), ["mode=https://agent/code"]);
    // Set by the agent, and with the option that stands for it.
    peer.update(
        "s",
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "ask"}),
    )
    .await;
    peer.check_alive().await;
    assert_eq!(option_lines(&session), ["mode=ask"]);
    let s = session.clone();
    let set = async move { s.set_config_option("mode", "https://agent/code").await };
    set_and_answer(&mut peer, set, "session/set_mode", params, json!({})).await;
    assert_eq!(option_lines(&session), ["mode=https://agent/code"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_mode_change_has_no_effect() {
    let (session, mut peer) = open_session_with(Some(modes_value()), None).await;
    let set = tokio::spawn({
        let session = session.clone();
        async move { session.set_mode("https://agent/code").await }
    });
    let (id, _) = peer.expect_request("session/set_mode").await;
    peer.send_error(&id, -32603).await;
    assert!(matches!(
        with_timeout("it fails", set).await.unwrap().unwrap_err(),
        Error::Rpc(_)
    ));
    assert_eq!(option_lines(&session), ["mode=ask"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_with_modes_and_options_gets_set_config_option() {
    let how = json!({"id": "how", "name": "How", "category": "mode", "type": "select", "currentValue": "ask",
        "options": [{"value": "ask", "name": "Ask"}, {"value": "code", "name": "Code"}]});
    let (session, mut peer) =
        open_session_with(Some(modes_value()), Some(json!([how, model_option("a")]))).await;
    assert_eq!(option_lines(&session), ["how=ask", "model=a"]);
    let mut changed = how.clone();
    changed["currentValue"] = json!("code");
    let s = session.clone();
    let set = async move { s.set_mode("code").await };
    let params = json!({"sessionId": "s", "configId": "how", "value": "code"});
    let answer = json!({"configOptions": [changed, model_option("b")]});
    set_and_answer(&mut peer, set, "session/set_config_option", params, answer).await;
    assert_eq!(option_lines(&session), ["how=code", "model=b"]);
}

#[tokio::test(start_paused = true)]
async fn modes_are_shown_beside_options_that_lack_a_mode() {
    let (session, mut peer) =
        open_session_with(Some(modes_value()), Some(json!([model_option("a")]))).await;
    assert_eq!(option_lines(&session), ["mode=ask", "model=a"]);
    let s = session.clone();
    let set = async move { s.set_config_option("model", "b").await };
    let params = json!({"sessionId": "s", "configId": "model", "value": "b"});
    let answer = json!({"configOptions": [model_option("b")]});
    set_and_answer(&mut peer, set, "session/set_config_option", params, answer).await;
    assert_eq!(option_lines(&session), ["mode=ask", "model=b"]);
    peer.update(
        "s",
        json!({"sessionUpdate": "config_option_update", "configOptions": [model_option("a")]}),
    )
    .await;
    peer.update(
        "s",
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "https://agent/code"}),
    )
    .await;
    peer.check_alive().await;
    assert_eq!(
        option_lines(&session),
        ["mode=https://agent/code", "model=a"]
    );
    let s = session.clone();
    let set = async move { s.set_mode("ask").await };
    let params = json!({"sessionId": "s", "modeId": "ask"});
    set_and_answer(&mut peer, set, "session/set_mode", params, json!({})).await;
    // A mode option that is added later supersedes the modes.
    let mut mode = model_option("a");
    (mode["id"], mode["category"]) = (json!("mode"), json!("mode"));
    peer.update(
        "s",
        json!({"sessionUpdate": "config_option_update", "configOptions": [mode]}),
    )
    .await;
    peer.check_alive().await;
    assert_eq!(option_lines(&session), ["mode=a"]);
    let s = session.clone();
    let set = async move { s.set_mode("b").await };
    let params = json!({"sessionId": "s", "configId": "mode", "value": "b"});
    set_and_answer(
        &mut peer,
        set,
        "session/set_config_option",
        params,
        json!({}),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn unknown_options_are_not_sent() {
    let web = json!({"id": "web", "name": "Web", "type": "boolean", "currentValue": true});
    let groups = json!([{"group": "g", "name": "G", "options": [{"value": "x", "name": "X"}]}]);
    let grouped = json!({"id": "grouped", "name": "G", "type": "select", "currentValue": "x", "options": groups});
    let (session, mut peer) = open_session_with(
        Some(modes_value()),
        Some(json!([model_option("a"), web, grouped])),
    )
    .await;
    for (refused, expected) in [
        (
            session.set_mode("dance").await,
            "invalid value dance for config option mode; valid values: ask, https://agent/code",
        ),
        (
            session.set_config_option("model", "c").await,
            "invalid value c for config option model; valid values: a, b",
        ),
        (
            session.set_config_option("model", true).await,
            "invalid value true for config option model",
        ),
        (
            session.set_config_option("web", "maybe").await,
            "invalid value maybe for config option web; valid values: true, false",
        ),
        (
            session.set_config_option("grouped", "g").await,
            "invalid value g for config option grouped; valid values: x",
        ),
        (
            session.set_config_option("size", "xl").await,
            "config option not found: size; available options: mode, model, web, grouped",
        ),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(&error, Error::InvalidRequest(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    peer.expect_silence().await;
    // A boolean may be passed as a string, as on a command line.
    let s = session.clone();
    let set = async move { s.set_config_option("web", "false").await };
    let params = json!({"sessionId": "s", "configId": "web", "type": "boolean", "value": false});
    let answer = json!({"configOptions": [{"id": "web", "name": "Web", "type": "boolean", "currentValue": false}]});
    set_and_answer(&mut peer, set, "session/set_config_option", params, answer).await;

    let (session, mut peer) = open_session_with(None, None).await;
    let error = session.set_mode("ask").await.unwrap_err();
    assert_eq!(error.to_string(), "the agent does not support modes");
    let error = session.set_config_option("x", "y").await.unwrap_err();
    assert!(
        error.to_string().contains("available options: none"),
        "{error}"
    );
    peer.expect_silence().await;
}

// Capabilities.

fn unsupported_message<T: std::fmt::Debug>(refused: Result<T>) -> String {
    match refused.unwrap_err() {
        Error::Unsupported { peer, what } => format!("{peer}: {what}"),
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_does_not_call_unsupported_methods() {
    let (session, mut peer) = TestPeer::open_client_session(NoopClient).await;
    let conn = session.agent().clone();
    let resource = BlobResourceContents::new("QQ==", "file:///a");
    let resource = EmbeddedResource::new(EmbeddedResourceResource::Blob(resource));
    let blocks = [
        (
            ContentBlock::Image(Box::new(ImageContent::new("QQ==", "image/png"))),
            "agent: promptCapabilities.image",
        ),
        (
            ContentBlock::Audio(Box::new(AudioContent::new("QQ==", "audio/wav"))),
            "agent: promptCapabilities.audio",
        ),
        (
            ContentBlock::Resource(Box::new(resource)),
            "agent: promptCapabilities.embeddedContext",
        ),
    ];
    for (block, expected) in blocks {
        let prompt = vec![ContentBlock::text("look"), block];
        assert_eq!(unsupported_message(session.prompt(prompt).await), expected);
        assert!(!session.thread().read(acp::Thread::is_running));
        assert!(session.thread().read(|t| t.items().is_empty()));
    }
    let servers = [
        (
            McpServer::Http(McpServerHttp::new("m", "https://m", Vec::new())),
            "agent: mcpCapabilities.http",
        ),
        (
            McpServer::Sse(McpServerSse::new("m", "https://m", Vec::new())),
            "agent: mcpCapabilities.sse",
        ),
    ];
    for (server, expected) in servers {
        let setup = acp::client::SessionSetup::new("/work").mcp_servers(vec![server]);
        assert_eq!(unsupported_message(conn.new_session(setup).await), expected);
    }
    let setup = acp::client::SessionSetup::new("/work").additional_directories(["/more"]);
    assert_eq!(
        unsupported_message(conn.new_session(setup).await),
        "agent: sessionCapabilities.additionalDirectories"
    );
    assert_eq!(
        unsupported_message(conn.load_session("x", "/work").await),
        "agent: loadSession"
    );
    assert_eq!(
        unsupported_message(conn.resume_session("x", "/work").await),
        "agent: sessionCapabilities.resume"
    );
    assert_eq!(
        unsupported_message(conn.list_sessions(&ListSessionsRequest::new()).await),
        "agent: sessionCapabilities.list"
    );
    assert_eq!(
        unsupported_message(conn.delete_session(&"x".into()).await),
        "agent: sessionCapabilities.delete"
    );
    assert_eq!(
        unsupported_message(session.close().await),
        "agent: sessionCapabilities.close"
    );
    assert_eq!(
        unsupported_message(conn.logout().await),
        "agent: auth.logout"
    );
    peer.expect_silence().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_calls_supported_methods() {
    let capabilities = json!({
        "promptCapabilities": {"image": true, "audio": true, "embeddedContext": true},
        "mcpCapabilities": {"http": true, "sse": true},
        "sessionCapabilities": {"additionalDirectories": {}},
    });
    let (conn, mut peer) = TestPeer::connect_to_client_with(
        NoopClient,
        limits_with(|_| ()),
        PIPE_CAPACITY,
        capabilities,
    )
    .await;
    let servers = vec![
        McpServer::Http(McpServerHttp::new("h", "https://m", Vec::new())),
        McpServer::Sse(McpServerSse::new("s", "https://m", Vec::new())),
        McpServer::Stdio(McpServerStdio::new("c", "/bin/m", Vec::new(), Vec::new())),
    ];
    let setup = acp::client::SessionSetup::new("/work")
        .mcp_servers(servers)
        .additional_directories(["/more"]);
    let opening = tokio::spawn(async move { conn.new_session(setup).await });
    let (id, params) = peer.expect_request("session/new").await;
    assert_eq!(params["cwd"], "/work");
    assert_eq!(params["additionalDirectories"], json!(["/more"]));
    assert_eq!(params["mcpServers"].as_array().unwrap().len(), 3);
    peer.answer(&id, json!({"sessionId": "s"})).await;
    let session = with_timeout("the session opens", opening)
        .await
        .unwrap()
        .unwrap();
    let turn = tokio::spawn(async move {
        let image = ContentBlock::Image(Box::new(ImageContent::new("QQ==", "image/png")));
        let audio = ContentBlock::Audio(Box::new(AudioContent::new("QQ==", "audio/wav")));
        session.prompt(vec![image, audio]).await
    });
    let (id, params) = peer.expect_request("session/prompt").await;
    assert_eq!(params["prompt"][0]["type"], "image");
    peer.answer(&id, json!({"stopReason": "end_turn"})).await;
    with_timeout("the turn ends", turn).await.unwrap().unwrap();
}

/// An agent that sends its client requests of every kind and reports the results.
struct AskingAgent;

impl Agent for AskingAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        _: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> Result<StopReason> {
        let command = acp::agent::TerminalCommand::new("ls", ["-l"]);
        let refused = [
            unsupported_message(turn.read_text_file("/x", None, None).await),
            unsupported_message(turn.write_text_file("/x", "y").await),
            unsupported_message(turn.create_terminal(command).await.map(drop)),
        ];
        turn.send_message(refused.join(", ")).await?;
        Ok(StopReason::EndTurn)
    }
    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new().image(true)
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_does_not_call_unsupported_methods() {
    let (_, mut peer, s) = TestPeer::open_agent_session(AskingAgent).await;
    peer.send_prompt(1, &s, "go").await;
    let told = peer.expect_notification("session/update").await;
    let expected = "client: fs.readTextFile, client: fs.writeTextFile, client: terminal";
    assert_eq!(told["update"]["content"]["text"], expected);
    peer.expect_result(1).await;
}

#[tokio::test(start_paused = true)]
async fn unsupported_prompt_content_is_not_sent() {
    let (_, mut peer) = TestPeer::connect_to_agent(AskingAgent);
    let told = peer.initialize(json!({})).await;
    assert_eq!(
        told["agentCapabilities"]["promptCapabilities"]["image"],
        true
    );
    let s = peer.new_session().await;
    let audio = json!({"type": "audio", "data": "QQ==", "mimeType": "audio/wav"});
    peer.send_request(
        1,
        "session/prompt",
        json!({"sessionId": s, "prompt": [audio]}),
    )
    .await;
    let (code, text) = peer.expect_error(1).await;
    assert_eq!(code, -32602);
    assert!(
        text.contains("audio, which the agent does not support"),
        "{text}"
    );
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    peer.send_request(
        2,
        "session/prompt",
        json!({"sessionId": s, "prompt": [image]}),
    )
    .await;
    peer.expect_notification("session/update").await;
    peer.expect_result(2).await;
}

#[tokio::test(start_paused = true)]
async fn capabilities_match_the_implemented_methods() {
    let (_, mut peer) = TestPeer::connect_to_agent(idle_agent());
    let told = peer.initialize(json!({})).await;
    assert_eq!(told["authMethods"], json!([]));
    let capabilities = &told["agentCapabilities"];
    assert_ne!(capabilities["loadSession"], true);
    for none in ["list", "delete", "resume", "close", "additionalDirectories"] {
        assert_eq!(
            capabilities["sessionCapabilities"].get(none),
            None,
            "{capabilities}"
        );
    }

    let (transport, mut peer) = connect_pipes(PIPE_CAPACITY);
    let _connecting = tokio::spawn(acp::testing::start_client(
        transport,
        NoopClient,
        acp::Options::new(),
    ));
    let (_, params) = peer.expect_request("initialize").await;
    let capabilities = &params["clientCapabilities"];
    assert_ne!(capabilities["terminal"], true, "{capabilities}");
    for fs in ["readTextFile", "writeTextFile"] {
        assert_ne!(capabilities["fs"][fs], true, "{capabilities}");
    }
    assert!(
        capabilities["session"]["configOptions"]["boolean"].is_object(),
        "{capabilities}"
    );
    assert_eq!(capabilities.get("elicitation"), None, "{capabilities}");
}

#[tokio::test(start_paused = true)]
async fn sessions_have_unique_ids_and_absolute_directories() {
    let (_conn, mut peer) = TestPeer::connect_to_agent(idle_agent());
    peer.initialize(json!({})).await;
    let mut ids = HashSet::new();
    for _ in 0..100 {
        assert!(ids.insert(peer.new_session().await));
    }
    for cwd in ["", ".", "work", "../work", "~/work"] {
        peer.send_request(1, "session/new", json!({"cwd": cwd, "mcpServers": []}))
            .await;
        let (code, text) = peer.expect_error(1).await;
        assert_eq!(code, -32602, "{cwd}");
        assert!(text.contains("not an absolute path:"), "{text}");
    }
    let params = json!({"cwd": "/work", "additionalDirectories": ["more"], "mcpServers": []});
    peer.send_request(1, "session/new", params).await;
    assert_eq!(
        peer.expect_error(1).await,
        (-32602, r#"not an absolute path: "more""#.to_owned())
    );
    wait_until_idle().await;
    peer.check_alive().await;
}

#[tokio::test(start_paused = true)]
async fn relative_directories_are_rejected() {
    let can = json!({"loadSession": true, "sessionCapabilities": {"additionalDirectories": {}}});
    let (conn, mut peer) =
        TestPeer::connect_to_client_with(NoopClient, limits_with(|_| ()), PIPE_CAPACITY, can).await;
    for cwd in ["", ".", "work", "./work", "~/work", "C:work"] {
        let error = conn.new_session(cwd).await.unwrap_err();
        assert!(
            error.to_string().contains("not an absolute path"),
            "{error}"
        );
        assert!(conn.load_session("s", cwd).await.is_err(), "{cwd}");
    }
    let setup = SessionSetup::new("/work").additional_directories(["lib"]);
    assert!(conn.new_session(setup).await.is_err());
    peer.expect_silence().await;
    // The agent may run on another operating system.
    for cwd in ["/work", "C:\\work", "c:/work", "\\\\server\\work"] {
        let opening = tokio::spawn({
            let conn = conn.clone();
            async move { conn.new_session(cwd).await }
        });
        let (id, params) = peer.expect_request("session/new").await;
        assert_eq!(params["cwd"], cwd);
        peer.answer(&id, json!({"sessionId": cwd})).await;
        with_timeout("it opens", opening).await.unwrap().unwrap();
    }
}

//! Every message of version 1, read through the method table and written back.
//!
//! The messages are in `data/v1`, in the shapes of the specification's examples. A file is an object
//! of named cases: `method`, then `params` or `result` as it arrives, and `written` where what we
//! write differs from it (a default written out, a `null` left out).

// Clippy knows tests by their attribute, not the functions they share.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use acp_wire::jsonrpc::RequestId;
use acp_wire::v1::*;
use acp_wire::{MethodKind, ReadError, Sender};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    method: String,
    #[serde(default, deserialize_with = "present")]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    written: Option<Value>,
}

/// A `null` in the data is meant.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(d).map(Some)
}

fn cases() -> BTreeMap<String, Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1");
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let file: BTreeMap<String, Case> =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (name, case) in file {
            assert!(
                case.params.is_some() != case.result.is_some(),
                "{name}: params or result"
            );
            assert!(
                all.insert(name.clone(), case).is_none(),
                "{name} is there twice"
            );
        }
    }
    all
}

/// An enum of the method table.
trait Table: Serialize + Debug + Sized {
    fn read_raw(method: &str, raw: &RawValue) -> Result<Self, ReadError>;
}

macro_rules! tables {
    ($($name:ident: $raw:ident => $read:expr;)+) => { $(
        impl Table for $name {
            fn read_raw(method: &str, $raw: &RawValue) -> Result<Self, ReadError> { $name::read(method, $read) }
        }
    )+ };
}

tables! {
    ClientRequest: raw => Some(raw);
    AgentRequest: raw => Some(raw);
    ClientNotification: raw => Some(raw);
    AgentNotification: raw => Some(raw);
    ProtocolNotification: raw => Some(raw);
    AgentResponse: raw => raw;
    ClientResponse: raw => raw;
}

fn read<T: Table>(name: &str) -> T {
    let cases = cases();
    let case = cases
        .get(name)
        .unwrap_or_else(|| panic!("there is no case {name:?}"));
    let raw = case.params.as_deref().or(case.result.as_deref()).unwrap();
    T::read_raw(&case.method, raw).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The content of a message that must be of one variant.
macro_rules! message {
    ($name:literal, $($variant:ident)::+) => {
        match read($name) {
            $($variant)::+(message) => message,
            other => panic!("{}: {other:?}", $name),
        }
    };
}

/// The update of a case that must be of one variant.
macro_rules! update {
    ($name:literal, $variant:ident) => {{
        let notification = message!($name, AgentNotification::SessionUpdate);
        assert_eq!(notification.session_id.as_str(), "sess_01");
        match notification.update {
            SessionUpdate::$variant(update) => update,
            other => panic!("{}: {other:?}", $name),
        }
    }};
}

fn check_round_trip<T: Table>(name: &str, case: &Case) {
    let raw = case.params.as_deref().or(case.result.as_deref()).unwrap();
    let message = T::read_raw(&case.method, raw).unwrap_or_else(|e| panic!("{name}: {e}"));
    let arrived: Value = serde_json::from_str(raw.get()).unwrap();
    let expected = match &case.written {
        Some(written) => {
            assert_ne!(written, &arrived, "{name}: `written` is not needed");
            written
        }
        None => &arrived,
    };
    let written = serde_json::to_value(&message).unwrap();
    assert_eq!(&written, expected, "{name}");

    // What we write is written the same again.
    let again = T::read_raw(&case.method, &to_raw_value(&message).unwrap()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), written, "{name}");
}

#[test]
fn every_case_is_read_and_written_back() {
    for (name, case) in &cases() {
        let row = METHODS
            .iter()
            .find(|row| row.name == case.method)
            .unwrap_or_else(|| panic!("{name}: no such method: {}", case.method));
        let check = match (row.sender, row.kind, case.params.is_some()) {
            (Sender::Client, MethodKind::Request, true) => check_round_trip::<ClientRequest>,
            (Sender::Client, MethodKind::Request, false) => check_round_trip::<AgentResponse>,
            (Sender::Agent, MethodKind::Request, true) => check_round_trip::<AgentRequest>,
            (Sender::Agent, MethodKind::Request, false) => check_round_trip::<ClientResponse>,
            (Sender::Client, MethodKind::Notification, true) => {
                check_round_trip::<ClientNotification>
            }
            (Sender::Agent, MethodKind::Notification, true) => {
                check_round_trip::<AgentNotification>
            }
            (Sender::Either, MethodKind::Notification, true) => {
                check_round_trip::<ProtocolNotification>
            }
            _ => panic!("{name}: {row:?} has no such part"),
        };
        check(name, case);
    }
}

#[test]
fn every_method_has_cases() {
    let cases = cases();
    let mut missing = Vec::new();
    for row in METHODS {
        let has = |part: fn(&Case) -> bool| {
            cases
                .values()
                .any(|case| case.method == row.name && part(case))
        };
        if !has(|case| case.params.is_some()) {
            missing.push(format!("params of {}", row.name));
        }
        if row.kind == MethodKind::Request && !has(|case| case.result.is_some()) {
            missing.push(format!("result of {}", row.name));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_table_has_each_method_once_and_in_its_direction() {
    let count = |sender, kind| {
        METHODS
            .iter()
            .filter(|r| r.sender == sender && r.kind == kind)
            .count()
    };
    assert_eq!(count(Sender::Client, MethodKind::Request), 12);
    assert_eq!(count(Sender::Agent, MethodKind::Request), 9);
    assert_eq!(count(Sender::Client, MethodKind::Notification), 1);
    assert_eq!(count(Sender::Agent, MethodKind::Notification), 2);
    assert_eq!(count(Sender::Either, MethodKind::Notification), 1);
    assert_eq!(METHODS.len(), 25);
    let names: BTreeSet<_> = METHODS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), METHODS.len());
    for row in METHODS {
        assert_eq!(
            row.result.is_some(),
            row.kind == MethodKind::Request,
            "{}",
            row.name
        );
    }

    // What one side sends is unknown when it comes from the other.
    let raw = to_raw_value(&json!({"sessionId": "s"})).unwrap();
    for row in METHODS {
        let known = [
            matches!(
                ClientRequest::read(row.name, Some(&raw)),
                Err(ReadError::UnknownMethod(_))
            ),
            matches!(
                AgentRequest::read(row.name, Some(&raw)),
                Err(ReadError::UnknownMethod(_))
            ),
            matches!(
                ClientNotification::read(row.name, Some(&raw)),
                Err(ReadError::UnknownMethod(_))
            ),
            matches!(
                AgentNotification::read(row.name, Some(&raw)),
                Err(ReadError::UnknownMethod(_))
            ),
            matches!(
                ProtocolNotification::read(row.name, Some(&raw)),
                Err(ReadError::UnknownMethod(_))
            ),
        ]
        .map(|unknown| !unknown);
        let expected = match (row.sender, row.kind) {
            (Sender::Client, MethodKind::Request) => [true, false, false, false, false],
            (Sender::Agent, MethodKind::Request) => [false, true, false, false, false],
            (Sender::Client, MethodKind::Notification) => [false, false, true, false, false],
            (Sender::Agent, MethodKind::Notification) => [false, false, false, true, false],
            _ => [false, false, false, false, true],
        };
        assert_eq!(known, expected, "{}", row.name);
    }
}

/// Every value of `key` anywhere in the data.
fn values_of(key: &str) -> BTreeSet<String> {
    fn walk(value: &Value, key: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, key, found)),
            Value::Object(object) => {
                for (k, v) in object {
                    match v {
                        Value::String(s) if k == key => {
                            found.insert(s.clone());
                        }
                        Value::Array(items) if k == key => {
                            found.extend(items.iter().filter_map(Value::as_str).map(str::to_owned));
                            walk(v, key, found);
                        }
                        _ => walk(v, key, found),
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    for case in cases().values() {
        let raw = case.params.as_deref().or(case.result.as_deref()).unwrap();
        walk(&serde_json::from_str(raw.get()).unwrap(), key, &mut found);
    }
    found
}

#[test]
fn every_kind_and_every_value_is_in_the_data() {
    fn all(key: &str, expected: impl IntoIterator<Item = String>) {
        let found = values_of(key);
        let missing: Vec<_> = expected
            .into_iter()
            .filter(|value| !found.contains(value))
            .collect();
        assert_eq!(
            missing,
            Vec::<String>::new(),
            "values of {key:?} that are in no case"
        );
    }
    fn tags(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|&tag| tag.to_owned()).collect()
    }
    macro_rules! known {
        ($key:literal: $($name:ident),+) => { $( all($key, $name::KNOWN.iter().map(ToString::to_string)); )+ };
    }
    all("sessionUpdate", tags(SessionUpdate::TAGS));
    all("type", tags(ContentBlock::TAGS));
    all("type", tags(ToolCallContent::TAGS));
    all("type", tags(McpServer::TAGS));
    all("type", tags(AuthMethod::TAGS));
    all("type", tags(ElicitationPropertySchema::TAGS));
    all("outcome", tags(RequestPermissionOutcome::TAGS));
    all("action", tags(ElicitationAction::TAGS));
    all("mode", tags(&["form", "url"]));
    all("type", tags(&["select"]));
    known!("kind": ToolKind, PermissionOptionKind);
    known!("status": ToolCallStatus, PlanEntryStatus);
    known!("priority": PlanEntryPriority);
    known!("stopReason": StopReason);
    known!("audience": Role);
    known!("category": SessionConfigOptionCategory);
    known!("format": StringFormat);
    known!("type": ElicitationSchemaType);
}

#[test]
fn initialization() {
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
fn authentication() {
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
fn new_sessions() {
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
fn old_sessions() {
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
    let response = message!("the session is deleted", AgentResponse::DeleteSession);
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

#[test]
fn modes() {
    let request = message!("set the mode", ClientRequest::SetSessionMode);
    assert_eq!(request, SetSessionModeRequest::new("sess_01", "dig"));
    let response = message!("the mode is set", AgentResponse::SetSessionMode);
    assert_eq!(response, SetSessionModeResponse::new());
    let response = message!(
        "the mode is set, with custom data",
        AgentResponse::SetSessionMode
    );
    assert_eq!(response.meta.unwrap()["was"], "look");
    let update = update!("another mode", CurrentModeUpdate);
    assert_eq!(update, CurrentModeUpdate::new("dig"));
}

#[test]
fn config_options() {
    let request = message!("choose a value", ClientRequest::SetSessionConfigOption);
    assert_eq!(
        request,
        SetSessionConfigOptionRequest::new("sess_01", "model", "large")
    );
    let request = message!("say yes", ClientRequest::SetSessionConfigOption);
    assert_eq!(
        request,
        SetSessionConfigOptionRequest::new("sess_01", "tidy", true)
    );

    let response = message!("all options", AgentResponse::SetSessionConfigOption);
    let [mode, model, window, effort, soil] = &response.config_options[..] else {
        panic!("{:?}", response.config_options)
    };
    assert_eq!(mode.category, Some(SessionConfigOptionCategory::Mode));
    assert_eq!(mode.description.as_deref(), Some("How much may change"));
    let SessionConfigKind::Select(select) = &mode.kind else {
        panic!("{:?}", mode.kind)
    };
    assert_eq!(select.current_value.as_str(), "look");
    let SessionConfigSelectOptions::Ungrouped(options) = &select.options else {
        panic!("{:?}", select.options)
    };
    assert_eq!(options[0].description.as_deref(), Some("Changes nothing"));
    assert_eq!(options[1], SessionConfigSelectOption::new("dig", "Dig"));

    let SessionConfigKind::Select(select) = &model.kind else {
        panic!("{:?}", model.kind)
    };
    let SessionConfigSelectOptions::Grouped(groups) = &select.options else {
        panic!("{:?}", select.options)
    };
    assert_eq!(
        (groups[1].group.as_str(), groups[1].name.as_str()),
        ("thorough", "Thorough")
    );
    let values: Vec<_> = select
        .options
        .iter()
        .map(|option| option.value.as_str())
        .collect();
    assert_eq!(values, ["small", "large", "huge"]);

    assert_eq!(
        window.category,
        Some(SessionConfigOptionCategory::ModelConfig)
    );
    assert_eq!(
        window.kind,
        SessionConfigKind::Boolean {
            current_value: false
        }
    );
    assert_eq!(
        effort.category,
        Some(SessionConfigOptionCategory::ThoughtLevel)
    );
    assert_eq!(
        soil.category,
        Some(SessionConfigOptionCategory::Unknown("_garden".to_owned()))
    );
    assert_eq!(soil.meta.as_ref().unwrap()["hidden"], true);

    let update = update!("options have changed", ConfigOptionUpdate);
    assert_eq!(
        update.config_options[0].kind,
        SessionConfigKind::Boolean {
            current_value: false
        }
    );
}

#[test]
fn prompt_turns() {
    let request = message!("a prompt with every kind of content", ClientRequest::Prompt);
    assert_eq!(request.meta.unwrap()["example.org/trace"], "t-77");
    let [
        ContentBlock::Text(text),
        ContentBlock::Image(image),
        ContentBlock::Audio(audio),
        ContentBlock::ResourceLink(link),
        ContentBlock::Resource(list),
        ContentBlock::Resource(scan),
    ] = &request.prompt[..]
    else {
        panic!("{:?}", request.prompt)
    };
    assert_eq!(text.text, "What grows here?\nAnd \"there\"?");
    let hints = text.annotations.as_ref().unwrap();
    assert_eq!(hints.audience, Some(vec![Role::Assistant, Role::User]));
    assert_eq!(hints.last_modified.as_deref(), Some("2026-03-01T08:15:00Z"));
    assert_eq!(hints.priority, Some(0.5));
    assert_eq!(
        (image.data.as_str(), image.mime_type.as_str()),
        ("iVBORw0KGgo=", "image/png")
    );
    assert_eq!(
        image.uri.as_deref(),
        Some("file:///home/ada/garden/bed.png")
    );
    assert_eq!(
        (audio.data.as_str(), audio.mime_type.as_str()),
        ("UklGRg==", "audio/wav")
    );
    assert_eq!((link.name.as_str(), link.size), ("plan.pdf", Some(20480)));
    assert_eq!(link.title.as_deref(), Some("The plan"));
    assert_eq!(link.description.as_deref(), Some("Drawn by hand"));
    assert_eq!(link.mime_type.as_deref(), Some("application/pdf"));
    assert_eq!(
        list.resource,
        EmbeddedResourceResource::Text(
            TextResourceContents::new("beans\npeas\n", "file:///home/ada/garden/list.txt")
                .mime_type("text/plain")
        )
    );
    assert_eq!(
        scan.resource,
        EmbeddedResourceResource::Blob(BlobResourceContents::new(
            "AAEC",
            "file:///home/ada/garden/scan.bin"
        ))
    );
    assert_eq!(scan.annotations.as_ref().unwrap().priority, Some(1.0));

    let ended = [
        message!("the turn has ended", AgentResponse::Prompt),
        message!("the turn ran out of tokens", AgentResponse::Prompt),
        message!("the turn ran out of requests", AgentResponse::Prompt),
        message!("the agent refuses", AgentResponse::Prompt),
        message!("the turn was cancelled", AgentResponse::Prompt),
    ];
    assert_eq!(
        ended.map(|response| response.stop_reason),
        *StopReason::KNOWN
    );

    let cancel = message!("cancel the turn", ClientNotification::Cancel);
    assert_eq!(cancel, CancelNotification::new("sess_01"));
    let cancel = message!(
        "cancel a request by number",
        ProtocolNotification::CancelRequest
    );
    assert_eq!(cancel.request_id, RequestId::Number(12));
    let cancel = message!(
        "cancel a request by name",
        ProtocolNotification::CancelRequest
    );
    assert_eq!(cancel.request_id, RequestId::String("req-12".to_owned()));
    assert_eq!(cancel.meta.unwrap()["why"], "too slow");
}

#[test]
fn session_updates() {
    let chunk = update!("a piece of the person's message", UserMessageChunk);
    assert_eq!(chunk.content.as_text(), Some("What grows"));
    assert_eq!(chunk.message_id.unwrap().as_str(), "msg_1");
    let chunk = update!("a piece of the agent's message", AgentMessageChunk);
    assert_eq!(chunk, ContentChunk::new("Beans, mostly."));
    let chunk = update!("a piece of a thought", AgentThoughtChunk);
    assert_eq!(chunk.content.as_text(), Some("It could be peas"));
    assert_eq!(chunk.meta.unwrap()["hidden"], false);

    let plan = update!("a plan", Plan);
    assert_eq!(
        plan.entries,
        [
            PlanEntry::new(
                "Read the list",
                PlanEntryPriority::High,
                PlanEntryStatus::Completed
            ),
            PlanEntry::new(
                "Ask about the shed",
                PlanEntryPriority::Medium,
                PlanEntryStatus::InProgress
            ),
            PlanEntry::new(
                "Draw the beds",
                PlanEntryPriority::Low,
                PlanEntryStatus::Pending
            ),
        ]
    );

    let commands = update!("the commands", AvailableCommandsUpdate).available_commands;
    assert_eq!(
        (commands[0].name.as_str(), commands[0].description.as_str()),
        ("sow", "Says when to sow")
    );
    assert_eq!(
        commands[0].input.as_ref().unwrap().hint,
        "the name of a plant"
    );
    assert_eq!(commands[1].input, None);

    let info = update!("a title", SessionInfoUpdate);
    assert_eq!(
        info,
        SessionInfoUpdate::new()
            .title("Where the beans go")
            .updated_at("2026-03-01T08:20:00Z")
    );
    let info = update!("no title any more", SessionInfoUpdate);
    assert_eq!((info.title, info.updated_at), (Some(None), None));

    let usage = update!("usage with cost", UsageUpdate);
    assert_eq!(
        usage,
        UsageUpdate::new(53_000_u64, 200_000_u64).cost(Cost::new(0.25, "EUR"))
    );
    let usage = update!("usage without cost", UsageUpdate);
    assert_eq!(usage, UsageUpdate::new(0_u64, 200_000_u64));
}

#[test]
fn tool_calls() {
    let call = update!("a new tool call", ToolCall);
    assert_eq!(
        call,
        ToolCall::new("call_1", "Reading the list").kind(ToolKind::Read)
    );
    let call = update!("a new tool call that leaves the defaults out", ToolCall);
    assert_eq!(call, ToolCall::new("call_2", "Counting"));
    assert_eq!(
        (call.kind, call.status),
        (ToolKind::Other, ToolCallStatus::Pending)
    );

    let call = update!("a new tool call with everything", ToolCall);
    assert_eq!(
        (&call.kind, &call.status),
        (&ToolKind::Edit, &ToolCallStatus::InProgress)
    );
    assert_eq!(
        call.content,
        [
            ContentBlock::text("Two lines change").into(),
            Diff::new("/home/ada/garden/list.txt", "peas\nbeans\n")
                .old_text("beans\npeas\n")
                .into(),
            Diff::new("/home/ada/garden/new.txt", "chard\n").into(),
            TerminalId::from("term_1").into(),
        ]
    );
    assert_eq!(
        call.locations[0],
        ToolCallLocation::new("/home/ada/garden/list.txt").line(2_u32)
    );
    assert_eq!(call.locations[1].line, None);
    assert_eq!(
        call.raw_input,
        Some(json!({"from": 1, "to": 2, "why": null}))
    );
    assert_eq!(call.raw_output, Some(json!(["peas", "beans"])));

    let change = update!("a tool call is under way", ToolCallUpdate);
    assert_eq!(
        change,
        ToolCallUpdate::new("call_1").status(ToolCallStatus::InProgress)
    );
    let change = update!("a tool call is done", ToolCallUpdate);
    assert_eq!(change.title.as_deref(), Some("Read the list"));
    assert_eq!(change.kind, Some(ToolKind::Read));
    assert_eq!(change.status, Some(ToolCallStatus::Completed));
    assert_eq!(change.content.unwrap().len(), 1);
    assert_eq!(change.locations.unwrap().len(), 1);
    assert_eq!(
        (change.raw_input, change.raw_output),
        (Some(json!("list.txt")), Some(json!(5)))
    );
    let change = update!(
        "a tool call has failed and shows nothing any more",
        ToolCallUpdate
    );
    assert_eq!(
        (change.content, change.locations),
        (Some(vec![]), Some(vec![]))
    );
}

#[test]
fn permissions() {
    let request = message!("may it be done?", AgentRequest::RequestPermission);
    assert_eq!(request.session_id.as_str(), "sess_01");
    assert_eq!(request.tool_call.tool_call_id.as_str(), "call_3");
    assert_eq!(
        request.tool_call.title.as_deref(),
        Some("Pull the weeds out")
    );
    assert_eq!(
        request.tool_call.content,
        Some(vec![ContentBlock::text("All of them").into()])
    );
    let kinds: Vec<_> = request
        .options
        .iter()
        .map(|option| option.kind.clone())
        .collect();
    assert_eq!(kinds, PermissionOptionKind::KNOWN);
    assert_eq!(
        kinds
            .iter()
            .map(PermissionOptionKind::allows)
            .collect::<Vec<_>>(),
        [true, true, false, false]
    );
    assert_eq!(
        kinds
            .iter()
            .map(PermissionOptionKind::rejects)
            .collect::<Vec<_>>(),
        [false, false, true, true]
    );
    assert_eq!(request.options[1].option_id.as_str(), "yes-always");
    assert_eq!(request.options[1].name, "Yes, always");

    let response = message!("it may", ClientResponse::RequestPermission);
    assert_eq!(response.outcome, RequestPermissionOutcome::selected("yes"));
    let response = message!(
        "the turn ended before anyone said",
        ClientResponse::RequestPermission
    );
    assert_eq!(response.outcome, RequestPermissionOutcome::cancelled());
}

#[test]
fn file_system() {
    let request = message!("read some lines", AgentRequest::ReadTextFile);
    assert_eq!(
        request,
        ReadTextFileRequest::new("sess_01", "/home/ada/garden/list.txt")
            .line(10_u32)
            .limit(50_u32)
    );
    let request = message!("read all lines", AgentRequest::ReadTextFile);
    assert_eq!((request.line, request.limit), (None, None));
    let response = message!("the lines", ClientResponse::ReadTextFile);
    assert_eq!(response.content, "beans\n\tpeas ✓\n");
    let request = message!("write a file", AgentRequest::WriteTextFile);
    assert_eq!(request.content, "{\n  \"beans\": 12\n}\n");
    for response in [
        message!("the file is written", ClientResponse::WriteTextFile),
        message!(
            "the file is written, as null",
            ClientResponse::WriteTextFile
        ),
    ] {
        assert_eq!(response, WriteTextFileResponse::new());
    }
}

#[test]
fn terminals() {
    let request = message!("start a command", AgentRequest::CreateTerminal);
    assert_eq!(
        request,
        CreateTerminalRequest::new("sess_01", "make")
            .args(["check".to_owned(), "-j2".to_owned()])
            .env([EnvVariable::new("VERBOSE", "1")])
            .cwd("/home/ada/garden")
            .output_byte_limit(1_048_576_u64)
    );
    let request = message!("start a command without more", AgentRequest::CreateTerminal);
    assert_eq!(request, CreateTerminalRequest::new("sess_01", "date"));
    let response = message!("the terminal", ClientResponse::CreateTerminal);
    assert_eq!(response.terminal_id.as_str(), "term_1");

    let request = message!("what has it printed?", AgentRequest::TerminalOutput);
    assert_eq!(request, TerminalOutputRequest::new("sess_01", "term_1"));
    let response = message!("it still runs", ClientResponse::TerminalOutput);
    assert_eq!(response, TerminalOutputResponse::new("checking…\n", true));
    for response in [
        message!("it has ended", ClientResponse::TerminalOutput),
        message!("it has ended, with a null", ClientResponse::TerminalOutput),
    ] {
        assert_eq!(
            response.exit_status,
            Some(TerminalExitStatus::new().exit_code(0_u32))
        );
    }

    let request = message!("wait for its end", AgentRequest::WaitForTerminalExit);
    assert_eq!(
        request,
        WaitForTerminalExitRequest::new("sess_01", "term_1")
    );
    let response = message!("it ended with a code", ClientResponse::WaitForTerminalExit);
    assert_eq!(
        response,
        WaitForTerminalExitResponse::new().exit_code(2_u32)
    );
    let response = message!(
        "it was ended by a signal",
        ClientResponse::WaitForTerminalExit
    );
    assert_eq!(
        response,
        WaitForTerminalExitResponse::new().signal("SIGTERM")
    );

    let request = message!("end the command", AgentRequest::KillTerminal);
    assert_eq!(request, KillTerminalRequest::new("sess_01", "term_1"));
    let response = message!("the command is ended", ClientResponse::KillTerminal);
    assert_eq!(response, KillTerminalResponse::new());
    let request = message!("free the terminal", AgentRequest::ReleaseTerminal);
    assert_eq!(request, ReleaseTerminalRequest::new("sess_01", "term_1"));
    let response = message!("the terminal is free", ClientResponse::ReleaseTerminal);
    assert_eq!(response, ReleaseTerminalResponse::new());
}

#[test]
fn elicitation_forms() {
    let request = message!(
        "a form with every kind of field",
        AgentRequest::CreateElicitation
    );
    assert_eq!(request.message, "What shall the bed be like?");
    assert_eq!(
        request.scope,
        ElicitationScope::Session {
            session_id: "sess_01".into(),
            tool_call_id: Some("call_1".into())
        }
    );
    let ElicitationMode::Form {
        requested_schema: form,
    } = request.mode
    else {
        panic!("{:?}", request.mode)
    };
    assert_eq!(form.title.as_deref(), Some("The bed"));
    assert_eq!(form.description.as_deref(), Some("What it should be like"));
    assert_eq!(
        form.required,
        Some(vec!["name".to_owned(), "plant".to_owned()])
    );
    assert_eq!(form.properties.len(), 12);

    macro_rules! field {
        ($name:literal, $variant:ident) => {
            match &form.properties[$name] {
                ElicitationPropertySchema::$variant(field) => field,
                other => panic!("{other:?}"),
            }
        };
    }
    let name = field!("name", String);
    assert_eq!((name.min_length, name.max_length), (Some(1), Some(40)));
    assert_eq!(name.pattern.as_deref(), Some("^[a-z]+$"));
    assert_eq!(name.default.as_deref(), Some("south"));
    assert_eq!(name.title.as_deref(), Some("Name"));
    assert_eq!(name.description.as_deref(), Some("Any"));
    let formats = [
        field!("mail", String),
        field!("page", String),
        field!("day", String),
        field!("moment", String),
    ];
    assert_eq!(
        formats.map(|field| field.format.clone().unwrap()),
        *StringFormat::KNOWN
    );
    let plant = field!("plant", String);
    assert_eq!(
        plant.enum_values,
        Some(vec!["beans".to_owned(), "peas".to_owned()])
    );
    assert_eq!(
        field!("soil", String).one_of,
        Some(vec![
            EnumOption::new("loam", "Loam").description("The best"),
            EnumOption::new("clay", "Clay")
        ])
    );
    let width = field!("width", Number);
    assert_eq!(
        (width.minimum, width.maximum, width.default),
        (Some(0.5), Some(3.0), Some(1.25))
    );
    let rows = field!("rows", Integer);
    assert_eq!(
        (rows.minimum, rows.maximum, rows.default),
        (Some(1), Some(12), Some(4))
    );
    assert_eq!(field!("watered", Boolean).default, Some(true));
    let tools = field!("tools", Array);
    assert_eq!((tools.min_items, tools.max_items), (Some(1), Some(2)));
    assert_eq!(tools.default, Some(vec!["rake".to_owned()]));
    assert_eq!(
        tools.items,
        MultiSelectItems::Strings(StringMultiSelectItems::new([
            "spade".to_owned(),
            "rake".to_owned()
        ]))
    );
    assert_eq!(
        field!("helpers", Array).items,
        MultiSelectItems::Titled(TitledMultiSelectItems::new([
            EnumOption::new("b", "Bob"),
            EnumOption::new("c", "Cleo")
        ]))
    );

    let request = message!(
        "a form without fields, before there is a session",
        AgentRequest::CreateElicitation
    );
    assert_eq!(
        request.scope,
        ElicitationScope::Request {
            request_id: RequestId::Number(3)
        }
    );
    assert_eq!(
        request.mode,
        ElicitationMode::Form {
            requested_schema: ElicitationSchema::new()
        }
    );
}

#[test]
fn elicitation_pages_and_answers() {
    let request = message!("a page", AgentRequest::CreateElicitation);
    assert_eq!(
        request.mode,
        ElicitationMode::Url {
            elicitation_id: "el_1".into(),
            url: "https://login.example.org/?code=17".to_owned()
        }
    );
    assert_eq!(
        request.scope,
        ElicitationScope::Session {
            session_id: "sess_01".into(),
            tool_call_id: None
        }
    );
    assert_eq!(request.meta.unwrap()["expires"], 600);
    let request = message!(
        "a page for a request with a name",
        AgentRequest::CreateElicitation
    );
    assert_eq!(
        request.scope,
        ElicitationScope::Request {
            request_id: RequestId::String("auth-1".to_owned())
        }
    );

    let response = message!("filled in", ClientResponse::CreateElicitation);
    let ElicitationAction::Accept(accept) = response.action else {
        panic!("{:?}", response.action)
    };
    let content = accept.content.unwrap();
    assert_eq!(
        content["name"],
        ElicitationContentValue::String("north".to_owned())
    );
    assert_eq!(content["rows"], ElicitationContentValue::Integer(6));
    assert_eq!(content["width"], ElicitationContentValue::Number(1.5));
    assert_eq!(content["watered"], ElicitationContentValue::Boolean(false));
    assert_eq!(
        content["tools"],
        ElicitationContentValue::StringArray(vec!["spade".to_owned(), "rake".to_owned()])
    );
    let response = message!("accepted without a form", ClientResponse::CreateElicitation);
    let ElicitationAction::Accept(accept) = response.action else {
        panic!("{:?}", response.action)
    };
    assert_eq!(accept.content, None);
    let response = message!("declined", ClientResponse::CreateElicitation);
    assert!(
        matches!(response.action, ElicitationAction::Decline(_)),
        "{:?}",
        response.action
    );
    assert_eq!(response.meta.unwrap()["after"], 2);
    let response = message!("left", ClientResponse::CreateElicitation);
    assert!(
        matches!(response.action, ElicitationAction::Cancel(_)),
        "{:?}",
        response.action
    );

    let done = message!("the page is done", AgentNotification::CompleteElicitation);
    assert_eq!(done, CompleteElicitationNotification::new("el_1"));
}

#[test]
fn extensions() {
    let params = to_raw_value(&json!({"bed": 3})).unwrap();
    let request = ClientRequest::read("_example.org/water", Some(&params)).unwrap();
    assert_eq!(request.method(), "_example.org/water");
    let ClientRequest::Extension(extension) = &request else {
        panic!("{request:?}")
    };
    assert_eq!(extension.params.as_ref().unwrap().get(), r#"{"bed":3}"#);
    assert_eq!(serde_json::to_value(&request).unwrap(), json!({"bed": 3}));

    let result = to_raw_value(&json!({"litres": 2.5})).unwrap();
    let response = AgentResponse::read("_example.org/water", &result).unwrap();
    let AgentResponse::Extension(raw) = &response else {
        panic!("{response:?}")
    };
    assert_eq!(raw.get(), r#"{"litres":2.5}"#);
    assert_eq!(
        serde_json::to_value(&response).unwrap(),
        json!({"litres": 2.5})
    );

    let notification = AgentNotification::read("_example.org/rain", None).unwrap();
    let AgentNotification::Extension(extension) = &notification else {
        panic!("{notification:?}")
    };
    assert!(extension.params.is_none());

    // Only an underscore makes an extension.
    let error = ClientRequest::read("example.org/water", Some(&params)).unwrap_err();
    assert!(
        matches!(&error, ReadError::UnknownMethod(m) if m == "example.org/water"),
        "{error}"
    );
    let error = AgentResponse::read("example.org/water", &result).unwrap_err();
    assert!(
        matches!(&error, ReadError::UnknownMethod(m) if m == "example.org/water"),
        "{error}"
    );
}

#[test]
fn every_message_names_its_method() {
    for row in METHODS {
        for (name, case) in cases().iter().filter(|(_, case)| case.method == row.name) {
            let Some(params) = case.params.as_deref() else {
                continue;
            };
            let method = match (row.sender, row.kind) {
                (Sender::Client, MethodKind::Request) => {
                    ClientRequest::read(row.name, Some(params))
                        .unwrap()
                        .method()
                        .to_owned()
                }
                (Sender::Agent, MethodKind::Request) => AgentRequest::read(row.name, Some(params))
                    .unwrap()
                    .method()
                    .to_owned(),
                (Sender::Client, MethodKind::Notification) => {
                    ClientNotification::read(row.name, Some(params))
                        .unwrap()
                        .method()
                        .to_owned()
                }
                (Sender::Agent, MethodKind::Notification) => {
                    AgentNotification::read(row.name, Some(params))
                        .unwrap()
                        .method()
                        .to_owned()
                }
                _ => ProtocolNotification::read(row.name, Some(params))
                    .unwrap()
                    .method()
                    .to_owned(),
            };
            assert_eq!(method, row.name, "{name}");
        }
    }
}

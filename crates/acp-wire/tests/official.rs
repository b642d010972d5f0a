//! Every message against the official crate of the protocol's types: what we write it reads, what
//! it writes we read, and nothing is lost on either way.

// Clippy knows tests by their attribute, not the functions they share.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use acp_wire::jsonrpc::{self, CancelRequestNotification, Error, Incoming, RequestId};
use acp_wire::v1::*;
use agent_client_protocol_schema as official;
use arbitrary::{Arbitrary, Unstructured};
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Bytes to make a message of. Three of four are printable, because a string ends at the first that
/// is not UTF-8; the others are any, because they choose between variants.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..2000).prop_map(|mut bytes| {
        for (byte, low) in bytes.iter_mut().zip((0..4).cycle()) {
            *byte = if *byte < 192 {
                0x20 + *byte / 2
            } else {
                (*byte - 192) * 4 + low
            };
        }
        bytes
    })
}

fn json_of<T: Serialize>(value: &T) -> Value {
    // By way of text, because that is what is sent.
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

fn read<T: DeserializeOwned>(json: &Value, what: &str) -> T {
    serde_json::from_str(&json.to_string()).unwrap_or_else(|e| panic!("{what}: {e}: {json}"))
}

/// What we write out and the official crate leaves out, as both may: the defaults of a tool call.
fn without_tool_call_defaults(mut json: Value) -> Value {
    if let Some(update) = json.get_mut("update").and_then(Value::as_object_mut)
        && update.get("sessionUpdate") == Some(&json!("tool_call"))
    {
        update.retain(|key, value| {
            !(key == "kind" && value == "other" || key == "status" && value == "pending")
        });
    }
    json
}

/// What this version of the official crate has and the published schema of version 1 has not: a
/// tool's name in tool calls, two capabilities of clients. We pass over them.
fn without_what_is_not_published(json: &Value) -> Value {
    match json {
        Value::Array(items) => items.iter().map(without_what_is_not_published).collect(),
        Value::Object(object) => Value::Object(
            object
                .iter()
                .filter(|(key, _)| match key.as_str() {
                    "name" => !object.contains_key("toolCallId"),
                    "compaction" | "notices" => !object.contains_key("configOptions"),
                    _ => true,
                })
                .map(|(key, value)| (key.clone(), without_what_is_not_published(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

/// Ours -> JSON, which is valid -> official -> JSON -> ours.
fn ours_survives<Ours, Official>(ours: &Ours, schema: &Validator)
where
    Ours: Serialize + DeserializeOwned + PartialEq + Debug,
    Official: Serialize + DeserializeOwned,
{
    let written = json_of(ours);
    if let Err(e) = schema.validate(&written) {
        panic!(
            "what we write is not valid: {} at {}: {written}",
            e,
            e.instance_path()
        );
    }
    let official: Official = read(&written, "the official crate cannot read what we write");
    let official_json = json_of(&official);
    assert_eq!(
        official_json,
        without_tool_call_defaults(written),
        "the official crate writes something else than we do"
    );
    let back: Ours = read(
        &official_json,
        "we cannot read what the official crate writes",
    );
    assert_eq!(&back, ours, "{official_json}");
}

/// Official -> JSON -> ours -> JSON -> official.
fn official_survives<Ours, Official>(official: &Official)
where
    Ours: Serialize + DeserializeOwned,
    Official: Serialize + DeserializeOwned,
{
    let ours: Ours = read(
        &json_of(official),
        "we cannot read what the official crate writes",
    );
    let written = without_what_is_not_published(&json_of(official));
    let our_json = json_of(&ours);
    assert_eq!(
        without_tool_call_defaults(our_json.clone()),
        written,
        "we write something else"
    );
    let back: Official = read(&our_json, "the official crate cannot read what we write");
    assert_eq!(json_of(&back), written);
}

/// The names of the types that are checked, and for each two tests.
macro_rules! messages {
    ($($name:ident)+) => {
        const CHECKED: &[&str] = &[$(stringify!($name)),+];
        mod what_we_write {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let schema = jsonschema::validator_for(&schema_of::<official::v1::$name>()).unwrap();
                    proptest!(|(bytes in bytes())| {
                        let ours = super::$name::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
                        ours_survives::<super::$name, official::v1::$name>(&ours, &schema);
                    });
                }
            )+
        }
        mod what_they_write {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let samples = Samples::of(&schema_of::<official::v1::$name>());
                    assert!(!samples.is_empty());
                    for sample in samples {
                        let official = read(&sample, "the official crate cannot read its own schema");
                        official_survives::<super::$name, official::v1::$name>(&official);
                    }
                }
            )+
        }
    };
}

messages! {
    InitializeRequest InitializeResponse
    AuthenticateRequest AuthenticateResponse
    LogoutRequest LogoutResponse
    NewSessionRequest NewSessionResponse
    LoadSessionRequest LoadSessionResponse
    ListSessionsRequest ListSessionsResponse
    DeleteSessionRequest DeleteSessionResponse
    ResumeSessionRequest ResumeSessionResponse
    CloseSessionRequest CloseSessionResponse
    SetSessionModeRequest SetSessionModeResponse
    SetSessionConfigOptionRequest SetSessionConfigOptionResponse
    PromptRequest PromptResponse
    RequestPermissionRequest RequestPermissionResponse
    WriteTextFileRequest WriteTextFileResponse
    ReadTextFileRequest ReadTextFileResponse
    CreateTerminalRequest CreateTerminalResponse
    TerminalOutputRequest TerminalOutputResponse
    ReleaseTerminalRequest ReleaseTerminalResponse
    WaitForTerminalExitRequest WaitForTerminalExitResponse
    KillTerminalRequest KillTerminalResponse
    CreateElicitationRequest CreateElicitationResponse
    CancelNotification
    SessionNotification
    CompleteElicitationNotification
    CancelRequestNotification
}

/// Instances of a JSON Schema that together have every property and every alternative it names, so
/// that what the official crate has and we have not is noticed.
struct Samples<'a> {
    definitions: &'a Value,
}

impl<'a> Samples<'a> {
    fn of(schema: &'a Value) -> Vec<Value> {
        Self {
            definitions: &schema["$defs"],
        }
        .make(schema)
    }

    fn make(&self, schema: &Value) -> Vec<Value> {
        let Some(schema) = schema.as_object() else {
            // `true`: anything goes.
            return vec![json!({"any": [1, null]}), json!("any")];
        };
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        // What the schema says itself, then what others add to it, then one of the alternatives.
        let mut made = vec![self.of_type(schema)];
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            made.push(self.make(&self.definitions[name.trim_start_matches("#/$defs/")]));
        }
        made.extend(
            schema
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(|s| self.make(s)),
        );
        let alternatives: Vec<_> = ["oneOf", "anyOf"]
            .iter()
            .filter_map(|key| schema.get(*key)?.as_array())
            .flatten()
            .flat_map(|alternative| self.make(alternative))
            .collect();
        if !alternatives.is_empty() {
            made.push(alternatives);
        }
        made.retain(|samples| !samples.is_empty());
        made.into_iter()
            .reduce(|a, b| combine(&a, &b))
            .unwrap_or_else(|| vec![json!({"any": 1})])
    }

    fn of_type(&self, schema: &serde_json::Map<String, Value>) -> Vec<Value> {
        let types: Vec<_> = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(some)) => some.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        types
            .into_iter()
            .flat_map(|name| self.of_one_type(name, schema))
            .collect()
    }

    fn of_one_type(&self, name: &str, schema: &serde_json::Map<String, Value>) -> Vec<Value> {
        match name {
            "null" => vec![Value::Null],
            "boolean" => vec![json!(true), json!(false)],
            "integer" => vec![json!(1), json!(0)],
            "number" => vec![json!(0.5), json!(-2.0)],
            // Not the name of any variant, so it is the unknown one where it is a tag.
            "string" => vec![json!("_\"other\"\n"), json!("")],
            "array" => {
                let items = self.make(schema.get("items").unwrap_or(&Value::Bool(true)));
                items
                    .iter()
                    .map(|item| json!([item, item]))
                    .chain([json!([])])
                    .collect()
            }
            "object" => {
                let mut objects = vec![json!({})];
                for (key, property) in schema
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten()
                {
                    let with_key: Vec<_> = self
                        .make(property)
                        .into_iter()
                        .map(|value| json!({key: value}))
                        .collect();
                    objects = combine(&objects, &with_key);
                }
                if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
                    let entries: Vec<_> = self
                        .make(values)
                        .into_iter()
                        .map(|value| json!({"entry": value}))
                        .collect();
                    objects = combine(&objects, &entries);
                }
                objects
            }
            other => panic!("a type without samples: {other}"),
        }
    }
}

/// Each of `a` and each of `b` at least once, merged; not every pair, which would be too many.
fn combine(a: &[Value], b: &[Value]) -> Vec<Value> {
    let merge = |a: &Value, b: &Value| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            // What `a` says is more precise: `b` may be the definition that `a` restricts.
            Value::Object(
                b.iter()
                    .chain(a)
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect(),
            )
        }
        (a, _) => a.clone(),
    };
    (0..a.len().max(b.len()))
        .map(|i| merge(&a[i % a.len()], &b[i % b.len()]))
        .collect()
}

/// Every constant string of a definition and of what is directly in it.
fn constants(schema: &Value, definition: &str) -> BTreeSet<String> {
    fn walk(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            Value::Object(object) => {
                found.extend(
                    object
                        .get("const")
                        .and_then(Value::as_str)
                        .map(str::to_owned),
                );
                object.values().for_each(|value| walk(value, found));
            }
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    walk(&schema["$defs"][definition], &mut found);
    assert!(!found.is_empty(), "{definition} has no constants");
    found
}

#[test]
fn we_know_every_kind_and_value_the_official_schema_names() {
    fn check<T: JsonSchema>(definition: &str, ours: BTreeSet<String>, not_published: &[&str]) {
        let theirs = constants(&schema_of::<T>(), definition);
        let not_published: BTreeSet<_> = not_published.iter().map(|&s| s.to_owned()).collect();
        assert_eq!(&theirs - &not_published, ours, "{definition}");
        assert!(
            not_published.is_subset(&theirs),
            "{definition}: we need not pass these over"
        );
    }
    macro_rules! tags {
        ($root:ident: $($name:ident but $not_published:expr),+) => { $(
            check::<official::v1::$root>(
                stringify!($name),
                $name::TAGS.iter().map(|&tag| tag.to_owned()).collect(),
                &$not_published,
            );
        )+ };
    }
    macro_rules! values {
        ($root:ident: $($name:ident),+) => { $(
            check::<official::v1::$root>(
                stringify!($name),
                $name::KNOWN.iter().map(ToString::to_string).collect(),
                &[],
            );
        )+ };
    }
    tags!(SessionNotification:
        SessionUpdate but ["compaction_summary_chunk", "compaction_update", "notice"],
        ContentBlock but [],
        ToolCallContent but []
    );
    tags!(NewSessionRequest: McpServer but []);
    tags!(InitializeResponse: AuthMethod but []);
    tags!(RequestPermissionResponse: RequestPermissionOutcome but []);
    tags!(CreateElicitationRequest: ElicitationPropertySchema but []);
    values!(SessionNotification: Role, ToolKind, ToolCallStatus, PlanEntryPriority, PlanEntryStatus);
    values!(SessionNotification: SessionConfigOptionCategory);
    values!(RequestPermissionRequest: PermissionOptionKind);
    values!(PromptResponse: StopReason);
    values!(CreateElicitationRequest: StringFormat, ElicitationSchemaType);
}

#[test]
fn every_type_of_the_method_table_is_checked() {
    for row in METHODS {
        for name in std::iter::once(row.params).chain(row.result) {
            assert!(
                CHECKED.contains(&name),
                "{name} of {} is not checked",
                row.name
            );
        }
    }
}

#[test]
fn what_is_made_for_these_tests_is_of_every_kind() {
    fn tags_of(value: &Value, key: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| tags_of(item, key, found)),
            Value::Object(object) => {
                found.extend(object.get(key).and_then(Value::as_str).map(str::to_owned));
                object.values().for_each(|value| tags_of(value, key, found));
            }
            _ => {}
        }
    }
    fn check<T: for<'a> Arbitrary<'a> + Serialize>(key: &str, expected: &[&str]) {
        let mut runner = TestRunner::deterministic();
        let mut found = BTreeSet::new();
        for _ in 0..256 {
            let bytes = bytes().new_tree(&mut runner).unwrap().current();
            let message = T::arbitrary(&mut Unstructured::new(&bytes)).unwrap();
            tags_of(&json_of(&message), key, &mut found);
        }
        let missing: Vec<_> = expected
            .iter()
            .filter(|&&tag| !found.contains(tag))
            .collect();
        assert!(missing.is_empty(), "{key}: {missing:?} are never made");
    }
    check::<SessionNotification>("sessionUpdate", SessionUpdate::TAGS);
    check::<SessionNotification>("type", ToolCallContent::TAGS);
    check::<PromptRequest>("type", ContentBlock::TAGS);
    check::<NewSessionRequest>("type", McpServer::TAGS);
    check::<InitializeResponse>("type", AuthMethod::TAGS);
    check::<SetSessionConfigOptionResponse>("type", &["select", "boolean"]);
    check::<RequestPermissionResponse>("outcome", RequestPermissionOutcome::TAGS);
    check::<CreateElicitationRequest>("mode", &["form", "url"]);
    check::<CreateElicitationRequest>("type", ElicitationPropertySchema::TAGS);
    check::<CreateElicitationResponse>("action", ElicitationAction::TAGS);
}

#[test]
fn values_made_by_their_constructors_survive() {
    use official::v1 as they;

    official_survives::<InitializeRequest, _>(
        &they::InitializeRequest::new(official::ProtocolVersion::V1)
            .client_capabilities(
                they::ClientCapabilities::new()
                    .fs(they::FileSystemCapabilities::new().read_text_file(true))
                    .terminal(true),
            )
            .client_info(they::Implementation::new("quill", "4.2.0").title("Quill".to_owned())),
    );
    official_survives::<NewSessionRequest, _>(
        &they::NewSessionRequest::new("/home/ada").mcp_servers(vec![
            they::McpServer::Stdio(
                they::McpServerStdio::new("seeds", "/bin/seeds").args(vec!["-q".to_owned()]),
            ),
            they::McpServer::Http(they::McpServerHttp::new(
                "weather",
                "https://weather.example.org",
            )),
        ]),
    );
    official_survives::<PromptRequest, _>(&they::PromptRequest::new(
        "sess_1",
        vec![
            "What grows here?".into(),
            they::ContentBlock::Image(they::ImageContent::new("AAEC", "image/png")),
        ],
    ));
    official_survives::<PromptResponse, _>(&they::PromptResponse::new(
        they::StopReason::MaxTurnRequests,
    ));
    for update in [
        they::SessionUpdate::AgentMessageChunk(they::ContentChunk::new("Beans".into())),
        they::SessionUpdate::ToolCall(they::ToolCall::new("call_1", "Counting")),
        they::SessionUpdate::ToolCallUpdate(they::ToolCallUpdate::new(
            "call_1",
            they::ToolCallUpdateFields::new()
                .status(they::ToolCallStatus::Completed)
                .content(vec![they::Diff::new("/home/ada/list.txt", "peas\n").into()]),
        )),
        they::SessionUpdate::CurrentModeUpdate(they::CurrentModeUpdate::new("dig")),
        they::SessionUpdate::SessionInfoUpdate(
            they::SessionInfoUpdate::new().title(official::MaybeUndefined::<String>::Null),
        ),
        they::SessionUpdate::UsageUpdate(they::UsageUpdate::new(u64::MAX, 1)),
    ] {
        official_survives::<SessionNotification, _>(&they::SessionNotification::new(
            "sess_1", update,
        ));
    }
    official_survives::<RequestPermissionResponse, _>(&they::RequestPermissionResponse::new(
        they::RequestPermissionOutcome::Selected(they::SelectedPermissionOutcome::new("yes")),
    ));
    official_survives::<SetSessionConfigOptionRequest, _>(
        &they::SetSessionConfigOptionRequest::new("sess_1", "tidy", true),
    );
}

/// An id and its official twin.
fn id() -> impl Strategy<Value = (RequestId, official::v1::RequestId)> {
    prop_oneof![
        Just((RequestId::Null, official::v1::RequestId::Null)),
        any::<i64>().prop_map(|n| (RequestId::Number(n), official::v1::RequestId::Number(n))),
        any::<String>().prop_map(|s| (
            RequestId::String(s.clone()),
            official::v1::RequestId::Str(s)
        )),
    ]
}

fn error() -> impl Strategy<Value = Error> {
    let data = prop_oneof![
        Just(None),
        any::<String>().prop_map(|s| Some(json!(s))),
        any::<i64>().prop_map(|n| Some(json!({"details": n, "more": [null, true]}))),
    ];
    let code = prop_oneof![any::<i32>(), -32803..-32000_i32];
    (code, any::<String>(), data).prop_map(|(code, message, data)| {
        let error = Error::new(code, message);
        match data {
            Some(data) => error.data(data),
            None => error,
        }
    })
}

proptest! {
    #[test]
    fn errors_survive(error in error()) {
        let theirs: official::v1::Error = read(&json_of(&error), "the official crate cannot read our error");
        prop_assert_eq!(json_of(&theirs), json_of(&error));
        prop_assert_eq!(read::<Error>(&json_of(&theirs), "we cannot read the official error"), error);
    }

    #[test]
    fn envelopes_survive((ours, theirs) in id(), method in any::<String>(), error in error()) {
        use official::rpc::JsonRpcMessage;
        use official::v1::{Notification, Request, Response};

        let params = json!({"line": "\u{2028}\n"});
        let mut out = Vec::new();
        jsonrpc::write_request(&mut out, &ours, &method, &params).unwrap();
        let request: JsonRpcMessage<Request<Value>> = serde_json::from_slice(&out).unwrap();
        let request = request.into_inner();
        prop_assert_eq!(&request.id, &theirs);
        prop_assert_eq!(&*request.method, &method);
        prop_assert_eq!(request.params.as_ref(), Some(&params));
        let line = serde_json::to_vec(&JsonRpcMessage::wrap(request)).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Request { id, method: m, params: Some(p) } => {
                prop_assert_eq!(id, ours.clone());
                prop_assert_eq!(m.as_ref(), &method);
                prop_assert_eq!(serde_json::from_str::<Value>(p.get()).unwrap(), params.clone());
            }
            other => panic!("{other:?}"),
        }

        out.clear();
        jsonrpc::write_notification(&mut out, &method, &params).unwrap();
        let notification: JsonRpcMessage<Notification<Value>> = serde_json::from_slice(&out).unwrap();
        let line = serde_json::to_vec(&notification).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Notification { method: m, params: Some(p) } => {
                prop_assert_eq!(m.as_ref(), &method);
                prop_assert_eq!(serde_json::from_str::<Value>(p.get()).unwrap(), params.clone());
            }
            other => panic!("{other:?}"),
        }

        out.clear();
        jsonrpc::write_result(&mut out, &ours, &params).unwrap();
        let response: JsonRpcMessage<Response<Value>> = serde_json::from_slice(&out).unwrap();
        let line = serde_json::to_vec(&response).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Response { id, result: Ok(raw) } => {
                prop_assert_eq!(id, ours.clone());
                prop_assert_eq!(serde_json::from_str::<Value>(raw.get()).unwrap(), params);
            }
            other => panic!("{other:?}"),
        }

        out.clear();
        jsonrpc::write_error(&mut out, &ours, &error).unwrap();
        let response: JsonRpcMessage<Response<Value>> = serde_json::from_slice(&out).unwrap();
        let line = serde_json::to_vec(&response).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Response { id, result: Err(e) } => {
                prop_assert_eq!(id, ours);
                prop_assert_eq!(e, error);
            }
            other => panic!("{other:?}"),
        }
    }
}

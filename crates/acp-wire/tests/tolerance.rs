//! What others write and ought not to: read without losing more than the part that is wrong, and
//! never written by us.

// Clippy knows tests by their attribute, not the functions they share.
#![allow(clippy::unwrap_used, clippy::panic)]

use acp_wire::jsonrpc::{self, CancelRequestNotification, Error, Incoming, ParseError, RequestId};
use acp_wire::v1::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const FORTY_DIGITS: &str = "1234567890123456789012345678901234567890";

fn read<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_str(&json.to_string()).unwrap_or_else(|e| panic!("{e}: {json}"))
}

fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

fn written<T: Serialize>(value: &T) -> Value {
    serde_json::from_str(&text(value)).unwrap()
}

/// That a message of an unknown kind keeps its text to the last character.
fn kept<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(json: &str) -> T {
    let value: T = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(text(&value), json);
    let again: T = serde_json::from_str(&text(&value)).unwrap();
    assert_eq!(again, value);
    value
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

mod where_the_documents_disagree {
    use super::*;

    #[test]
    fn the_mode_of_a_mode_update() {
        for update in [
            json!({"sessionUpdate": "current_mode_update", "modeId": "dig"}),
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig"}),
            // Agents that want to be understood by everyone write both.
            json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig", "modeId": "dig"}),
            json!({"sessionUpdate": "current_mode_update", "modeId": "dig", "currentModeId": null}),
            // The tag last, which is another way through the reader.
            json!({"modeId": "dig", "sessionUpdate": "current_mode_update"}),
        ] {
            let read: SessionUpdate = read(update);
            assert_eq!(
                read,
                SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("dig"))
            );
            assert_eq!(
                written(&read),
                json!({"sessionUpdate": "current_mode_update", "currentModeId": "dig"})
            );
        }
        let both: CurrentModeUpdate = read(json!({"modeId": "old", "currentModeId": "new"}));
        assert_eq!(both, CurrentModeUpdate::new("new"), "today's name wins");
        let error = serde_json::from_str::<CurrentModeUpdate>("{}").unwrap_err();
        assert!(error.to_string().contains("currentModeId"), "{error}");
    }

    #[test]
    fn the_name_of_the_config_option_update() {
        let options =
            json!([{"id": "tidy", "name": "Tidy", "type": "boolean", "currentValue": true}]);
        for name in ["config_option_update", "config_options_update"] {
            let update: SessionUpdate =
                read(json!({"sessionUpdate": name, "configOptions": options}));
            let SessionUpdate::ConfigOptionUpdate(inner) = &update else {
                panic!("{update:?}")
            };
            assert_eq!(inner.config_options.len(), 1);
            assert_eq!(
                written(&update),
                json!({"sessionUpdate": "config_option_update", "configOptions": options})
            );
        }
    }

    #[test]
    fn the_mcp_capabilities_of_an_agent() {
        let expected = McpCapabilities::new().http(true);
        for capabilities in [
            json!({"loadSession": true, "mcp": {"http": true}}),
            json!({"loadSession": true, "mcpCapabilities": {"http": true}}),
            json!({"loadSession": true, "mcp": {"sse": true}, "mcpCapabilities": {"http": true}}),
            json!({"loadSession": true, "mcp": {"http": true}, "mcpCapabilities": null}),
        ] {
            let response: InitializeResponse =
                read(json!({"protocolVersion": 1, "agentCapabilities": capabilities}));
            let can = response.agent_capabilities;
            assert!(can.load_session, "{capabilities}");
            assert_eq!(can.mcp_capabilities, expected, "{capabilities}");
            let written = written(&can);
            assert_eq!(
                written["mcpCapabilities"],
                json!({"http": true, "sse": false})
            );
            assert_eq!(written.get("mcp"), None);
        }
    }

    #[test]
    fn empty_results() {
        for method in [
            "session/load",
            "session/set_mode",
            "authenticate",
            "logout",
            "session/close",
        ] {
            for result in ["null", "{}"] {
                let response = AgentResponse::read(method, &raw(result)).unwrap();
                assert_eq!(text(&response), "{}", "{method}");
            }
        }
        for method in ["fs/write_text_file", "terminal/kill", "terminal/release"] {
            for result in ["null", "{}"] {
                let response = ClientResponse::read(method, &raw(result)).unwrap();
                assert_eq!(text(&response), "{}", "{method}");
            }
        }
        // A result that has something in it must have it.
        let error = AgentResponse::read("session/new", &raw("null")).unwrap_err();
        assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);
    }

    #[test]
    fn the_content_of_a_permission_request() {
        let request = |content: Value| {
            json!({
                "sessionId": "s",
                "toolCall": {"toolCallId": "c", "content": [content]},
                "options": []
            })
        };
        for block in [
            json!({"type": "text", "text": "## Beds"}),
            json!({"text": "## Beds", "type": "text"}),
            json!({"type": "resource_link", "name": "n", "uri": "file:///n"}),
            json!({"type": "image", "data": "AA==", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"text": "t", "uri": "file:///t"}}),
        ] {
            let read: RequestPermissionRequest = read(request(block.clone()));
            assert_eq!(
                written(&read),
                request(json!({"type": "content", "content": block})),
                "a bare content block is wrapped"
            );
        }
    }

    #[test]
    fn the_custom_data_of_the_answer_to_set_mode() {
        for result in [
            json!({"meta": {"was": "look"}}),
            json!({"_meta": {"was": "look"}}),
            json!({"_meta": {"was": "look"}, "meta": {"was": "dig"}}),
            json!({"_meta": null, "meta": {"was": "look"}}),
        ] {
            let response: SetSessionModeResponse = read(result);
            assert_eq!(written(&response), json!({"_meta": {"was": "look"}}));
        }
    }
}

mod what_is_unknown {
    use super::*;

    #[test]
    fn fields_pass() {
        let response: InitializeResponse = read(json!({
            "protocolVersion": 1,
            "someday": {"deep": [1, {"deeper": null}]},
            "agentCapabilities": {"loadSession": true, "teleport": true},
            "agentInfo": {"name": "hazel", "version": "1", "mood": "good"}
        }));
        assert!(response.agent_capabilities.load_session);
        assert_eq!(response.agent_info.unwrap().name, "hazel");

        // Also such as no `Value` could hold.
        let json = format!(
            r#"{{"sessionId":"s","far":1e999,"deep":{}{},"mode":{FORTY_DIGITS}}}"#,
            "[".repeat(1000),
            "]".repeat(1000)
        );
        let cancel: CancelNotification = serde_json::from_str(&json).unwrap();
        assert_eq!(cancel, CancelNotification::new("s"));
    }

    #[test]
    fn values_are_kept() {
        macro_rules! keeps {
            ($($name:ident),+) => { $(
                let value: $name = kept("\"_never \\\"heard\\\" of\"");
                assert_eq!(value, $name::Unknown("_never \"heard\" of".to_owned()));
                assert_eq!(value.as_str(), "_never \"heard\" of");
                // Case and spaces matter.
                let first = $name::KNOWN[0].as_str().to_uppercase();
                assert_eq!($name::from(first.as_str()), $name::Unknown(first.clone()));
                for known in $name::KNOWN {
                    assert_eq!(&kept::<$name>(&format!("\"{known}\"")), known);
                }
            )+ };
        }
        keeps!(
            StopReason,
            Role,
            ToolKind,
            ToolCallStatus,
            PlanEntryPriority,
            PlanEntryStatus,
            PermissionOptionKind,
            SessionConfigOptionCategory,
            StringFormat,
            ElicitationSchemaType
        );
        let update = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"levitate","status":"paused"}"#;
        let SessionUpdate::ToolCallUpdate(inner) = kept(update) else {
            panic!()
        };
        assert_eq!(inner.kind, Some(ToolKind::Unknown("levitate".to_owned())));
        assert_eq!(
            inner.status,
            Some(ToolCallStatus::Unknown("paused".to_owned()))
        );
    }

    #[test]
    fn kinds_are_kept_to_the_last_character() {
        let rest = format!(
            r#""b":{FORTY_DIGITS},"a":[1.50,1e999,{{"x":null}}],"s":"\u00e9\/","z":{{ "sp" : 1 }}"#
        );
        for json in [
            format!(r#"{{"TAG":"_new",{rest}}}"#),
            format!(r#"{{{rest},"TAG":"_new"}}"#),
            format!(r#"{{"first":true,"TAG":"_new",{rest}}}"#),
        ] {
            let of = |tag: &str| json.replace("TAG", tag);
            macro_rules! keeps {
                ($($name:ident by $tag:literal),+) => { $(
                    let value: $name = kept(&of($tag));
                    let $name::Unknown(object) = &value else { panic!("{value:?}") };
                    assert_eq!(object.get("b").unwrap().get(), FORTY_DIGITS);
                    assert_eq!(object.field::<String>($tag).as_deref(), Some("_new"));
                )+ };
            }
            keeps!(
                SessionUpdate by "sessionUpdate", ContentBlock by "type", ToolCallContent by "type",
                McpServer by "type", AuthMethod by "type", RequestPermissionOutcome by "outcome",
                ElicitationPropertySchema by "type", ElicitationAction by "action"
            );
            kept::<MultiSelectItems>(&of("type"));
        }
    }

    #[test]
    fn kinds_are_kept_within_messages() {
        let update = r#"{"sessionId":"s","update":{"n":1e999,"sessionUpdate":"_rain","mm":12.0}}"#;
        let notification: SessionNotification = kept(update);
        assert!(matches!(notification.update, SessionUpdate::Unknown(_)));

        let prompt = r#"{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"_smell","strength":9}]}"#;
        let request: PromptRequest = kept(prompt);
        assert!(matches!(request.prompt[1], ContentBlock::Unknown(_)));

        let call = r#"{"toolCallId":"c","title":"t","kind":"other","status":"pending","content":[{"type":"_chart","points":[0.10]}]}"#;
        let call: ToolCall = kept(call);
        assert!(matches!(call.content[0], ToolCallContent::Unknown(_)));

        let servers = r#"{"cwd":"/","mcpServers":[{"type":"_pigeon","name":"p"}]}"#;
        let request: NewSessionRequest = kept(servers);
        assert_eq!(request.mcp_servers[0].name(), None);

        let outcome = r#"{"outcome":{"outcome":"_later","in":60}}"#;
        let response: RequestPermissionResponse = kept(outcome);
        assert!(matches!(
            response.outcome,
            RequestPermissionOutcome::Unknown(_)
        ));

        let form = r#"{"type":"object","properties":{"c":{"type":"_colour","gamut":"p3"}}}"#;
        let form: ElicitationSchema = kept(form);
        assert!(matches!(
            form.properties["c"],
            ElicitationPropertySchema::Unknown(_)
        ));
    }

    #[test]
    fn kinds_of_auth_methods_have_names() {
        let method: AuthMethod = read(json!({"type": "_stamp", "id": "i", "name": "n", "ink": 1}));
        assert_eq!(method.id_and_name(), Some(("i".into(), "n".to_owned())));
        let method: AuthMethod = read(json!({"type": "_stamp"}));
        assert_eq!(method.id_and_name(), None);
    }

    #[test]
    fn kinds_of_config_options_are_kept() {
        let option = json!({
            "id": "volume", "name": "Volume", "description": "How loud", "category": "_sound",
            "type": "slider", "currentValue": 0.5, "min": 0, "max": 11, "_meta": {"m": 1}
        });
        let read: SessionConfigOption = read(option.clone());
        assert_eq!((read.id.as_str(), read.name.as_str()), ("volume", "Volume"));
        let SessionConfigKind::Unknown(rest) = &read.kind else {
            panic!("{:?}", read.kind)
        };
        assert_eq!(rest.field::<u8>("max"), Some(11));
        assert_eq!(written(&read), option);

        let digits =
            format!(r#"{{"id":"i","name":"n","type":"slider","currentValue":{FORTY_DIGITS}}}"#);
        kept::<SessionConfigOption>(&digits);
    }

    #[test]
    fn modes_of_elicitations_are_kept() {
        let request = json!({
            "mode": "_voice", "language": "en", "seconds": 30,
            "sessionId": "s", "toolCallId": "c", "message": "Say it", "_meta": {"m": 1}
        });
        let read: CreateElicitationRequest = read(request.clone());
        assert_eq!(read.message, "Say it");
        assert!(matches!(read.mode, ElicitationMode::Unknown(_)));
        assert_eq!(written(&read), request);

        let digits = format!(
            r#"{{"mode":"_voice","hertz":{FORTY_DIGITS},"requestId":"r","message":"Say it"}}"#
        );
        kept::<CreateElicitationRequest>(&digits);
    }

    #[test]
    fn actions_of_elicitations_are_kept_with_their_custom_data() {
        for json in [
            r#"{"action":"_snooze","for":60,"_meta":{"m":1}}"#,
            r#"{"for":60,"_meta":{"m":1},"action":"_snooze"}"#,
        ] {
            let response: CreateElicitationResponse = kept(json);
            assert!(matches!(response.action, ElicitationAction::Unknown(_)));
        }
    }
}

mod what_is_malformed {
    use super::*;

    #[test]
    fn optional_fields_read_as_absent() {
        for wrong in [
            json!(null),
            json!(7),
            json!("?"),
            json!([1]),
            json!({"a": 1}),
            json!(true),
            json!(1.5),
        ] {
            let request: InitializeRequest = read(
                json!({"protocolVersion": 1, "clientCapabilities": wrong, "clientInfo": wrong}),
            );
            // An object is an object of capabilities, with none of them in it.
            assert_eq!(
                request,
                InitializeRequest::new(ProtocolVersion::V1),
                "{wrong}"
            );

            let update: ToolCallUpdate = read(json!({
                "toolCallId": "c", "content": {"not": "a list"}, "locations": "nowhere", "_meta": 3
            }));
            assert_eq!(update, ToolCallUpdate::new("c"));
        }
        let bad_numbers = [
            json!(-1),
            json!(1.5),
            json!("1"),
            json!(null),
            json!([]),
            json!(4_294_967_296_u64),
        ];
        for wrong in bad_numbers {
            let request: ReadTextFileRequest =
                read(json!({"sessionId": "s", "path": "/p", "line": wrong, "limit": wrong}));
            assert_eq!((request.line, request.limit), (None, None), "{wrong}");
        }
        let call: ToolCall = read(
            json!({"toolCallId": "c", "title": "t", "kind": 5, "status": [], "content": 1, "locations": null}),
        );
        assert_eq!(call, ToolCall::new("c", "t"));
    }

    #[test]
    fn a_malformed_part_does_not_lose_its_neighbours() {
        let response: InitializeResponse = read(json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": "yes",
                "promptCapabilities": {"image": true, "audio": 1},
                "sessionCapabilities": {"list": {}, "resume": false, "close": 1}
            },
            "agentInfo": {"name": 5}
        }));
        let can = response.agent_capabilities;
        assert!(
            !can.load_session && can.prompt_capabilities.image && !can.prompt_capabilities.audio
        );
        assert_eq!(
            can.session_capabilities,
            SessionCapabilities::new().list(SessionListCapabilities::new())
        );
        assert_eq!(response.agent_info, None);
    }

    #[test]
    fn invalid_items_of_lists_are_skipped() {
        let call: ToolCall = read(json!({
            "toolCallId": "c", "title": "t",
            "content": [
                {"type": "diff", "path": "/p"},
                null, 5, "text", [],
                {"no": "type"},
                {"type": 5},
                {"type": "terminal", "terminalId": "term_1"}
            ],
            "locations": [{"line": 1}, {"path": "/a", "line": "x"}, {"path": "/b", "line": 2}]
        }));
        assert_eq!(call.content, [TerminalId::from("term_1").into()]);
        assert_eq!(
            call.locations,
            [
                ToolCallLocation::new("/a"),
                ToolCallLocation::new("/b").line(2_u32)
            ]
        );

        let plan: Plan = read(json!({"entries": [
            {"content": "a", "priority": "high", "status": "pending"}, {"priority": "low"}, 7
        ]}));
        assert_eq!(plan.entries.len(), 1);

        let request: RequestPermissionRequest = read(json!({
            "sessionId": "s", "toolCall": {"toolCallId": "c"},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"name": "?"}, "no"]
        }));
        assert_eq!(request.options.len(), 1);

        let commands: AvailableCommandsUpdate =
            read(json!({"availableCommands": [{"name": "a", "input": 5}, {}]}));
        assert_eq!(
            commands.available_commands,
            [AvailableCommand::new("a", "")]
        );

        let response: NewSessionResponse = read(json!({"sessionId": "s", "configOptions": [
            {"id": "a", "name": "A", "type": "boolean", "currentValue": "on"},
            {"id": "b", "name": "B", "type": "boolean", "currentValue": true},
            {"id": "c", "name": "C", "type": "select", "currentValue": "x", "options": [
                {"value": "x", "name": "X"}, {"value": "y"}, null
            ]}
        ]}));
        let options = response.config_options.unwrap();
        assert_eq!(
            options.iter().map(|o| o.id.as_str()).collect::<Vec<_>>(),
            ["b", "c"]
        );
        let SessionConfigKind::Select(select) = &options[1].kind else {
            panic!()
        };
        assert_eq!(select.options.iter().count(), 1);

        let hints: Annotations =
            read(json!({"audience": ["user", 5, null, "assistant"], "priority": "high"}));
        assert_eq!(
            hints,
            Annotations::new().audience([Role::User, Role::Assistant])
        );
    }

    #[test]
    fn invalid_entries_of_maps_are_skipped() {
        let form: ElicitationSchema = read(json!({"properties": {
            "a": {"type": "string"}, "b": {"no": "type"}, "c": 5, "d": {"type": "array"}, "e": {"type": "boolean"}
        }}));
        assert_eq!(form.properties.keys().collect::<Vec<_>>(), ["a", "e"]);

        let method: AuthMethod = read(
            json!({"type": "terminal", "id": "t", "name": "T", "env": {"A": "1", "B": 2, "C": null}}),
        );
        let AuthMethod::Terminal(terminal) = method else {
            panic!("{method:?}")
        };
        assert_eq!(terminal.env, [("A".to_owned(), "1".to_owned())].into());

        let response: CreateElicitationResponse =
            read(json!({"action": "accept", "content": {"name": "x", "age": null, "pets": [{}]}}));
        assert_eq!(
            written(&response),
            json!({"action": "accept", "content": {"name": "x"}})
        );
    }

    #[test]
    fn required_fields_are_required() {
        fn fails<T: DeserializeOwned + std::fmt::Debug>(json: Value, about: &str) {
            let error = serde_json::from_str::<T>(&json.to_string()).unwrap_err();
            assert!(error.to_string().contains(about), "{error}");
        }
        fails::<PromptRequest>(json!({"prompt": []}), "sessionId");
        fails::<PromptRequest>(json!({"sessionId": "s", "prompt": null}), "sequence");
        fails::<PromptRequest>(
            json!({"sessionId": "s", "prompt": [{"type": "text"}]}),
            "text",
        );
        fails::<PromptRequest>(json!({"sessionId": "s", "prompt": [{"text": "t"}]}), "type");
        fails::<PromptRequest>(json!({"sessionId": null, "prompt": []}), "string");
        fails::<SessionNotification>(
            json!({"sessionId": "s", "update": {"content": {}}}),
            "sessionUpdate",
        );
        fails::<SessionNotification>(json!({"sessionId": "s", "update": null}), "sessionUpdate");
        fails::<PromptResponse>(json!({}), "stopReason");
        fails::<CancelRequestNotification>(json!({}), "requestId");
        fails::<CancelRequestNotification>(json!({"requestId": 1.5}), "whole number");
        fails::<CreateElicitationRequest>(
            json!({"message": "m", "mode": "url", "url": "u", "sessionId": "s"}),
            "elicitationId",
        );
        fails::<CreateElicitationRequest>(
            json!({"message": "m", "mode": "form", "sessionId": "s"}),
            "requestedSchema",
        );
        fails::<CreateElicitationRequest>(json!({"message": "m", "mode": "_x"}), "sessionId");
        fails::<UsageUpdate>(json!({"used": -1, "size": 2}), "not a valid u64");
        fails::<UsageUpdate>(json!({"used": 1}), "size");
    }

    #[test]
    fn any_value_that_cannot_be_held_reads_as_absent() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for wrong in ["1e999", &deep] {
            let json = format!(
                r#"{{"toolCallId":"c","title":"t","rawInput":{wrong},"rawOutput":[1],"_meta":{{"x":{wrong}}}}}"#
            );
            let call: ToolCall = serde_json::from_str(&json).unwrap();
            assert_eq!(call, ToolCall::new("c", "t").raw_output(json!([1])));

            let json = format!(r#"{{"code":-32000,"message":"m","data":{wrong}}}"#);
            let error: Error = serde_json::from_str(&json).unwrap();
            assert_eq!(error, Error::new(Error::AUTH_REQUIRED, "m"));
        }
        // A number that is only too long for an integer is a float.
        let call: ToolCall = serde_json::from_str(&format!(
            r#"{{"toolCallId":"c","title":"t","rawInput":{FORTY_DIGITS}}}"#
        ))
        .unwrap();
        assert_eq!(call.raw_input.unwrap().as_f64(), FORTY_DIGITS.parse().ok());
    }

    #[test]
    fn nulls_are_absent() {
        let block: ContentBlock = read(json!({
            "type": "image", "data": "AA==", "mimeType": "image/png",
            "uri": null, "annotations": null, "_meta": null
        }));
        assert_eq!(
            block,
            ContentBlock::Image(ImageContent::new("AA==", "image/png"))
        );

        // Writers of classes write the fields of the other variants, too.
        let resource: EmbeddedResource =
            read(json!({"resource": {"uri": "u", "text": null, "blob": "AA==", "mimeType": null}}));
        assert_eq!(
            resource.resource,
            EmbeddedResourceResource::Blob(BlobResourceContents::new("AA==", "u"))
        );
        let resource: EmbeddedResource =
            read(json!({"resource": {"uri": "u", "text": "", "blob": null}}));
        assert_eq!(
            resource.resource,
            EmbeddedResourceResource::Text(TextResourceContents::new("", "u"))
        );

        let option: SessionConfigOption = read(json!({
            "id": "i", "name": "n", "description": null, "category": null, "type": "select", "_meta": null,
            "currentValue": "x", "options": [{"value": "x", "name": "X", "group": null, "description": null}]
        }));
        assert_eq!(
            option,
            SessionConfigOption::new(
                "i",
                "n",
                SessionConfigSelect::new("x", vec![SessionConfigSelectOption::new("x", "X")])
            )
        );

        let items: MultiSelectItems = read(json!({"type": "string", "enum": ["a"], "anyOf": null}));
        assert_eq!(
            items,
            MultiSelectItems::Strings(StringMultiSelectItems::new(["a".to_owned()]))
        );

        let server: McpServer = read(json!({
            "type": null, "name": "n", "command": "c", "args": null, "env": null, "url": null, "headers": null
        }));
        assert_eq!(
            server,
            McpServer::Stdio(McpServerStdio::new("n", "c", [], []))
        );
        let method: AuthMethod =
            read(json!({"id": "i", "name": "n", "description": null, "type": null}));
        assert_eq!(method, AuthMethod::Agent(AuthMethodAgent::new("i", "n")));

        let request: CreateElicitationRequest = read(json!({
            "mode": "url", "url": "u", "elicitationId": "e", "message": "m",
            "sessionId": null, "toolCallId": null, "requestId": 3, "requestedSchema": null, "_meta": null
        }));
        assert_eq!(
            request.scope,
            ElicitationScope::Request {
                request_id: RequestId::Number(3)
            }
        );

        let response: NewSessionResponse =
            read(json!({"sessionId": "s", "modes": null, "configOptions": null}));
        assert_eq!(response, NewSessionResponse::new("s"));
        let request: NewSessionRequest =
            read(json!({"cwd": "/", "mcpServers": null, "additionalDirectories": null}));
        assert_eq!(request, NewSessionRequest::new("/", []));
        let request: CreateTerminalRequest = read(json!({
            "sessionId": "s", "command": "c", "args": null, "env": null, "cwd": null, "outputByteLimit": null
        }));
        assert_eq!(request, CreateTerminalRequest::new("s", "c"));
        let call: ToolCall = read(json!({
            "toolCallId": "c", "title": null, "kind": null, "status": null, "content": null,
            "locations": null, "rawInput": null, "rawOutput": null
        }));
        assert_eq!(call, ToolCall::new("c", ""));
        let accept: CreateElicitationResponse =
            read(json!({"action": "accept", "content": null, "_meta": null}));
        assert_eq!(written(&accept), json!({"action": "accept"}));
    }

    #[test]
    fn only_where_null_clears_it_is_not_absent() {
        let cleared: SessionInfoUpdate =
            read(json!({"title": null, "updatedAt": "2026-01-01T00:00:00Z"}));
        assert_eq!(cleared.title, Some(None));
        assert_eq!(
            cleared.updated_at,
            Some(Some("2026-01-01T00:00:00Z".to_owned()))
        );
        let malformed: SessionInfoUpdate = read(json!({"title": 5, "updatedAt": {}}));
        assert_eq!(malformed, SessionInfoUpdate::new());
        assert_eq!(text(&malformed), "{}");
    }
}

mod what_agents_do {
    use super::*;

    #[test]
    fn permission_options_without_kind() {
        let request: RequestPermissionRequest = read(json!({
            "sessionId": "s",
            "toolCall": {"toolCallId": "c"},
            "options": [{"optionId": "y", "name": "Yes"}, {"optionId": "n", "name": "No", "kind": null}]
        }));
        assert_eq!(request.options.len(), 2);
        for option in request.options {
            assert!(
                !option.kind.allows() && !option.kind.rejects(),
                "nothing may be chosen by itself"
            );
        }
    }

    #[test]
    fn tool_calls_without_kind_or_title() {
        let update: SessionUpdate = read(json!({"sessionUpdate": "tool_call", "toolCallId": "c"}));
        let SessionUpdate::ToolCall(call) = update else {
            panic!("{update:?}")
        };
        assert_eq!(call, ToolCall::new("c", ""));
        assert_eq!(
            (call.kind, call.status),
            (ToolKind::Other, ToolCallStatus::Pending)
        );
        let request: RequestPermissionRequest =
            read(json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}));
        assert_eq!(
            (request.tool_call.kind, request.tool_call.title),
            (None, None)
        );
    }

    #[test]
    fn mcp_servers_on_stdio_with_a_type_or_without_args() {
        let expected = McpServer::Stdio(McpServerStdio::new("n", "c", [], []));
        for server in [
            json!({"type": "stdio", "name": "n", "command": "c", "args": [], "env": []}),
            json!({"name": "n", "command": "c", "args": [], "type": "stdio", "env": []}),
            json!({"name": "n", "command": "c"}),
            json!({"type": "stdio", "name": "n", "command": "c", "env": {}}),
        ] {
            let read: McpServer = read(server);
            assert_eq!(read, expected);
            assert_eq!(
                written(&read),
                json!({"name": "n", "command": "c", "args": [], "env": []})
            );
        }
        let server: McpServer = read(json!({"type": "http", "name": "n", "url": "u"}));
        assert_eq!(server, McpServer::Http(McpServerHttp::new("n", "u", [])));
    }

    #[test]
    fn auth_methods_with_the_type_agent() {
        let expected = AuthMethod::Agent(AuthMethodAgent::new("i", "n"));
        for method in [
            json!({"type": "agent", "id": "i", "name": "n"}),
            json!({"id": "i", "name": "n", "type": "agent"}),
        ] {
            let read: AuthMethod = read(method);
            assert_eq!(read, expected);
            assert_eq!(written(&read), json!({"id": "i", "name": "n"}));
        }
        // Not passed to `authenticate` for being malformed.
        let response: InitializeResponse =
            read(json!({"protocolVersion": 1, "authMethods": [{"type": "terminal", "id": "i"}]}));
        assert_eq!(response.auth_methods, []);
    }

    #[test]
    fn protocol_versions_that_are_none() {
        for version in [
            json!("2025-01-01"),
            json!("1"),
            json!(null),
            json!(-1),
            json!(65536),
            json!(1.5),
            json!({}),
        ] {
            let request: InitializeRequest = read(json!({"protocolVersion": version}));
            assert_eq!(request.protocol_version, ProtocolVersion(0), "{version}");
        }
        let request: InitializeRequest =
            serde_json::from_str(r#"{"protocolVersion":1.0}"#).unwrap();
        assert_eq!(request.protocol_version, ProtocolVersion::V1);
    }

    #[test]
    fn whole_numbers_as_floats() {
        let request: ReadTextFileRequest =
            serde_json::from_str(r#"{"sessionId":"s","path":"/p","line":10.0,"limit":5e1}"#)
                .unwrap();
        assert_eq!((request.line, request.limit), (Some(10), Some(50)));
        assert_eq!(
            text(&request),
            r#"{"sessionId":"s","path":"/p","line":10,"limit":50}"#
        );
        let usage: UsageUpdate = serde_json::from_str(
            r#"{"used":5.3e4,"size":200000.0,"cost":{"amount":1,"currency":"EUR"}}"#,
        )
        .unwrap();
        assert_eq!(
            usage,
            UsageUpdate::new(53_000_u64, 200_000_u64).cost(Cost::new(1.0, "EUR"))
        );
        let link: ResourceLink =
            serde_json::from_str(r#"{"name":"n","uri":"u","size":-0.0}"#).unwrap();
        assert_eq!(link.size, Some(0));
        let cancel: CancelRequestNotification =
            serde_json::from_str(r#"{"requestId":7.0}"#).unwrap();
        assert_eq!(cancel.request_id, RequestId::Number(7));
        let error: Error = serde_json::from_str(r#"{"code":-32601.0,"message":"m"}"#).unwrap();
        assert_eq!(error.code, Error::METHOD_NOT_FOUND);
        // Beyond 2^53 a float does not say which number it is.
        let link: ResourceLink =
            serde_json::from_str(r#"{"name":"n","uri":"u","size":1e17}"#).unwrap();
        assert_eq!(link.size, None);
    }

    #[test]
    fn params_that_are_absent_or_null() {
        for params in [None, Some(raw("null")), Some(raw("{}"))] {
            let request = ClientRequest::read("logout", params.as_deref()).unwrap();
            assert!(matches!(request, ClientRequest::Logout(_)), "{request:?}");
            let request = ClientRequest::read("session/list", params.as_deref()).unwrap();
            assert!(
                matches!(request, ClientRequest::ListSessions(_)),
                "{request:?}"
            );
            let error = ClientRequest::read("session/prompt", params.as_deref()).unwrap_err();
            assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);
        }
        let error = Error::from(ClientRequest::read("session/dance", None).unwrap_err());
        assert_eq!(error, Error::method_not_found("session/dance"));
        assert_eq!(error.message, "Method not found: session/dance");
    }

    #[test]
    fn a_boolean_config_value_with_or_without_type() {
        for request in [
            json!({"sessionId": "s", "configId": "c", "type": "boolean", "value": true}),
            json!({"sessionId": "s", "configId": "c", "value": true}),
            json!({"value": true, "type": "id", "sessionId": "s", "configId": "c"}),
        ] {
            let read: SetSessionConfigOptionRequest = read(request);
            assert_eq!(read, SetSessionConfigOptionRequest::new("s", "c", true));
        }
        let read: SetSessionConfigOptionRequest =
            read(json!({"sessionId": "s", "configId": "c", "type": "value_id", "value": "v"}));
        assert_eq!(read, SetSessionConfigOptionRequest::new("s", "c", "v"));
        assert_eq!(
            text(&read),
            r#"{"sessionId":"s","configId":"c","value":"v"}"#
        );
    }
}

mod envelope {
    use super::*;

    fn request_id(id: &str) -> Result<RequestId, ParseError> {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        match jsonrpc::parse(line.as_bytes())? {
            Incoming::Request {
                id,
                method,
                params: None,
            } if method == "m" => Ok(id),
            other => panic!("{other:?}"),
        }
    }

    /// What is answered to a line that is no message.
    fn answer(line: &[u8]) -> (RequestId, i32) {
        let (id, error) = jsonrpc::parse(line).unwrap_err().answer();
        (id, error.code)
    }

    #[test]
    fn ids() {
        assert_eq!(request_id("0").unwrap(), RequestId::Number(0));
        assert_eq!(request_id("-5").unwrap(), RequestId::Number(-5));
        assert_eq!(
            request_id("9223372036854775807").unwrap(),
            RequestId::Number(i64::MAX)
        );
        assert_eq!(request_id("7.0").unwrap(), RequestId::Number(7));
        assert_eq!(request_id("1e3").unwrap(), RequestId::Number(1000));
        assert_eq!(request_id("null").unwrap(), RequestId::Null);
        assert_eq!(
            request_id(r#""""#).unwrap(),
            RequestId::String(String::new())
        );
        assert_eq!(
            request_id(r#""a\"\u00e9\n""#).unwrap(),
            RequestId::String("a\"é\n".to_owned())
        );
        assert_ne!(request_id(r#""1""#).unwrap(), request_id("1").unwrap());
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        for bad in [
            "1.5",
            "true",
            "[]",
            "{}",
            "[1]",
            r#"{"a":[1]}"#,
            "9223372036854775808",
            "1e17",
            "1e999",
            FORTY_DIGITS,
            r#""\ud800""#,
            &deep,
        ] {
            match request_id(bad) {
                Err(ParseError::NotAMessage {
                    id: RequestId::Null,
                    reason,
                }) => {
                    assert!(reason.contains("id"), "{reason}");
                }
                other => panic!("{bad}: {other:?}"),
            }
        }
    }

    #[test]
    fn methods() {
        let method = |json: &str| {
            let line = format!(r#"{{"method":{json}}}"#);
            match jsonrpc::parse(line.as_bytes()).unwrap() {
                Incoming::Notification {
                    method,
                    params: None,
                } => method.into_owned(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(method(r#""session/prompt""#), "session/prompt");
        assert_eq!(method(r#""session\/prompt""#), "session/prompt");
        assert_eq!(method(r#""\u0073ession/\u00fc\"\\""#), "session/ü\"\\");
        assert_eq!(method(r#""""#), "");
        for bad in ["5", "null", "[]", r#"{"a":1}"#, r#""\ud800""#] {
            let line = format!(r#"{{"id":4,"method":{bad}}}"#);
            assert_eq!(
                answer(line.as_bytes()),
                (RequestId::Number(4), Error::INVALID_REQUEST),
                "{bad}"
            );
        }
    }

    #[test]
    fn members_in_any_order_with_others_beside_them() {
        let line = br#" {"params" : {"a":[1, 2]} ,"x":[{}],"method":"m","jsonrpc":"1.0","id":1} "#;
        match jsonrpc::parse(line).unwrap() {
            Incoming::Request {
                id: RequestId::Number(1),
                method,
                params: Some(params),
            } => {
                assert_eq!((method.as_ref(), params.get()), ("m", r#"{"a":[1, 2]}"#));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn results_and_errors() {
        let parse = |line: &str| match jsonrpc::parse(line.as_bytes()).unwrap() {
            Incoming::Response { id, result } => (id, result.map(|raw| raw.get().to_owned())),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            parse(r#"{"id":1,"result":null}"#),
            (1.into(), Ok("null".to_owned()))
        );
        assert_eq!(
            parse(r#"{"id":1,"result":{"a": 1},"error":null}"#),
            (1.into(), Ok(r#"{"a": 1}"#.to_owned()))
        );
        assert_eq!(
            parse(
                r#"{"id":1,"result":null,"error":{"code":-32002,"message":"gone","data":{"uri":"u"}}}"#
            ),
            (
                1.into(),
                Err(Error::new(Error::RESOURCE_NOT_FOUND, "gone").data(json!({"uri": "u"})))
            )
        );
        // The answer to something that could not be read.
        assert_eq!(
            parse(r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#),
            (
                RequestId::Null,
                Err(Error::new(Error::PARSE_ERROR, "Parse error"))
            )
        );
        // An error must not be lost for its form.
        let (_, error) = parse(r#"{"id":1,"error":"boom"}"#);
        assert!(error.unwrap_err().message.contains("boom"));
        let (_, error) = parse(r#"{"id":1,"error":{"code":"E1","message":5}}"#);
        assert_eq!(error.unwrap_err().code, Error::INTERNAL_ERROR);
        let (_, error) = parse(r#"{"id":1,"error":{"code":5000000000,"message":"far"}}"#);
        assert_eq!(error.unwrap_err(), Error::new(Error::INTERNAL_ERROR, "far"));
        let (_, error) = parse(r#"{"id":1,"error":{}}"#);
        assert_eq!(error.unwrap_err().code, Error::INTERNAL_ERROR);
    }

    #[test]
    fn json_that_is_no_message() {
        for line in [
            "5",
            "true",
            "null",
            r#""text""#,
            "{}",
            r#"{"jsonrpc":"2.0"}"#,
            "[]",
            r#"[{"method":"m"}]"#,
            " [1]",
        ] {
            assert_eq!(
                answer(line.as_bytes()),
                (RequestId::Null, Error::INVALID_REQUEST),
                "{line}"
            );
        }
        assert_eq!(
            answer(br#"{"id":"x"}"#),
            (RequestId::String("x".to_owned()), Error::INVALID_REQUEST)
        );
        assert_eq!(
            answer(br#"{"id":3,"error":null}"#),
            (3.into(), Error::INVALID_REQUEST)
        );
        let error = jsonrpc::parse(br#"[{"method":"m"}]"#).unwrap_err();
        assert!(error.to_string().contains("batch"), "{error}");
    }

    #[test]
    fn what_is_not_json() {
        let lines: [&[u8]; 12] = [
            b"",
            b"  ",
            b"{",
            b"hello",
            br#"{"id":1"#,
            br#"{"id":1}}"#,
            br#"{"id":1,}"#,
            b"[1,2",
            b"{\"method\":\"a\xff\"}",
            b"\xfe\xff",
            b"{'id':1}",
            br#"{"method":"m"} {"method":"n"}"#,
        ];
        for line in lines {
            let error = jsonrpc::parse(line).unwrap_err();
            assert!(
                matches!(error, ParseError::NotJson(_)),
                "{:?}: {error}",
                String::from_utf8_lossy(line)
            );
            assert_eq!(error.answer().0, RequestId::Null);
        }
    }

    #[test]
    fn deep_nesting_does_not_crash() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));

            // In the params of a method nobody knows they are never looked at.
            let line = format!(r#"{{"id":1,"method":"_deep","params":{deep}}}"#);
            let Incoming::Request { method, params, .. } = jsonrpc::parse(line.as_bytes()).unwrap()
            else {
                panic!()
            };
            let ClientRequest::Extension(extension) = ClientRequest::read(&method, params).unwrap()
            else {
                panic!()
            };
            assert_eq!(extension.params.unwrap().get(), deep);

            // Nor in a result, nor in an unknown update or an unknown field of a known one.
            let line = format!(r#"{{"id":1,"result":{deep}}}"#);
            let Incoming::Response { result, .. } = jsonrpc::parse(line.as_bytes()).unwrap() else {
                panic!()
            };
            assert_eq!(result.unwrap().get(), deep);
            kept::<SessionNotification>(&format!(
                r#"{{"sessionId":"s","update":{{"x":{deep},"sessionUpdate":"_deep"}}}}"#
            ));
            let update =
                format!(r#"{{"x":{deep},"sessionUpdate":"plan","entries":[{deep}],"y":{deep}}}"#);
            let update: SessionUpdate = serde_json::from_str(&update).unwrap();
            assert_eq!(update, SessionUpdate::Plan(Plan::new([])));

            // Where a message is due it is an error like any other.
            let error = ClientRequest::read("session/prompt", Some(&raw(&deep))).unwrap_err();
            assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);

            // Not even a line of nothing else.
            assert_eq!(
                answer(deep.as_bytes()),
                (RequestId::Null, Error::INVALID_REQUEST)
            );
            let unclosed = open.repeat(10_000);
            assert_eq!(
                answer(unclosed.as_bytes()),
                (RequestId::Null, Error::PARSE_ERROR)
            );
        }
    }

    #[test]
    fn huge_numbers() {
        for number in [FORTY_DIGITS, "1e999", "-1e999", &"9".repeat(10_000)] {
            let line =
                format!(r#"{{"id":1,"method":"_huge","params":{{"n":{number}}},"n":{number}}}"#);
            let Incoming::Request { params, .. } = jsonrpc::parse(line.as_bytes()).unwrap() else {
                panic!()
            };
            assert_eq!(params.unwrap().get(), format!(r#"{{"n":{number}}}"#));
        }
    }

    #[test]
    fn what_is_written_is_one_line() {
        let params = raw("{\r\n \"text\": \"a\\nb\",\n\"n\": 1}");
        let mut out = b"before\n".to_vec();
        jsonrpc::write_notification(&mut out, "m", &params).unwrap();
        jsonrpc::write_request(
            &mut out,
            &RequestId::String("\n".to_owned()),
            "a\"b",
            &params,
        )
        .unwrap();
        jsonrpc::write_result(&mut out, &7.into(), &params).unwrap();
        jsonrpc::write_error(&mut out, &RequestId::Null, &Error::internal("x\ny").data(1)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.split_terminator('\n').collect();
        assert_eq!(
            lines,
            [
                "before",
                r#"{"jsonrpc":"2.0","method":"m","params":{   "text": "a\nb", "n": 1}}"#,
                r#"{"jsonrpc":"2.0","id":"\n","method":"a\"b","params":{   "text": "a\nb", "n": 1}}"#,
                r#"{"jsonrpc":"2.0","id":7,"result":{   "text": "a\nb", "n": 1}}"#,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x\ny","data":1}}"#,
            ]
        );
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        // A map whose keys are not strings is no JSON.
        let bad = std::collections::BTreeMap::from([(vec![1_u8], 1)]);
        let mut out = b"before\n".to_vec();
        assert!(jsonrpc::write_request(&mut out, &1.into(), "m", &bad).is_err());
        assert!(jsonrpc::write_notification(&mut out, "m", &bad).is_err());
        assert!(jsonrpc::write_result(&mut out, &1.into(), &bad).is_err());
        assert_eq!(out, b"before\n");
    }

    #[test]
    fn errors_say_what_helps() {
        let error = Error::new(-32000, "Failed");
        assert_eq!(error.to_string(), "Failed (-32000)");
        assert_eq!(
            error.clone().data("no key").to_string(),
            "Failed (-32000): no key"
        );
        for key in ["details", "message", "error"] {
            assert_eq!(
                error.clone().data(json!({key: "no key"})).to_string(),
                "Failed (-32000): no key"
            );
        }
        assert_eq!(
            error.clone().data(json!({"details": "Failed"})).to_string(),
            "Failed (-32000)"
        );
        assert_eq!(
            error.data(json!({"other": 1})).to_string(),
            "Failed (-32000)"
        );
    }
}

//! Tests of agent-to-client requests: files, terminals and elicitation.

use acp_wire::jsonrpc::RequestId;

use super::*;

#[test]
fn file_system_messages_round_trip() {
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
fn terminal_messages_round_trip() {
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
fn elicitation_form_messages_round_trip() {
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
fn elicitation_url_and_response_messages_round_trip() {
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

//! Tests of tool calls, permissions and terminals.

use super::*;

#[test]
fn tool_call_updates_round_trip() {
    let call = update!("a new tool call", ToolCallUpdate);
    assert_eq!(
        call,
        Box::new(
            ToolCallUpdate::new("call_1")
                .name("read_file")
                .title("Reading the list")
                .kind(ToolKind::Read)
                .status(ToolCallStatus::Pending)
        )
    );
    let call = update!("a tool call is under way", ToolCallUpdate);
    assert_eq!(
        call,
        Box::new(
            ToolCallUpdate::new("call_1")
                .status(ToolCallStatus::InProgress)
                .capabilities(
                    ToolCallCapabilities::new().cancel(ToolCallCancelCapabilities::new())
                )
        )
    );

    let call = update!("a tool call with everything", ToolCallUpdate);
    let content = call.content.unwrap().unwrap();
    let [
        ToolCallContent::Content(text),
        ToolCallContent::Diff(diff),
        ToolCallContent::Terminal(terminal),
    ] = &content[..]
    else {
        panic!("{content:?}")
    };
    assert_eq!(text.content.as_text(), Some("Two lines change"));
    assert_eq!(terminal.terminal_id.as_str(), "term_1");
    let [add, delete, modify, moved, copied] = &diff.changes[..] else {
        panic!("{:?}", diff.changes)
    };
    assert_eq!(
        *add,
        DiffChange::Add(
            DiffPathChange::new("/home/ada/garden/new.txt")
                .file_type(DiffFileType::Text)
                .mime_type("text/plain")
        )
    );
    assert!(matches!(delete, DiffChange::Delete(_)) && matches!(modify, DiffChange::Modify(_)));
    assert_eq!(
        *moved,
        DiffChange::Move(
            DiffPathPairChange::new("/home/ada/a", "/home/ada/b")
                .file_type(DiffFileType::Directory)
        )
    );
    assert!(matches!(copied, DiffChange::Copy(_)));
    assert_eq!(
        diff.patch.as_ref().unwrap().format,
        DiffPatchFormat::GitPatch
    );
    assert_eq!(
        call.locations.unwrap().unwrap()[0],
        ToolCallLocation::new("/home/ada/garden/list.txt").line(2_u32)
    );
    assert_eq!(
        (call.raw_input, call.raw_output),
        (
            Some(json!({"from": 1, "to": 2, "why": null})),
            Some(json!(["peas", "beans"]))
        )
    );

    let gone = update!("a tool call of which nothing is left", ToolCallUpdate);
    assert_eq!((gone.name, gone.title), (Some(None), Some(None)));
    assert_eq!((gone.kind, gone.status), (Some(None), Some(None)));
    assert_eq!((gone.content, gone.locations), (Some(None), Some(None)));
    assert_eq!(
        (gone.raw_input, gone.raw_output),
        (Some(Value::Null), Some(Value::Null))
    );

    let chunk = update!("a piece of what a tool call produced", ToolCallContentChunk);
    assert_eq!(
        chunk,
        ToolCallContentChunk::new("call_1", ContentBlock::text("beans"))
    );
}

#[test]
fn cancellation_messages_round_trip() {
    let request = message!("cancel a tool call", ClientRequest::CancelToolCall);
    assert_eq!(request, CancelToolCallRequest::new("sess_01", "call_1"));
    let response = message!(
        "the tool call will be cancelled",
        AgentResponse::CancelToolCall
    );
    assert_eq!(response, CancelToolCallResponse::new());
    let request = message!("cancel a terminal", ClientRequest::CancelTerminal);
    assert_eq!(request, CancelTerminalRequest::new("sess_01", "term_1"));
    let response = message!(
        "the terminal will be cancelled, as null",
        AgentResponse::CancelTerminal
    );
    assert_eq!(response, CancelTerminalResponse::new());
}

#[test]
fn permission_messages_round_trip() {
    let request = message!("may this call be made?", AgentRequest::RequestPermission);
    assert_eq!(request.title, "Pull the weeds out?");
    assert_eq!(request.description.as_deref(), Some("All of them"));
    let Some(RequestPermissionSubject::ToolCall(subject)) = request.subject else {
        panic!("{:?}", request.subject)
    };
    assert_eq!(
        subject.tool_call,
        ToolCallUpdate::new("call_3")
            .title("Pull the weeds out")
            .kind(ToolKind::Delete)
    );
    let kinds: Vec<_> = request
        .options
        .into_iter()
        .map(|option| option.kind)
        .collect();
    assert_eq!(kinds, PermissionOptionKind::KNOWN);

    let request = message!("may this command be run?", AgentRequest::RequestPermission);
    assert_eq!(
        request.subject,
        Some(RequestPermissionSubject::Command(
            CommandPermissionSubject::new("make check", "/home/ada/garden")
                .tool_call_id("call_4")
                .terminal_id("term_1")
        ))
    );
    let request = message!("may it, whatever it is?", AgentRequest::RequestPermission);
    assert_eq!(request.subject, None);

    let response = message!("it may", ClientResponse::RequestPermission);
    assert_eq!(response.outcome, RequestPermissionOutcome::selected("yes"));
    let response = message!(
        "it was cancelled before anyone said",
        ClientResponse::RequestPermission
    );
    let RequestPermissionOutcome::Cancelled(cancelled) = response.outcome else {
        panic!("{:?}", response.outcome)
    };
    assert_eq!(cancelled.meta.unwrap()["by"], "person");
}

#[test]
fn terminal_updates_round_trip() {
    let terminal = update!("a terminal", TerminalUpdate);
    assert_eq!(
        terminal,
        Box::new(
            TerminalUpdate::new("term_1")
                .command("make check")
                .cwd("/home/ada/garden")
                .size(TerminalSize::new(80_u16, 24_u16))
                .capabilities(
                    TerminalCapabilities::new().cancel(TerminalCancelCapabilities::new())
                )
        )
    );
    let chunk = update!("what a terminal has printed", TerminalOutputChunk);
    assert_eq!(
        chunk,
        TerminalOutputChunk::new("term_1", "Y2hlY2tpbmfigKY=")
    );
    let ended = update!("a terminal has ended", TerminalUpdate);
    assert_eq!(ended.output, Some(Some(TerminalOutput::new("ZG9uZQo="))));
    assert_eq!(
        ended.exit_status,
        Some(Some(TerminalExitStatus::new().exit_code(-1_073_741_510)))
    );
    let ended = update!("a terminal was ended by a signal", TerminalUpdate);
    assert_eq!(
        ended.exit_status,
        Some(Some(TerminalExitStatus::new().signal("SIGTERM")))
    );
    let gone = update!("a terminal of which nothing is left", TerminalUpdate);
    assert_eq!((gone.command, gone.cwd), (Some(None), Some(None)));
    assert_eq!((gone.output, gone.exit_status), (Some(None), Some(None)));
    assert_eq!((gone.size, gone.capabilities), (Some(None), Some(None)));
}

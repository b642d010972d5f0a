//! Tests of prompts and of the updates that an agent sends during a turn.

use acp_wire::jsonrpc::RequestId;
use serde_json::json;

use super::*;

#[test]
fn prompt_messages_round_trip() {
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
fn session_updates_round_trip() {
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
        Box::new(
            SessionInfoUpdate::new()
                .title("Where the beans go")
                .updated_at("2026-03-01T08:20:00Z")
        )
    );
    let info = update!("no title any more", SessionInfoUpdate);
    assert_eq!((info.title, info.updated_at), (Some(None), None));

    let usage = update!("usage with cost", UsageUpdate);
    assert_eq!(
        usage,
        Box::new(UsageUpdate::new(53_000_u64, 200_000_u64).cost(Cost::new(0.25, "EUR")))
    );
    let usage = update!("usage without cost", UsageUpdate);
    assert_eq!(usage, Box::new(UsageUpdate::new(0_u64, 200_000_u64)));
}

#[test]
fn tool_call_updates_round_trip() {
    let call = update!("a new tool call", ToolCall);
    assert_eq!(
        call,
        Box::new(ToolCall::new("call_1", "Reading the list").kind(ToolKind::Read))
    );
    let call = update!("a new tool call that leaves the defaults out", ToolCall);
    assert_eq!(call, Box::new(ToolCall::new("call_2", "Counting")));
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
        Box::new(ToolCallUpdate::new("call_1").status(ToolCallStatus::InProgress))
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
fn permission_messages_round_trip() {
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

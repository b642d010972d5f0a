//! Tests of messages that are missing from the stable version 1 schema but used in practice.

use super::*;

#[test]
fn unstable_capabilities_round_trip() {
    let can = message!(
        "a client that understands what is unstable",
        ClientRequest::Initialize
    )
    .client_capabilities;
    assert!(can.plan.is_some());
    let session = can.session.unwrap();
    assert!(session.compaction.is_some());
    assert_eq!(session.notices.unwrap().meta.unwrap()["sounds"], true);

    let can = message!("an agent that can fork", AgentResponse::Initialize).agent_capabilities;
    assert!(can.session_capabilities.fork.is_some());
    assert!(can.session_capabilities.resume.is_none());
}

#[test]
fn fork_messages_round_trip() {
    let request = message!("fork a session", ClientRequest::ForkSession);
    assert_eq!(
        request,
        ForkSessionRequest::new("sess_01", "/home/ada/garden")
            .additional_directories(["/home/ada/shed".to_owned()])
            .mcp_servers([McpServer::Stdio(McpServerStdio::new(
                "seeds",
                "seeds",
                [],
                []
            ))])
    );
    let request = message!("fork a session without more", ClientRequest::ForkSession);
    assert_eq!(
        request,
        ForkSessionRequest::new("sess_01", "/home/ada/garden")
    );
    let response = message!("the forked session", AgentResponse::ForkSession);
    assert_eq!(response.session_id.as_str(), "sess_02");
    assert_eq!(
        response.modes.unwrap().available_modes,
        [SessionMode::new("look", "Look")]
    );
    assert_eq!(
        (response.config_options, response.models),
        (Some(vec![]), None)
    );
}

#[test]
fn model_messages_round_trip() {
    let response = message!("the new session with models", AgentResponse::NewSession);
    assert_eq!(
        response.models,
        Some(SessionModelState::new(
            "large",
            [
                ModelInfo::new("small", "Small"),
                ModelInfo::new("large", "Large").description("Takes its time")
            ]
        ))
    );
    let request = message!("set the model", ClientRequest::SetSessionModel);
    assert_eq!(request, SetSessionModelRequest::new("sess_01", "small"));
    for response in [
        message!("the model is set", AgentResponse::SetSessionModel),
        message!("the model is set, as null", AgentResponse::SetSessionModel),
    ] {
        assert_eq!(response, SetSessionModelResponse::new());
    }
}

#[test]
fn usage_updates_round_trip() {
    let response = message!(
        "the turn has ended, with what it used",
        AgentResponse::Prompt
    );
    assert_eq!(
        response.usage,
        Some(
            Usage::new(1500_u64, 1000_u64, 500_u64)
                .thought_tokens(200_u64)
                .cached_read_tokens(800_u64)
                .cached_write_tokens(50_u64)
        )
    );
}

#[test]
fn plan_updates_round_trip() {
    let PlanUpdateContent::Items(plan) =
        update!("a plan of entries among several", PlanUpdate).plan
    else {
        panic!()
    };
    assert_eq!(plan.plan_id.as_str(), "beds");
    assert_eq!(plan.entries[0].content, "Draw the beds");
    let plan = update!("a plan that is a file", PlanUpdate).plan;
    assert_eq!(
        plan,
        PlanUpdateContent::File(PlanFile::new("year", "file:///home/ada/garden/year.md"))
    );
    let plan = update!("a plan that is text", PlanUpdate).plan;
    assert_eq!(
        plan,
        PlanUpdateContent::Markdown(PlanMarkdown::new("shed", "# The shed\n"))
    );
    assert_eq!(
        update!("a plan is gone", PlanRemoved),
        PlanRemoved::new("shed")
    );
}

#[test]
fn notices_round_trip() {
    let notice = update!("a notice", Notice);
    assert_eq!(
        notice,
        Box::new(
            Notice::new(NoticeSeverity::Warning, "Frost tonight")
                .description("Down to -2 °C before dawn")
        )
    );
    let notices = [
        update!("a notice that is good to know", Notice),
        notice,
        update!("a notice that something failed", Notice),
    ];
    assert_eq!(
        notices.map(|notice| notice.severity),
        *NoticeSeverity::KNOWN
    );
}

#[test]
fn compaction_updates_round_trip() {
    let [begun, done, failed, cancelled] = [
        update!("a compaction begins", CompactionUpdate),
        update!("a compaction is done", CompactionUpdate),
        update!("a compaction has failed", CompactionUpdate),
        update!("a compaction is cancelled", CompactionUpdate),
    ];
    assert_eq!(
        begun,
        Box::new(CompactionUpdate::new(
            "comp_1",
            CompactionStatus::InProgress
        ))
    );
    assert_eq!(done.status, CompactionStatus::Completed);
    assert_eq!(done.summary, Some(Some(vec!["We spoke of beans.".into()])));
    assert_eq!(done.error, Some(None));
    assert_eq!(failed.status, CompactionStatus::Failed);
    assert_eq!(failed.summary, Some(None));
    assert_eq!(
        failed.error,
        Some(Some("The model does not answer".to_owned()))
    );
    assert_eq!(cancelled.status, CompactionStatus::Cancelled);
    assert_eq!((cancelled.summary, cancelled.meta), (None, Some(None)));
    let chunk = update!("a piece of what is left", CompactionSummaryChunk);
    assert_eq!(chunk, CompactionSummaryChunk::new("comp_1", "We spoke of "));
}

#[test]
fn tool_names_round_trip() {
    let call = update!("a new tool call with a name", ToolCall);
    assert_eq!(
        call,
        Box::new(
            ToolCall::new("call_1", "Reading the list")
                .name("read_file")
                .kind(ToolKind::Read)
        )
    );
}

#[test]
fn subagent_updates_round_trip() {
    let announced = update!("a subagent is announced", SubagentUpdate);
    assert_eq!(announced.session_id.as_str(), "sess_02");
    assert_eq!(announced.title, Some(Some("Find the beans".to_owned())));
    let capabilities = announced.capabilities.flatten().unwrap();
    assert!(capabilities.cancel.is_some());
    assert!(matches!(
        announced.state,
        Some(Some(acp_wire::v2::StateUpdate::Running(_)))
    ));
    let directories = announced.additional_directories.flatten();
    assert_eq!(directories, Some(vec!["/home/user/shed".to_owned()]));
    let done = update!("a subagent is done", SubagentUpdate);
    assert_eq!(
        (done.title, done.description, done.meta),
        (Some(None), None, Some(None))
    );
    let message = update!("a message to a subagent", SessionMessage);
    assert_eq!(message.recipient_session_id, Some(Some("sess_02".into())));
    assert_eq!(
        (message.sender_message_id, message.recipient_message_id),
        (None, Some(Some("msg_1".into())))
    );
    let piece = update!("a piece of a message to a subagent", SessionMessageChunk);
    assert_eq!(piece, SessionMessageChunk::new("msg_9", "And in it."));
}

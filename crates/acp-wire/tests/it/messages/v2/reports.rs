//! Tests of prompts and of all agent updates other than tool calls.

use acp_wire::jsonrpc::{self, RequestId};
use acp_wire::v1::Usage;

use super::*;

#[test]
fn prompt_messages_round_trip() {
    let request = message!("a prompt with every kind of content", ClientRequest::Prompt);
    let ContentBlock::ResourceLink(link) = &request.prompt[3] else {
        panic!("{:?}", request.prompt)
    };
    assert_eq!(
        link.icons,
        Some(vec![
            Icon::new("https://example.org/pdf.svg")
                .mime_type("image/svg+xml")
                .sizes(["48x48".to_owned(), "any".to_owned()])
                .theme(IconTheme::Dark),
            Icon::new("data:,").theme(IconTheme::Light)
        ])
    );
    let response = message!("the prompt is taken", AgentResponse::Prompt);
    assert_eq!(response, PromptResponse::new("msg_1"));
    let response = message!(
        "the prompt is taken, as the draft of August has it",
        AgentResponse::Prompt
    );
    assert_eq!(response, PromptResponse::new(""));

    let cancel = message!("cancel the work", ClientNotification::Cancel);
    assert_eq!(cancel, CancelNotification::new("sess_01"));
    let cancel = message!(
        "cancel a request by number",
        ProtocolNotification::CancelRequest
    );
    assert_eq!(cancel.request_id, RequestId::Number(12));
}

/// Extracts the state from a case, and panics if it is not the given variant.
macro_rules! state {
    ($name:literal, $variant:ident) => {
        match update!($name, StateUpdate) {
            StateUpdate::$variant(state) => state,
            other => panic!("{}: {other:?}", $name),
        }
    };
}

#[test]
fn state_updates_round_trip() {
    assert_eq!(state!("it works", Running), RunningStateUpdate::new());
    assert_eq!(
        state!("it works, and more goes on", Running).background,
        Some(vec![
            BackgroundWork::Terminal(BackgroundTerminal::new("term_1")),
            BackgroundWork::ToolCall(BackgroundToolCall::new("call_1")),
            BackgroundWork::Subagent(BackgroundSubagent::new("sess_02"))
        ])
    );
    assert_eq!(
        state!("it waits for the person", RequiresAction).background,
        Some(vec![]),
        "nothing is not the same as not told"
    );
    assert_eq!(state!("it waits", Idle), IdleStateUpdate::new());
    assert_eq!(
        state!("whether it works is not known", Unconfirmed),
        UnknownStateUpdate::new()
    );
    let finished = state!("it has finished", Idle);
    assert_eq!(
        finished.usage,
        Some(
            Usage::new(1500_u64, 1000_u64, 500_u64)
                .thought_tokens(200_u64)
                .cached_read_tokens(800_u64)
                .cached_write_tokens(50_u64)
        )
    );
    let failed = state!("it failed", Idle);
    assert_eq!(
        failed.error,
        Some(jsonrpc::Error::internal("The model does not answer").data(json!({"retryAfter": 30})))
    );
    let ended = [
        finished,
        state!("it ran out of tokens", Idle),
        state!("it ran out of requests", Idle),
        state!("it refuses", Idle),
        state!("it was cancelled", Idle),
        failed,
    ];
    assert_eq!(
        ended.map(|state| state.stop_reason.unwrap()),
        *StopReason::KNOWN
    );
}

#[test]
fn message_updates_round_trip() {
    let chunk = update!("a piece of the person's message", UserMessageChunk);
    assert_eq!(chunk, ContentChunk::new("msg_1", "What grows"));
    let message = update!("the person's message", UserMessage);
    assert_eq!(
        message,
        Message::new("msg_1").content([ContentBlock::text("What grows here?")])
    );
    let chunk = update!("a piece of the agent's message", AgentMessageChunk);
    assert_eq!(chunk.meta.unwrap()["n"], 1);
    let message = update!("the agent's message", AgentMessage);
    assert_eq!(message.content.unwrap().unwrap().len(), 2);
    assert_eq!(message.meta.unwrap().unwrap()["draft"], Value::Null);
    let message = update!("the agent's message is gone", AgentMessage);
    assert_eq!((message.content, message.meta), (Some(None), Some(None)));
    let chunk = update!("a piece of a thought", AgentThoughtChunk);
    assert_eq!(chunk, ContentChunk::new("msg_3", "It could be peas"));
    assert_eq!(update!("a thought", AgentThought), Message::new("msg_3"));
}

#[test]
fn plan_updates_round_trip() {
    let PlanUpdateContent::Items(plan) = update!("a plan of entries", PlanUpdate).plan else {
        panic!()
    };
    let statuses: Vec<_> = plan.entries.into_iter().map(|entry| entry.status).collect();
    assert_eq!(
        statuses,
        [
            PlanEntryStatus::Completed,
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
            PlanEntryStatus::Cancelled
        ]
    );
    for (plan, id) in [
        (
            update!("a plan of entries, as the page has it", PlanUpdate).plan,
            "beds",
        ),
        (update!("a plan that is a file", PlanUpdate).plan, "year"),
        (update!("a plan that is text", PlanUpdate).plan, "shed"),
    ] {
        assert_eq!(plan.plan_id(), Some(id.into()));
    }
    assert_eq!(
        update!("a plan is gone", PlanRemoved),
        PlanRemoved::new("shed")
    );
}

#[test]
fn session_updates_round_trip() {
    let commands = update!("the commands", AvailableCommandsUpdate).available_commands;
    let AvailableCommand::Command(sow) = &commands[0] else {
        panic!("{commands:?}")
    };
    assert_eq!(
        sow.input,
        Some(AvailableCommandInput::Text(TextCommandInput::new(
            "the name of a plant"
        )))
    );
    let older = update!(
        "the commands, as the draft of August has them",
        AvailableCommandsUpdate
    );
    assert_eq!(older.available_commands, commands[..1]);

    let info = update!("a title", SessionInfoUpdate);
    assert_eq!(info.title, Some(Some("Where the beans go".to_owned())));
    assert_eq!(info.meta.unwrap().unwrap()["pinned"], Value::Null);
    let info = update!("no title any more", SessionInfoUpdate);
    assert_eq!((info.title, info.updated_at), (Some(None), None));

    let usage = update!("usage with cost", UsageUpdate);
    assert_eq!(
        usage,
        Box::new(UsageUpdate::new(53_000_u64, 200_000_u64).cost(Cost::new(0.25, "EUR")))
    );
    assert_eq!(update!("usage without cost", UsageUpdate).cost, Some(None));

    let notices = [
        update!("a notice that is good to know", Notice),
        update!("a notice", Notice),
        update!("a notice that something failed", Notice),
    ];
    assert_eq!(
        notices.map(|notice| notice.severity),
        *NoticeSeverity::KNOWN
    );
}

#[test]
fn compaction_updates_round_trip() {
    let updates = [
        update!("a compaction begins", CompactionUpdate),
        update!("a compaction is done", CompactionUpdate),
        update!("a compaction has failed", CompactionUpdate),
        update!("a compaction is cancelled", CompactionUpdate),
    ];
    assert_eq!(
        updates[1].summary,
        Some(Some(vec!["We spoke of beans.".into()]))
    );
    assert_eq!(updates[2].summary, Some(None));
    assert_eq!(
        updates.map(|update| update.status),
        *CompactionStatus::KNOWN
    );
    let chunk = update!("a piece of what is left", CompactionSummaryChunk);
    assert_eq!(chunk, CompactionSummaryChunk::new("comp_1", "We spoke of "));
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
        Some(Some(StateUpdate::Running(_)))
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

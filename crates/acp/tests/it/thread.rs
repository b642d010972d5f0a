//! Tests of properties that hold for a thread after any sequence of updates.

use acp::Thread;
use acp::thread::ItemKind;
use acp::v1::{
    ContentBlock, ContentChunk, SessionUpdate, StopReason, ToolCall, ToolCallId, ToolCallStatus,
    ToolCallUpdate,
};
use proptest::prelude::*;

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelSpeaker {
    User,
    Agent,
    Thought,
}

fn text_chunk(speaker: ModelSpeaker, text: &str) -> SessionUpdate {
    let chunk = ContentChunk::new(ContentBlock::text(text));
    match speaker {
        ModelSpeaker::User => SessionUpdate::UserMessageChunk(chunk),
        ModelSpeaker::Agent => SessionUpdate::AgentMessageChunk(chunk),
        ModelSpeaker::Thought => SessionUpdate::AgentThoughtChunk(chunk),
    }
}

/// Returns a thread's messages.
fn message_texts(thread: &Thread) -> Vec<(ModelSpeaker, String)> {
    let items = thread.items().iter();
    items
        .filter_map(|item| match &item.kind {
            ItemKind::User(m) => Some((ModelSpeaker::User, m.text())),
            ItemKind::Agent(m) => Some((ModelSpeaker::Agent, m.text())),
            ItemKind::Thought(m) => Some((ModelSpeaker::Thought, m.text())),
            _ => None,
        })
        .collect()
}

fn arbitrary_speaker() -> impl Strategy<Value = ModelSpeaker> {
    prop_oneof![
        Just(ModelSpeaker::User),
        Just(ModelSpeaker::Agent),
        Just(ModelSpeaker::Thought)
    ]
}

/// A step in a thread's history, such as a change to a tool call or the start of a turn.
#[derive(Debug, Clone)]
enum ThreadStep {
    Announce(u8),
    Change(u8, ToolCallStatus),
    Ask(u8),
    Say(String),
    Begin,
    End,
    Cancel,
}

fn arbitrary_step() -> impl Strategy<Value = ThreadStep> {
    let status = prop_oneof![
        Just(ToolCallStatus::Pending),
        Just(ToolCallStatus::InProgress),
        Just(ToolCallStatus::Completed),
        Just(ToolCallStatus::Failed),
    ];
    prop_oneof![
        (0..4_u8).prop_map(ThreadStep::Announce),
        (0..4_u8, status).prop_map(|(id, status)| ThreadStep::Change(id, status)),
        (0..4_u8).prop_map(ThreadStep::Ask),
        "[a-z]{0,5}".prop_map(ThreadStep::Say),
        Just(ThreadStep::Begin),
        Just(ThreadStep::End),
        Just(ThreadStep::Cancel),
    ]
}

fn tool_call_id(n: u8) -> ToolCallId {
    format!("call/{n}").into()
}

fn apply_step(thread: &mut Thread, step: &ThreadStep) {
    match step {
        ThreadStep::Announce(n) => {
            thread.apply(
                &SessionUpdate::ToolCall(Box::new(ToolCall::new(
                    tool_call_id(*n),
                    format!("call {n}"),
                )))
                .into(),
            );
        }
        ThreadStep::Change(n, status) => {
            let update = ToolCallUpdate::new(tool_call_id(*n)).status(status.clone());
            thread.apply(&SessionUpdate::ToolCallUpdate(Box::new(update)).into());
        }
        ThreadStep::Ask(n) => {
            drop(thread.apply_permission_request(&ToolCallUpdate::new(tool_call_id(*n)).into()))
        }
        ThreadStep::Say(text) => thread.apply(&text_chunk(ModelSpeaker::Agent, text).into()),
        ThreadStep::Begin => thread.begin_turn(&[ContentBlock::text("go on")]),
        ThreadStep::End => thread.end_turn(Some(&StopReason::EndTurn)),
        ThreadStep::Cancel => thread.cancel_turn(),
    }
}

proptest! {
    #[test]
    fn splitting_a_text_into_chunks_does_not_change_it(
        said in proptest::collection::vec((arbitrary_speaker(), ".{0,40}", proptest::collection::vec(0..40_usize, 0..6)), 0..8),
    ) {
        let (mut whole, mut pieces) = (Thread::new(), Thread::new());
        for (speaker, text, cuts) in &said {
            whole.apply(&text_chunk(*speaker, text).into());
            let chars: Vec<char> = text.chars().collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (chars.len() + 1)).collect();
            cuts.extend([0, chars.len()]);
            cuts.sort_unstable();
            for cut in cuts.windows(2) {
                let piece: String = chars[cut[0]..cut[1]].iter().collect();
                pieces.apply(&text_chunk(*speaker, &piece).into());
            }
        }
        prop_assert_eq!(message_texts(&pieces), message_texts(&whole));
        // The messages in order, with consecutive ones of the same speaker merged.
        let mut expected: Vec<(ModelSpeaker, String)> = Vec::new();
        for (speaker, text, _) in said {
            match expected.last_mut() {
                Some((last, so_far)) if *last == speaker => so_far.push_str(&text),
                _ => expected.push((speaker, text)),
            }
        }
        prop_assert_eq!(message_texts(&whole), expected);
        // Chunks are merged.
        for item in pieces.items() {
            if let ItemKind::User(m) | ItemKind::Agent(m) | ItemKind::Thought(m) = &item.kind {
                prop_assert_eq!(m.content.len(), 1);
            }
        }
    }

    #[test]
    fn items_are_never_removed_and_every_change_raises_the_revision(steps in proptest::collection::vec(arbitrary_step(), 0..60)) {
        let mut thread = Thread::new();
        for step in &steps {
            let (revision, items) = (thread.revision(), thread.items().len());
            let finished: Vec<usize> = (0..items)
                .filter(|at| matches!(&thread.items()[*at].kind, ItemKind::ToolCall(c) if c.is_finished()))
                .collect();
            apply_step(&mut thread, step);
            prop_assert!(thread.revision() > revision, "{:?} does not show", step);
            prop_assert!(thread.items().len() >= items);
            // A reused id is another call, or the same one if that was still running.
            if let ThreadStep::Announce(n) = step {
                let last = thread.items().last();
                let call = thread.tool_call(&tool_call_id(*n)).unwrap();
                prop_assert!(!call.is_finished());
                let is_last = matches!(last.map(|i| &i.kind), Some(ItemKind::ToolCall(c)) if c.id == call.id);
                prop_assert!(is_last || thread.items().len() == items);
                for at in finished {
                    let ItemKind::ToolCall(old) = &thread.items()[at].kind else { unreachable!() };
                    prop_assert!(old.is_finished(), "the call that had finished was begun again");
                }
            }
            if let ThreadStep::Cancel = step {
                for item in thread.items() {
                    if let ItemKind::ToolCall(call) = &item.kind {
                        prop_assert!(call.is_finished());
                    }
                }
            }
            // What has changed has the newest revision, and nothing has a newer one.
            let newest = thread.items().iter().map(|i| i.revision).max().unwrap_or(0);
            prop_assert!(newest <= thread.revision());
            if !matches!(step, ThreadStep::End | ThreadStep::Cancel) {
                prop_assert_eq!(newest, thread.revision());
            }
        }
        let said: String = steps.iter().filter_map(|s| if let ThreadStep::Say(t) = s { Some(t.as_str()) } else { None }).collect();
        let shown: String = message_texts(&thread).into_iter().filter(|m| m.0 == ModelSpeaker::Agent).map(|m| m.1).collect();
        prop_assert_eq!(shown, said);
    }
}

#[test]
fn message_to_a_running_turn_is_shown_once_if_the_agent_sends_it_back() {
    use ModelSpeaker::{Agent, User};
    for is_sent_back in [false, true] {
        let mut thread = Thread::new();
        thread.begin_turn(&[ContentBlock::text("go on")]);
        thread.apply(&text_chunk(Agent, "I go").into());
        thread.add_user_message(&[ContentBlock::text("to the left")]);
        if is_sent_back {
            thread.apply(&text_chunk(User, "to the ").into());
            thread.apply(&text_chunk(User, "left").into());
        }
        thread.apply(&text_chunk(Agent, "Left it is").into());
        let shown = message_texts(&thread);
        let shown: Vec<_> = shown.iter().map(|(by, text)| (*by, &**text)).collect();
        let expected = [
            (User, "go on"),
            (Agent, "I go"),
            (User, "to the left"),
            (Agent, "Left it is"),
        ];
        assert_eq!(shown, expected);
    }
}

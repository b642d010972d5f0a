//! Tests stored sessions: a replay shows the same items as the original session, and the sessions can be continued.

use crate::common;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::{
    ALL_CAPABILITIES, ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, OfferedCapabilities,
    call_text, has_call_showing, mode_of_thread, wait_for_thread,
};
use acp::thread::{ItemKind, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{ContentBlock, ListSessionsRequest, StopReason};
use acp::{Options, Thread, ThreadHandle};
use acp_agent::store::{MemoryStore, SqliteStore};
use acp_agent::{
    CodingAgent, Model, ModelMessage, OfflineModel, RoundRequest, ScriptedModel, Steps, ToolStatus,
};

fn options_for_version(version: u16) -> Options {
    match version {
        2 => Options::new().draft_version_2(),
        _ => Options::new(),
    }
}

fn scripted_agent(script: &str, sessions: &Path) -> CodingAgent {
    CodingAgent::with_model(ScriptedModel::parse(script).unwrap())
        .keep_sessions(SqliteStore::open(sessions).unwrap())
}

/// Returns everything that a user sees, one line per item.
fn thread_lines(thread: &ThreadHandle) -> Vec<String> {
    thread.read(|thread| {
        let items = thread
            .items()
            .iter()
            .map(|item| item_line(thread, &item.kind));
        let plans = thread
            .plans()
            .iter()
            .map(|plan| format!("{:?}", plan.content));
        items.chain(plans).collect()
    })
}

fn item_line(thread: &Thread, kind: &ItemKind) -> String {
    match kind {
        ItemKind::User(message) => format!("user: {}", message.text()),
        ItemKind::Agent(message) => format!("agent: {}", message.text()),
        ItemKind::Thought(message) => format!("thought: {}", message.text()),
        ItemKind::ToolCall(call) => {
            let terminal = common::call_terminal(call).and_then(|id| {
                let terminal = thread.terminal(&id)?;
                Some((terminal.output(), terminal.exit_status.clone()))
            });
            let diffs = call
                .content
                .iter()
                .filter(|content| matches!(content, ThreadToolCallContent::Diff(_)));
            format!(
                "{} {:?} {} {:?} {:?} {:?} {:?} {terminal:?}",
                call.id,
                call.status,
                call.title,
                call_text(call),
                diffs.collect::<Vec<_>>(),
                call.locations,
                call.raw_output
            )
        }
        other => panic!("{other:?}"),
    }
}

const WORK_SCRIPT: &str = r#"{"turns": [
    [
        {"think": ["Let me", " see."]},
        {"say": ["Look", "ing."]},
        {"plan": [{"content": "Look", "status": "in_progress"}]},
        {"read": {"path": "a.txt"}},
        {"plan": [{"content": "Look", "status": "completed"}]},
        {"write": {"path": "b.txt", "text": "two\n"}},
        {"run": {"command": "echo out; exit 3"}},
        {"read": {"path": "no.txt"}},
        {"say": "Done."}
    ],
    [{"write": {"path": "c.txt", "text": "three\n"}}, {"say": "Again."}]
]}"#;

#[tokio::test]
async fn loaded_session_is_shown_as_before_and_continues() {
    let shown = OfferedCapabilities {
        shows: true,
        ..NO_CAPABILITIES
    };
    // The client's offers, and whether version 2 is used, in which a display terminal is a terminal again.
    for (offers, speaks) in [(NO_CAPABILITIES, 1), (shown, 1), (NO_CAPABILITIES, 2)] {
        let sessions = tempfile::tempdir().unwrap();
        let f = AgentFixture::start_with_options(
            options_for_version(speaks),
            scripted_agent(WORK_SCRIPT, sessions.path()),
            offers,
        )
        .await;
        f.write_file("a.txt", "one\n");
        f.queue_answers([ALLOW_ALWAYS, ALLOW]);
        f.prompt("Do\nit").await.unwrap();
        let before = thread_lines(f.session.thread());
        assert!(before[0].contains("user: Do\nit"), "{before:?}");
        f.session
            .set_config_option("mode", "architect")
            .await
            .unwrap();
        f.session.set_config_option("mode", "ask").await.unwrap();

        let agent = scripted_agent(WORK_SCRIPT, sessions.path());
        let g =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        let id = f.session.id().clone();
        let mut again = g.agent.load_session(id.clone(), f.cwd()).await.unwrap();
        let after = thread_lines(again.thread());
        if speaks == 1 && offers.shows {
            // This was a terminal, and is now text.
            assert_eq!(after.len(), before.len());
            let run = |seen: &[String]| seen.iter().find(|line| line.contains("Run `")).cloned();
            let (before, after) = (run(&before).unwrap(), run(&after).unwrap());
            assert!(before.contains("Some((\"out"), "{before}");
            assert!(after.contains(r"```\nout\n```"), "{after}");
        } else {
            assert_eq!(after, before);
        }
        again
            .thread()
            .read(|thread| assert_eq!(mode_of_thread(thread), "ask"));

        // The "always" answers, the number of the prompt and the used ids are restored.
        let asked = g.seen.asked.lock().unwrap().len();
        assert_eq!(again.prompt("again").await.unwrap(), StopReason::EndTurn);
        assert_eq!(g.seen.asked.lock().unwrap().len(), asked);
        assert_eq!(f.read_file("c.txt"), "three\n");
        let calls = again.thread().read(|thread| {
            let items = thread.items().iter();
            let calls = items.filter(|item| matches!(item.kind, ItemKind::ToolCall(_)));
            calls.count()
        });
        assert_eq!(calls, 5);
        // Entries that were folded at the end of the turn are shown in the same way.
        let before = thread_lines(again.thread());
        again = g.agent.load_session(id, f.cwd()).await.unwrap();
        assert_eq!(thread_lines(again.thread()), before);
    }
}

#[tokio::test]
async fn terminal_of_a_disconnected_client_is_replayed_as_text() {
    let sessions = tempfile::tempdir().unwrap();
    let script = r#"{"turns": [[{"run": {"command": "echo printed"}}]]}"#;
    let f = AgentFixture::new(scripted_agent(script, sessions.path()), ALL_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    f.prompt("go").await.unwrap();
    assert!(common::call_terminal(&f.last_tool_call()).is_some());
    for speaks in [1, 2] {
        let agent = scripted_agent(script, sessions.path());
        let g =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        let id = f.session.id().clone();
        let again = g.agent.load_session(id, f.cwd()).await.unwrap();
        let call = again.thread().read(|thread| match &thread.items()[1].kind {
            ItemKind::ToolCall(call) => (**call).clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(common::call_terminal(&call), None);
        assert_eq!(call_text(&call), "```\nprinted\n```");
        assert_eq!(call.status, ToolCallStatus::Completed);
    }
}

/// A model that repeats its input back and records it.
struct RepeatingModel(Arc<Mutex<Vec<ModelMessage>>>);

impl Model for RepeatingModel {
    fn name(&self) -> &str {
        "hears"
    }
    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        *self.0.lock().unwrap() = request.conversation.to_vec();
        let steps = [Ok(acp_agent::Step::Text("Heard.".to_owned()))];
        Box::pin(SingleStep(steps.into_iter().collect()))
    }
}

struct SingleStep(std::collections::VecDeque<Result<acp_agent::Step, acp_agent::ModelError>>);

impl futures_core::Stream for SingleStep {
    type Item = Result<acp_agent::Step, acp_agent::ModelError>;
    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.pop_front())
    }
}

#[tokio::test]
async fn interrupted_turn_is_replayed_and_known_to_the_model() {
    for speaks in [1, 2] {
        let sessions = tempfile::tempdir().unwrap();
        let script = r#"{"turns": [
            [{"say": "One."}],
            [{"say": ["Wait", " a bit."]}, {"list": {}}, {"run": {"command": "echo begun; sleep 1000"}}]
        ]}"#;
        let f = AgentFixture::start_with_options(
            options_for_version(speaks),
            scripted_agent(script, sessions.path()),
            NO_CAPABILITIES,
        )
        .await;
        f.prompt("first").await.unwrap();
        f.queue_answers([ALLOW]);
        let turn = f.start_prompt("second");
        let begun = |thread: &Thread| {
            let ran = has_call_showing(thread, ToolCallStatus::InProgress, "begun");
            let mut items = thread.items().iter();
            ran || items.any(|item| item_line(thread, &item.kind).contains("begun\\n"))
        };
        wait_for_thread(f.session.thread(), begun).await;
        let before = thread_lines(f.session.thread());
        // The turn is dropped without any message, which is all that a kill does to it.
        f.agent.close();
        turn.await.unwrap().unwrap_err();

        let heard = Arc::new(Mutex::new(Vec::new()));
        let agent = CodingAgent::with_model(RepeatingModel(Arc::clone(&heard)))
            .keep_sessions(SqliteStore::open(sessions.path()).unwrap());
        let g =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        let id = f.session.id().clone();
        let again = g.agent.load_session(id.clone(), f.cwd()).await.unwrap();
        let after = thread_lines(again.thread());
        assert_eq!(after.len(), before.len());
        let last = before.len() - 1;
        assert_eq!(after[..last], before[..last]);
        assert!(before[last].contains("InProgress"), "{}", before[last]);
        for part in ["Failed", "begun", "The agent exited before this finished."] {
            assert!(after[last].contains(part), "{part}: {}", after[last]);
        }

        again.prompt("third").await.unwrap();
        let told: Vec<String> = heard.lock().unwrap().iter().map(message_text).collect();
        let expected = [
            "user first",
            "assistant One. []",
            "user second",
            "assistant Wait a bit. [list, run]",
            "result Done",
            "result Cancelled",
            "user third",
        ];
        assert_eq!(told, expected);

        // A client that resumes gets no replay, but the model knows the whole conversation.
        let resumed = g.agent.resume_session(id, f.cwd()).await.unwrap();
        resumed.prompt("fourth").await.unwrap();
        let told: Vec<String> = heard.lock().unwrap().iter().map(message_text).collect();
        assert_eq!(told[..7], expected);
        assert_eq!(told[7..], ["assistant Heard. []", "user fourth"]);
    }
}

fn message_text(message: &ModelMessage) -> String {
    match message {
        ModelMessage::User(content) => {
            let texts: Vec<_> = content.iter().filter_map(ContentBlock::as_text).collect();
            format!("user {}", texts.concat())
        }
        ModelMessage::Assistant { text, calls, .. } => {
            let tools: Vec<_> = calls.iter().map(|call| call.tool.as_str()).collect();
            format!("assistant {text} [{}]", tools.join(", "))
        }
        ModelMessage::ToolResult(result) => {
            if result.status == ToolStatus::Cancelled {
                assert!(
                    result
                        .text
                        .contains("The agent exited before this finished"),
                    "{}",
                    result.text
                );
            }
            format!("result {:?}", result.status)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn interrupted_answer_is_part_of_the_history() {
    let sessions = tempfile::tempdir().unwrap();
    let script = r#"{"turns": [[{"think": "Hm"}, {"say": ["Half", " an ans"]}, {"hang": true}]]}"#;
    let f = AgentFixture::new(scripted_agent(script, sessions.path()), NO_CAPABILITIES).await;
    let turn = f.start_prompt("first");
    wait_for_thread(f.session.thread(), |thread| {
        let mut items = thread.items().iter();
        items.any(|item| item_line(thread, &item.kind) == "agent: Half an ans")
    })
    .await;
    f.agent.close();
    turn.await.unwrap().unwrap_err();
    let heard = Arc::new(Mutex::new(Vec::new()));
    for prompts in 1..3 {
        let agent = CodingAgent::with_model(RepeatingModel(Arc::clone(&heard)))
            .keep_sessions(SqliteStore::open(sessions.path()).unwrap());
        let g = AgentFixture::new(agent, NO_CAPABILITIES).await;
        let id = f.session.id().clone();
        let again = g.agent.load_session(id, f.cwd()).await.unwrap();
        again.prompt("more").await.unwrap();
        let told: Vec<String> = heard.lock().unwrap().iter().map(message_text).collect();
        assert_eq!(
            told[..3],
            ["user first", "assistant Half an ans []", "user more"]
        );
        assert_eq!(told.len(), 2 * prompts + 1);
    }
}

#[tokio::test]
async fn sessions_are_listed_and_deleted() {
    let sessions = tempfile::tempdir().unwrap();
    for speaks in [1, 2] {
        let agent = CodingAgent::with_model(OfflineModel::new())
            .keep_sessions(SqliteStore::open(sessions.path()).unwrap());
        let f =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        f.prompt("\n  /help me  \nplease").await.unwrap();
        let request = ListSessionsRequest::new().cwd(f.cwd());
        let listed = f.agent.list_sessions(&request).await.unwrap();
        assert_eq!(listed.next_cursor, None);
        let [listed] = &listed.sessions[..] else {
            panic!("{listed:?}");
        };
        assert_eq!(listed.session_id, *f.session.id());
        assert_eq!(listed.title.as_deref(), Some("/help me"));
        let updated = listed.updated_at.as_deref().unwrap();
        assert!(
            updated.starts_with("20") && updated.ends_with('Z'),
            "{updated}"
        );

        let wrong = ListSessionsRequest::new().cursor("nowhere");
        let error = f.agent.list_sessions(&wrong).await.unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");

        let id = f.session.id().clone();
        f.agent.delete_session(&id).await.unwrap();
        assert_eq!(f.agent.list_sessions(&request).await.unwrap().sessions, []);
        let error = f.agent.load_session(id.clone(), f.cwd()).await.unwrap_err();
        let code = error.peer_error().unwrap().code;
        assert_eq!(code, acp::jsonrpc::Error::RESOURCE_NOT_FOUND, "{error}");
        // Deleting the session again succeeds, because it no longer exists.
        f.agent.delete_session(&id).await.unwrap();
    }
}

#[tokio::test]
async fn full_store_ends_the_turn_without_data_loss() {
    let many = vec![r#""some words, ""#; 200].join(", ");
    let script = format!(r#"{{"turns": [[{{"say": [{many}]}}], [{{"say": "on"}}]]}}"#);
    let agent = CodingAgent::with_model(ScriptedModel::parse(&script).unwrap())
        .keep_sessions(MemoryStore::with_limit(10_000));
    let f = AgentFixture::new(agent, NO_CAPABILITIES).await;
    let error = f.prompt("go").await.unwrap_err().to_string();
    assert!(error.contains("session store full:"), "{error}");
    let before = thread_lines(f.session.thread());
    assert!(before[1].contains("some words, some words"), "{before:?}");
    // The end of the turn has freed space, so the session continues, and everything that was shown is still there.
    let id = f.session.id().clone();
    let again = f.agent.load_session(id, f.cwd()).await.unwrap();
    assert_eq!(thread_lines(again.thread()), before);
    assert_eq!(again.prompt("go on").await.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn agent_without_a_store_cannot_load_sessions() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let capabilities = f.agent.capabilities();
    assert!(!capabilities.load_session);
    let sessions = &capabilities.session_capabilities;
    assert!(sessions.list.is_none() && sessions.resume.is_none() && sessions.delete.is_none());
}

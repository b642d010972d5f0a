//! Tests conversations that exceed the model's window, and what remains of them after compaction.

use crate::common;
use std::path::Path;

use crate::common::hears::RequestRecorder;
use crate::common::{
    AgentFixture, NO_CAPABILITIES, replace_in_messages, wait_for_thread, with_line_numbers,
};
use acp::Options;
use acp::client::Client;
use acp::thread::{ItemKind, ThreadCompaction};
use acp::v1::*;
use acp::{Thread, ThreadHandle};
use acp_agent::CodingAgent;
use acp_agent::store::SqliteStore;

const SUMMARY_LINE_PREFIX: &str = "user Summary of the conversation so far:";

fn options_for_version(version: u16) -> Options {
    match version {
        2 => Options::new().draft_version_2(),
        _ => Options::new(),
    }
}

fn persistent_agent(heard: &RequestRecorder, script: &str, sessions: &Path) -> CodingAgent {
    let store = SqliteStore::open(sessions).unwrap();
    heard.scripted_agent(script).keep_sessions(store)
}

fn compactions(thread: &Thread) -> Vec<ThreadCompaction> {
    let items = thread.items().iter();
    let compactions = items.filter_map(|item| match &item.kind {
        ItemKind::Compaction(compaction) => Some(compaction.clone()),
        _ => None,
    });
    compactions.collect()
}

fn thread_lines(thread: &ThreadHandle) -> Vec<String> {
    thread.read(|thread| {
        let items = thread.items().iter().map(|item| match &item.kind {
            // A version 1 client learns the ids of prompts only from a replay.
            ItemKind::User(message) => format!("user {}", message.text()),
            other => format!("{other:?}"),
        });
        items.collect()
    })
}

fn content_text(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(ContentBlock::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the conversation that the model is asked to summarize.
fn summary_request_text(asked: &common::hears::RecordedRequest) -> String {
    assert_eq!((asked.tools, asked.conversation.len()), (0, 1));
    content_text(&asked.prompt())
}

const NEARLY_FULL_SCRIPT: &str = r#"{
    "window": 10000,
    "summary": [{"think": "Hm."}, {"say": ["They like", " tea."]}],
    "turns": [
        [{"say": "one"}, {"usage": {"input": 8500, "output": 100}}],
        [{"say": "two"}, {"usage": {"input": 1200, "output": 10}}],
        [{"say": "three"}]
    ]
}"#;

#[tokio::test]
async fn nearly_full_window_is_compacted_and_the_thread_still_shows_everything() {
    for speaks in [1, 2] {
        let sessions = tempfile::tempdir().unwrap();
        let heard = RequestRecorder::default();
        let agent = persistent_agent(&heard, NEARLY_FULL_SCRIPT, sessions.path());
        let f =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        f.prompt_for_text("first").await;
        assert_eq!(f.prompt_for_text("second").await, "two");
        let [first, summary, second] = &heard.all_requests()[..] else {
            panic!("{:#?}", heard.all_requests());
        };
        assert_eq!(first.message_lines(), ["user first"]);
        let asked = summary_request_text(summary);
        assert!(
            asked.contains("USER:\nfirst") && asked.contains("AGENT:\none"),
            "{asked}"
        );
        assert!(!asked.contains("second"), "{asked}");
        let lines = second.message_lines();
        let begin = format!("{SUMMARY_LINE_PREFIX}\n\nThey like tea.");
        assert_eq!(
            lines,
            [&begin, "assistant Continuing from there. []", "user second"]
        );
        assert!(second.is_well_formed() && second.tools > 0);

        let compactions = f.session.thread().read(compactions);
        let [compaction] = &compactions[..] else {
            panic!("{compactions:?}");
        };
        assert_eq!(compaction.status, CompactionStatus::Completed);
        let told = content_text(&compaction.summary);
        for part in ["8601 tokens before", "window: 10000", "They like tea."] {
            assert!(told.contains(part), "{part}: {told}");
        }

        // A client that loads the session sees all of it, and the model continues from the summary.
        let before = thread_lines(f.session.thread());
        let agent = persistent_agent(&heard, NEARLY_FULL_SCRIPT, sessions.path());
        let g =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        let id = f.session.id().clone();
        let again = g.agent.load_session(id, f.cwd()).await.unwrap();
        assert_eq!(thread_lines(again.thread()), before);
        again.prompt("third").await.unwrap();
        let asked = heard.last_request();
        assert_eq!(asked.message_lines()[..3], lines);
        assert_eq!(
            asked.message_lines()[3..],
            ["assistant two []", "user third"]
        );
    }
}

#[tokio::test]
async fn overflowing_conversation_is_summarized_and_retried() {
    let usage = r#"{"usage": {"input": 1, "output": 1}}"#;
    let script = format!(
        r#"{{"window": 5000, "summary": [{{"say": "Many words."}}],
            "turns": [[{{"say": "a"}}, {usage}], [{{"say": "b"}}, {usage}], [{{"say": "c"}}, {usage}]]}}"#
    );
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(&script), NO_CAPABILITIES).await;
    let long = |c: &str| c.repeat(7000);
    f.prompt_for_text(long("x")).await;
    f.prompt_for_text(long("y")).await;
    assert_eq!(f.prompt_for_text(long("z")).await, "c");
    let all = heard.all_requests();
    assert_eq!(all.len(), 5);
    let asked = summary_request_text(&all[3]);
    assert!(asked.contains("xxx") && asked.contains("yyy") && !asked.contains("zzz"));
    let lines = all[4].message_lines();
    assert!(
        lines[0].ends_with("Many words.") && lines[2].ends_with("zzz"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn long_results_are_truncated_before_summarizing() {
    let script = r#"{"window": 20000, "turns": [[
        {"read": {"path": "long.txt"}},
        {"usage": {"input": 17000, "output": 0}}, {"read": {"path": "short.txt"}},
        {"say": "Done."}
    ], [{"say": "Again."}]]}"#;
    let sessions = tempfile::tempdir().unwrap();
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(
        persistent_agent(&heard, script, sessions.path()),
        NO_CAPABILITIES,
    )
    .await;
    let long = "long line\n".repeat(2000);
    f.write_file("long.txt", &long);
    f.write_file("short.txt", "short");
    assert_eq!(f.prompt_for_text("go").await, "Done.");
    let all = heard.all_requests();
    assert_eq!(all.len(), 3);
    let whole = format!("result of {} bytes", with_line_numbers(&long).len());
    assert_eq!(all[1].message_lines()[2], whole);
    let last = &all[2];
    let result = last.message_lines()[2].clone();
    assert!(
        result.starts_with("result of 20") && result.len() < whole.len(),
        "{result}"
    );
    assert!(last.is_well_formed());
    // The user still sees all of it, and is informed.
    let first = f.tool_calls().swap_remove(0);
    assert!(format!("{first:?}").len() > 20_000);
    let told = f.session.thread().read(compactions);
    assert!(
        content_text(&told[0].summary).contains("tool results were truncated"),
        "{told:?}"
    );

    let g = AgentFixture::new(
        persistent_agent(&heard, script, sessions.path()),
        NO_CAPABILITIES,
    )
    .await;
    let id = f.session.id().clone();
    let again = g.agent.load_session(id, f.cwd()).await.unwrap();
    again.prompt("more").await.unwrap();
    assert_eq!(heard.last_request().conversation[..5], last.conversation);
}

#[tokio::test]
async fn turn_that_alone_fills_the_window_is_compacted_and_continues() {
    for speaks in [1, 2] {
        let script = r#"{"window": 20000, "summary": [{"say": "Half is read."}], "turns": [[
            {"read": {"path": "a.txt"}},
            {"usage": {"input": 17000, "output": 0}}, {"read": {"path": "a.txt"}},
            {"say": "Done."}
        ]]}"#;
        let heard = RequestRecorder::default();
        let f = AgentFixture::start_with_options(
            options_for_version(speaks),
            heard.scripted_agent(script),
            NO_CAPABILITIES,
        )
        .await;
        f.write_file("a.txt", &"text\n".repeat(1200));
        assert_eq!(f.prompt_for_text("read it twice").await, "Done.");
        let all = heard.all_requests();
        let asked = summary_request_text(&all[2]);
        for part in [
            "still in progress",
            "read it twice",
            "calls read",
            "RESULT (done):\n1\ttext\n2\ttext\n",
        ] {
            assert!(asked.contains(part), "{part}: {asked}");
        }
        let lines = all[3].message_lines();
        assert!(lines[0].ends_with("Half is read."), "{lines:?}");
        assert_eq!(lines[2..], ["user read it twice"]);
    }
}

#[tokio::test]
async fn compact_command_accepts_instructions() {
    let script = r#"{"summary": [{"say": "Ada, Grace."}],
        "turns": [[], [{"say": "one"}], [], [{"say": "two"}]]}"#;
    for speaks in [1, 2] {
        let heard = RequestRecorder::default();
        let f = AgentFixture::start_with_options(
            options_for_version(speaks),
            heard.scripted_agent(script),
            NO_CAPABILITIES,
        )
        .await;
        assert_eq!(
            f.prompt_for_text("/compact").await,
            "Nothing to compact yet."
        );
        assert!(heard.all_requests().is_empty());
        f.prompt_for_text("first").await;
        let said = f.prompt_for_text("/compact the names").await;
        assert!(said.starts_with("The conversation was compacted"), "{said}");
        let asked = summary_request_text(&heard.last_request());
        assert!(asked.contains("to keep: the names\n"), "{asked}");
        assert_eq!(f.prompt_for_text("next").await, "two");
        let asked = heard.last_request();
        assert!(asked.is_well_formed());
        let lines = asked.message_lines();
        assert!(lines[0].ends_with("Ada, Grace."), "{lines:?}");
        let answered = format!("assistant {said} []");
        assert_eq!(
            lines[2..],
            ["user /compact the names", &answered, "user next"]
        );
    }
}

#[tokio::test]
async fn failed_compaction_leaves_the_conversation_unchanged() {
    let script = |steps: &str| {
        format!(
            r#"{{"window": 10000, "summary": [{steps}], "turns": [
                [{{"say": "one"}}, {{"usage": {{"input": 8500, "output": 0}}}}],
                [{{"say": "two"}}, {{"usage": {{"input": 8600, "output": 0}}}}],
                [], [{{"say": "four"}}]]}}"#
        )
    };
    for (steps, why) in [
        (r#"{"error": "the model is busy"}"#, "the model is busy"),
        ("", "returned no summary"),
        (r#"{"say": "I can't"}, {"stop": "refusal"}"#, "refused"),
    ] {
        let heard = RequestRecorder::default();
        let f = AgentFixture::new(heard.scripted_agent(&script(steps)), NO_CAPABILITIES).await;
        f.prompt_for_text("first").await;
        // There is some space left, so the turn continues, and the user is informed.
        assert_eq!(f.prompt_for_text("second").await, "two");
        let lines = ["user first", "assistant one []", "user second"];
        assert_eq!(heard.last_request().message_lines(), lines);
        let told = f.session.thread().read(compactions);
        assert_eq!(told[0].status, CompactionStatus::Failed);
        assert!(told[0].error.as_ref().unwrap().contains(why), "{told:?}");
        // If the user requested the compaction, the failure is an error.
        let error = f.prompt("/compact").await.unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains("the conversation is unchanged"),
            "{error}"
        );
        assert_eq!(f.prompt_for_text("fourth").await, "four");
        let after = heard.last_request().message_lines();
        assert_eq!(after[..3], lines);
        assert_eq!(
            after[3..],
            ["assistant two []", "user /compact", "user fourth"]
        );
    }
}

#[tokio::test]
async fn conversation_that_cannot_be_summarized_ends_the_turn() {
    let usage = r#"{"usage": {"input": 1, "output": 1}}"#;
    let script = format!(
        r#"{{"window": 5000, "summary": [{{"error": "no words left"}}],
            "turns": [[{{"say": "a"}}, {usage}], [], [{{"say": "c"}}, {usage}]]}}"#
    );
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(&script), NO_CAPABILITIES).await;
    f.prompt_for_text("x".repeat(10_000)).await;
    let error = f.prompt("y".repeat(10_000)).await.unwrap_err().to_string();
    for part in ["exceeds the model's context window", "no words left"] {
        assert!(error.contains(part), "{error}");
    }
    // The prompt alone is too long, so nothing can be left out.
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(&script), NO_CAPABILITIES).await;
    let error = f.prompt("y".repeat(30_000)).await.unwrap_err().to_string();
    assert!(
        error.contains("exceed the script's context window"),
        "{error}"
    );
    assert_eq!(heard.all_requests().len(), 1);
}

#[tokio::test]
async fn cancelled_compaction_leaves_the_conversation_unchanged() {
    let script = r#"{"summary": [{"say": "So"}, {"hang": true}],
        "turns": [[{"say": "one"}], [], [{"say": "three"}]]}"#;
    let heard = RequestRecorder::default();
    let f = AgentFixture::new(heard.scripted_agent(script), NO_CAPABILITIES).await;
    f.prompt_for_text("first").await;
    let turn = f.start_prompt("/compact");
    heard.wait_for_requests(2).await;
    assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
    let told = f.session.thread().read(compactions);
    assert_eq!(told[0].status, CompactionStatus::Cancelled);
    f.prompt_for_text("third").await;
    let lines = [
        "user first",
        "assistant one []",
        "user /compact",
        "user third",
    ];
    assert_eq!(heard.last_request().message_lines(), lines);
}

#[tokio::test]
async fn compaction_interrupted_by_exit_is_shown_as_failed() {
    let script =
        r#"{"summary": [{"hang": true}], "turns": [[{"say": "one"}], [], [{"say": "three"}]]}"#;
    for speaks in [1, 2] {
        let sessions = tempfile::tempdir().unwrap();
        let heard = RequestRecorder::default();
        let agent = persistent_agent(&heard, script, sessions.path());
        let f =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        f.prompt_for_text("first").await;
        let turn = f.start_prompt("/compact");
        let runs = |thread: &Thread| !compactions(thread).is_empty();
        wait_for_thread(f.session.thread(), runs).await;
        heard.wait_for_requests(2).await;
        f.agent.close();
        turn.await.unwrap().unwrap_err();

        let agent = persistent_agent(&heard, script, sessions.path());
        let g =
            AgentFixture::start_with_options(options_for_version(speaks), agent, NO_CAPABILITIES)
                .await;
        let id = f.session.id().clone();
        let again = g.agent.load_session(id, f.cwd()).await.unwrap();
        let told = again.thread().read(compactions);
        assert_eq!(told[0].status, CompactionStatus::Failed);
        assert!(
            told[0]
                .error
                .as_ref()
                .unwrap()
                .contains("The agent exited before this finished"),
            "{told:?}"
        );
        again.prompt("third").await.unwrap();
        let lines = [
            "user first",
            "assistant one []",
            "user /compact",
            "user third",
        ];
        assert_eq!(heard.last_request().message_lines(), lines);
    }
}

struct CompactionClient;

impl Client for CompactionClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        _: acp::client::PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        panic!("nobody expects a question")
    }
}

#[tokio::test]
async fn compaction_is_shown_as_a_thought_to_clients_without_compaction_support() {
    let dir = tempfile::tempdir().unwrap();
    let heard = RequestRecorder::default();
    let (ours, theirs) = acp::transport::memory();
    let theirs = replace_in_messages(theirs, r#""compaction":{}"#, r#""_compaction":{}"#);
    acp::testing::start_agent(
        theirs,
        heard.scripted_agent(NEARLY_FULL_SCRIPT),
        Options::new(),
    );
    let agent = acp::testing::start_client(ours, CompactionClient, acp::Options::new())
        .await
        .unwrap();
    let session = agent.new_session(dir.path()).await.unwrap();
    session.prompt("first").await.unwrap();
    session.prompt("second").await.unwrap();
    let thoughts = session.thread().read(|thread| {
        assert!(compactions(thread).is_empty());
        let items = thread.items().iter();
        let thoughts = items.filter_map(|item| match &item.kind {
            ItemKind::Thought(message) => Some(message.text()),
            _ => None,
        });
        thoughts.collect::<Vec<_>>()
    });
    assert_eq!(thoughts.len(), 1);
    assert!(thoughts[0].contains("8601 tokens before"), "{thoughts:?}");
}

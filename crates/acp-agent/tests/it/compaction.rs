//! Conversations that become too long for the model's window, and what is left of them.

use crate::common;
use std::path::Path;

use crate::common::hears::HeardRequests;
use crate::common::{AgentFixture, NONE, says_otherwise, until, with_line_numbers};
use acp::Options;
use acp::client::Client;
use acp::thread::{ItemKind, ThreadCompaction};
use acp::v1::*;
use acp::{Thread, ThreadHandle};
use acp_agent::CodingAgent;
use acp_agent::store::SqliteStore;

const SUMMARY: &str = "user Summary of the conversation so far:";

fn version(version: u16) -> Options {
    match version {
        2 => Options::new().draft_version_2(),
        _ => Options::new(),
    }
}

fn kept(heard: &HeardRequests, script: &str, sessions: &Path) -> CodingAgent {
    let store = SqliteStore::open(sessions).unwrap();
    heard.agent(script).keep_sessions(store)
}

fn compactions(thread: &Thread) -> Vec<ThreadCompaction> {
    let items = thread.items().iter();
    let compactions = items.filter_map(|item| match &item.kind {
        ItemKind::Compaction(compaction) => Some(compaction.clone()),
        _ => None,
    });
    compactions.collect()
}

fn shown(thread: &ThreadHandle) -> Vec<String> {
    thread.read(|thread| {
        let items = thread.items().iter().map(|item| match &item.kind {
            // A client of version 1 learns the ids of prompts by a replay only.
            ItemKind::User(message) => format!("user {}", message.text()),
            other => format!("{other:?}"),
        });
        items.collect()
    })
}

fn texts(content: &[ContentBlock]) -> String {
    let texts = content.iter().filter_map(ContentBlock::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// The conversation that the model was to summarise.
fn to_summarise(asked: &common::hears::HeardRequest) -> String {
    assert_eq!((asked.tools, asked.conversation.len()), (0, 1));
    texts(&asked.prompt())
}

const NEARLY: &str = r#"{
    "window": 10000,
    "summary": [{"think": "Hm."}, {"say": ["They like", " tea."]}],
    "turns": [
        [{"say": "one"}, {"usage": {"input": 8500, "output": 100}}],
        [{"say": "two"}, {"usage": {"input": 1200, "output": 10}}],
        [{"say": "three"}]
    ]
}"#;

#[tokio::test]
async fn a_window_that_is_nearly_full_is_emptied_and_the_session_shows_all() {
    for speaks in [1, 2] {
        let sessions = tempfile::tempdir().unwrap();
        let heard = HeardRequests::default();
        let agent = kept(&heard, NEARLY, sessions.path());
        let f = AgentFixture::speaking(version(speaks), agent, NONE).await;
        f.says("first").await;
        assert_eq!(f.says("second").await, "two");
        let [first, summary, second] = &heard.all()[..] else {
            panic!("{:#?}", heard.all());
        };
        assert_eq!(first.lines(), ["user first"]);
        let asked = to_summarise(summary);
        assert!(
            asked.contains("USER:\nfirst") && asked.contains("AGENT:\none"),
            "{asked}"
        );
        assert!(!asked.contains("second"), "{asked}");
        let lines = second.lines();
        let begin = format!("{SUMMARY}\n\nThey like tea.");
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
        let told = texts(&compaction.summary);
        for part in ["8601 tokens before", "window: 10000", "They like tea."] {
            assert!(told.contains(part), "{part}: {told}");
        }

        // Whoever loads it is shown all of it, and the model goes on from the summary.
        let before = shown(f.session.thread());
        let agent = kept(&heard, NEARLY, sessions.path());
        let g = AgentFixture::speaking(version(speaks), agent, NONE).await;
        let id = f.session.id().clone();
        let again = g.agent.load_session(id, f.cwd()).await.unwrap();
        assert_eq!(shown(again.thread()), before);
        again.prompt("third").await.unwrap();
        let asked = heard.last();
        assert_eq!(asked.lines()[..3], lines);
        assert_eq!(asked.lines()[3..], ["assistant two []", "user third"]);
    }
}

#[tokio::test]
async fn what_does_not_fit_is_summarised_and_asked_again() {
    let usage = r#"{"usage": {"input": 1, "output": 1}}"#;
    let script = format!(
        r#"{{"window": 5000, "summary": [{{"say": "Many words."}}],
            "turns": [[{{"say": "a"}}, {usage}], [{{"say": "b"}}, {usage}], [{{"say": "c"}}, {usage}]]}}"#
    );
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(&script), NONE).await;
    let long = |c: &str| c.repeat(7000);
    f.says(long("x")).await;
    f.says(long("y")).await;
    assert_eq!(f.says(long("z")).await, "c");
    let all = heard.all();
    assert_eq!(all.len(), 5);
    let asked = to_summarise(&all[3]);
    assert!(asked.contains("xxx") && asked.contains("yyy") && !asked.contains("zzz"));
    let lines = all[4].lines();
    assert!(
        lines[0].ends_with("Many words.") && lines[2].ends_with("zzz"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 3);
}

#[tokio::test]
async fn long_results_are_cut_before_anything_is_summarised() {
    let script = r#"{"window": 20000, "turns": [[
        {"read": {"path": "long.txt"}},
        {"usage": {"input": 17000, "output": 0}}, {"read": {"path": "short.txt"}},
        {"say": "Done."}
    ], [{"say": "Again."}]]}"#;
    let sessions = tempfile::tempdir().unwrap();
    let heard = HeardRequests::default();
    let f = AgentFixture::new(kept(&heard, script, sessions.path()), NONE).await;
    let long = "long line\n".repeat(2000);
    f.put("long.txt", &long);
    f.put("short.txt", "short");
    assert_eq!(f.says("go").await, "Done.");
    let all = heard.all();
    assert_eq!(all.len(), 3);
    let whole = format!("result of {} bytes", with_line_numbers(&long).len());
    assert_eq!(all[1].lines()[2], whole);
    let last = &all[2];
    let result = last.lines()[2].clone();
    assert!(
        result.starts_with("result of 20") && result.len() < whole.len(),
        "{result}"
    );
    assert!(last.is_well_formed());
    // The person still sees all of it, and is told.
    let first = f.calls().swap_remove(0);
    assert!(format!("{first:?}").len() > 20_000);
    let told = f.session.thread().read(compactions);
    assert!(
        texts(&told[0].summary).contains("tool results were truncated"),
        "{told:?}"
    );

    let g = AgentFixture::new(kept(&heard, script, sessions.path()), NONE).await;
    let id = f.session.id().clone();
    let again = g.agent.load_session(id, f.cwd()).await.unwrap();
    again.prompt("more").await.unwrap();
    assert_eq!(heard.last().conversation[..5], last.conversation);
}

#[tokio::test]
async fn a_turn_that_fills_the_window_by_itself_goes_on() {
    for speaks in [1, 2] {
        let script = r#"{"window": 20000, "summary": [{"say": "Half is read."}], "turns": [[
            {"read": {"path": "a.txt"}},
            {"usage": {"input": 17000, "output": 0}}, {"read": {"path": "a.txt"}},
            {"say": "Done."}
        ]]}"#;
        let heard = HeardRequests::default();
        let f = AgentFixture::speaking(version(speaks), heard.agent(script), NONE).await;
        f.put("a.txt", &"text\n".repeat(1200));
        assert_eq!(f.says("read it twice").await, "Done.");
        let all = heard.all();
        let asked = to_summarise(&all[2]);
        for part in [
            "still in progress",
            "read it twice",
            "calls read",
            "RESULT (done):\n1\ttext\n2\ttext\n",
        ] {
            assert!(asked.contains(part), "{part}: {asked}");
        }
        let lines = all[3].lines();
        assert!(lines[0].ends_with("Half is read."), "{lines:?}");
        assert_eq!(lines[2..], ["user read it twice"]);
    }
}

#[tokio::test]
async fn the_person_asks_for_it_and_says_what_to_keep() {
    let script = r#"{"summary": [{"say": "Ada, Grace."}],
        "turns": [[], [{"say": "one"}], [], [{"say": "two"}]]}"#;
    for speaks in [1, 2] {
        let heard = HeardRequests::default();
        let f = AgentFixture::speaking(version(speaks), heard.agent(script), NONE).await;
        assert_eq!(f.says("/compact").await, "Nothing to compact yet.");
        assert!(heard.all().is_empty());
        f.says("first").await;
        let said = f.says("/compact the names").await;
        assert!(said.starts_with("The conversation was compacted"), "{said}");
        let asked = to_summarise(&heard.last());
        assert!(asked.contains("to keep: the names\n"), "{asked}");
        assert_eq!(f.says("next").await, "two");
        let asked = heard.last();
        assert!(asked.is_well_formed());
        let lines = asked.lines();
        assert!(lines[0].ends_with("Ada, Grace."), "{lines:?}");
        let answered = format!("assistant {said} []");
        assert_eq!(
            lines[2..],
            ["user /compact the names", &answered, "user next"]
        );
    }
}

#[tokio::test]
async fn one_that_fails_leaves_all_as_it_was() {
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
        let heard = HeardRequests::default();
        let f = AgentFixture::new(heard.agent(&script(steps)), NONE).await;
        f.says("first").await;
        // There is room for some more: it goes on, and the person knows.
        assert_eq!(f.says("second").await, "two");
        let lines = ["user first", "assistant one []", "user second"];
        assert_eq!(heard.last().lines(), lines);
        let told = f.session.thread().read(compactions);
        assert_eq!(told[0].status, CompactionStatus::Failed);
        assert!(told[0].error.as_ref().unwrap().contains(why), "{told:?}");
        // Asked for, it is an error.
        let error = f.prompt("/compact").await.unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains("the conversation is unchanged"),
            "{error}"
        );
        assert_eq!(f.says("fourth").await, "four");
        let after = heard.last().lines();
        assert_eq!(after[..3], lines);
        assert_eq!(
            after[3..],
            ["assistant two []", "user /compact", "user fourth"]
        );
    }
}

#[tokio::test]
async fn what_neither_fits_nor_can_be_summarised_ends_the_turn() {
    let usage = r#"{"usage": {"input": 1, "output": 1}}"#;
    let script = format!(
        r#"{{"window": 5000, "summary": [{{"error": "no words left"}}],
            "turns": [[{{"say": "a"}}, {usage}], [], [{{"say": "c"}}, {usage}]]}}"#
    );
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(&script), NONE).await;
    f.says("x".repeat(10_000)).await;
    let error = f.prompt("y".repeat(10_000)).await.unwrap_err().to_string();
    for part in ["exceeds the model's context window", "no words left"] {
        assert!(error.contains(part), "{error}");
    }
    // A prompt that is too long by itself: there is nothing to leave out.
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(&script), NONE).await;
    let error = f.prompt("y".repeat(30_000)).await.unwrap_err().to_string();
    assert!(
        error.contains("exceed the script's context window"),
        "{error}"
    );
    assert_eq!(heard.all().len(), 1);
}

#[tokio::test]
async fn one_that_is_cancelled_leaves_all_as_it_was() {
    let script = r#"{"summary": [{"say": "So"}, {"hang": true}],
        "turns": [[{"say": "one"}], [], [{"say": "three"}]]}"#;
    let heard = HeardRequests::default();
    let f = AgentFixture::new(heard.agent(script), NONE).await;
    f.says("first").await;
    let turn = f.begin("/compact");
    heard.until(2).await;
    assert_eq!(f.cancelled(turn).await, StopReason::Cancelled);
    let told = f.session.thread().read(compactions);
    assert_eq!(told[0].status, CompactionStatus::Cancelled);
    f.says("third").await;
    let lines = [
        "user first",
        "assistant one []",
        "user /compact",
        "user third",
    ];
    assert_eq!(heard.last().lines(), lines);
}

#[tokio::test]
async fn one_in_the_middle_of_which_the_agent_ended_is_shown_as_failed() {
    let script =
        r#"{"summary": [{"hang": true}], "turns": [[{"say": "one"}], [], [{"say": "three"}]]}"#;
    for speaks in [1, 2] {
        let sessions = tempfile::tempdir().unwrap();
        let heard = HeardRequests::default();
        let agent = kept(&heard, script, sessions.path());
        let f = AgentFixture::speaking(version(speaks), agent, NONE).await;
        f.says("first").await;
        let turn = f.begin("/compact");
        let runs = |thread: &Thread| !compactions(thread).is_empty();
        until(f.session.thread(), runs).await;
        heard.until(2).await;
        f.agent.close();
        turn.await.unwrap().unwrap_err();

        let agent = kept(&heard, script, sessions.path());
        let g = AgentFixture::speaking(version(speaks), agent, NONE).await;
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
        assert_eq!(heard.last().lines(), lines);
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
async fn a_client_that_does_not_show_compactions_shows_a_thought() {
    let dir = tempfile::tempdir().unwrap();
    let heard = HeardRequests::default();
    let (ours, theirs) = acp::transport::memory();
    let theirs = says_otherwise(theirs, r#""compaction":{}"#, r#""_compaction":{}"#);
    acp::testing::start_agent(theirs, heard.agent(NEARLY), Options::new());
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

//! The official Rust SDK and our library as each other's peers, in the draft of version 2.
//!
//! `official-client-v2` and `official-agent-v2` are built on the official SDK, `our-agent` on our library;
//! `acp` is our command. Three more are the official SDK's own examples.

mod examples;
mod held_prompts;
mod negotiation;

use crate::common::version2::agent;
use crate::common::version2::client::OfficialClient;
use crate::common::{InteropClient, InteropProject, acp, in_order, last, prompt, soon};
use acp::v1::{ElicitationScope, SessionConfigKind, SessionConfigSelectOptions, ToolKind};
use serde_json::json;

const OFFICIAL_AGENT: &str = env!("CARGO_BIN_EXE_official-agent-v2");
const OFFICIAL_CLIENT: &str = env!("CARGO_BIN_EXE_official-client-v2");
const OUR_AGENT: &str = env!("CARGO_BIN_EXE_our-agent");

/// Defines a test of our client with the official agent.
macro_rules! our_client_and_their_agent {
    ($($test:ident),* $(,)?) => {
        mod our_client_and_their_agent {
            $(
                #[tokio::test]
                async fn $test() {
                    super::agent::$test(&[super::OFFICIAL_AGENT]).await;
                }
            )*
        }
    };
}

/// Defines a test of the official client with one of our agents.
macro_rules! their_client {
    ($($test:ident),* $(,)?) => {
        mod their_client {
            $(
                #[tokio::test]
                async fn $test() {
                    super::their_client().$test().await;
                }
            )*
        }
    };
}

our_client_and_their_agent! {
    serves_a_whole_turn,
    takes_no_for_an_answer,
    is_cancelled_at_every_point,
    hears_extensions_and_refusals,
    ends_turns_in_every_way,
    takes_options,
    asks_the_person,
    keeps_sessions,
    wants_to_be_logged_in,
}

their_client! {
    serves_a_whole_turn,
    can_say_no,
    cancels_at_every_point,
    hears_extensions_and_refusals,
    sees_how_turns_end,
    is_asked_for_input,
    logs_in_and_out,
    opens_old_sessions,
    sets_options,
    works_with_the_bundled_agent,
    cancels_the_bundled_agent,
}

fn their_client() -> OfficialClient<'static> {
    OfficialClient::new(&[OFFICIAL_CLIENT], OUR_AGENT)
}

#[tokio::test]
async fn the_official_agent_asks_for_a_command_and_shows_a_page() {
    let project = InteropProject::new();
    let mut person = InteropClient::of_version_2(&project);
    let mut told = person.hear();
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    prompt(&session, "ask-command").await.unwrap();
    assert_eq!(session.thread().read(last), "agent yes");
    {
        let asked = person.asked.lock().unwrap();
        let command = asked[0].command.as_ref().unwrap();
        assert_eq!(
            (asked[0].title.as_str(), command.command.as_str()),
            ("May it be run?", "make clean")
        );
        assert_eq!(Some(command.cwd.as_str()), project.path().to_str());
        assert_eq!(asked[0].kind(), &ToolKind::Execute);
    }
    // No tool call came of the question.
    assert_eq!(session.thread().read(|thread| thread.items().len()), 2);

    prompt(&session, "ask-web").await.unwrap();
    assert_eq!(session.thread().read(last), "agent accept");
    let done = soon("the page is done", told.recv()).await.unwrap();
    assert_eq!(done, "page-1 is done");
}

#[tokio::test]
async fn the_official_agent_asks_for_input_while_one_logs_in() {
    let project = InteropProject::new();
    let person = InteropClient::of_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT, "--auth"]).await;
    let login = connection.authenticate("form");
    soon("it answers", login).await.unwrap();
    {
        let asked = person.elicited.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert!(
            matches!(asked[0].scope, ElicitationScope::Request { .. }),
            "{asked:?}"
        );
    }
    connection.new_session(project.path()).await.unwrap();
}

#[tokio::test]
async fn our_client_sees_the_headings_of_the_official_agent_s_options() {
    let project = InteropProject::new();
    let person = InteropClient::of_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    session.thread().read(|thread| {
        let options = thread.config_options();
        let SessionConfigKind::Select(model) = &options[1].kind else {
            panic!("{options:?}")
        };
        let SessionConfigSelectOptions::Grouped(groups) = &model.options else {
            panic!("{model:?}")
        };
        let group = |at: usize| (groups[at].group.as_str(), groups[at].options.len());
        assert_eq!([group(0), group(1)], [("small ones", 1), ("large ones", 1)]);
        assert!(matches!(
            options[2].kind,
            SessionConfigKind::Boolean {
                current_value: false
            }
        ));
    });
}

#[tokio::test]
async fn our_agent_shows_the_official_client_a_page() {
    let client = their_client();
    let told = client.ours(&["ask-web"]).await;
    assert_eq!(told.ended("end_turn").one("form")["mode"], "url");
    assert_eq!(told.one("form")["url"], "https://example.com/page");
    assert_eq!(told.one("completed"), &json!({"elicitationId": "page-1"}));
    in_order(&told.outline(), &["message \"accept\""]);
}

#[tokio::test]
async fn our_agent_takes_a_boolean_option_of_the_official_client() {
    let client = their_client();
    let told = client.ours(&["--option", "loud=true", "settings"]).await;
    in_order(&told.outline(), &["message \"ask small true\""]);
    // Of another type.
    let told = client.ours(&["--option", "mode=true", "settings"]).await;
    told.failed(-32602);
}

#[tokio::test]
async fn acp_run_shows_a_whole_turn_of_the_official_agent() {
    let project = InteropProject::new();
    let run = async |args: &[&str], agent: &[&str]| {
        let args = [&["run", "--protocol", "2"], args, &["--"], agent].concat();
        project.run(acp(), args).await
    };
    let ended = run(&["--allow", "all", "work"], &[OFFICIAL_AGENT]).await;
    let ended = ended.code(0).shows(&[
        "First I look.",
        "Reading the note.",
        // It was called "Look" before, which is seen only if it is drawn in between.
        "Read note.txt (read)",
        "  one",
        "  two",
        "completed",
        "Shout (edit)",
        "-two",
        "+TWO",
        "completed",
        "Count (execute)",
        "Do",
        "ne.",
    ]);
    ended.shows_somewhere(&["| héllo", "exit code 3", "Wait (execute)", "SIGKILL"]);
    assert_eq!(project.read("note.txt"), "ONE\nTWO\n");
    // Nothing may be changed, and nothing was.
    project.write("note.txt", "one\ntwo\n");
    run(&["--allow", "reads", "work"], &[OFFICIAL_AGENT])
        .await
        .code(0)
        .shows(&["I was not allowed to."]);
    assert_eq!(project.read("note.txt"), "one\ntwo\n");
    let ended = run(&["--allow", "reads", "ask-command"], &[OFFICIAL_AGENT]).await;
    ended.code(0).shows(&["no"]);

    let ended = run(&["hello"], &[OFFICIAL_AGENT, "--auth"]).await;
    ended
        .code(1)
        .says(&["Authentication required", "acp login ", "# A key"]);
    let ended = run(&["fail"], &[OFFICIAL_AGENT]).await;
    ended
        .code(1)
        .says(&["agent error: the model is on holiday"]);
    run(&["refuse"], &[OFFICIAL_AGENT])
        .await
        .code(4)
        .says(&["refused"]);
    run(&["max-tokens"], &[OFFICIAL_AGENT]).await.code(5);
    let set = [
        "--mode",
        "code",
        "--set",
        "model=large",
        "--set",
        "loud=true",
    ];
    let args = [&set[..], &["--format", "quiet", "settings"]].concat();
    let ended = run(&args, &[OFFICIAL_AGENT]).await.code(0);
    assert_eq!(ended.stdout, "code large true\n");
}

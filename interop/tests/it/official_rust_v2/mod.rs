//! The official Rust SDK and our library as each other's peers, in the draft of version 2.
//!
//! `official-client-v2` and `official-agent-v2` are built on the official SDK, `our-agent` on our library;
//! `acp` is our command. Three more are the official SDK's own examples.

mod examples;
mod held_prompts;
mod negotiation;

use crate::common::version2::agent;
use crate::common::version2::client::OfficialClient;
use crate::common::{
    InteropClient, InteropProject, acp_program, assert_in_order, last_item_outline, run_prompt,
    with_timeout,
};
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
                    super::official_client().$test().await;
                }
            )*
        }
    };
}

our_client_and_their_agent! {
    check_full_turn,
    check_rejection,
    check_cancel_at_every_point,
    check_extensions_and_errors,
    check_stop_reasons,
    check_config_options,
    check_elicitation,
    check_stored_sessions,
    check_login,
}

their_client! {
    check_full_turn,
    check_rejection,
    check_cancel_at_every_point,
    check_extensions_and_errors,
    check_stop_reasons,
    check_elicitation,
    check_login_and_logout,
    check_stored_sessions,
    check_config_options,
    check_bundled_agent,
    check_bundled_agent_cancel,
}

fn official_client() -> OfficialClient<'static> {
    OfficialClient::new(&[OFFICIAL_CLIENT], OUR_AGENT)
}

#[tokio::test]
async fn official_agent_requests_a_command_permission_and_a_url() {
    let project = InteropProject::new();
    let mut person = InteropClient::for_version_2(&project);
    let mut told = person.listen();
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT]).await;
    let session = connection.new_session(project.path()).await.unwrap();
    run_prompt(&session, "ask-command").await.unwrap();
    assert_eq!(session.thread().read(last_item_outline), "agent yes");
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
    // The question did not create a tool call.
    assert_eq!(session.thread().read(|thread| thread.items().len()), 2);

    run_prompt(&session, "ask-web").await.unwrap();
    assert_eq!(session.thread().read(last_item_outline), "agent accept");
    let done = with_timeout("the page is done", told.recv()).await.unwrap();
    assert_eq!(done, "page-1 is done");
}

#[tokio::test]
async fn official_agent_elicits_input_during_login() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (connection, _process) = person.start(&project, &[OFFICIAL_AGENT, "--auth"]).await;
    let login = connection.authenticate("form");
    with_timeout("it answers", login).await.unwrap();
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
async fn our_client_sees_the_option_groups_of_the_official_agent() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
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
async fn our_agent_elicits_a_url_from_the_official_client() {
    let client = official_client();
    let told = client.run_with_our_agent(&["ask-web"]).await;
    assert_eq!(
        told.expect_stop_reason("end_turn").one_of_type("form")["mode"],
        "url"
    );
    assert_eq!(told.one_of_type("form")["url"], "https://example.com/page");
    assert_eq!(
        told.one_of_type("completed"),
        &json!({"elicitationId": "page-1"})
    );
    assert_in_order(&told.outline(), &["message \"accept\""]);
}

#[tokio::test]
async fn our_agent_accepts_a_boolean_option_from_the_official_client() {
    let client = official_client();
    let told = client
        .run_with_our_agent(&["--option", "loud=true", "settings"])
        .await;
    assert_in_order(&told.outline(), &["message \"ask small true\""]);
    // The value has the wrong type.
    let told = client
        .run_with_our_agent(&["--option", "mode=true", "settings"])
        .await;
    told.expect_error_code(-32602);
}

#[tokio::test]
async fn acp_run_shows_a_full_turn_of_the_official_agent() {
    let project = InteropProject::new();
    let run = async |args: &[&str], agent: &[&str]| {
        let args = [&["run", "--protocol", "2"], args, &["--"], agent].concat();
        project.run_program(acp_program(), args).await
    };
    let ended = run(&["--allow", "all", "work"], &[OFFICIAL_AGENT]).await;
    let ended = ended.expect_code(0).expect_stdout(&[
        "First I look.",
        "Reading the note.",
        // The earlier title was "Look", which is visible only if the call is drawn in between.
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
    ended.assert_shown_anywhere(&["| héllo", "exit code 3", "Wait (execute)", "SIGKILL"]);
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
    // Changes are not allowed, and nothing was changed.
    project.write_file("note.txt", "one\ntwo\n");
    run(&["--allow", "reads", "work"], &[OFFICIAL_AGENT])
        .await
        .expect_code(8)
        .expect_stdout(&["I was not allowed to."]);
    assert_eq!(project.read_file("note.txt"), "one\ntwo\n");
    let ended = run(&["--allow", "reads", "ask-command"], &[OFFICIAL_AGENT]).await;
    ended.expect_code(8).expect_stdout(&["no"]);

    let ended = run(&["hello"], &[OFFICIAL_AGENT, "--auth"]).await;
    ended
        .expect_code(1)
        .expect_stderr(&["Authentication required", "acp login ", "# A key"]);
    let ended = run(&["fail"], &[OFFICIAL_AGENT]).await;
    ended
        .expect_code(1)
        .expect_stderr(&["agent error: the model is on holiday"]);
    run(&["refuse"], &[OFFICIAL_AGENT])
        .await
        .expect_code(4)
        .expect_stderr(&["refused"]);
    run(&["max-tokens"], &[OFFICIAL_AGENT]).await.expect_code(5);
    let set = [
        "--mode",
        "code",
        "--set",
        "model=large",
        "--set",
        "loud=true",
    ];
    let args = [&set[..], &["--format", "quiet", "settings"]].concat();
    let ended = run(&args, &[OFFICIAL_AGENT]).await.expect_code(0);
    assert_eq!(ended.stdout, "code large true\n");
}

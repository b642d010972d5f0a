//! Tests of the draft of version 2 with the official client and agent.

use serde_json::json;

use crate::common::typescript::TypeScriptPrograms;
use crate::common::version2::agent;
use crate::common::version2::client::OfficialClient;
use crate::common::{acp_program, assert_in_order, run_prompt};
use crate::official_typescript::{OUR_AGENT, TypeScriptFixture};

/// Returns the command of the official client or agent, or `None` if it cannot be run.
fn installed_program(file: &str) -> Option<[String; 2]> {
    let programs = TypeScriptPrograms::find_installed()?;
    Some(["node".to_owned(), programs.program(file)])
}

/// Defines a test of our client with the official agent.
macro_rules! our_client_and_their_agent {
    ($($test:ident),* $(,)?) => {
        mod our_client_and_their_agent {
            $(
                #[tokio::test]
                async fn $test() {
                    let Some([node, agent]) = super::installed_program("official-agent-v2.mjs") else {
                        return;
                    };
                    super::agent::$test(&[&node, &agent]).await;
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
                    let Some([node, client]) = super::installed_program("official-client-v2.mjs") else {
                        return;
                    };
                    let client: [&str; 2] = [&node, &client];
                    super::OfficialClient::new(&client, super::OUR_AGENT).$test().await;
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

#[tokio::test]
async fn official_client_and_agent_complete_a_turn_together() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let [[_, client], [_, agent]] = ["official-client-v2.mjs", "official-agent-v2.mjs"]
        .map(|file| installed_program(file).unwrap());
    let told = official
        .project
        .run_client(&["node", &client], &["work"], &["node", &agent])
        .await;
    told.expect_stop_reason("end_turn");
    assert_eq!(told.one_of_type("initialized")["protocolVersion"], 2);
    assert_eq!(official.project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn acp_run_shows_a_full_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let [node, agent] = installed_program("official-agent-v2.mjs").unwrap();
    let args = ["run", "--protocol", "2", "--allow", "all", "work", "--"];
    let args = args.into_iter().chain([node.as_str(), agent.as_str()]);
    let ended = official.project.run_program(acp_program(), args).await;
    let ended = ended.expect_code(0).expect_stdout(&[
        "First I look.",
        "Reading the note.",
        // The earlier title was "Look", which is visible only if the call is drawn in between.
        "Read note.txt (read)",
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
    assert_eq!(official.project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn single_version_agent_rejects_the_other_version() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    // The official agent speaks only version 2.
    let [_, agent] = installed_program("official-agent-v2.mjs").unwrap();
    let told = official.run_client(&["hello"], &["node", &agent]).await;
    let refused = told.expect_error_code(-32022).one_of_type("error");
    assert_eq!(refused["data"], json!({"requested": 1, "supported": [2]}));
    let run = ["run", "hello", "--", "node", &agent];
    let ended = official.project.run_program(acp_program(), run).await;
    ended
        .expect_code(3)
        .expect_stderr(&["the agent speaks version 2", "use --protocol 2"]);
    // The official agent speaks only version 1.
    let person = crate::common::InteropClient::for_version_2(&official.project);
    let (connection, _process) = official.start(&person, &[]).await;
    assert_eq!(connection.version(), acp::v1::ProtocolVersion::V1);
    let project = &official.project;
    let session = connection.new_session(project.path()).await.unwrap();
    run_prompt(&session, "work").await.unwrap();
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn dual_version_agent_speaks_the_requested_version() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let [_, agent] = installed_program("official-agent-v2.mjs").unwrap();
    let [_, example] =
        installed_program("node_modules/sdk-with-examples/dist/examples/dual-version-agent.js")
            .unwrap();
    let told = official
        .run_client(&["hello"], &["node", &agent, "--both"])
        .await;
    assert_in_order(&told.outline(), &["message \"hello, in version 1\""]);
    let run = async |version, agent: &[&str]| {
        let args = [
            "run",
            "--protocol",
            version,
            "--format",
            "quiet",
            "hello",
            "--",
        ];
        let args = args.iter().chain(agent);
        official
            .project
            .run_program(acp_program(), args)
            .await
            .expect_code(0)
            .stdout
    };
    let both = ["node", &agent, "--both"];
    assert_eq!(run("1", &both).await, "hello, in version 1\n");
    assert_eq!(run("2", &both).await, "hello\n");
    let example = ["node", &*example];
    assert_eq!(
        run("1", &example).await,
        "Hello from the v1 implementation.\n"
    );
    assert_eq!(
        run("2", &example).await,
        "Hello from the v2 implementation.\n"
    );
}

#[tokio::test]
async fn version_1_client_works_with_our_dual_version_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .run_client(&["work"], &[OUR_AGENT, "--protocol", "2"])
        .await;
    assert_eq!(told.outline(), crate::common::WORK_OUTLINE);
    assert_eq!(told.one_of_type("initialized")["protocolVersion"], 1);
}

//! The draft of version 2 with the official client and agent.

use serde_json::json;

use crate::common::typescript::TypeScriptPrograms;
use crate::common::version2::agent;
use crate::common::version2::client::OfficialClient;
use crate::common::{acp, in_order, prompt};
use crate::official_typescript::{OUR_AGENT, TypeScriptFixture};

/// Returns the command of the official client or agent, or `None` if it cannot be run.
fn program(file: &str) -> Option<[String; 2]> {
    let programs = TypeScriptPrograms::installed()?;
    Some(["node".to_owned(), programs.program(file)])
}

/// Defines a test of our client with the official agent.
macro_rules! our_client_and_their_agent {
    ($($test:ident),* $(,)?) => {
        mod our_client_and_their_agent {
            $(
                #[tokio::test]
                async fn $test() {
                    let Some([node, agent]) = super::program("official-agent-v2.mjs") else {
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
                    let Some([node, client]) = super::program("official-client-v2.mjs") else {
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

#[tokio::test]
async fn the_official_client_and_agent_complete_a_turn_with_each_other() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let [[_, client], [_, agent]] =
        ["official-client-v2.mjs", "official-agent-v2.mjs"].map(|file| program(file).unwrap());
    let told = official
        .project
        .client(&["node", &client], &["work"], &["node", &agent])
        .await;
    told.ended("end_turn");
    assert_eq!(told.one("initialized")["protocolVersion"], 2);
    assert_eq!(official.project.read("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn acp_run_shows_a_whole_turn_of_the_official_agent() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let [node, agent] = program("official-agent-v2.mjs").unwrap();
    let args = ["run", "--protocol", "2", "--allow", "all", "work", "--"];
    let args = args.into_iter().chain([node.as_str(), agent.as_str()]);
    let ended = official.project.run(acp(), args).await;
    let ended = ended.code(0).shows(&[
        "First I look.",
        "Reading the note.",
        // It was called "Look" before, which is seen only if it is drawn in between.
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
    ended.shows_somewhere(&["| héllo", "exit code 3", "Wait (execute)", "SIGKILL"]);
    assert_eq!(official.project.read("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn an_agent_of_one_version_is_asked_for_the_other() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    // Theirs speaks version 2 alone.
    let [_, agent] = program("official-agent-v2.mjs").unwrap();
    let told = official.client(&["hello"], &["node", &agent]).await;
    let refused = told.failed(-32022).one("error");
    assert_eq!(refused["data"], json!({"requested": 1, "supported": [2]}));
    let run = ["run", "hello", "--", "node", &agent];
    let ended = official.project.run(acp(), run).await;
    ended
        .code(3)
        .says(&["the agent speaks version 2", "use --protocol 2"]);
    // Theirs speaks version 1 alone.
    let person = crate::common::InteropClient::of_version_2(&official.project);
    let (connection, _process) = official.start(&person, &[]).await;
    assert_eq!(connection.version(), acp::v1::ProtocolVersion::V1);
    let project = &official.project;
    let session = connection.new_session(project.path()).await.unwrap();
    prompt(&session, "work").await.unwrap();
    assert_eq!(project.read("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn an_agent_of_both_versions_speaks_the_one_it_is_asked_for() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let [_, agent] = program("official-agent-v2.mjs").unwrap();
    let [_, example] =
        program("node_modules/sdk-with-examples/dist/examples/dual-version-agent.js").unwrap();
    let told = official
        .client(&["hello"], &["node", &agent, "--both"])
        .await;
    in_order(&told.outline(), &["message \"hello, in version 1\""]);
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
        official.project.run(acp(), args).await.code(0).stdout
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
async fn their_client_of_version_1_finds_an_agent_of_ours_that_speaks_both() {
    let Some(official) = TypeScriptFixture::new() else {
        return;
    };
    let told = official
        .client(&["work"], &[OUR_AGENT, "--protocol", "2"])
        .await;
    assert_eq!(told.outline(), crate::common::WORK);
    assert_eq!(told.one("initialized")["protocolVersion"], 1);
}

//! `acp bridge` between peers on the official SDKs that speak different versions: the SDKs' own examples where
//! possible, and otherwise our programs on the SDKs.

use crate::common::typescript::TypeScriptPrograms;
use crate::common::{InteropProject, acp_program};

const OFFICIAL_AGENT: &str = env!("CARGO_BIN_EXE_official-agent");
const OFFICIAL_AGENT_V2: &str = env!("CARGO_BIN_EXE_official-agent-v2");
const EXAMPLE_AGENT_V2: &str = env!("CARGO_BIN_EXE_official-simple-agent-v2");
const EXAMPLE_CLIENT: &str = env!("CARGO_BIN_EXE_official-yolo");
const EXAMPLE_CLIENT_V2: &str = env!("CARGO_BIN_EXE_official-one-shot-v2");
const OFFICIAL_CLIENT_V2: &str = env!("CARGO_BIN_EXE_official-client-v2");

/// Returns the command of the bridge in the form that the example clients expect.
fn bridge_command(to: &str, agent: &[&str]) -> String {
    let agent: Vec<String> = agent.iter().map(|word| format!("'{word}'")).collect();
    format!(
        "'{}' bridge --to {to} -- {}",
        acp_program(),
        agent.join(" ")
    )
}

/// Returns the version 1 example agent that calls tools and requests permission.
fn example_agent_command() -> Option<String> {
    let programs = TypeScriptPrograms::find_installed()?;
    Some(programs.program("node_modules/sdk-with-examples/dist/examples/agent.js"))
}

/// The version 2 example client rejects everything.
#[tokio::test]
async fn version_1_example_agent_and_version_2_example_client_complete_a_turn() {
    let Some(agent) = example_agent_command() else {
        return;
    };
    let project = InteropProject::new();
    let bridge = bridge_command("2", &["node", &agent]);
    let ended = project
        .run_program(EXAMPLE_CLIENT_V2, ["--command", &bridge, "Hello"])
        .await;
    ended
        .expect_code(0)
        .expect_stdout(&[
            "I'll help you with that.",
            "Now I understand the project structure.",
            "I understand you prefer not to make that change.",
        ])
        .expect_stderr(&[
            "Prompt accepted",
            "Agent requested permission; rejecting it once",
            "Session is idle: Some(EndTurn)",
        ]);
}

#[tokio::test]
async fn version_2_client_sees_a_full_turn_of_the_example_agent() {
    let Some(agent) = example_agent_command() else {
        return;
    };
    let project = InteropProject::new();
    let args = [
        "--",
        acp_program(),
        "bridge",
        "--to",
        "2",
        "--",
        "node",
        &agent,
    ];
    let ended = project
        .run_program(OFFICIAL_CLIENT_V2, ["Hello"].iter().chain(&args))
        .await;
    ended.expect_code(0).expect_stdout(&[
        "Reading project files",
        "Modifying critical configuration file",
        "Perfect! I've successfully updated the configuration.",
        "end_turn",
    ]);
}

/// The version 1 example client allows everything.
#[tokio::test]
async fn version_1_example_client_completes_a_turn_with_a_version_2_agent() {
    let project = InteropProject::new();
    let agent = bridge_command("1", &[OFFICIAL_AGENT_V2]);
    let ended = project
        .run_program(EXAMPLE_CLIENT, ["--command", &agent, "work"])
        .await;
    ended
        .expect_code(0)
        .expect_stdout(&["ToolCall(", "Completed", "AgentMessageChunk"])
        .expect_stderr(&["Auto-approving", "Stop reason: EndTurn"]);
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn version_1_example_client_gets_messages_of_the_version_2_example_agent() {
    let project = InteropProject::new();
    let agent = bridge_command("1", &[EXAMPLE_AGENT_V2]);
    let ended = project
        .run_program(EXAMPLE_CLIENT, ["--command", &agent, "hello"])
        .await;
    ended
        .expect_code(0)
        .expect_stdout(&["Echo: hello"])
        .expect_stderr(&["Stop reason: EndTurn"]);
}

/// Two bridges in a row translate to the other version and back.
#[tokio::test]
async fn version_1_agent_behind_two_bridges_is_unchanged() {
    let project = InteropProject::new();
    let there = [
        "bridge",
        "--to",
        "1",
        "--",
        acp_program(),
        "bridge",
        "--to",
        "2",
        "--",
    ];
    let agent: Vec<&str> = [acp_program()]
        .into_iter()
        .chain(there)
        .chain([OFFICIAL_AGENT])
        .collect();
    let asks = ["run", "--allow", "all", "settings", "--"];
    let direct = project
        .run_program(acp_program(), asks.iter().chain(&[OFFICIAL_AGENT]))
        .await
        .expect_code(0);
    let bridged = project
        .run_program(acp_program(), asks.iter().chain(&agent))
        .await
        .expect_code(0);
    assert_eq!(bridged.stdout, direct.stdout);
}

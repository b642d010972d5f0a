//! `acp bridge` between peers on the official SDKs that speak different versions: the SDKs' own examples where
//! possible, and otherwise our programs on the SDKs.

use crate::common::typescript::TypeScriptPrograms;
use crate::common::{InteropProject, acp};

const OFFICIAL_AGENT: &str = env!("CARGO_BIN_EXE_official-agent");
const OFFICIAL_AGENT_V2: &str = env!("CARGO_BIN_EXE_official-agent-v2");
const EXAMPLE_AGENT_V2: &str = env!("CARGO_BIN_EXE_official-simple-agent-v2");
const EXAMPLE_CLIENT: &str = env!("CARGO_BIN_EXE_official-yolo");
const EXAMPLE_CLIENT_V2: &str = env!("CARGO_BIN_EXE_official-one-shot-v2");
const OFFICIAL_CLIENT_V2: &str = env!("CARGO_BIN_EXE_official-client-v2");

/// Returns the command of the bridge in the form that the example clients expect.
fn bridge(to: &str, agent: &[&str]) -> String {
    let agent: Vec<String> = agent.iter().map(|word| format!("'{word}'")).collect();
    format!("'{}' bridge --to {to} -- {}", acp(), agent.join(" "))
}

/// Returns the version 1 example agent that calls tools and requests permission.
fn example_agent() -> Option<String> {
    let programs = TypeScriptPrograms::installed()?;
    Some(programs.program("node_modules/sdk-with-examples/dist/examples/agent.js"))
}

/// The version 2 example client rejects everything.
#[tokio::test]
async fn the_example_agent_of_version_1_and_the_example_client_of_version_2_complete_a_turn() {
    let Some(agent) = example_agent() else { return };
    let project = InteropProject::new();
    let bridge = bridge("2", &["node", &agent]);
    let ended = project
        .run(EXAMPLE_CLIENT_V2, ["--command", &bridge, "Hello"])
        .await;
    ended
        .code(0)
        .shows(&[
            "I'll help you with that.",
            "Now I understand the project structure.",
            "I understand you prefer not to make that change.",
        ])
        .says(&[
            "Prompt accepted",
            "Agent requested permission; rejecting it once",
            "Session is idle: Some(EndTurn)",
        ]);
}

#[tokio::test]
async fn a_client_of_version_2_that_says_yes_sees_the_whole_turn_of_the_example_agent() {
    let Some(agent) = example_agent() else { return };
    let project = InteropProject::new();
    let args = ["--", acp(), "bridge", "--to", "2", "--", "node", &agent];
    let ended = project
        .run(OFFICIAL_CLIENT_V2, ["Hello"].iter().chain(&args))
        .await;
    ended.code(0).shows(&[
        "Reading project files",
        "Modifying critical configuration file",
        "Perfect! I've successfully updated the configuration.",
        "end_turn",
    ]);
}

/// The version 1 example client allows everything.
#[tokio::test]
async fn the_example_client_of_version_1_completes_a_turn_with_an_agent_of_version_2() {
    let project = InteropProject::new();
    let agent = bridge("1", &[OFFICIAL_AGENT_V2]);
    let ended = project
        .run(EXAMPLE_CLIENT, ["--command", &agent, "work"])
        .await;
    ended
        .code(0)
        .shows(&["ToolCall(", "Completed", "AgentMessageChunk"])
        .says(&["Auto-approving", "Stop reason: EndTurn"]);
    assert_eq!(project.read("note.txt"), "ONE\nTWO\n");
}

#[tokio::test]
async fn the_example_client_of_version_1_hears_the_example_agent_of_version_2() {
    let project = InteropProject::new();
    let agent = bridge("1", &[EXAMPLE_AGENT_V2]);
    let ended = project
        .run(EXAMPLE_CLIENT, ["--command", &agent, "hello"])
        .await;
    ended
        .code(0)
        .shows(&["Echo: hello"])
        .says(&["Stop reason: EndTurn"]);
}

/// Two bridges in a row translate to the other version and back.
#[tokio::test]
async fn an_agent_of_version_1_behind_two_bridges_is_one_of_version_1() {
    let project = InteropProject::new();
    let there = [
        "bridge",
        "--to",
        "1",
        "--",
        acp(),
        "bridge",
        "--to",
        "2",
        "--",
    ];
    let agent: Vec<&str> = [acp()]
        .into_iter()
        .chain(there)
        .chain([OFFICIAL_AGENT])
        .collect();
    let asks = ["run", "--allow", "all", "settings", "--"];
    let direct = project
        .run(acp(), asks.iter().chain(&[OFFICIAL_AGENT]))
        .await
        .code(0);
    let bridged = project.run(acp(), asks.iter().chain(&agent)).await.code(0);
    assert_eq!(bridged.stdout, direct.stdout);
}

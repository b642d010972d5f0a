//! Runs `acp check` on peers, records a run of each, and checks the trace with `acp trace lint`.
//!
//! `interop/conformance/PEER.txt` lists the expected findings for a peer, and `docs/conformance-results.md` explains
//! them. The test fails if a finding is new, if an expected finding is missing, or if the document does not contain it.

#[path = "conformance/peer.rs"]
mod peer;

use crate::common::example_program;
use crate::common::typescript::TypeScriptPrograms;
use peer::ConformancePeer;

const EXAMPLES_DIRECTORY: &str = "node_modules/sdk-with-examples/dist/examples";

/// A script for the example client. The client starts its agent with `npx` and asks on stdin. The script always chooses
/// the first option.
const EXAMPLE_CLIENT_SCRIPT: &str = r#"
mkdir .bin && printf '#!/bin/sh\nexec %s\n' "$1" >.bin/npx && chmod +x .bin/npx || exit 1
yes 1 | PATH="$PWD/.bin:$PATH" node "$0"
"#;

/// The prompts that make our programs on the official SDKs do a task.
const TASK_ARGS: [&str; 4] = ["--prompt-for", "answer=hello", "--prompt-for", "long=wait"];

#[tokio::test]
async fn rust_example_agent_conforms_as_documented() {
    ConformancePeer::agent(
        "rust-example-agent",
        [env!("CARGO_BIN_EXE_official-simple-agent")],
    )
    .check()
    .await;
}

#[tokio::test]
async fn rust_v2_example_agent_conforms_as_documented() {
    let agent = env!("CARGO_BIN_EXE_official-simple-agent-v2");
    let peer = ConformancePeer::agent("rust-example-agent-v2", [agent]).with_version_2();
    peer.check().await;
    peer.lint_turn("hello", &[]).await;
}

#[tokio::test]
async fn rust_sdk_agent_conforms_as_documented() {
    let agent = env!("CARGO_BIN_EXE_official-agent");
    let peer = ConformancePeer::agent("rust-agent", [agent, "--store", "store.json"])
        .with_options(&TASK_ARGS);
    peer.check().await;
    // The agent deliberately tests whether a released terminal is gone.
    peer.lint_turn("work", &["terminal-after-release"]).await;
}

#[tokio::test]
async fn rust_sdk_v2_agent_conforms_as_documented() {
    let agent = env!("CARGO_BIN_EXE_official-agent-v2");
    let peer = ConformancePeer::agent("rust-agent-v2", [agent, "--store", "store.json"]);
    let peer = peer.with_version_2().with_options(&TASK_ARGS);
    peer.check().await;
    peer.lint_turn("work", &[]).await;
}

#[tokio::test]
async fn typescript_example_agent_conforms_as_documented() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let agent = programs.bundled_program(&format!("{EXAMPLES_DIRECTORY}/agent.js"));
    // Its turns take seconds, because it sleeps. Many of them start at the same time, so a start may take long on a busy
    // machine.
    let peer = ConformancePeer::agent("typescript-example-agent", ["node", &agent])
        .with_jobs(24)
        .with_options(&["--timeout", "30"]);
    peer.check().await;
    peer.lint_turn("hello", &[]).await;
}

#[tokio::test]
async fn typescript_sdk_agent_conforms_as_documented() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let agent = programs.bundled_program("official-agent.mjs");
    let peer = ConformancePeer::agent(
        "typescript-agent",
        ["node", &agent, "--store", "store.json"],
    );
    let peer = peer.with_options(&TASK_ARGS);
    peer.check().await;
    peer.lint_turn("work", &["terminal-after-release"]).await;
}

#[tokio::test]
async fn typescript_sdk_v2_agent_conforms_as_documented() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let agent = programs.bundled_program("official-agent-v2.mjs");
    let command = ["node", &agent, "--store", "store.json"];
    let peer = ConformancePeer::agent("typescript-agent-v2", command);
    let peer = peer.with_version_2().with_options(&TASK_ARGS);
    peer.check().await;
    peer.lint_turn("work", &[]).await;
}

#[tokio::test]
async fn our_example_agent_conforms_as_documented() {
    let peer = ConformancePeer::agent("our-example-agent", [example_program("agent")]);
    peer.check().await;
    peer.lint_turn("hello", &[]).await;
}

/// The existing sessions of this agent are made up, in both versions.
#[tokio::test]
async fn our_v2_agent_conforms_as_documented() {
    let agent = env!("CARGO_BIN_EXE_our-agent");
    let peer = ConformancePeer::agent("our-agent-v2", [agent, "--protocol", "2"]);
    let peer = peer
        .with_version_2()
        .with_options(&TASK_ARGS)
        .with_options(&["--protocol", "2"]);
    peer.check().await;
    peer.lint_turn("work", &[]).await;
}

#[tokio::test]
async fn rust_example_client_conforms_as_documented() {
    let client = env!("CARGO_BIN_EXE_official-yolo");
    let peer = ConformancePeer::client(
        "rust-example-client",
        [client, "--command", "{agent-line}", "hello"],
    );
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn rust_v2_example_client_conforms_as_documented() {
    let client = env!("CARGO_BIN_EXE_official-one-shot-v2");
    let command = [client, "--command", "{agent-line}", "hello"];
    let peer = ConformancePeer::client("rust-example-client-v2", command).with_version_2();
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn rust_sdk_client_conforms_as_documented() {
    let client = env!("CARGO_BIN_EXE_official-client");
    let peer = ConformancePeer::client("rust-client", [client, "hello", "--", "{agent}"]);
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn rust_sdk_v2_client_conforms_as_documented() {
    let client = env!("CARGO_BIN_EXE_official-client-v2");
    let peer = ConformancePeer::client("rust-client-v2", [client, "hello", "--", "{agent}"])
        .with_version_2();
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn typescript_example_client_conforms_as_documented() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let client = programs.bundled_program(&format!("{EXAMPLES_DIRECTORY}/client.js"));
    let command = ["sh", "-c", EXAMPLE_CLIENT_SCRIPT, &client, "{agent-line}"];
    let peer = ConformancePeer::client("typescript-example-client", command);
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn typescript_sdk_client_conforms_as_documented() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let client = programs.bundled_program("official-client.mjs");
    let peer = ConformancePeer::client(
        "typescript-client",
        ["node", &client, "hello", "--", "{agent}"],
    );
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn typescript_sdk_v2_client_conforms_as_documented() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let client = programs.bundled_program("official-client-v2.mjs");
    let command = ["node", &client, "hello", "--", "{agent}"];
    let peer = ConformancePeer::client("typescript-client-v2", command).with_version_2();
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

#[tokio::test]
async fn our_example_client_conforms_as_documented() {
    let peer = ConformancePeer::client(
        "our-example-client",
        [&example_program("client"), "hello", "{agent}"],
    );
    peer.check().await;
    peer.lint_turn_of_our_agent(&[]).await;
}

/// Requires that `docs/conformance-results.md` lists each expected finding.
#[test]
fn every_finding_is_documented() {
    let document = peer::read_document();
    for (peer, ids) in peer::all_expected_failures() {
        let row = format!("| `{peer}` |");
        assert!(
            document.contains(&row),
            "docs/conformance-results.md has no row of {peer}"
        );
        for id in ids {
            assert!(
                document.contains(&format!("`{id}`")),
                "docs/conformance-results.md says nothing of {id}, which {peer} fails"
            );
        }
    }
}

//! Runs `acp check` on peers, records a run of each, and checks the trace with `acp trace lint`.
//!
//! What the suite finds in a peer is in `interop/conformance/PEER.txt`, and explained in
//! `docs/conformance-results.md`. A finding that is new fails the test, and so does one that is none any more, and a
//! document that does not have them.

#[path = "conformance/peer.rs"]
mod peer;

use crate::common::example;
use crate::common::typescript::TypeScriptPrograms;
use peer::ConformancePeer;

const EXAMPLES: &str = "node_modules/sdk-with-examples/dist/examples";

/// A script for the example client. It starts its agent by `npx` and asks on stdin, where the script always chooses the
/// first option.
const EXAMPLE_CLIENT: &str = r#"
mkdir .bin && printf '#!/bin/sh\nexec %s\n' "$1" >.bin/npx && chmod +x .bin/npx || exit 1
yes 1 | PATH="$PWD/.bin:$PATH" node "$0"
"#;

/// The prompts that make our programs on the official SDKs do a task.
const TASKS: [&str; 4] = ["--prompt-for", "answer=hello", "--prompt-for", "long=wait"];

#[tokio::test]
async fn the_rust_example_agent() {
    ConformancePeer::agent(
        "rust-example-agent",
        [env!("CARGO_BIN_EXE_official-simple-agent")],
    )
    .checked()
    .await;
}

#[tokio::test]
async fn the_rust_example_agent_of_version_2() {
    let agent = env!("CARGO_BIN_EXE_official-simple-agent-v2");
    let peer = ConformancePeer::agent("rust-example-agent-v2", [agent]).version_2();
    peer.checked().await;
    peer.linted("hello", &[]).await;
}

#[tokio::test]
async fn an_agent_on_the_rust_sdk() {
    let agent = env!("CARGO_BIN_EXE_official-agent");
    let peer = ConformancePeer::agent("rust-agent", [agent, "--store", "store.json"]).told(&TASKS);
    peer.checked().await;
    // It tries on purpose whether a released terminal is gone.
    peer.linted("work", &["terminal-after-release"]).await;
}

#[tokio::test]
async fn an_agent_on_the_rust_sdk_of_version_2() {
    let agent = env!("CARGO_BIN_EXE_official-agent-v2");
    let peer = ConformancePeer::agent("rust-agent-v2", [agent, "--store", "store.json"]);
    let peer = peer.version_2().told(&TASKS);
    peer.checked().await;
    peer.linted("work", &[]).await;
}

#[tokio::test]
async fn an_example_agent_on_the_typescript_sdk() {
    let Some(programs) = TypeScriptPrograms::installed() else {
        return;
    };
    let agent = programs.program(&format!("{EXAMPLES}/agent.js"));
    // Its turns take seconds, in which it does nothing.
    let peer = ConformancePeer::agent("typescript-example-agent", ["node", &agent]).at_once(24);
    peer.checked().await;
    peer.linted("hello", &[]).await;
}

#[tokio::test]
async fn an_agent_on_the_typescript_sdk() {
    let Some(programs) = TypeScriptPrograms::installed() else {
        return;
    };
    let agent = programs.program("official-agent.mjs");
    let peer = ConformancePeer::agent(
        "typescript-agent",
        ["node", &agent, "--store", "store.json"],
    );
    let peer = peer.told(&TASKS);
    peer.checked().await;
    peer.linted("work", &["terminal-after-release"]).await;
}

#[tokio::test]
async fn an_agent_on_the_typescript_sdk_of_version_2() {
    let Some(programs) = TypeScriptPrograms::installed() else {
        return;
    };
    let agent = programs.program("official-agent-v2.mjs");
    let command = ["node", &agent, "--store", "store.json"];
    let peer = ConformancePeer::agent("typescript-agent-v2", command);
    let peer = peer.version_2().told(&TASKS);
    peer.checked().await;
    peer.linted("work", &[]).await;
}

#[tokio::test]
async fn our_example_agent() {
    let peer = ConformancePeer::agent("our-example-agent", [example("agent")]);
    peer.checked().await;
    peer.linted("hello", &[]).await;
}

/// Its existing sessions are invented, in both versions.
#[tokio::test]
async fn our_agent_of_version_2() {
    let agent = env!("CARGO_BIN_EXE_our-agent");
    let peer = ConformancePeer::agent("our-agent-v2", [agent, "--protocol", "2"]);
    let peer = peer.version_2().told(&TASKS).told(&["--protocol", "2"]);
    peer.checked().await;
    peer.linted("work", &[]).await;
}

#[tokio::test]
async fn the_rust_example_client() {
    let client = env!("CARGO_BIN_EXE_official-yolo");
    let peer = ConformancePeer::client(
        "rust-example-client",
        [client, "--command", "{agent-line}", "hello"],
    );
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn the_rust_example_client_of_version_2() {
    let client = env!("CARGO_BIN_EXE_official-one-shot-v2");
    let command = [client, "--command", "{agent-line}", "hello"];
    let peer = ConformancePeer::client("rust-example-client-v2", command).version_2();
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn a_client_on_the_rust_sdk() {
    let client = env!("CARGO_BIN_EXE_official-client");
    let peer = ConformancePeer::client("rust-client", [client, "hello", "--", "{agent}"]);
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn a_client_on_the_rust_sdk_of_version_2() {
    let client = env!("CARGO_BIN_EXE_official-client-v2");
    let peer =
        ConformancePeer::client("rust-client-v2", [client, "hello", "--", "{agent}"]).version_2();
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn the_typescript_example_client() {
    let Some(programs) = TypeScriptPrograms::installed() else {
        return;
    };
    let client = programs.program(&format!("{EXAMPLES}/client.js"));
    let command = ["sh", "-c", EXAMPLE_CLIENT, &client, "{agent-line}"];
    let peer = ConformancePeer::client("typescript-example-client", command);
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn a_client_on_the_typescript_sdk() {
    let Some(programs) = TypeScriptPrograms::installed() else {
        return;
    };
    let client = programs.program("official-client.mjs");
    let peer = ConformancePeer::client(
        "typescript-client",
        ["node", &client, "hello", "--", "{agent}"],
    );
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn a_client_on_the_typescript_sdk_of_version_2() {
    let Some(programs) = TypeScriptPrograms::installed() else {
        return;
    };
    let client = programs.program("official-client-v2.mjs");
    let command = ["node", &client, "hello", "--", "{agent}"];
    let peer = ConformancePeer::client("typescript-client-v2", command).version_2();
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

#[tokio::test]
async fn our_example_client() {
    let peer = ConformancePeer::client(
        "our-example-client",
        [&example("client"), "hello", "{agent}"],
    );
    peer.checked().await;
    peer.linted_with_our_agent(&[]).await;
}

/// Requires that the page lists each expected finding.
#[test]
fn the_document_has_every_finding() {
    let document = peer::document();
    for (peer, ids) in peer::all_expected() {
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

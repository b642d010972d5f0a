//! Negotiation between sides that support different versions.

use acp::v1::{ProtocolVersion, StopReason};
use acp::{Error, Thread, jsonrpc};
use serde_json::json;

use crate::common::{InteropClient, InteropProject, WORK, acp, in_order, last, prompt};
use crate::official_rust_v2::{OFFICIAL_AGENT, OFFICIAL_CLIENT, OUR_AGENT};

/// An agent that supports only version 1.
const AGENT_OF_VERSION_1: &str = env!("CARGO_BIN_EXE_official-agent");
const EXAMPLE_OF_VERSION_1: &str = env!("CARGO_BIN_EXE_official-yolo");

#[tokio::test]
async fn our_client_of_both_versions_speaks_version_1_with_an_agent_that_knows_no_other() {
    let project = InteropProject::new();
    let person = InteropClient::of_version_2(&project);
    let (agent, _process) = person.start(&project, &[AGENT_OF_VERSION_1]).await;
    assert_eq!(agent.version(), ProtocolVersion::V1);
    assert_eq!(agent.info().unwrap().name, "official-agent");
    let session = agent.new_session(project.path()).await.unwrap();
    // With files and terminals of the client's.
    assert_eq!(prompt(&session, "work").await.unwrap(), StopReason::EndTurn);
    assert_eq!(project.read("note.txt"), "ONE\nTWO\n");
    assert_eq!(session.thread().read(last), "agent  Done.");

    let run = ["run", "--protocol", "2", "hello", "--", AGENT_OF_VERSION_1];
    let ended = project.run(acp(), run).await.code(0);
    assert_eq!(ended.stdout, "hello\n");
}

#[tokio::test]
async fn our_agents_of_both_versions_speak_version_1_with_clients_that_know_no_other() {
    let project = InteropProject::new();
    let agent = [OUR_AGENT, "--protocol", "2"];
    let told = project.official_client(&["work"], &agent).await;
    assert_eq!(told.outline(), WORK);
    assert_eq!(told.one("initialized")["protocolVersion"], 1);
    assert!(told.one("initialized").get("info").is_none());

    let bundled = [acp(), "agent", "--protocol", "2"];
    let told = project
        .official_client(&["/run echo hello"], &bundled)
        .await;
    in_order(&told.outline(), &["create sh", "release terminal-0"]);
    let command = format!("'{}' agent --protocol 2", acp());
    let args = ["--command", &command, "/read note.txt"];
    let ended = project.run(EXAMPLE_OF_VERSION_1, args).await;
    ended.code(0).says(&["Stop reason: EndTurn"]);
}

#[tokio::test]
async fn an_agent_of_version_2_alone_tells_a_client_of_version_1_so() {
    let project = InteropProject::new();
    let run = ["run", "hello", "--", OFFICIAL_AGENT];
    let ended = project.run(acp(), run).await;
    ended
        .code(3)
        .says(&["the agent speaks version 2", "use --protocol 2"]);
    let run = ["run", "--protocol", "2", "hello", "--", OFFICIAL_AGENT];
    let ended = project.run(acp(), run).await.code(0);
    assert_eq!(ended.stdout, "hello\n");
}

#[tokio::test]
async fn an_agent_of_version_1_alone_tells_a_client_of_version_2_so() {
    let project = InteropProject::new();
    // The switch is off.
    let told = project
        .client(&[OFFICIAL_CLIENT], &["hello"], &[OUR_AGENT])
        .await;
    let error = told.failed(-32600).one("error");
    assert!(
        error["data"].as_str().unwrap().contains("negotiated 1"),
        "{error}"
    );
}

/// Returns the command of an agent that responds to `initialize` with any requested version and these fields, but
/// speaks only version 1.
fn echo(initialized: &str) -> String {
    let script = r#"
        while read -r line; do
            case $line in
            *'"initialize"'*)
                version=${line#*'"protocolVersion":'}
                echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":'${version%%[!0-9]*}'INITIALIZED}}' ;;
            *'"session/new"'*)
                echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"1"}}' ;;
            *'"session/prompt"'*)
                echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}'
                echo '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}' ;;
            esac
        done
    "#;
    script.replace("INITIALIZED", initialized)
}

#[tokio::test]
async fn an_agent_that_echoes_the_version_is_spoken_with_in_its_own() {
    for initialized in [
        r#","agentCapabilities":{"loadSession":false},"authMethods":[]"#,
        r#","agentInfo":{"name":"echo","version":"1"}"#,
        "",
    ] {
        let project = InteropProject::new();
        let person = InteropClient::of_version_2(&project);
        let script = echo(initialized);
        let (agent, _process) = person.start(&project, &["sh", "-c", &script]).await;
        assert_eq!(agent.version(), ProtocolVersion::V1, "{initialized}");
        let session = agent.new_session(project.path()).await.unwrap();
        let ended = prompt(&session, "hi").await.unwrap();
        assert_eq!(ended, StopReason::EndTurn);
        assert_eq!(session.thread().read(last), "agent hello");
        assert!(!session.thread().read(Thread::is_running));
    }
}

#[tokio::test]
async fn an_agent_of_version_2_without_sessions_is_said_to_have_none() {
    let project = InteropProject::new();
    let person = InteropClient::of_version_2(&project);
    let script = echo(r#","info":{"name":"mute","version":"1"},"capabilities":{}"#);
    let (agent, _process) = person.start(&project, &["sh", "-c", &script]).await;
    assert_eq!(agent.version(), ProtocolVersion::V2);
    let error = agent.new_session(project.path()).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn before_a_version_is_agreed_on_nothing_else_is_answered() {
    let project = InteropProject::new();
    let script = format!(
        "printf '%s\\n' '{}' | '{OUR_AGENT}' --protocol 2",
        json!({"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
    );
    let answers = project.run("sh", ["-c", &script]).await.code(0).lines();
    assert_eq!(answers.len(), 1);
    let refused = i64::from(jsonrpc::Error::INVALID_REQUEST);
    assert_eq!(answers[0]["error"]["code"], refused);
}

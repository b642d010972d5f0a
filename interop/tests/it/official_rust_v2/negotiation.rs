//! Negotiation between sides that support different versions.

use acp::v1::{ProtocolVersion, StopReason};
use acp::{Error, Thread, jsonrpc};
use serde_json::json;

use crate::common::{
    InteropClient, InteropProject, WORK_OUTLINE, acp_program, assert_in_order, last_item_outline,
    run_prompt,
};
use crate::official_rust_v2::{OFFICIAL_AGENT, OFFICIAL_CLIENT, OUR_AGENT};

/// An agent that supports only version 1.
const VERSION_1_AGENT: &str = env!("CARGO_BIN_EXE_official-agent");
const VERSION_1_EXAMPLE_CLIENT: &str = env!("CARGO_BIN_EXE_official-yolo");

#[tokio::test]
async fn our_client_falls_back_to_version_1() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let (agent, _process) = person.start(&project, &[VERSION_1_AGENT]).await;
    assert_eq!(agent.version(), ProtocolVersion::V1);
    assert_eq!(agent.info().unwrap().name, "official-agent");
    let session = agent.new_session(project.path()).await.unwrap();
    // The turn uses the client's files and terminals.
    assert_eq!(
        run_prompt(&session, "work").await.unwrap(),
        StopReason::EndTurn
    );
    assert_eq!(project.read_file("note.txt"), "ONE\nTWO\n");
    assert_eq!(session.thread().read(last_item_outline), "agent  Done.");

    let run = ["run", "--protocol", "2", "hello", "--", VERSION_1_AGENT];
    let ended = project.run_program(acp_program(), run).await.expect_code(0);
    assert_eq!(ended.stdout, "hello\n");
}

#[tokio::test]
async fn our_agents_fall_back_to_version_1() {
    let project = InteropProject::new();
    let agent = [OUR_AGENT, "--protocol", "2"];
    let told = project.run_official_client(&["work"], &agent).await;
    assert_eq!(told.outline(), WORK_OUTLINE);
    assert_eq!(told.one_of_type("initialized")["protocolVersion"], 1);
    assert!(told.one_of_type("initialized").get("info").is_none());

    let bundled = [acp_program(), "agent", "--protocol", "2"];
    let told = project
        .run_official_client(&["/run echo hello"], &bundled)
        .await;
    assert_in_order(&told.outline(), &["create sh", "release terminal-0"]);
    let command = format!("'{}' agent --protocol 2", acp_program());
    let args = ["--command", &command, "/read note.txt"];
    let ended = project.run_program(VERSION_1_EXAMPLE_CLIENT, args).await;
    ended
        .expect_code(0)
        .expect_stderr(&["Stop reason: EndTurn"]);
}

#[tokio::test]
async fn version_2_agent_rejects_a_version_1_client_with_a_reason() {
    let project = InteropProject::new();
    let run = ["run", "hello", "--", OFFICIAL_AGENT];
    let ended = project.run_program(acp_program(), run).await;
    ended
        .expect_code(3)
        .expect_stderr(&["the agent speaks version 2", "use --protocol 2"]);
    let run = ["run", "--protocol", "2", "hello", "--", OFFICIAL_AGENT];
    let ended = project.run_program(acp_program(), run).await.expect_code(0);
    assert_eq!(ended.stdout, "hello\n");
}

#[tokio::test]
async fn version_1_agent_rejects_a_version_2_client_with_a_reason() {
    let project = InteropProject::new();
    // Version 2 is not enabled.
    let told = project
        .run_client(&[OFFICIAL_CLIENT], &["hello"], &[OUR_AGENT])
        .await;
    let error = told.expect_error_code(-32600).one_of_type("error");
    assert!(
        error["data"].as_str().unwrap().contains("negotiated 1"),
        "{error}"
    );
}

/// Returns the command of an agent that speaks only version 1, but responds to `initialize` with the requested version
/// and the given fields.
fn echo_agent_script(initialized: &str) -> String {
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
async fn agent_that_echoes_the_version_is_used_in_its_own_version() {
    for initialized in [
        r#","agentCapabilities":{"loadSession":false},"authMethods":[]"#,
        r#","agentInfo":{"name":"echo","version":"1"}"#,
        "",
    ] {
        let project = InteropProject::new();
        let person = InteropClient::for_version_2(&project);
        let script = echo_agent_script(initialized);
        let (agent, _process) = person.start(&project, &["sh", "-c", &script]).await;
        assert_eq!(agent.version(), ProtocolVersion::V1, "{initialized}");
        let session = agent.new_session(project.path()).await.unwrap();
        let ended = run_prompt(&session, "hi").await.unwrap();
        assert_eq!(ended, StopReason::EndTurn);
        assert_eq!(session.thread().read(last_item_outline), "agent hello");
        assert!(!session.thread().read(Thread::is_running));
    }
}

#[tokio::test]
async fn version_2_agent_without_sessions_is_reported() {
    let project = InteropProject::new();
    let person = InteropClient::for_version_2(&project);
    let script = echo_agent_script(r#","info":{"name":"mute","version":"1"},"capabilities":{}"#);
    let (agent, _process) = person.start(&project, &["sh", "-c", &script]).await;
    assert_eq!(agent.version(), ProtocolVersion::V2);
    let error = agent.new_session(project.path()).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}

#[tokio::test]
async fn requests_before_initialize_are_rejected() {
    let project = InteropProject::new();
    let script = format!(
        "printf '%s\\n' '{}' | '{OUR_AGENT}' --protocol 2",
        json!({"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}})
    );
    let answers = project
        .run_program("sh", ["-c", &script])
        .await
        .expect_code(0)
        .json_lines();
    assert_eq!(answers.len(), 1);
    let refused = i64::from(jsonrpc::Error::INVALID_REQUEST);
    assert_eq!(answers[0]["error"]["code"], refused);
}

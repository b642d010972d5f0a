//! Tests that `Debug` output never shows secrets, even in nested values.

use std::fmt::Debug;

use acp_wire::{v1, v2};
use serde::de::DeserializeOwned;

/// Reads a message and checks that its `Debug` output hides the secret.
#[track_caller]
fn assert_hides_secrets<T: DeserializeOwned + Debug>(json: &str) {
    let value: T = serde_json::from_str(json).unwrap();
    for shown in [format!("{value:?}"), format!("{value:#?}")] {
        assert!(!shown.contains("hush"), "{shown}");
        assert!(
            shown.contains("NAMED"),
            "what it is about can still be seen: {shown}"
        );
    }
}

#[test]
fn debug_output_hides_variables_headers_and_answers() {
    assert_hides_secrets::<v1::EnvVariable>(r#"{"name":"NAMED","value":"hush"}"#);
    assert_hides_secrets::<v1::HttpHeader>(r#"{"name":"NAMED","value":"hush"}"#);
    assert_hides_secrets::<v1::CreateTerminalRequest>(
        r#"{"sessionId":"s","command":"x","env":[{"name":"NAMED","value":"hush"}]}"#,
    );
    assert_hides_secrets::<v1::AuthMethod>(
        r#"{"type":"terminal","id":"a","name":"A","env":{"NAMED":"hush"}}"#,
    );
    let servers = r#"{"cwd":"/","mcpServers":[
        {"name":"a","command":"c","args":[],"env":[{"name":"NAMED","value":"hush"}]},
        {"type":"http","name":"a","url":"u","headers":[{"name":"NAMED","value":"hush"}]},
        {"type":"sse","name":"a","url":"u","headers":[{"name":"NAMED","value":"hush"}]},
        {"type":"pigeon","name":"a","NAMED":"hush","headers":[{"name":"NAMED","value":"hush"}]}
    ]}"#;
    assert_hides_secrets::<v1::NewSessionRequest>(servers);
    assert_hides_secrets::<v2::NewSessionRequest>(servers);
    assert_hides_secrets::<v1::CreateElicitationResponse>(
        r#"{"action":"accept","content":{"NAMED":"hush","b":["hush"]}}"#,
    );
}

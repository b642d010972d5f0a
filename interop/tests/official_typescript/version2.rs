//! The draft of version 2, as far as we speak it: not yet. Their client and agent are here for the day we do,
//! and must work with each other until then.

use serde_json::json;

use crate::Official;
use crate::common::in_order;
use crate::common::typescript::TypeScript;

#[tokio::test]
async fn the_official_client_and_agent_of_version_2_complete_a_turn_with_each_other() {
    let Some(official) = Official::new() else {
        return;
    };
    let programs = TypeScript::installed().unwrap();
    let [client, agent] =
        ["official-client-v2.mjs", "official-agent-v2.mjs"].map(|file| programs.program(file));
    let told = official
        .project
        .client(&["node", &client], &["work"], &["node", &agent])
        .await;
    told.ended("end_turn");
    assert_eq!(told.one("initialized")["protocolVersion"], 2);
    in_order(
        &told.outline(),
        &[
            "user_message",
            "state_update",
            "thought \"First I look.\"",
            "tool_call_content_chunk",
            "state_update",
            "permission edit",
            "state_update",
            "terminal_output_chunk",
            "session_info_update",
            "agent_message",
            "message \"ne.\"",
            "state_update",
            "ended end_turn",
        ],
    );
    assert_eq!(official.project.read("note.txt"), "ONE\nTWO\n");
    // Both speak version 2 alone, unless told otherwise.
    let told = official.client(&["hello"], &["node", &agent]).await;
    let refused = told.failed(-32022).one("error");
    assert_eq!(refused["data"], json!({"requested": 1, "supported": [2]}));
    let told = official
        .client(&["hello"], &["node", &agent, "--both"])
        .await;
    in_order(&told.outline(), &["message \"hello, in version 1\""]);
}

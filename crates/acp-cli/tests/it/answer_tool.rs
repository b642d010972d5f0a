//! Tests of the tool with which an agent gives an answer that must match `--output-schema`.

use acp_agent::Provider;
use serde_json::{Value, json};

use crate::common::{CommandResult, TestProject};
use crate::full_task::provider::{AnswerPiece, ProviderReply, ProviderServer};

/// An agent that requests permission for calls with the titles in the file `titles`, and then ends with an answer. In a
/// title, `NAME` stands for the MCP server that it has got. It writes the responses to `responses`.
const ASKING_AGENT: &str = r#"
while read -r line; do
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
    *'"session/new"'*)
      server=$(printf '%s' "$line" | sed 's/^.*"name":"\(acp_answer_[0-9a-z]*\)".*$/\1/')
      printf '%s\n' "$server" > server
      echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
    *'"session/prompt"'*)
      prompt=$(printf '%s' "$line" | sed 's/^.*"id":\([0-9]*\),"method".*$/\1/')
      sed "s/NAME/$server/g" requests;;
    *'"outcome"'*)
      printf '%s\n' "$line" >> responses
      if [ "$(wc -l < responses)" = "$(wc -l < requests)" ]; then
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[1]"}}}}'
        printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$prompt"
      fi;;
  esac
done
"#;

/// Runs `acp run` with the bundled agent and a model with these replies.
async fn run_with_model(
    project: &TestProject,
    server: &ProviderServer,
    args: &[&str],
) -> CommandResult {
    let config = format!(
        "[agent]\nmodel = \"anthropic/claude-sonnet-4-5\"\nbase_url = \"http://{}\"\n",
        server.address
    );
    project.write_config("config.toml", &config);
    let mut command = project.agent_command(args);
    command
        .args([
            "--output",
            "result.json",
            "--output-schema",
            "schema.json",
            "--format",
            "quiet",
        ])
        .args(["--env", "ANTHROPIC_API_KEY", "How many?"])
        .env("ANTHROPIC_API_KEY", "a-key");
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    CommandResult::from_output(ended.await.unwrap())
}

fn result(project: &TestProject) -> Value {
    serde_json::from_str(&project.read_file("result.json")).unwrap()
}

#[tokio::test]
async fn model_corrects_its_answer_in_the_same_turn() {
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for (policy, version) in [("none", "1"), ("reads", "1"), ("all", "2"), ("none", "2")] {
        let replies = [
            ProviderReply::CallsOffered("__submit_answer", json!({"n": "one"})),
            ProviderReply::CallsOffered("__submit_answer", json!({"n": 1})),
            ProviderReply::Says(vec![AnswerPiece::Text("That is all.")]),
        ];
        let server = ProviderServer::new(Provider::Anthropic, replies).await;
        let project = TestProject::new();
        project.write_file("schema.json", &schema.to_string());
        let ended = run_with_model(
            &project,
            &server,
            &["--allow", policy, "--protocol", version],
        )
        .await
        .expect_code(0);
        assert_eq!(ended.stdout, "{\"n\":1}\n", "{policy}");
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        let [told] = &requests[1].tool_results(Provider::Anthropic)[..] else {
            panic!("{:?}", requests[1])
        };
        assert!(
            told.contains("/n: \"one\" is not of type \"integer\""),
            "{told}"
        );
        assert_eq!(
            requests[2].tool_results(Provider::Anthropic),
            ["The answer was accepted."]
        );
        let result = result(&project);
        assert_eq!(result["answerJson"], json!({"n": 1}));
        assert_eq!(result["denials"], json!([]));
    }
}

#[tokio::test]
async fn answer_that_is_not_an_object_is_wrapped_in_one() {
    let schema = json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}});
    let replies = [
        ProviderReply::CallsOffered("__submit_answer", json!({"n": 1})),
        ProviderReply::CallsOffered("__submit_answer", json!({"answer": [1, 2]})),
        ProviderReply::Says(vec![AnswerPiece::Text("That is all.")]),
    ];
    let server = ProviderServer::new(Provider::Anthropic, replies).await;
    let project = TestProject::new();
    project.write_file("schema.json", &schema.to_string());
    let ended = run_with_model(&project, &server, &[]).await.expect_code(0);
    assert_eq!(ended.stdout, "[1,2]\n");
    let requests = server.requests();
    let tools = requests[0].body["tools"].as_array().unwrap().iter();
    let mut schemas =
        tools.filter(|tool| tool["name"].as_str().unwrap().ends_with("__submit_answer"));
    let offered = &schemas.next().unwrap()["input_schema"];
    assert_eq!(offered["type"], "object");
    assert_eq!(
        offered["properties"]["answer"]["items"]["$ref"],
        "#/$defs/n"
    );
    assert_eq!(offered["$defs"]["n"]["type"], "integer");
    let told = requests[1].tool_results(Provider::Anthropic).join("");
    assert!(told.contains("`answer` is missing"), "{told}");
}

#[tokio::test]
async fn model_that_does_not_call_the_tool_answers_in_words() {
    let replies = [
        ProviderReply::CallsOffered("__submit_answer", json!({"answer": "one"})),
        ProviderReply::Says(vec![AnswerPiece::Text("It is one.")]),
        ProviderReply::Says(vec![AnswerPiece::Text("1")]),
    ];
    let server = ProviderServer::new(Provider::Anthropic, replies).await;
    let project = TestProject::new();
    project.write_file("schema.json", r#"{"type": "integer"}"#);
    let ended = run_with_model(&project, &server, &[]).await.expect_code(0);
    assert_eq!(ended.stdout, "1\n");
    ended.expect_stderr("the answer does not match the schema (not JSON: ");
}

#[tokio::test]
async fn no_other_tool_of_the_bundled_agent_is_exempt() {
    // The user's own server has a tool of the same name.
    let replies = [
        ProviderReply::CallsOffered("acp_answer___submit_answer", json!({})),
        ProviderReply::Says(vec![AnswerPiece::Text("1")]),
    ];
    let server = ProviderServer::new(Provider::Anthropic, replies).await;
    let project = TestProject::new();
    project.write_file("schema.json", r#"{"type": "integer"}"#);
    let mcp = r#"
read -r line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/^.*"id":\([0-9]*\).*$/\1/')
  case $line in
    *tools/list*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"submit_answer","inputSchema":{"type":"object"}}]}}\n' "$id";;
    *tools/call*) touch called; printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id";;
  esac
done
"#;
    project.write_file("mcp.sh", mcp);
    let servers =
        json!({"mcpServers": {"acp_answer_": {"command": "sh", "args": [project.file("mcp.sh")]}}});
    project.write_file("mcp.json", &servers.to_string());
    run_with_model(&project, &server, &["--mcp", "mcp.json"])
        .await
        .expect_code(8)
        .expect_stderr("all actions of the agent were denied (1)");
    assert!(!project.file("called").exists());
}

#[test]
fn only_a_request_for_exactly_this_tool_is_allowed() {
    let project = TestProject::new();
    project.write_file("agent.sh", ASKING_AGENT);
    project.write_file("schema.json", r#"{"type": "array"}"#);
    let options = json!([
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "always", "name": "Always", "kind": "allow_always"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]);
    let cases = [
        (
            json!({"title": "mcp__NAME__submit_answer", "kind": "other"}),
            "yes",
        ),
        (
            json!({"title": "NAME: submit_answer", "kind": "read"}),
            "yes",
        ),
        (json!({"title": "submit_answer (NAME MCP Server)"}), "yes"),
        (
            json!({"title": "mcp__acp_answer___submit_answer", "kind": "other"}),
            "no",
        ),
        (
            json!({"title": "acp_answer_0123456789abcdef0123: submit_answer", "kind": "other"}),
            "no",
        ),
        (
            json!({"title": "NAME: submit_answer2", "kind": "other"}),
            "no",
        ),
        (json!({"title": "NAME: other", "kind": "other"}), "no"),
        (json!({"title": "NAME", "kind": "other"}), "no"),
        (
            json!({"title": "NAME: submit_answer\nrm -rf ~", "kind": "other"}),
            "no",
        ),
        (
            json!({"title": "NAME: submit_answer", "kind": "execute"}),
            "no",
        ),
        (
            json!({"title": "NAME: submit_answer", "kind": "edit"}),
            "no",
        ),
        (
            json!({"title": "NAME: submit_answer", "kind": "other", "locations": [{"path": "/etc/passwd"}]}),
            "no",
        ),
        (
            json!({"title": "NAME: submit_answer", "kind": "other", "content": [{"type": "diff", "path": "/a", "newText": "x"}]}),
            "no",
        ),
    ];
    let requests: Vec<String> = cases
        .iter()
        .enumerate()
        .map(|(id, (call, _))| {
            let mut call = call.clone();
            call["toolCallId"] = json!(format!("c{id}"));
            let params = json!({"sessionId": "s", "toolCall": call, "options": options});
            json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}).to_string()
        })
        .collect();
    project.write_file("requests", &format!("{}\n", requests.join("\n")));
    let args = [
        "--allow",
        "none",
        "--sandbox=off",
        "--output",
        "result.json",
        "--output-schema",
        "schema.json",
    ];
    // An answer through the tool is not an action, so all actions were denied.
    project
        .run(&[&args[..], &["go", "--", "sh", "agent.sh"]].concat())
        .expect_code(8);
    let responses = project.read_file("responses");
    let mut responses: Vec<Value> = responses
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    responses.sort_by_key(|response| response["id"].as_u64());
    let chosen: Vec<&str> = responses
        .iter()
        .map(|response| {
            response
                .pointer("/result/outcome/optionId")
                .unwrap()
                .as_str()
                .unwrap()
        })
        .collect();
    let expected: Vec<&str> = cases.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(chosen, expected);
    assert_eq!(result(&project)["answerJson"], json!([1]));
    // Each run has another name.
    let name = project.read_file("server");
    assert_eq!(name.trim().len(), "acp_answer_".len() + 20);
    std::fs::remove_file(project.file("responses")).unwrap();
    project
        .run(&[&args[..], &["go", "--", "sh", "agent.sh"]].concat())
        .expect_code(8);
    assert_ne!(project.read_file("server"), name);
}

//! Tests of tools defined as closures from the point of view of an agent, over real sockets. The agent's end is in
//! memory.

use std::sync::Arc;

use acp_mcp::rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations,
};
use acp_mcp::rmcp::schemars::{self, JsonSchema};
use acp_mcp::rmcp::service::{PeerRequestOptions, RunningService, ServiceError};
use acp_mcp::rmcp::{RoleClient, model};
use acp_mcp::{NoArguments, ToolError, ToolServer, Tools};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::common::{connect_agent, unused_proxy_command, with_timeout};

#[derive(Deserialize, JsonSchema)]
struct PickArguments {
    /// What the user is asked
    question: String,
    choices: Vec<PickResult>,
}

#[derive(Deserialize, JsonSchema)]
struct PickResult {
    label: String,
}

fn editor_tools() -> Tools {
    ToolServer::tools("editor")
        .tool(
            "pick",
            "Ask the user to pick one",
            async |pick: PickArguments| {
                let Some(last) = pick.choices.last() else {
                    return Err("there is nothing to pick from".into());
                };
                Ok(format!("{}: {}", pick.question, last.label))
            },
        )
        .tool("open", "Fail as a file may", async |_: NoArguments| {
            Ok(std::fs::read_to_string("/no/such/file")?)
        })
        .tool(
            "panic",
            "Break",
            async |_: NoArguments| -> Result<(), ToolError> { panic!("as it was told") },
        )
        .tool("image", "Show", async |_: NoArguments| {
            Ok(vec![
                ContentBlock::text("a dot"),
                ContentBlock::image("AA==", "image/png"),
            ])
        })
        .tool("whole", "A result as it is", async |_: NoArguments| {
            Ok(CallToolResult::structured(json!({"answer": 42})))
        })
}

type McpClient = RunningService<RoleClient, ()>;

fn call_params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(model::object(arguments))
}

async fn call_tool(agent: &McpClient, tool: &'static str, arguments: Value) -> CallToolResult {
    let called = agent.call_tool(call_params(tool, arguments));
    with_timeout("the tool answers", called).await.unwrap()
}

/// Calls a tool. Returns whether the result is an error, and its text.
async fn call_and_read_text(
    agent: &McpClient,
    tool: &'static str,
    arguments: Value,
) -> (bool, String) {
    let result = call_tool(agent, tool, arguments).await;
    let text = result.content[0].as_text().unwrap().text.clone();
    (result.is_error == Some(true), text)
}

#[tokio::test]
async fn tool_is_listed_with_its_argument_schema() {
    let server = editor_tools().start(unused_proxy_command()).unwrap();
    let (_running, agent) = connect_agent(&server).await;
    let info = agent.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "editor");
    let tools = with_timeout("the tools are told", agent.list_all_tools())
        .await
        .unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["pick", "open", "panic", "image", "whole"]);
    let pick = &tools[0];
    assert_eq!(
        pick.description.as_deref(),
        Some("Ask the user to pick one")
    );
    let schema = pick.schema_as_json_value();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["question", "choices"]));
    let question = &schema["properties"]["question"];
    assert_eq!(question["description"], "What the user is asked");
    let none = tools[1].schema_as_json_value();
    assert_eq!(none["type"], "object");
}

#[tokio::test]
async fn tool_returns_text_content_or_an_error() {
    let server = editor_tools().start(unused_proxy_command()).unwrap();
    let (_running, agent) = connect_agent(&server).await;
    let choices = json!([{"label": "tea"}, {"label": "coffee"}]);
    let some = json!({"question": "Which", "choices": choices});
    let said = call_and_read_text(&agent, "pick", some).await;
    assert_eq!(said, (false, "Which: coffee".to_owned()));
    let none = json!({"question": "Which", "choices": []});
    let said = call_and_read_text(&agent, "pick", none).await;
    assert_eq!(said, (true, "there is nothing to pick from".to_owned()));
    let (failed, why) = call_and_read_text(&agent, "open", json!({})).await;
    assert!(failed && why.contains("os error"), "{why}");
    let image = call_tool(&agent, "image", json!({})).await;
    assert_eq!(image.content.len(), 2);
    assert_eq!(image.content[1].as_image().unwrap().mime_type, "image/png");
    let whole = call_tool(&agent, "whole", json!({})).await;
    assert_eq!(whole.structured_content, Some(json!({"answer": 42})));
}

#[tokio::test]
async fn invalid_arguments_are_explained_to_the_model() {
    let server = editor_tools().start(unused_proxy_command()).unwrap();
    let (_running, agent) = connect_agent(&server).await;
    for (arguments, told) in [
        (
            json!({"question": "Which", "choices": [{"label": "tea"}, {"label": 3}]}),
            "`choices[1].label`: invalid type: integer `3`, expected a string",
        ),
        (json!({"choices": []}), "missing field `question`"),
        (json!({}), "missing field `question`"),
    ] {
        let said = call_and_read_text(&agent, "pick", arguments).await;
        let told = format!("invalid arguments for `pick`: {told}");
        assert_eq!(said, (true, told));
    }
    // Some call without any.
    let called = agent.call_tool(CallToolRequestParams::new("image"));
    let result = with_timeout("the tool answers", called).await.unwrap();
    assert_eq!(result.is_error, Some(false));
}

#[tokio::test]
async fn panicking_tool_returns_an_error_and_others_continue() {
    let server = editor_tools().start(unused_proxy_command()).unwrap();
    let (_running, agent) = connect_agent(&server).await;
    let said = call_and_read_text(&agent, "panic", json!({})).await;
    assert_eq!(said, (true, "`panic` failed unexpectedly".to_owned()));
    assert!(!call_and_read_text(&agent, "image", json!({})).await.0);
}

#[tokio::test]
async fn unknown_tool_is_a_protocol_error() {
    let server = editor_tools().start(unused_proxy_command()).unwrap();
    let (_running, agent) = connect_agent(&server).await;
    let called = agent.call_tool(CallToolRequestParams::new("no-such"));
    let error = with_timeout("the call is refused", called)
        .await
        .unwrap_err();
    let ServiceError::McpError(error) = error else {
        panic!("{error:?}")
    };
    assert_eq!(error.code.0, -32602);
    assert_eq!(error.message, "unknown tool: `no-such`");
}

#[tokio::test]
async fn non_object_arguments_are_a_protocol_error() {
    let server = editor_tools().start(unused_proxy_command()).unwrap();
    let (_running, agent) = connect_agent(&server).await;
    for (method, params, code, told) in [
        (
            "tools/call",
            json!({"name": "pick", "arguments": ["Which"]}),
            -32602,
            "the arguments of `pick` must be a JSON object",
        ),
        (
            "tools/call",
            json!({"name": "pick", "arguments": "Which"}),
            -32602,
            "the arguments of `pick` must be a JSON object",
        ),
        (
            "tools/call",
            json!({"arguments": {}}),
            -32602,
            "the call has no tool name",
        ),
        ("_other", json!({}), -32601, "_other"),
    ] {
        let request = model::CustomRequest::new(method, Some(params));
        let called = agent.send_request(request.into());
        let error = with_timeout("the call is refused", called)
            .await
            .unwrap_err();
        let ServiceError::McpError(error) = error else {
            panic!("{error:?}")
        };
        assert_eq!((error.code.0, &*error.message), (code, told));
    }
}

#[tokio::test]
async fn custom_schema_is_listed_unchanged() {
    let schema = model::object(json!({"type": "object", "minProperties": 1}));
    let tool = Tool::new("any", "Takes anything", schema)
        .with_annotations(ToolAnnotations::new().read_only(true));
    let server = ToolServer::tools("own")
        .tool_with_definition(tool.clone(), async |it: JsonObject| {
            Ok(Value::Object(it).to_string())
        })
        .start(unused_proxy_command())
        .unwrap();
    let (_running, agent) = connect_agent(&server).await;
    let tools = with_timeout("the tools are told", agent.list_all_tools())
        .await
        .unwrap();
    assert_eq!(tools, [tool]);
    let said = call_and_read_text(&agent, "any", json!({"a": [1]})).await;
    assert_eq!(said, (false, r#"{"a":[1]}"#.to_owned()));
}

#[tokio::test]
async fn invalid_definitions_are_rejected_at_start() {
    let twice = editor_tools().tool("pick", "Again", async |_: NoArguments| Ok(()));
    let error = twice.start(unused_proxy_command()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "duplicate tool name: `pick`");
    let nameless = editor_tools().tool("", "Do something", async |_: NoArguments| Ok(()));
    let error = nameless.start(unused_proxy_command()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(
        error.to_string(),
        "empty tool name: `` (description: `Do something`)"
    );
    let list = ToolServer::tools("editor").tool("list", "Takes a list", async |_: Vec<u8>| Ok(()));
    let error = list.start(unused_proxy_command()).unwrap_err().to_string();
    assert!(
        error.contains("`list`") && error.contains("'array'"),
        "{error}"
    );
}

/// A guard that counts the calls in progress.
struct CallGuard(watch::Sender<usize>);

impl CallGuard {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[tokio::test]
async fn cancelled_and_abandoned_calls_are_dropped() {
    let held = watch::Sender::new(0);
    let mut count = held.subscribe();
    let held = Arc::new(held);
    let server = ToolServer::tools("slow")
        .tool("wait", "Waits for ever", move |_: NoArguments| {
            let held = CallGuard::new(&held);
            async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok(())
            }
        })
        .start(unused_proxy_command())
        .unwrap();
    let (_running, agent) = connect_agent(&server).await;
    let mut calls = Vec::new();
    for running in 1..=2 {
        let request = model::CallToolRequest::new(call_params("wait", json!({})));
        let options = PeerRequestOptions::no_options();
        let call = agent.send_cancellable_request(request.into(), options);
        calls.push(call.await.unwrap());
        with_timeout("the call begins", count.wait_for(|count| *count == running))
            .await
            .unwrap();
    }
    calls.remove(0).cancel(None).await.unwrap();
    with_timeout("one is dropped", count.wait_for(|count| *count == 1))
        .await
        .unwrap();
    drop(server);
    with_timeout("the other is dropped", count.wait_for(|count| *count == 0))
        .await
        .unwrap();
}

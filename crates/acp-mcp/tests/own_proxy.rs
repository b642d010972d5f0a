//! Tests of tools defined as closures and used through a proxy in a separate process. The agent starts this program
//! again as the proxy.
//!
//! It has no test harness: that would print to the proxy's stdout.

// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

use std::process::Stdio;
use std::time::Duration;

use acp::v1::McpServer;
use acp_mcp::rmcp::ServiceExt;
use acp_mcp::rmcp::model::{CallToolRequestParams, object};
use acp_mcp::rmcp::schemars::{self, JsonSchema};
use acp_mcp::{ProxyCommand, ToolServer};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

#[derive(Deserialize, JsonSchema)]
struct AddArguments {
    left: i64,
    right: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo nextest` asks for the tests of a program, and then for those that are ignored.
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            println!("own_proxy: test");
        }
        return;
    }
    match args.as_slice() {
        [proxy, connect, endpoint] if proxy == "mcp-proxy" && connect == "--connect" => {
            acp_mcp::proxy::run_proxy(&endpoint.parse().unwrap())
                .await
                .unwrap();
        }
        _ => {
            let checked = tokio::time::timeout(Duration::from_secs(60), check_own_proxy()).await;
            checked.expect("it takes longer than it may");
        }
    }
}

async fn check_own_proxy() {
    let server = ToolServer::tools("sums")
        .tool("add", "Adds two numbers", async |it: AddArguments| {
            let sum = it.left.checked_add(it.right).ok_or("that is too much")?;
            Ok(sum.to_string())
        })
        .start(ProxyCommand::this_program(["mcp-proxy"]).unwrap())
        .unwrap();
    let McpServer::Stdio(told) = server.mcp_server() else {
        panic!("not on stdio")
    };
    let mut proxy = Command::new(&told.command)
        .args(&told.args)
        .envs(told.env.iter().map(|var| (&var.name, &var.value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pipes = (proxy.stdout.take().unwrap(), proxy.stdin.take().unwrap());
    let agent = ().serve(pipes).await.unwrap();
    let tools = agent.list_all_tools().await.unwrap();
    assert_eq!(tools[0].name, "add");
    assert_eq!(
        tools[0].schema_as_json_value()["required"],
        json!(["left", "right"])
    );
    let call = async |arguments: Value| {
        let params = CallToolRequestParams::new("add").with_arguments(object(arguments));
        let result = agent.call_tool(params).await.unwrap();
        let text = result.content[0].as_text().unwrap().text.clone();
        (result.is_error, text)
    };
    let (well, ill) = (Some(false), Some(true));
    let answer = call(json!({"left": 40, "right": 2})).await;
    assert_eq!(answer, (well, "42".to_owned()));
    let answer = call(json!({"left": i64::MAX, "right": 2})).await;
    assert_eq!(answer, (ill, "that is too much".to_owned()));
    let told = "invalid arguments for `add`: \
                `right`: invalid type: string \"two\", expected i64";
    let answer = call(json!({"left": 40, "right": "two"})).await;
    assert_eq!(answer, (ill, told.to_owned()));
    agent.cancel().await.unwrap();
    assert!(proxy.wait().await.unwrap().success());
}

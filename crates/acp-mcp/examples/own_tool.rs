//! Example: a client with its own tool, and an agent that uses it.
//!
//! ```sh
//! cargo run -p acp-sdk-mcp --example own_tool                                  # the example's own agent
//! cargo run -p acp-sdk-mcp --example own_tool -- gemini --acp                  # any other agent
//! ```
//!
//! The agent starts this same program as its MCP server, with the argument `mcp-proxy`. That process forwards bytes to
//! the process with the tool.

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::Stdio;

use acp::agent::{Agent, Prompt, Turn};
use acp::client::{Client, Update, UpdateContext, connect};
use acp::v1::{McpServer, StopReason};
use acp::{Transport, transport};
use acp_mcp::rmcp::ServiceExt;
use acp_mcp::rmcp::model::{CallToolRequestParams, ContentBlock};
use acp_mcp::{NoArguments, ProxyCommand, ToolServer};
use tokio::process::Command;
use tokio::sync::Mutex;

/// A client that prints the agent's messages and offers its own tool in all sessions.
struct ToolClient {
    tools: ToolServer,
}

impl Client for ToolClient {
    type State = ();

    fn mcp_servers(&self) -> Vec<McpServer> {
        vec![self.tools.mcp_server()]
    }

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        print!("{}", update.message_text().unwrap_or_default());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [proxy, connect, endpoint] if proxy == "mcp-proxy" && connect == "--connect" => {
            Ok(acp_mcp::proxy::run_proxy(&endpoint.parse()?).await?)
        }
        agent => run_client(agent).await,
    }
}

async fn run_client(agent: &[String]) -> Result<(), Box<dyn Error>> {
    let what = "Read the text that the user has selected in the editor";
    let tools = ToolServer::tools("editor")
        .tool("selection", what, async |_: NoArguments| {
            Ok("let answer = 42;")
        })
        .start(ProxyCommand::this_program(["mcp-proxy"])?)?;
    let (handshake, driver) = connect(spawn_agent(agent)?, ToolClient { tools });
    let work = async {
        let session = handshake
            .await?
            .new_session(std::env::current_dir()?)
            .await?;
        Ok::<_, Box<dyn Error>>(session.prompt("What have I selected?").await?)
    };
    println!("\n({})", driver.run(work).await?);
    Ok(())
}

/// Starts the agent given by `command`, or this example's own agent if `command` is empty.
fn spawn_agent(command: &[String]) -> Result<Transport, Box<dyn Error>> {
    if let Some((program, args)) = command.split_first() {
        return Ok(Transport::spawn(Command::new(program).args(args))?);
    }
    let (ours, theirs) = transport::memory();
    tokio::spawn(acp::agent::serve(theirs, ToolAgent::default()));
    Ok(ours)
}

/// An agent without a model. It calls all of its tools and reports the results.
#[derive(Default)]
struct ToolAgent(Mutex<Vec<McpServer>>);

impl Agent for ToolAgent {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        setup: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::OpenedSession> {
        *self.0.lock().await = setup.mcp_servers;
        Ok(acp::agent::OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
        for server in &*self.0.lock().await {
            let said = call_every_tool(server).await;
            let said = said.map_err(|e| acp::Error::internal(e.to_string()))?;
            turn.send_message(said).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

/// Starts an MCP server, calls all of its tools, and stops the server.
async fn call_every_tool(server: &McpServer) -> Result<String, Box<dyn Error + Send + Sync>> {
    let McpServer::Stdio(told) = server else {
        return Ok("the MCP server does not use stdio".to_owned());
    };
    let mut child = Command::new(&told.command)
        .args(&told.args)
        .envs(told.env.iter().map(|var| (&var.name, &var.value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take().ok_or("the process has no stdin")?;
    let stdout = child.stdout.take().ok_or("the process has no stdout")?;
    let mcp = ().serve((stdout, stdin)).await?;
    let mut said = String::new();
    for tool in mcp.list_all_tools().await? {
        let name = tool.name.clone();
        let result = mcp.call_tool(CallToolRequestParams::new(tool.name)).await?;
        let texts = result.content.iter().filter_map(ContentBlock::as_text);
        let texts: String = texts.map(|content| content.text.as_str()).collect();
        said.push_str(&format!("{} of {} returned: {texts}", name, told.name));
    }
    mcp.cancel().await?;
    child.wait().await?;
    Ok(said)
}

//! A client with a tool of its own, and an agent that uses it.
//!
//! ```sh
//! cargo run -p acp-mcp --example own_tool                                  # an agent of its own
//! cargo run -p acp-mcp --example own_tool -- gemini --acp                  # any other agent
//! ```
//!
//! The agent starts this very program as its MCP server, with `mcp-proxy` for an argument; that
//! process passes the bytes on to the one with the tool.

// Clippy takes a program that prints for one that logs.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::Stdio;

use acp::agent::{Agent, Prompt, Turn};
use acp::client::{Client, Update, UpdateContext, connect};
use acp::v1::{McpServer, StopReason};
use acp::{Transport, transport};
use acp_mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use acp_mcp::rmcp::service::RequestContext;
use acp_mcp::rmcp::{RoleServer, ServerHandler, ServiceExt};
use acp_mcp::{ProxyCommand, ToolServer};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

/// The tool of an editor: what the person has selected, which no file has.
struct Selection;

impl ServerHandler for Selection {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let what = "What the person has selected in the editor";
        let schema = serde_json::Map::from_iter([("type".to_owned(), "object".into())]);
        let tool = Tool::new("selection", what, schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let selected = ContentBlock::text("let answer = 42;");
        Ok(CallToolResult::success(vec![selected]).into())
    }
}

/// The client: it prints what the agent says, and every session has its tool.
struct Editor {
    tools: ToolServer,
}

impl Client for Editor {
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
            Ok(acp_mcp::proxy::run(&endpoint.parse()?).await?)
        }
        agent => client(agent).await,
    }
}

async fn client(agent: &[String]) -> Result<(), Box<dyn Error>> {
    let proxy = ProxyCommand::this(["mcp-proxy"])?;
    let tools = ToolServer::start("editor", || Selection, proxy)?;
    // The process, if there is one, ends with this function.
    let (transport, _process) = start(agent)?;
    let (handshake, driver) = connect(transport, Editor { tools });
    tokio::spawn(driver);
    let agent = handshake.await?;
    let session = agent.new_session(std::env::current_dir()?).await?;
    let reason = session.prompt("What have I selected?").await?;
    println!("\n({reason})");
    Ok(())
}

/// The agent of this command, or one of this example's own.
fn start(command: &[String]) -> Result<(Transport, Option<Child>), Box<dyn Error>> {
    let Some((program, args)) = command.split_first() else {
        let (ours, theirs) = transport::memory();
        tokio::spawn(acp::agent::serve(theirs, Reader::default()));
        return Ok((ours, None));
    };
    let pipe = Stdio::piped;
    let mut command = Command::new(program);
    let command = command.args(args).stdin(pipe()).stdout(pipe());
    let mut child = command.kill_on_drop(true).spawn()?;
    Ok((Transport::child(&mut child).ok_or("no pipes")?, Some(child)))
}

/// An agent without a model: it calls every tool that it has and says what it got.
#[derive(Default)]
struct Reader(Mutex<Vec<McpServer>>);

impl Agent for Reader {
    type State = ();

    async fn new_session(
        &self,
        _: &acp::agent::Session,
        setup: acp::agent::SessionSetup,
    ) -> acp::Result<acp::agent::SessionOpened> {
        *self.0.lock().await = setup.mcp_servers;
        Ok(acp::agent::SessionOpened::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, _: Prompt) -> acp::Result<StopReason> {
        for server in &*self.0.lock().await {
            let said = call_all(server).await;
            let said = said.map_err(|e| acp::Error::internal(e.to_string()))?;
            turn.message(said).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

/// Starts an MCP server, calls its tools, and ends it.
async fn call_all(server: &McpServer) -> Result<String, Box<dyn Error + Send + Sync>> {
    let McpServer::Stdio(told) = server else {
        return Ok("a server that is not on stdio".to_owned());
    };
    let mut child = Command::new(&told.command)
        .args(&told.args)
        .envs(told.env.iter().map(|var| (&var.name, &var.value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take().ok_or("no stdin")?;
    let stdout = child.stdout.take().ok_or("no stdout")?;
    let mcp = ().serve((stdout, stdin)).await?;
    let mut said = String::new();
    for tool in mcp.list_all_tools().await? {
        let name = tool.name.clone();
        let result = mcp.call_tool(CallToolRequestParams::new(tool.name)).await?;
        let texts = result.content.iter().filter_map(ContentBlock::as_text);
        let texts: String = texts.map(|content| content.text.as_str()).collect();
        said.push_str(&format!("{} of {} says: {texts}", name, told.name));
    }
    mcp.cancel().await?;
    child.wait().await?;
    Ok(said)
}

//! An MCP server for tests, based on the official crate. It runs either as a process of this test program or over HTTP
//! in this process.

// MCP's next version removes roots, but today's servers use them.
#![allow(deprecated)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp::v1::{EnvVariable, McpServer, McpServerStdio};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;

/// The environment variable that selects which kind of server a process runs.
const SERVER_KIND_VARIABLE: &str = "MCP_TEST_SERVER";

/// Returns the configuration that starts this server as a process.
pub(crate) fn stdio_config(name: &str, kind: &str) -> McpServer {
    let this = std::env::current_exe().unwrap();
    // The test harness prints to stdout, so messages to the agent are sent on a copy of the original stdout.
    let line =
        "exec 3>&1 1>/dev/null; exec \"$0\" --ignored --exact --nocapture mcp::run_as_mcp_server";
    let args = ["-c", line, this.to_str().unwrap()].map(str::to_owned);
    let env = vec![EnvVariable::new(SERVER_KIND_VARIABLE, kind)];
    McpServer::Stdio(McpServerStdio::new(name, "/bin/sh", args.to_vec(), env))
}

/// Runs the server on stdin and on the copy of the original stdout.
pub(crate) fn run_server() {
    let Ok(kind) = std::env::var(SERVER_KIND_VARIABLE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    if kind == "broken" {
        eprintln!("there is no cheese");
        std::process::exit(7);
    }
    runtime.block_on(async {
        if kind == "silent" {
            eprintln!("pid:{}", std::process::id());
            std::fs::write("silent", format!("pid:{}\n", std::process::id())).unwrap();
            std::future::pending::<()>().await;
        }
        let out = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/fd/3")
            .unwrap();
        let out = tokio::fs::File::from_std(out);
        let transport = AsyncRwTransport::new_server(tokio::io::stdin(), out);
        let running = McpTestTools::new(&kind).serve(transport).await.unwrap();
        let _ = running.waiting().await;
    });
    std::process::exit(0);
}

#[derive(Clone)]
pub(crate) struct McpTestTools {
    kind: Arc<str>,
    grown: Arc<AtomicBool>,
}

impl McpTestTools {
    pub(crate) fn new(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            grown: Arc::default(),
        }
    }

    fn tool_list(&self) -> Vec<Tool> {
        let tool = |name: String, what: &'static str| {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            Tool::new(name, what, Arc::new(schema.as_object().unwrap().clone()))
        };
        if &*self.kind == "names" {
            let long = "a".repeat(100);
            let names = [
                "run".to_owned(),
                "a.b".into(),
                "a b".into(),
                format!("{long}1"),
                format!("{long}2"),
            ];
            return names
                .into_iter()
                .map(|name| tool(name, "Says its name"))
                .collect();
        }
        let reads = || ToolAnnotations::new().read_only(true);
        let mut tools = vec![
            tool("echo".into(), "Says what it is told")
                .with_title("Echo")
                .with_annotations(reads()),
            tool("change".into(), "Changes something"),
            tool("picture".into(), "Shows a picture"),
            tool("fail".into(), "Fails"),
            tool("die".into(), "Ends the server"),
            tool("hang".into(), "Does not answer"),
            tool("steps".into(), "Tells of its progress"),
            tool("roots".into(), "Says what the roots are"),
            tool("ask".into(), "Asks the user"),
            tool("page".into(), "Sends the user to a page"),
            tool("grow".into(), "Has more afterwards, and says so in one way"),
        ];
        if self.grown.load(Ordering::Relaxed) {
            tools.push(tool("grown".into(), "Was not there before"));
        }
        tools
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let said = arguments
            .get("text")
            .and_then(|text| text.as_str())
            .unwrap_or_default();
        let text = |text: String| Ok(CallToolResult::success(vec![ContentBlock::text(text)]));
        if &*self.kind == "names" {
            return text(format!("I am {}", request.name.len()));
        }
        match &*request.name {
            "echo" => text(format!("You said: {said}. pid:{}\n", std::process::id())),
            "change" => text("Changed.".to_owned()),
            "grown" => text("I have grown.".to_owned()),
            "picture" => Ok(CallToolResult::success(vec![
                ContentBlock::text("Here it is."),
                ContentBlock::image("aGVsbG8=", "image/png"),
                ContentBlock::resource_link(Resource::new("note://one", "one")),
            ])),
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text(
                "No such city.",
            )])),
            "die" => {
                eprintln!("I die");
                std::process::exit(3);
            }
            "hang" => {
                std::fs::write("hangs", "").unwrap();
                context.ct.cancelled().await;
                std::fs::write("cancelled", "").unwrap();
                Err(ErrorData::internal_error("cancelled", None))
            }
            "steps" => {
                let token = context.meta.get_progress_token().unwrap();
                let progress = ProgressNotificationParam::new(token, 1.0)
                    .with_total(2.0)
                    .with_message("half way");
                context.peer.notify_progress(progress).await.unwrap();
                wait_for_file("seen").await;
                text("All steps are done.".to_owned())
            }
            "roots" => {
                let roots = context.peer.list_roots().await.unwrap().roots;
                text(roots.into_iter().map(|root| root.uri).collect())
            }
            "ask" => {
                let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
                let form = json!({
                    "mode": "form", "message": "Which city?", "requestedSchema": schema
                });
                let form = ElicitRequest::new(serde_json::from_value(form).unwrap());
                let asked = context
                    .peer
                    .send_request(ServerRequest::ElicitRequest(form))
                    .await;
                let Ok(ClientResult::ElicitResult(answer)) = asked else {
                    return text(format!("not asked: {asked:?}"));
                };
                text(format!(
                    "{:?} {}",
                    answer.action,
                    answer.content.unwrap_or_default()
                ))
            }
            "page" => {
                let peer = &context.peer;
                let url = match said {
                    "" => "https://login.example/7",
                    other => other,
                };
                let page = json!({
                    "mode": "url", "message": "Log in, please.", "url": url, "elicitationId": "7"
                });
                let page = ElicitRequest::new(serde_json::from_value(page).unwrap());
                let page = ServerRequest::ElicitRequest(page);
                let Ok(ClientResult::ElicitResult(answer)) = peer.send_request(page).await else {
                    return text("not asked".to_owned());
                };
                for id in ["8", "7", "7"] {
                    let method = "notifications/elicitation/complete";
                    let done = CustomNotification::new(method, Some(json!({"elicitationId": id})));
                    let done = ServerNotification::CustomNotification(done);
                    peer.send_notification(done).await.unwrap();
                }
                let offered = peer.peer_info().unwrap().capabilities.elicitation.clone();
                let url = offered.is_some_and(|offered| offered.url.is_some());
                text(format!(
                    "{:?} {} offered:{url}",
                    answer.action,
                    answer.content.unwrap_or_default()
                ))
            }
            "grow" => {
                self.grown.store(true, Ordering::Relaxed);
                match said {
                    "prompts" => context.peer.notify_prompt_list_changed().await.unwrap(),
                    "resources" => context.peer.notify_resource_list_changed().await.unwrap(),
                    _ => context.peer.notify_tool_list_changed().await.unwrap(),
                }
                text("Growing.".to_owned())
            }
            other => Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
    }
}

/// Waits for a test to create this file as a signal to the process.
async fn wait_for_file(file: &str) {
    while !Path::new(file).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

impl ServerHandler for McpTestTools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed();
        if &*self.kind == "names" {
            return ServerConfig::new(capabilities.build());
        }
        ServerConfig::new(capabilities.enable_prompts().enable_resources().build())
    }

    /// Lists the tools, one per page.
    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let nth: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let tools = self.tool_list();
        let mut page = ListToolsResult::with_all_items(tools[nth..=nth].to_vec());
        page.next_cursor = (nth + 1 < tools.len()).then(|| (nth + 1).to_string());
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(self.call(request, &context).await?.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = vec![
            PromptArgument::new("city").with_required(true),
            PromptArgument::new("style"),
        ];
        let prompt = Prompt::new("weather", Some("Asks for the weather"), Some(arguments));
        let mut prompts = vec![prompt];
        if self.grown.load(Ordering::Relaxed) {
            prompts.push(Prompt::new("grown", Some("Was not there before"), None));
        }
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = json!(request.arguments.unwrap_or_default());
        let said = format!("How is the weather? {given}");
        let message = PromptMessage::new_text(Role::User, said);
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = Resource::new("note://one", "one").with_description("The first note");
        let mut resources = vec![resource];
        if self.grown.load(Ordering::Relaxed) {
            resources.push(Resource::new("note://grown", "grown"));
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != "note://one" {
            return Err(ErrorData::resource_not_found("there is no such note", None));
        }
        let note = ResourceContents::text("Buy cheese.", request.uri);
        Ok(ReadResourceResult::new(vec![note]).into())
    }
}

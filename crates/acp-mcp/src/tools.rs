//! Tools defined as closures.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::proxy_command::ProxyCommand;
use crate::tool_server::ToolServer;

/// A tool call in flight.
type CallFuture = Pin<Box<dyn Future<Output = CallToolResult> + Send>>;

/// A builder for a [`ToolServer`] whose tools are closures. Created by [`ToolServer::tools`].
///
/// Each closure has its own argument type, and returns text or content for the model. Calls run concurrently. A call is
/// dropped at its current await point if it is cancelled or its server is dropped.
///
/// Errors are reported in a way that lets the model correct them: as a result with `isError`, which models see, and not
/// as a protocol error, which many agents do not show to the model. This applies to invalid arguments (the error names
/// the field), to a [`ToolError`], and to a closure that panics. Only an unknown tool, and arguments that are not a
/// JSON object, are protocol errors. MCP specification: Tools, "Error Handling".
///
/// A closure with state can clone its handle for each call:
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use acp_mcp::{NoArguments, ToolServer};
///
/// let calls = Arc::new(AtomicU64::new(0));
/// let tools = ToolServer::tools("counter").tool("count", "Count the calls of this tool", {
///     let calls = Arc::clone(&calls);
///     move |_: NoArguments| {
///         let calls = Arc::clone(&calls);
///         async move { Ok(format!("call {}", calls.fetch_add(1, Ordering::Relaxed) + 1)) }
///     }
/// });
/// # let _ = tools;
/// ```
#[must_use = "tools are not available until the server is started"]
pub struct Tools {
    name: String,
    tools: Vec<ClosureTool>,
    /// The first error in any tool's definition, to be reported by `start`.
    error: Option<String>,
}

/// A tool's definition and its closure.
struct ClosureTool {
    tool: Tool,
    call: Box<dyn Fn(JsonObject) -> CallFuture + Send + Sync>,
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools = self.tools.iter().map(|entry| &entry.tool.name);
        f.debug_struct("Tools")
            .field("name", &self.name)
            .field("tools", &tools.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Tools {
    /// Creates a builder for a server with this name and no tools.
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            tools: Vec::new(),
            error: None,
        }
    }

    /// Adds a tool. The model sees its name, its description and the schema of its arguments. The schema is derived
    /// from the type `A`, and that type's doc comments describe the fields. For a tool without arguments, use
    /// [`NoArguments`].
    pub fn tool<A, F, Fut, R>(
        mut self,
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        call: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Any + Send,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoToolResult,
    {
        let name = name.into();
        let schema = argument_schema::<A>().unwrap_or_else(|error| {
            let wrong =
                || format!("the arguments of the tool `{name}` must be a JSON object: {error}");
            self.error.get_or_insert_with(wrong);
            Arc::default()
        });
        self.tool_with_definition(Tool::new(name, description, schema), call)
    }

    /// Like [`tool`](Self::tool), but adds a tool with a complete MCP definition, which can have a custom schema, a
    /// title or hints. The schema is not checked against the type `A`.
    pub fn tool_with_definition<A, F, Fut, R>(mut self, tool: Tool, call: F) -> Self
    where
        A: DeserializeOwned,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoToolResult,
    {
        let name = &tool.name;
        if name.trim().is_empty() {
            let wrong = || {
                let description = tool.description.as_deref().unwrap_or_default();
                format!("empty tool name: `{name}` (description: `{description}`)")
            };
            self.error.get_or_insert_with(wrong);
        }
        if self.tools.iter().any(|entry| entry.tool.name == *name) {
            let wrong = || format!("duplicate tool name: `{name}`");
            self.error.get_or_insert_with(wrong);
        }
        let name = name.clone();
        let call = move |arguments| -> CallFuture {
            let arguments = match parse_arguments(&name, arguments) {
                Ok(arguments) => arguments,
                Err(error_text) => return Box::pin(std::future::ready(error_result(error_text))),
            };
            let called = call(arguments);
            Box::pin(async move {
                match called.await {
                    Ok(result) => result.into_tool_result(),
                    Err(ToolError(error)) => error_result(error),
                }
            })
        };
        let call = Box::new(call);
        self.tools.push(ClosureTool { tool, call });
        self
    }

    /// Starts the server. Every agent that connects to it can use its tools.
    ///
    /// Must be called within a Tokio runtime that has I/O and time enabled.
    ///
    /// # Errors
    /// Fails if two tools have the same name, a name is empty or a tool's arguments are not a JSON object, and for the
    /// same reasons as [`ToolServer::start`].
    pub fn start(self, proxy: ProxyCommand) -> io::Result<ToolServer> {
        if let Some(wrong) = self.error {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong));
        }
        let tools = Arc::new(ToolHandler {
            name: self.name.clone(),
            tools: self.tools,
        });
        ToolServer::start(self.name, move || Arc::clone(&tools), proxy)
    }
}

/// An empty argument type, for tools without arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars", extend("additionalProperties" = false))]
#[non_exhaustive]
pub struct NoArguments {}

/// An error message for the model. The `?` operator converts any error or text into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(String);

impl<E: Display> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A value that a tool's closure can return: text, content or a complete result.
pub trait IntoToolResult {
    /// Converts the value to an MCP result.
    fn into_tool_result(self) -> CallToolResult;
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> CallToolResult {
        self
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::success(self)
    }
}

impl IntoToolResult for ContentBlock {
    fn into_tool_result(self) -> CallToolResult {
        vec![self].into_tool_result()
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> CallToolResult {
        ContentBlock::text(self).into_tool_result()
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> CallToolResult {
        self.to_owned().into_tool_result()
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> CallToolResult {
        Vec::new().into_tool_result()
    }
}

/// Creates a result that reports an error to the model.
fn error_result(why: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

/// The `rmcp` handler for the tools.
struct ToolHandler {
    name: String,
    tools: Vec<ClosureTool>,
}

impl ServerHandler for ToolHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let version = env!("CARGO_PKG_VERSION");
        ServerConfig::new(capabilities).with_server_info(Implementation::new(&self.name, version))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.iter().map(|entry| entry.tool.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name;
        let Some(entry) = self.tools.iter().find(|entry| entry.tool.name == name) else {
            let message = format!("unknown tool: `{name}`");
            return Err(ErrorData::invalid_params(message, None));
        };
        let call = async { (entry.call)(request.arguments.unwrap_or_default()).await };
        let called = cx.ct.run_until_cancelled(catch_panic(call)).await;
        Ok(match called {
            Some(Some(result)) => result,
            Some(None) => error_result(format!("`{name}` failed unexpectedly")),
            None => error_result(format!("`{name}` was cancelled")),
        }
        .into())
    }

    /// Returns the error for an unknown method. Also called for tool calls that `rmcp` cannot parse.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            let method = request.method;
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        let message = describe_invalid_call(request.params.as_ref());
        Err(ErrorData::invalid_params(message, None))
    }
}

/// Describes what is wrong with the params of a `tools/call` request.
fn describe_invalid_call(params: Option<&Value>) -> String {
    let field = |name| params.and_then(|params| params.get(name));
    let Some(tool) = field("name").and_then(Value::as_str) else {
        return "the call has no tool name".to_owned();
    };
    match field("arguments") {
        None | Some(Value::Null | Value::Object(_)) => {
            format!("invalid call to `{tool}`")
        }
        Some(_) => format!("the arguments of `{tool}` must be a JSON object"),
    }
}

/// Returns the output of `work`, or `None` if it panics.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Some),
            Err(_) => {
                tracing::error!("a tool panicked");
                Poll::Ready(None)
            }
        },
    )
    .await
}

/// Returns the schema for a tool's arguments. It always contains `properties`, because some models reject schemas
/// without it.
fn argument_schema<A: JsonSchema + Any>() -> Result<Arc<JsonObject>, String> {
    let mut schema = schema_for_input::<A>()?;
    if !schema.contains_key("properties") {
        let none = Value::Object(JsonObject::new());
        Arc::make_mut(&mut schema).insert("properties".to_owned(), none);
    }
    Ok(schema)
}

/// The maximum length, in characters, of an error message about arguments, which may quote them.
const MAX_ERROR_CHARS: usize = 500;

/// Parses the arguments of a tool call.
///
/// # Errors
/// Fails if the arguments do not match `A`. The error names the place and the reason.
fn parse_arguments<A: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<A, String> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let place = match error.path().to_string().as_str() {
            "." => String::new(),
            place => format!("`{place}`: "),
        };
        let error_text = error.inner().to_string();
        let end = error_text.char_indices().nth(MAX_ERROR_CHARS);
        let error_text = end.map_or(&*error_text, |(end, _)| &error_text[..end]);
        format!("invalid arguments for `{tool}`: {place}{error_text}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "deserialized only")]
    struct SampleArguments {
        name: String,
        #[serde(default)]
        sizes: Vec<u8>,
        #[serde(default, rename = "é \"quoted\"")]
        odd: Option<bool>,
        inner: Option<Box<SampleArguments>>,
        kind: Option<SampleKind>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum SampleKind {
        Small,
    }

    #[test]
    fn invalid_argument_is_reported_with_its_location() {
        for (arguments, told) in [
            (json!({}), "missing field `name`"),
            (
                json!({"name": 3}),
                "`name`: invalid type: integer `3`, expected a string",
            ),
            (
                json!({"name": null, "sizes": []}),
                "`name`: invalid type: null, expected a string",
            ),
            (
                json!({"name": ["a"]}),
                "`name`: invalid type: sequence, expected a string",
            ),
            (
                json!({"name": "a", "sizes": [1, 22, 333, 4]}),
                "`sizes[2]`: invalid value: integer `333`, expected u8",
            ),
            (
                json!({"name": "a", "sizes": "all"}),
                "`sizes`: invalid type: string \"all\", expected a sequence",
            ),
            (
                json!({"name": "a\nb", "é \"quoted\"": {"a": 1}}),
                "`é \"quoted\"`: invalid type: map, expected a boolean",
            ),
            (
                json!({"inner": {"inner": {"name": "c", "sizes": [true]}, "name": "b"}, "name": "a"}),
                "`inner.inner.sizes[0]`: invalid type: boolean `true`, expected u8",
            ),
            (
                json!({"inner": {"inner": {}, "name": "b"}, "name": "a"}),
                "`inner.inner`: missing field `name`",
            ),
            (
                json!({"kind": "large", "name": "a"}),
                "`kind`: unknown variant `large`, expected `small`",
            ),
        ] {
            let Value::Object(object) = arguments.clone() else {
                panic!("{arguments}")
            };
            let error = parse_arguments::<SampleArguments>("tool", object).unwrap_err();
            let expected = format!("invalid arguments for `tool`: {told}");
            assert_eq!(error, expected, "{arguments}");
        }
    }

    #[test]
    fn long_invalid_argument_is_quoted_in_part() {
        let long = JsonObject::from_iter([("sizes".to_owned(), json!("x".repeat(10_000)))]);
        let error = parse_arguments::<SampleArguments>("tool", long).unwrap_err();
        assert!(error.len() < 600, "{error}");
        assert!(error.contains("`sizes`: invalid type: string"), "{error}");
    }

    #[test]
    fn tool_without_arguments_accepts_any() {
        let schema = argument_schema::<NoArguments>().unwrap();
        assert_eq!(schema["properties"], json!({}));
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["additionalProperties"], false);
        let some = JsonObject::from_iter([("why".to_owned(), json!("because"))]);
        assert!(parse_arguments::<NoArguments>("tool", some).is_ok());
    }
}

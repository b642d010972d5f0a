//! A local server that sends scripted responses, valid or faulty, in a provider's wire format.

mod wire;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_agent::{
    Model, ModelFactory, Price, Provider, ProviderModel, RetryPolicy, RoundRequest, Secret, Steps,
    WireFormat,
};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// A piece of a model's response.
#[derive(Debug, Clone)]
pub enum AnswerPiece {
    Text(&'static str),
    Think(&'static str),
    /// A signature for the preceding thoughts or, for Gemini, for the next call.
    Sign(&'static str),
    /// Thoughts that only Anthropic can read.
    Redacted(&'static str),
    /// A tool call, whose arguments are sent in pieces.
    Call(&'static str, &'static str, Value),
    /// A tool call with arguments that are not JSON.
    Scribble(&'static str, &'static str, &'static str),
    Usage(ProviderUsage),
    Stop(FinishReason),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ProviderUsage {
    /// The total number of input tokens.
    pub input: u64,
    /// The number of input tokens that came from the cache.
    pub cached: u64,
    /// The total number of output tokens.
    pub output: u64,
    /// The number of output tokens that were thoughts.
    pub thought: u64,
}

/// Why a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    End,
    Tools,
    Length,
    Refusal,
}

/// The reply to a request.
#[derive(Debug, Clone)]
pub enum ProviderReply {
    /// A complete response.
    Says(Vec<AnswerPiece>),
    /// A response that calls the offered tool whose name ends like this.
    CallsOffered(&'static str, Value),
    /// A reply to the first request in which a message from the user contains this text. Requests without tools are not
    /// meant: agents make them for titles and the like, at any time.
    To(&'static str, Box<ProviderReply>),
    /// A response that breaks off because the connection is cut.
    Cut(Vec<AnswerPiece>),
    /// A response that takes this long to send.
    Slowly(Duration, Vec<AnswerPiece>),
    /// A response that stalls until the client disconnects.
    Stalls(Vec<AnswerPiece>),
    /// A response whose last call is completed only when this is notified.
    Held(Vec<AnswerPiece>, Arc<Notify>),
    /// A response that ends with this text in place of an event.
    Event(Vec<AnswerPiece>, String),
    /// A response with this status, these headers and this body.
    Status(u16, &'static [(&'static str, &'static str)], String),
    /// A response with status 200 and a body of this type.
    Body(&'static str, String),
    /// A response that never ends.
    Endless,
    /// A response with an event that never ends.
    EndlessEvent,
    /// A response with this status and a body that never ends.
    EndlessStatus(u16),
    /// No response. The connection is closed.
    Closes,
    /// No response until the client disconnects.
    Silent,
}

/// The reply to a request for the list of models.
#[derive(Debug, Clone)]
pub enum ModelListReply {
    /// This list of models.
    Models(String),
    /// This list of models, sent only after a notification.
    When(Arc<Notify>, String),
    /// Status 404, because the server has no list.
    Absent,
    /// No response until the client disconnects.
    Silent,
    /// A response that never ends.
    Endless,
}

/// A request, as received by the server.
#[derive(Debug, Clone)]
pub struct ProviderRequest {
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Value,
}

impl ProviderRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }

    /// Returns the names of the tools that the request offers to the model.
    pub fn offered_tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array();
        let names = tools.into_iter().flatten().filter_map(|tool| {
            let name = tool.get("name").or_else(|| tool.pointer("/function/name"));
            name.and_then(Value::as_str)
        });
        names.map(str::to_owned).collect()
    }

    /// Returns `true` if the request offers tools to the model.
    fn offers_tools(&self) -> bool {
        self.body["tools"]
            .as_array()
            .is_some_and(|tools| !tools.is_empty())
    }

    /// Returns `true` if a message from the user contains this text.
    fn is_prompted_with(&self, text: &str) -> bool {
        let messages = ["messages", "input", "contents"].into_iter();
        let mut messages = messages
            .filter_map(|name| self.body[name].as_array())
            .flatten();
        messages.any(|message| message["role"] == "user" && message.to_string().contains(text))
    }

    /// Returns the tool results in the request, from the last round that called tools.
    pub fn tool_results(&self, format: impl Into<WireFormat>) -> Vec<String> {
        let format = format.into();
        let (messages, result) = match format {
            WireFormat::AnthropicMessages | WireFormat::OpenAiChat => ("/messages", "/content"),
            WireFormat::OpenAiResponses => ("/input", "/output"),
            _ => ("/contents", "/functionResponse/response/content"),
        };
        let messages = self.body.pointer(messages).unwrap().as_array().unwrap();
        let last: Vec<&Value> = match format {
            WireFormat::AnthropicMessages => content_blocks(messages, "content"),
            WireFormat::OpenAiChat => trailing_messages(messages, "role", "tool"),
            WireFormat::OpenAiResponses => {
                trailing_messages(messages, "type", "function_call_output")
            }
            _ => content_blocks(messages, "parts"),
        };
        let texts = last.iter().filter_map(|last| last.pointer(result));
        texts
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    }
}

/// Returns the run of messages of this kind at the end of the list.
fn trailing_messages<'a>(messages: &'a [Value], name: &str, kind: &str) -> Vec<&'a Value> {
    let last = messages.iter().rev();
    let mut last: Vec<_> = last.take_while(|said| said[name] == kind).collect();
    last.reverse();
    last
}

/// Returns the content blocks of the last message.
fn content_blocks<'a>(messages: &'a [Value], of: &str) -> Vec<&'a Value> {
    messages.last().unwrap()[of]
        .as_array()
        .unwrap()
        .iter()
        .collect()
}

/// A server that acts as a provider. It stops when dropped.
pub struct ProviderServer {
    pub format: WireFormat,
    pub address: SocketAddr,
    state: Arc<ProviderState>,
    task: tokio::task::JoinHandle<()>,
}

struct ProviderState {
    format: WireFormat,
    answers: Mutex<VecDeque<ProviderReply>>,
    heard: watch::Sender<Vec<ProviderRequest>>,
    listing: Mutex<ModelListReply>,
    /// The requests for the list of models.
    listed: watch::Sender<Vec<ProviderRequest>>,
    /// The number of connections so far.
    connections: AtomicUsize,
    /// The number of bytes read by clients from endless responses.
    written: AtomicU64,
    /// The number of endless responses closed by clients.
    ended: watch::Sender<usize>,
}

impl Drop for ProviderServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ProviderServer {
    /// Starts a server that sends these replies to the next requests.
    pub async fn new(
        format: impl Into<WireFormat>,
        answers: impl IntoIterator<Item = ProviderReply>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(listener, format, answers)
    }

    /// Like [`new`](Self::new), but starts the server on this socket.
    pub fn start_on(
        listener: TcpListener,
        format: impl Into<WireFormat>,
        answers: impl IntoIterator<Item = ProviderReply>,
    ) -> Self {
        let format = format.into();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(ProviderState {
            format,
            answers: Mutex::new(answers.into_iter().collect()),
            heard: watch::channel(Vec::new()).0,
            listing: Mutex::new(ModelListReply::Absent),
            listed: watch::channel(Vec::new()).0,
            connections: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            ended: watch::channel(0).0,
        });
        let task = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                let mut connections = tokio::task::JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let state = Arc::clone(&state);
                    state.connections.fetch_add(1, Ordering::SeqCst);
                    // A client that has disconnected is not an error of the server.
                    connections.spawn(async move { state.serve_connection(stream).await.ok() });
                }
            }
        });
        Self {
            format,
            address,
            state,
            task,
        }
    }

    /// Returns a model hosted on this server. Its requests are retried at once, at most three times.
    pub fn model(&self) -> ProviderModel {
        let model = ProviderModel::new(self.format.provider(), "a-model")
            .base_url(format!("http://{}", self.address))
            .key(Secret::new("a-key"))
            .retries(RetryPolicy {
                tries: 3,
                first_delay: Duration::from_millis(1),
                max_delay: Duration::from_secs(5),
            });
        // The usual format is not set explicitly.
        match model.wire_format() == self.format {
            true => model,
            false => model.with_wire_format(self.format),
        }
    }

    /// Sets the reply to later requests for the list of models.
    pub fn set_listing(&self, listing: ModelListReply) {
        *self.state.listing.lock().unwrap() = listing;
    }

    /// Waits until the model list has been requested this many times, and returns those requests.
    pub async fn wait_for_list_requests(&self, times: usize) -> Vec<ProviderRequest> {
        let mut listed = self.state.listed.subscribe();
        let listed = listed.wait_for(|listed| listed.len() >= times);
        listed.await.unwrap().clone()
    }

    /// Waits until clients have closed this many endless responses, and returns how many bytes they read.
    pub async fn wait_for_closed_connections(&self, times: usize) -> u64 {
        let mut ended = self.state.ended.subscribe();
        ended.wait_for(|ended| *ended >= times).await.unwrap();
        self.state.written.load(Ordering::SeqCst)
    }

    /// Returns the number of connections so far.
    pub fn connection_count(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ProviderRequest> {
        self.state.heard.borrow().clone()
    }

    /// Waits until the server has received this many requests.
    pub async fn wait_for_requests(&self, times: usize) {
        let mut heard = self.state.heard.subscribe();
        heard.wait_for(|heard| heard.len() >= times).await.unwrap();
    }
}

/// A model that costs three dollars per million input tokens, and fifteen dollars per million output tokens.
pub struct PricedModel(Arc<dyn Model>);

impl PricedModel {
    pub fn new(model: ProviderModel) -> Self {
        Self(ModelFactory::new().build_model(model).unwrap())
    }
}

impl Model for PricedModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn context_window(&self) -> Option<u64> {
        self.0.context_window()
    }

    fn price(&self) -> Option<Price> {
        let known = ProviderModel::new(Provider::Anthropic, "claude-sonnet-4-6");
        ModelFactory::new().build_model(known).unwrap().price()
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        self.0.respond(request)
    }
}

impl ProviderState {
    async fn serve_connection(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(heard) = read_request(&mut stream).await? {
            if heard.body.is_null() {
                self.listed.send_modify(|all| all.push(heard));
                if !self.send_model_list(&mut stream).await? {
                    return Ok(());
                }
                continue;
            }
            let offered = heard.offered_tools();
            let answer = self.take_reply(&heard);
            self.heard.send_modify(|all| all.push(heard));
            let answer = answer.unwrap_or_else(|| {
                ProviderReply::Status(
                    418,
                    &[],
                    r#"{"error":{"message":"nobody expects this"}}"#.to_owned(),
                )
            });
            let answer = match answer {
                ProviderReply::CallsOffered(end, arguments) => {
                    let tool = offered.into_iter().find(|name| name.ends_with(end));
                    let tool = tool.unwrap_or_else(|| format!("missing {end}"));
                    let call = AnswerPiece::Call("call", String::leak(tool), arguments);
                    ProviderReply::Says(vec![call])
                }
                answer => answer,
            };
            if !self.send_reply(&mut stream, answer).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Removes and returns the first reply that is meant for the request.
    fn take_reply(&self, heard: &ProviderRequest) -> Option<ProviderReply> {
        let mut replies = self.answers.lock().unwrap();
        let at = replies.iter().position(|reply| match reply {
            ProviderReply::To(text, _) => heard.offers_tools() && heard.is_prompted_with(text),
            _ => true,
        })?;
        match replies.remove(at)? {
            ProviderReply::To(_, reply) => Some(*reply),
            reply => Some(reply),
        }
    }

    /// Sends the list of models. Returns `true` if the connection stays open.
    async fn send_model_list(&self, to: &mut BufReader<TcpStream>) -> std::io::Result<bool> {
        let listing = self.listing.lock().unwrap().clone();
        let body = match listing {
            ModelListReply::Models(body) => body,
            ModelListReply::When(now, body) => {
                now.notified().await;
                body
            }
            ModelListReply::Absent => {
                to.write_all(b"HTTP/1.1 404 So\r\ncontent-length: 0\r\n\r\n")
                    .await?;
                return Ok(true);
            }
            ModelListReply::Silent => return is_closed_by_peer(to).await,
            ModelListReply::Endless => {
                to.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"data\": [\"")
                    .await?;
                self.send_endlessly(to).await;
                return Ok(false);
            }
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        to.write_all(format!("{head}{body}").as_bytes()).await?;
        Ok(true)
    }

    /// Sends data until the client disconnects.
    async fn send_endlessly(&self, to: &mut BufReader<TcpStream>) {
        let piece = [b'x'; 16 * 1024];
        while to.write_all(&piece).await.is_ok() {
            let length = piece.len() as u64;
            self.written.fetch_add(length, Ordering::SeqCst);
        }
        self.ended.send_modify(|ended| *ended += 1);
    }

    /// Sends the reply to a request. Returns `true` if the connection stays open.
    async fn send_reply(
        &self,
        to: &mut BufReader<TcpStream>,
        answer: ProviderReply,
    ) -> std::io::Result<bool> {
        let events = |says: &[AnswerPiece]| wire::response_events(self.format, says);
        match answer {
            ProviderReply::CallsOffered(..) => unreachable!("the name of the tool is known by now"),
            ProviderReply::To(..) => unreachable!("the request is known by now"),
            ProviderReply::Says(says) => {
                send_head(to).await?;
                send_in_pieces(to, &events(&says).concat()).await?;
                to.write_all(b"0\r\n\r\n").await?;
                Ok(true)
            }
            ProviderReply::Slowly(time, says) => {
                send_head(to).await?;
                let events = events(&says);
                let pause = time / u32::try_from(events.len()).unwrap();
                for event in events {
                    send_in_pieces(to, &event).await?;
                    tokio::time::sleep(pause).await;
                }
                to.write_all(b"0\r\n\r\n").await?;
                Ok(true)
            }
            ProviderReply::Cut(says) => {
                send_head(to).await?;
                send_in_pieces(to, &wire::leading_events(self.format, &says).concat()).await?;
                Ok(false)
            }
            ProviderReply::Stalls(says) => {
                send_head(to).await?;
                send_in_pieces(to, &wire::leading_events(self.format, &says).concat()).await?;
                is_closed_by_peer(to).await
            }
            ProviderReply::Held(says, more) => {
                send_head(to).await?;
                let events = events(&says);
                let (first, rest) =
                    events.split_at(wire::event_count_without_end(self.format, &says));
                send_in_pieces(to, &first.concat()).await?;
                more.notified().await;
                send_in_pieces(to, &rest.concat()).await?;
                to.write_all(b"0\r\n\r\n").await?;
                Ok(true)
            }
            ProviderReply::Event(says, event) => {
                send_head(to).await?;
                send_in_pieces(to, &wire::leading_events(self.format, &says).concat()).await?;
                send_in_pieces(to, &event).await?;
                to.write_all(b"0\r\n\r\n").await?;
                Ok(true)
            }
            ProviderReply::Status(status, headers, body) => {
                let headers: String = headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}\r\n"))
                    .collect();
                let head = format!(
                    "HTTP/1.1 {status} So\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
                    body.len()
                );
                to.write_all(format!("{head}{body}").as_bytes()).await?;
                Ok(true)
            }
            ProviderReply::Body(content_type, body) => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                to.write_all(format!("{head}{body}").as_bytes()).await?;
                Ok(true)
            }
            ProviderReply::Endless => {
                send_head(to).await?;
                let more = wire::leading_events(self.format, &[AnswerPiece::Text("and so on ")]);
                loop {
                    // Send until the client has read enough.
                    send_in_pieces(to, &more.concat()).await?;
                }
            }
            ProviderReply::EndlessEvent => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                to.write_all(head.as_bytes()).await?;
                for event in wire::leading_events(self.format, &[]) {
                    to.write_all(event.as_bytes()).await?;
                }
                let name = match self.format {
                    WireFormat::AnthropicMessages => "event: content_block_delta\n",
                    WireFormat::OpenAiResponses => "event: response.output_text.delta\n",
                    _ => "",
                };
                let event = format!("{name}data: {{\"text\": \"");
                to.write_all(event.as_bytes()).await?;
                self.send_endlessly(to).await;
                Ok(false)
            }
            ProviderReply::EndlessStatus(status) => {
                let head = format!("HTTP/1.1 {status} So\r\ncontent-type: text/plain\r\n\r\n");
                to.write_all(head.as_bytes()).await?;
                self.send_endlessly(to).await;
                Ok(false)
            }
            ProviderReply::Closes => Ok(false),
            ProviderReply::Silent => is_closed_by_peer(to).await,
        }
    }
}

async fn send_head(to: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    to.write_all(head.as_bytes()).await
}

/// Sends text in pieces that may end anywhere, even in the middle of a character.
async fn send_in_pieces(to: &mut BufReader<TcpStream>, text: &str) -> std::io::Result<()> {
    for piece in text.as_bytes().chunks(61) {
        to.write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .await?;
        to.write_all(piece).await?;
        to.write_all(b"\r\n").await?;
        to.flush().await?;
    }
    Ok(())
}

/// Waits until the client disconnects.
async fn is_closed_by_peer(from: &mut BufReader<TcpStream>) -> std::io::Result<bool> {
    from.read_u8().await?;
    Ok(false)
}

/// Reads a request. Returns `None` if there are no more requests.
async fn read_request(from: &mut BufReader<TcpStream>) -> std::io::Result<Option<ProviderRequest>> {
    let mut line = String::new();
    match from.read_line(&mut line).await {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        // The request is not HTTP, which servers report with an HTTP error.
        Err(error) => {
            from.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
            return Err(error);
        }
    }
    let path = line.split(' ').nth(1).unwrap().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut heard = ProviderRequest {
        path,
        headers,
        body: Value::Null,
    };
    // Only a request to read something has no body.
    let Some(length) = heard.header("content-length") else {
        return Ok(Some(heard));
    };
    let length = length.parse().unwrap();
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    heard.body = serde_json::from_slice(&body).unwrap();
    Ok(Some(heard))
}

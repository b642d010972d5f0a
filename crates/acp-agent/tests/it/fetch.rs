//! Tests fetching from a server on the loopback interface. Its addresses are not public, so each one needs permission.

use crate::common;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::common::{
    ALLOW, ALLOW_ALWAYS, AgentFixture, NO_CAPABILITIES, QuestionAnswer, REJECT, call_text,
};
use acp::thread::{ThreadToolCall, ToolCallStatus};
use acp::v1::*;
use acp_agent::{CodingAgent, RuleFiles, ScriptedModel};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A server that sends these bytes for each path, and records the requested paths.
struct PageServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

/// The response for each path. `None` means that the server never responds.
type ServedPages = HashMap<&'static str, Option<Vec<u8>>>;

impl PageServer {
    async fn start(host: &str, pages: ServedPages) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (kept, pages) = (Arc::clone(&asked), Arc::new(pages));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_connection(
                    stream,
                    Arc::clone(&pages),
                    Arc::clone(&kept),
                ));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requested_paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve_connection(
    stream: TcpStream,
    pages: Arc<ServedPages>,
    asked: Arc<Mutex<Vec<String>>>,
) {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    if stream.read_line(&mut first).await.unwrap_or_default() == 0 {
        return;
    }
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
            return;
        }
    }
    let path = first.split(' ').nth(1).unwrap().to_owned();
    let page = pages.get(path.as_str()).cloned();
    asked.lock().unwrap().push(path);
    match page {
        Some(Some(page)) => {
            // A client that has read enough disconnects.
            let _ = stream.write_all(&page).await;
        }
        Some(None) => {
            let _ = stream.read_line(&mut line).await;
        }
        None => {
            let page = http_response("404 Not Found", "text/plain", "no such page");
            let _ = stream.write_all(&page.unwrap_or_default()).await;
        }
    }
}

fn http_response(status: &str, media_type: &str, body: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let body = body.as_ref();
    let length = body.len();
    let mut all = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    all.extend_from_slice(body);
    Some(all)
}

fn page_response(media_type: &str, body: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    http_response("200 OK", media_type, body)
}

fn redirect_response(to: &str) -> Option<Vec<u8>> {
    Some(
        format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .into(),
    )
}

fn fetching_agent(fetches: &[Value]) -> CodingAgent {
    let calls: Vec<Value> = fetches
        .iter()
        .map(|arguments| json!({ "call": { "tool": "fetch", "arguments": arguments } }))
        .collect();
    let script = json!({ "turns": [calls] }).to_string();
    CodingAgent::with_model(ScriptedModel::parse(&script).unwrap())
}

/// Fetches URLs in a session in this mode, with these answers to permission requests.
async fn run_fetches(
    mode: &str,
    fetches: &[Value],
    answers: impl IntoIterator<Item = QuestionAnswer>,
) -> (AgentFixture, Vec<ThreadToolCall>) {
    let f = AgentFixture::new(fetching_agent(fetches), NO_CAPABILITIES).await;
    f.session.set_mode(mode).await.unwrap();
    f.queue_answers(answers);
    f.prompt("go").await.unwrap();
    let calls = f.tool_calls();
    (f, calls)
}

fn failure_text(call: &ThreadToolCall) -> String {
    assert_eq!(call.status, ToolCallStatus::Failed, "{call:?}");
    call_text(call)
}

#[tokio::test]
async fn page_is_fetched_once_the_user_allows_its_host() {
    let html = "<html><head><title>T</title></head><body><h1>Head</h1><p>A <a href='/x'>link</a>.</p>\
                <script>evil()</script></body></html>";
    for mode in ["ask", "code", "architect"] {
        let pages = [("/", page_response("text/html; charset=utf-8", html))];
        let server = PageServer::start("127.0.0.1", pages.into()).await;
        let (f, calls) = run_fetches(mode, &[json!({"url": server.url("/")})], [ALLOW]).await;
        let call = &calls[0];
        assert_eq!(call.status, ToolCallStatus::Completed);
        assert_eq!(call.kind, ToolKind::Fetch);
        assert_eq!(
            f.statuses(&call.id),
            ["pending", "in_progress", "completed"]
        );
        let shown = call_text(call);
        assert!(
            shown.contains("# Head") && shown.contains("A [link](/x)."),
            "{shown}"
        );
        assert!(!shown.contains("evil"));
        let asked = &f.permission_requests()[0];
        assert_eq!(
            asked.tool_call.title,
            format!("Fetch `{}`", server.url("/"))
        );
        let why = call_text(&asked.tool_call);
        assert!(
            why.contains(
                "on this machine or its local network, not on the public internet: 127.0.0.1"
            ),
            "{why}"
        );
        let always = asked
            .options
            .iter()
            .find(|o| o.kind == PermissionOptionKind::AllowAlways);
        let name = &always.unwrap().name;
        assert!(
            name.contains(&format!("`http://{}` (127.0.0.1)", server.address)),
            "{name}"
        );
    }
}

#[tokio::test]
async fn rejected_url_is_not_requested() {
    let server = PageServer::start(
        "127.0.0.1",
        [("/", page_response("text/plain", "secret"))].into(),
    )
    .await;
    let port = server.address.port();
    // However the address is written.
    for url in [
        server.url("/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
    ] {
        let (f, calls) = run_fetches("code", &[json!({ "url": url })], [REJECT]).await;
        assert!(
            failure_text(&calls[0]).contains("Permission denied by the user"),
            "{url}"
        );
        assert_eq!(f.permission_requests().len(), 1, "{url}");
    }
    assert_eq!(server.requested_paths(), Vec::<String>::new());
}

#[tokio::test]
async fn host_name_is_not_resolved_without_permission() {
    // The query for such a name would tell the owner of the domain the secret.
    let fetch = json!({"url": "http://secret.does-not-exist.invalid/"});
    for mode in ["ask", "code", "architect"] {
        let (f, calls) = run_fetches(mode, std::slice::from_ref(&fetch), [REJECT]).await;
        let said = failure_text(&calls[0]);
        assert!(said.contains("Permission denied by the user"), "{said}");
        let asked = f.permission_requests();
        assert_eq!(asked.len(), 1, "{mode}");
        let name = &asked[0].options[1].name;
        assert!(name.contains("secret.does-not-exist.invalid"), "{name}");
    }
    let (_, calls) = run_fetches("code", &[fetch], [common::ALLOW]).await;
    let said = failure_text(&calls[0]);
    assert!(said.contains("host not found"), "{said}");
}

#[tokio::test]
async fn public_host_requires_permission() {
    for mode in ["ask", "code", "architect"] {
        let fetches = [
            json!({"url": "http://1.1.1.1/secret"}),
            json!({"url": "http://1.1.1.1/"}),
        ];
        let (f, calls) = run_fetches(mode, &fetches, [common::REJECT_ALWAYS]).await;
        for (call, why) in calls.iter().zip([
            "Permission denied by the user for the rest of this session",
            "Rejected: the user chose to always reject this",
        ]) {
            let said = failure_text(call);
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(calls.len(), 2);
        assert_eq!(f.permission_requests().len(), 1);
        assert!(
            f.permission_requests()[0].options[1]
                .name
                .contains("fetching from `1.1.1.1`")
        );
    }
}

#[tokio::test]
async fn always_answer_covers_a_single_host() {
    let pages = || {
        ServedPages::from([
            ("/a", page_response("text/plain", "one")),
            ("/b", page_response("text/plain", "two")),
        ])
    };
    let server = PageServer::start("127.0.0.1", pages()).await;
    let other = PageServer::start("127.0.0.1", pages()).await;
    let fetches =
        [server.url("/a"), server.url("/b"), other.url("/a")].map(|url| json!({ "url": url }));
    let (f, calls) = run_fetches("ask", &fetches, [ALLOW_ALWAYS, REJECT]).await;
    assert!(call_text(&calls[0]).contains("one") && call_text(&calls[1]).contains("two"));
    failure_text(&calls[2]);
    assert_eq!(
        (f.permission_requests().len(), other.requested_paths().len()),
        (2, 0)
    );
}

#[tokio::test]
async fn redirect_target_requires_permission_first() {
    let inner = PageServer::start(
        "127.0.0.1",
        [("/", page_response("text/plain", "metadata"))].into(),
    )
    .await;
    let pages = [
        ("/in", redirect_response(&inner.url("/"))),
        ("/here", redirect_response("/there")),
        ("/there", page_response("text/plain", "arrived")),
        ("/file", redirect_response("file:///etc/passwd")),
        ("/round", redirect_response("/round")),
    ];
    let server = PageServer::start("127.0.0.1", pages.into()).await;
    for (answer, arrives) in [(REJECT, false), (ALLOW, true)] {
        let (f, calls) = run_fetches(
            "code",
            &[json!({"url": server.url("/in")})],
            [ALLOW, answer],
        )
        .await;
        let asked = &f.permission_requests()[1];
        assert_eq!(asked.tool_call.title, format!("Fetch `{}`", inner.url("/")));
        let why = call_text(&asked.tool_call);
        assert!(
            why.contains(&format!("redirects to `{}`", inner.url("/"))),
            "{why}"
        );
        assert_eq!(!inner.requested_paths().is_empty(), arrives);
        assert_eq!(call_text(&calls[0]).contains("metadata"), arrives);
    }
    // One answer is enough for several requests to the same address.
    let fetches = ["/here", "/file", "/round"].map(|path| json!({ "url": server.url(path) }));
    let (_, calls) = run_fetches("code", &fetches, [ALLOW, ALLOW, ALLOW]).await;
    assert!(call_text(&calls[0]).contains("arrived"));
    assert_eq!(
        calls[0].raw_output.as_ref().unwrap()["url"],
        server.url("/there")
    );
    assert!(failure_text(&calls[1]).contains("only http and https"));
    assert!(failure_text(&calls[2]).contains("limit: 10)"));
}

#[tokio::test]
async fn oversized_binary_and_missing_pages_are_reported() {
    // One response states its length, and the other just continues.
    let mut endless =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n".to_vec();
    endless.resize(5 * 1024 * 1024, b'x');
    let pages = [
        (
            "/large",
            page_response("text/plain", vec![b'x'; 5 * 1024 * 1024]),
        ),
        ("/endless", Some(endless)),
        ("/image", page_response("image/png", b"\x89PNG")),
        ("/json", page_response("application/json", r#"{"a": 1}"#)),
        (
            "/error",
            http_response("500 Internal Server Error", "text/plain", "out of cheese"),
        ),
        ("/garbage", Some(b"no HTTP at all\r\n\r\n".to_vec())),
    ];
    let server = PageServer::start("127.0.0.1", pages.into()).await;
    let paths = [
        "/large", "/endless", "/image", "/missing", "/error", "/garbage", "/json",
    ];
    let fetches = paths.map(|path| json!({ "url": server.url(path) }));
    let (_, calls) = run_fetches("code", &fetches, [ALLOW_ALWAYS]).await;
    for (call, why) in calls.iter().zip([
        "document too large (limit: 4 MiB).",
        "document too large (limit: 4 MiB).",
        "not text: image/png, 4 bytes.",
        "returned 404 Not Found.\nno such page",
        "returned 500 Internal Server Error.\nout of cheese",
        "invalid HTTP",
    ]) {
        let said = failure_text(call);
        assert!(said.contains(why), "{said}");
    }
    assert!(call_text(&calls[6]).contains(r#"{"a": 1}"#));
}

#[tokio::test]
async fn long_page_is_returned_in_parts() {
    let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let server = PageServer::start(
        "127.0.0.1",
        [("/", page_response("text/plain", &text))].into(),
    )
    .await;
    let url = server.url("/");
    let fetches = [
        json!({"url": url}),
        json!({"url": url, "from": 48 * 1024}),
        json!({"url": url, "from": 1_000_000}),
    ];
    let (_, calls) = run_fetches("code", &fetches, [ALLOW_ALWAYS]).await;
    assert!(
        call_text(&calls[0]).contains("line 0\n") && call_text(&calls[0]).contains("Truncated.")
    );
    let both =
        [&calls[0], &calls[1]].map(|call| call.raw_output.as_ref().unwrap()["truncated"].clone());
    assert_eq!(both, [json!(true), json!(true)]);
    assert!(failure_text(&calls[2]).contains("`from` is out of range"));
}

#[tokio::test]
async fn slow_server_times_out_and_cancel_takes_effect_immediately() {
    let server = PageServer::start("127.0.0.1", [("/", None)].into()).await;
    let slow = json!({"url": server.url("/"), "timeout": 1});
    let (_, calls) = run_fetches("code", &[slow], [ALLOW]).await;
    assert!(failure_text(&calls[0]).contains("timed out after 1 s"));

    let f = AgentFixture::new(
        fetching_agent(&[json!({"url": server.url("/"), "timeout": 120})]),
        NO_CAPABILITIES,
    )
    .await;
    f.queue_answers([ALLOW]);
    let begun =
        |thread: &acp::Thread| common::has_call_showing(thread, ToolCallStatus::InProgress, "");
    assert_eq!(f.cancel_when("go", begun).await, StopReason::Cancelled);
}

#[tokio::test]
async fn unfetchable_url_is_rejected_without_a_permission_request() {
    let urls = [
        "not a url",
        "file:///etc/passwd",
        "ftp://example.org/",
        "http://user:secret@127.0.0.1/",
    ];
    let fetches = urls.map(|url| json!({ "url": url }));
    let (f, calls) = run_fetches("code", &fetches, []).await;
    for (call, why) in calls.iter().zip([
        "Invalid URL",
        "only http",
        "only http",
        "with a user name or password",
    ]) {
        let said = failure_text(call);
        assert!(said.contains(why), "{said}");
    }
    assert!(f.permission_requests().is_empty());
}

#[tokio::test]
async fn rules_can_allow_public_hosts_but_never_private_ones() {
    let server = PageServer::start(
        "127.0.0.1",
        [("/", page_response("text/plain", "secret"))].into(),
    )
    .await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("permissions.toml");
    for (decision, questions) in [("allow", 1), ("deny", 0)] {
        std::fs::write(
            &file,
            format!("[[rule]]\ndecision = \"{decision}\"\nkind = \"fetch\"\n"),
        )
        .unwrap();
        let agent = fetching_agent(&[json!({"url": server.url("/")})]);
        let f = AgentFixture::new(
            agent.rules(RuleFiles::new().user_rules(&file)),
            NO_CAPABILITIES,
        )
        .await;
        f.session.set_mode("code").await.unwrap();
        f.queue_answers((0..questions).map(|_| REJECT));
        f.prompt("go").await.unwrap();
        failure_text(&f.last_tool_call());
        assert_eq!(f.permission_requests().len(), questions);
    }
    assert_eq!(server.requested_paths(), Vec::<String>::new());
}

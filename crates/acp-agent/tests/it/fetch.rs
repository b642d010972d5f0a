//! Fetching, from a server on loopback: which is inside, so that each place is asked about.

use crate::common;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::common::{ALLOW, ALLOW_ALWAYS, AgentFixture, NONE, QuestionAnswer, REJECT, texts};
use acp::thread::{ThreadToolCall, ToolCallStatus};
use acp::v1::*;
use acp_agent::{CodingAgent, RuleFiles, ScriptedModel};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A server that answers each path with bytes as they are, and keeps which were asked for.
struct PageServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What it answers with; nothing at all, for ever, if absent.
type ServedPages = HashMap<&'static str, Option<Vec<u8>>>;

impl PageServer {
    async fn start(host: &str, pages: ServedPages) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (kept, pages) = (Arc::clone(&asked), Arc::new(pages));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&pages), Arc::clone(&kept)));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, pages: Arc<ServedPages>, asked: Arc<Mutex<Vec<String>>>) {
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
            // Who has read enough hangs up.
            let _ = stream.write_all(&page).await;
        }
        Some(None) => {
            let _ = stream.read_line(&mut line).await;
        }
        None => {
            let page = answer("404 Not Found", "text/plain", "no such page");
            let _ = stream.write_all(&page.unwrap_or_default()).await;
        }
    }
}

fn answer(status: &str, media_type: &str, body: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    let body = body.as_ref();
    let length = body.len();
    let mut all = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    all.extend_from_slice(body);
    Some(all)
}

fn page(media_type: &str, body: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    answer("200 OK", media_type, body)
}

fn sends_on(to: &str) -> Option<Vec<u8>> {
    Some(
        format!(
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        .into(),
    )
}

fn agent(fetches: &[Value]) -> CodingAgent {
    let calls: Vec<Value> = fetches
        .iter()
        .map(|arguments| json!({ "call": { "tool": "fetch", "arguments": arguments } }))
        .collect();
    let script = json!({ "turns": [calls] }).to_string();
    CodingAgent::with_model(ScriptedModel::parse(&script).unwrap())
}

/// Fetches them in a session in this mode, with these answers.
async fn fetch(
    mode: &str,
    fetches: &[Value],
    answers: impl IntoIterator<Item = QuestionAnswer>,
) -> (AgentFixture, Vec<ThreadToolCall>) {
    let f = AgentFixture::new(agent(fetches), NONE).await;
    f.session.set_mode(mode).await.unwrap();
    f.answers(answers);
    f.prompt("go").await.unwrap();
    let calls = f.calls();
    (f, calls)
}

fn failed(call: &ThreadToolCall) -> String {
    assert_eq!(call.status, ToolCallStatus::Failed, "{call:?}");
    texts(call)
}

#[tokio::test]
async fn a_page_becomes_text_once_the_person_allows_its_place() {
    let html = "<html><head><title>T</title></head><body><h1>Head</h1><p>A <a href='/x'>link</a>.</p>\
                <script>evil()</script></body></html>";
    for mode in ["ask", "code", "architect"] {
        let pages = [("/", page("text/html; charset=utf-8", html))];
        let server = PageServer::start("127.0.0.1", pages.into()).await;
        let (f, calls) = fetch(mode, &[json!({"url": server.url("/")})], [ALLOW]).await;
        let call = &calls[0];
        assert_eq!(call.status, ToolCallStatus::Completed);
        assert_eq!(call.kind, ToolKind::Fetch);
        assert_eq!(
            f.statuses(&call.id),
            ["pending", "in_progress", "completed"]
        );
        let shown = texts(call);
        assert!(
            shown.contains("# Head") && shown.contains("A [link](/x)."),
            "{shown}"
        );
        assert!(!shown.contains("evil"));
        let asked = &f.asked()[0];
        assert_eq!(
            asked.tool_call.title,
            format!("Fetch `{}`", server.url("/"))
        );
        let why = texts(&asked.tool_call);
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
async fn what_is_not_allowed_is_not_even_asked_for() {
    let server = PageServer::start("127.0.0.1", [("/", page("text/plain", "secret"))].into()).await;
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
        let (f, calls) = fetch("code", &[json!({ "url": url })], [REJECT]).await;
        assert!(
            failed(&calls[0]).contains("Permission denied by the user"),
            "{url}"
        );
        assert_eq!(f.asked().len(), 1, "{url}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_public_host_is_asked_about_too() {
    for mode in ["ask", "code", "architect"] {
        let fetches = [
            json!({"url": "http://1.1.1.1/secret"}),
            json!({"url": "http://1.1.1.1/"}),
        ];
        let (f, calls) = fetch(mode, &fetches, [common::REJECT_ALWAYS]).await;
        for (call, why) in calls.iter().zip([
            "Permission denied by the user for the rest of this session",
            "Rejected: the user chose to always reject this",
        ]) {
            let said = failed(call);
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(calls.len(), 2);
        assert_eq!(f.asked().len(), 1);
        assert!(
            f.asked()[0].options[1]
                .name
                .contains("fetching from `1.1.1.1`")
        );
    }
}

#[tokio::test]
async fn always_is_for_one_place() {
    let pages = || {
        ServedPages::from([
            ("/a", page("text/plain", "one")),
            ("/b", page("text/plain", "two")),
        ])
    };
    let server = PageServer::start("127.0.0.1", pages()).await;
    let other = PageServer::start("127.0.0.1", pages()).await;
    let fetches =
        [server.url("/a"), server.url("/b"), other.url("/a")].map(|url| json!({ "url": url }));
    let (f, calls) = fetch("ask", &fetches, [ALLOW_ALWAYS, REJECT]).await;
    assert!(texts(&calls[0]).contains("one") && texts(&calls[1]).contains("two"));
    failed(&calls[2]);
    assert_eq!((f.asked().len(), other.asked().len()), (2, 0));
}

#[tokio::test]
async fn where_it_is_sent_on_to_is_asked_about_before_anyone_goes_there() {
    let inner =
        PageServer::start("127.0.0.1", [("/", page("text/plain", "metadata"))].into()).await;
    let pages = [
        ("/in", sends_on(&inner.url("/"))),
        ("/here", sends_on("/there")),
        ("/there", page("text/plain", "arrived")),
        ("/file", sends_on("file:///etc/passwd")),
        ("/round", sends_on("/round")),
    ];
    let server = PageServer::start("127.0.0.1", pages.into()).await;
    for (answer, arrives) in [(REJECT, false), (ALLOW, true)] {
        let (f, calls) = fetch(
            "code",
            &[json!({"url": server.url("/in")})],
            [ALLOW, answer],
        )
        .await;
        let asked = &f.asked()[1];
        assert_eq!(asked.tool_call.title, format!("Fetch `{}`", inner.url("/")));
        let why = texts(&asked.tool_call);
        assert!(
            why.contains(&format!("redirects to `{}`", inner.url("/"))),
            "{why}"
        );
        assert_eq!(!inner.asked().is_empty(), arrives);
        assert_eq!(texts(&calls[0]).contains("metadata"), arrives);
    }
    // To the same place, one answer is enough.
    let fetches = ["/here", "/file", "/round"].map(|path| json!({ "url": server.url(path) }));
    let (_, calls) = fetch("code", &fetches, [ALLOW, ALLOW, ALLOW]).await;
    assert!(texts(&calls[0]).contains("arrived"));
    assert_eq!(
        calls[0].raw_output.as_ref().unwrap()["url"],
        server.url("/there")
    );
    assert!(failed(&calls[1]).contains("only http and https"));
    assert!(failed(&calls[2]).contains("limit: 10)"));
}

#[tokio::test]
async fn what_is_too_large_or_no_text_or_missing_is_told() {
    // One that says how long it is, and one that just goes on.
    let mut endless =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n".to_vec();
    endless.resize(5 * 1024 * 1024, b'x');
    let pages = [
        ("/large", page("text/plain", vec![b'x'; 5 * 1024 * 1024])),
        ("/endless", Some(endless)),
        ("/image", page("image/png", b"\x89PNG")),
        ("/json", page("application/json", r#"{"a": 1}"#)),
        (
            "/error",
            answer("500 Internal Server Error", "text/plain", "out of cheese"),
        ),
        ("/garbage", Some(b"no HTTP at all\r\n\r\n".to_vec())),
    ];
    let server = PageServer::start("127.0.0.1", pages.into()).await;
    let paths = [
        "/large", "/endless", "/image", "/missing", "/error", "/garbage", "/json",
    ];
    let fetches = paths.map(|path| json!({ "url": server.url(path) }));
    let (_, calls) = fetch("code", &fetches, [ALLOW_ALWAYS]).await;
    for (call, why) in calls.iter().zip([
        "document too large (limit: 4 MiB).",
        "document too large (limit: 4 MiB).",
        "not text: image/png, 4 bytes.",
        "returned 404 Not Found.\nno such page",
        "returned 500 Internal Server Error.\nout of cheese",
        "invalid HTTP",
    ]) {
        let said = failed(call);
        assert!(said.contains(why), "{said}");
    }
    assert!(texts(&calls[6]).contains(r#"{"a": 1}"#));
}

#[tokio::test]
async fn a_long_text_is_given_in_parts() {
    let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let server = PageServer::start("127.0.0.1", [("/", page("text/plain", &text))].into()).await;
    let url = server.url("/");
    let fetches = [
        json!({"url": url}),
        json!({"url": url, "from": 48 * 1024}),
        json!({"url": url, "from": 1_000_000}),
    ];
    let (_, calls) = fetch("code", &fetches, [ALLOW_ALWAYS]).await;
    assert!(texts(&calls[0]).contains("line 0\n") && texts(&calls[0]).contains("Truncated."));
    let both =
        [&calls[0], &calls[1]].map(|call| call.raw_output.as_ref().unwrap()["truncated"].clone());
    assert_eq!(both, [json!(true), json!(true)]);
    assert!(failed(&calls[2]).contains("`from` is out of range"));
}

#[tokio::test]
async fn a_slow_server_is_given_up_and_a_cancel_does_not_wait_for_it() {
    let server = PageServer::start("127.0.0.1", [("/", None)].into()).await;
    let slow = json!({"url": server.url("/"), "timeout": 1});
    let (_, calls) = fetch("code", &[slow], [ALLOW]).await;
    assert!(failed(&calls[0]).contains("timed out after 1 s"));

    let f = AgentFixture::new(
        agent(&[json!({"url": server.url("/"), "timeout": 120})]),
        NONE,
    )
    .await;
    f.answers([ALLOW]);
    let begun = |thread: &acp::Thread| common::shows(thread, ToolCallStatus::InProgress, "");
    assert_eq!(f.cancel_when("go", begun).await, StopReason::Cancelled);
}

#[tokio::test]
async fn what_is_no_url_to_fetch_is_refused_without_a_question() {
    let urls = [
        "not a url",
        "file:///etc/passwd",
        "ftp://example.org/",
        "http://user:secret@127.0.0.1/",
    ];
    let fetches = urls.map(|url| json!({ "url": url }));
    let (f, calls) = fetch("code", &fetches, []).await;
    for (call, why) in calls.iter().zip([
        "Invalid URL",
        "only http",
        "only http",
        "with a user name or password",
    ]) {
        let said = failed(call);
        assert!(said.contains(why), "{said}");
    }
    assert!(f.asked().is_empty());
}

#[tokio::test]
async fn rules_allow_public_hosts_and_never_what_is_inside() {
    let server = PageServer::start("127.0.0.1", [("/", page("text/plain", "secret"))].into()).await;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("permissions.toml");
    for (decision, questions) in [("allow", 1), ("deny", 0)] {
        std::fs::write(
            &file,
            format!("[[rule]]\ndecision = \"{decision}\"\nkind = \"fetch\"\n"),
        )
        .unwrap();
        let agent = agent(&[json!({"url": server.url("/")})]);
        let f = AgentFixture::new(agent.rules(RuleFiles::new().user_rules(&file)), NONE).await;
        f.session.set_mode("code").await.unwrap();
        f.answers((0..questions).map(|_| REJECT));
        f.prompt("go").await.unwrap();
        failed(&f.call());
        assert_eq!(f.asked().len(), questions);
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

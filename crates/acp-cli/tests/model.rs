//! `acp agent --model`: a language model at any address.

// Clippy takes only what is in a test function for a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use common::editor::Editor;
use common::{Ended, Project};
use serde_json::{Value, json};

/// A model's server that gives this answer once. Gives its address, and what it was asked.
fn server(answer: String) -> (String, std::thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).unwrap();
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    });
    (address, heard)
}

fn http(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// The agent with this model, and nothing of whoever runs the test.
fn agent(project: &Project, args: &[&str]) -> Command {
    let mut command = project.acp(&["agent"]);
    command.args(args);
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        command.env_remove(key);
    }
    command
}

#[test]
fn a_model_at_an_address_answers_and_needs_no_key() {
    let text = json!({"choices": [{"index": 0, "delta": {"content": "Hello from home."}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let events = format!("data: {text}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let (address, heard) = server(http("200 OK", "text/event-stream", &events));
    let project = Project::new();
    let address = format!("{address}/v1");
    let args = ["--model", "openai/qwen3:8b", "--base-url", &address];
    let mut editor = Editor::start(agent(&project, &args), 1);
    let session = editor.new_session(project.path());
    editor.prompt(&session, "Hi").unwrap();
    let said = editor.shown.texts.values();
    let said: Vec<_> = said.map(|(_, text)| text.as_str()).collect();
    assert_eq!(said, ["Hello from home."]);
    let (head, body) = heard.join().unwrap();
    assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
    assert!(!head.to_lowercase().contains("authorization"), "{head}");
    assert_eq!(body["model"], "qwen3:8b");
}

#[test]
fn a_key_of_the_environment_is_used_and_shown_nowhere() {
    let refusal = json!({"type": "error", "error": {"type": "authentication_error", "message": "no such key: sk-1234"}});
    let (address, heard) = server(http(
        "401 Unauthorized",
        "application/json",
        &refusal.to_string(),
    ));
    let project = Project::new();
    let mut command = agent(
        &project,
        &["--model", "anthropic/claude-x", "--base-url", &address],
    );
    command
        .env("ANTHROPIC_API_KEY", "sk-1234")
        .stderr(Stdio::piped());
    let mut editor = Editor::start(command, 1);
    let mut stderr = editor.child.stderr.take().unwrap();
    let session = editor.new_session(project.path());
    let error = editor.prompt(&session, "Hi").unwrap_err();
    assert!(
        error.contains("anthropic/claude-x") && error.contains("ANTHROPIC_API_KEY"),
        "{error}"
    );
    assert!(!error.contains("sk-1234"), "{error}");
    let (head, _) = heard.join().unwrap();
    assert!(head.contains("x-api-key: sk-1234\r\n"), "{head}");
    drop(editor);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!said.contains("sk-1234"), "{said}");
}

#[test]
fn without_a_key_a_provider_is_not_asked() {
    let project = Project::new();
    let mut editor = Editor::start(agent(&project, &["--model", "gemini/gemini-x"]), 1);
    let session = editor.new_session(project.path());
    let error = editor.prompt(&session, "Hi").unwrap_err();
    assert!(error.contains("GEMINI_API_KEY"), "{error}");
}

#[test]
fn what_is_no_model_is_wrong_usage() {
    let project = Project::new();
    for (args, why) in [
        (&["--model", "claude"][..], "expected PROVIDER/NAME"),
        (&["--model", "acme/x"], "there is no provider acme"),
        (
            &["--model", "openai/x", "--base-url", "localhost"],
            "no address",
        ),
        (&["--base-url", "http://localhost"], "--model"),
        (
            &["--model", "openai/x", "--script", "x.json"],
            "cannot be used with",
        ),
    ] {
        let ended = Ended::of(agent(&project, args).output().unwrap());
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.stderr.contains(why), "{args:?}: {}", ended.stderr);
    }
}

//! Tests of `acp agent --model`, with a model server started by the test.

use crate::common;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::common::editor::ScriptedEditor;
#[cfg(target_os = "linux")]
use crate::common::terminal::CommandTerminal;
use crate::common::{CommandResult, TestProject};
use serde_json::{Value, json};

/// Starts a model server that sends this response once and does not list its models. Returns its address and a thread
/// handle. Joining the thread returns the request that was received.
pub(crate) fn start_server(answer: String) -> (String, std::thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let (mut stream, head) = loop {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
            }
            if head.starts_with("POST ") {
                break (stream, head);
            }
            let absent = http_response("404 Not Found", "text/plain", "");
            // Who asked may be gone.
            let _ = stream.get_mut().write_all(absent.as_bytes());
        };
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

fn http_response(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a command that runs the agent with these arguments, isolated from whoever runs the test.
fn agent_command(project: &TestProject, args: &[&str]) -> Command {
    let mut command = project.acp_command(&["agent"]);
    command.args(args);
    command
}

fn open_session(editor: &mut ScriptedEditor, project: &TestProject) -> Result<Value, String> {
    let params = json!({"cwd": project.path(), "mcpServers": []});
    editor.send_and_wait("session/new", params)
}

/// Returns each config option as `id=value`, along with the available models.
fn option_values(opened: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = opened["configOptions"].as_array().unwrap();
    let set = all
        .iter()
        .map(|option| format!("{}={}", text(&option["id"]), text(&option["currentValue"])));
    let models = all.iter().find(|option| option["id"] == "model");
    let models = models.map(|option| {
        let values = option["options"].as_array().unwrap().iter();
        values.map(|value| text(&value["value"])).collect()
    });
    (set.collect(), models.unwrap_or_default())
}

/// Returns a response that consists of this text.
pub(crate) fn chat_response(text: &str) -> String {
    let text = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let events = format!("data: {text}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    http_response("200 OK", "text/event-stream", &events)
}

#[test]
fn typed_arguments_override_the_configuration() {
    let (home, heard) = start_server(chat_response("Hello from home."));
    let (other, _) = start_server(chat_response("not asked"));
    let project = TestProject::new();
    let config = format!(
        "[agent]\nmodel = \"openai/qwen3:8b\"\nbase_url = \"{home}/v1\"\nmode = \"code\"\nthought_level = \"low\"\n\n\
         [[agent.models]]\nprovider = \"openai\"\nname = \"big\"\nbase_url = \"{other}\"\nkey_env = \"BIG_KEY\"\n\n\
         [[agent.models]]\nprovider = \"gemini\"\nname = \"gemini-x\"\n"
    );
    project.write_config("config.toml", &config);
    let mut editor = ScriptedEditor::start(agent_command(&project, &[]), 1);
    let opened = open_session(&mut editor, &project).unwrap();
    let (set, models) = option_values(&opened);
    let begins = [
        "mode=code",
        "model=openai/qwen3:8b",
        "thought_level=default",
    ];
    assert_eq!(set, begins);
    // Those that lack their key are not offered.
    assert_eq!(models, ["openai/qwen3:8b"]);
    let session = opened["sessionId"].as_str().unwrap();
    editor.prompt(session, "Hi").unwrap();
    let (_, body) = heard.join().unwrap();
    assert_eq!(body["model"], "qwen3:8b");
    assert_eq!(body["reasoning_effort"], "low");

    let mut command = agent_command(&project, &["--model", "openai/big"]);
    command.env("BIG_KEY", "k").env("GEMINI_API_KEY", "k");
    let mut editor = ScriptedEditor::start(command, 1);
    let (set, models) = option_values(&open_session(&mut editor, &project).unwrap());
    assert_eq!(set, ["mode=code", "model=openai/big"]);
    let named = ["openai/big", "openai/qwen3:8b", "gemini/gemini-x"];
    assert_eq!(models[..3], named);
    assert!(
        models[3..]
            .iter()
            .all(|model| model.starts_with("gemini/gemini-"))
    );

    let mut editor = ScriptedEditor::start(agent_command(&project, &["--model", "offline"]), 1);
    let (set, _) = option_values(&open_session(&mut editor, &project).unwrap());
    assert_eq!(set, ["mode=code"]);
}

#[test]
fn configuration_error_is_reported_with_its_line() {
    let project = TestProject::new();
    for (config, said) in [
        (
            "[agent]\nmodel = 'claude'",
            ", line 2: invalid model claude: expected PROVIDER/NAME",
        ),
        ("[agent]\n\nmode = 'fast'", ", line 3: unknown mode `fast`"),
        (
            "[agent]\nthought_level = 'huge'",
            ", line 2: unknown thought level huge",
        ),
        ("[agent]\nmax_requests = 0", ", line 2: "),
        ("[agent]\nmodle = 'a'", ", line 2: unknown field `modle`"),
        (
            "[agent]\nbase_url = 'http://a'",
            ", line 1: `base_url` requires `model`",
        ),
        (
            "\n[[agent.models]]\nprovider = 'openai'\nname = 'x'\nbase_url = 'localhost'",
            "invalid URL localhost",
        ),
        (
            "[[agent.models]]\nprovider = 'acme'\nname = 'x'",
            "unknown provider acme; expected anthropic, openai or gemini",
        ),
    ] {
        project.write_config("config.toml", config);
        let ended = CommandResult::from_output(agent_command(&project, &[]).output().unwrap());
        let ended = ended.expect_code(2).expect_stderr("config.toml, line ");
        assert_eq!(ended.stdout, "", "{config}");
        ended.expect_stderr(said);
    }
}

/// Runs a command line on a terminal, and types `keys` once the terminal has stopped echoing input.
#[cfg(target_os = "linux")]
fn type_key(project: &TestProject, line: &str, prompt: &str, keys: &str) -> CommandTerminal {
    let mut terminal = CommandTerminal::start(project, &format!("tty && {line}"));
    terminal.wait_for(prompt);
    let name = terminal.seen.lines().next().unwrap().trim().to_owned();
    let settings = || {
        let stty = project
            .program_command("stty")
            .args(["-a", "-F", &name])
            .output();
        String::from_utf8(stty.unwrap().stdout).unwrap()
    };
    let begun = std::time::Instant::now();
    while !settings().contains("-echo ") {
        assert!(begun.elapsed().as_secs() < 60, "{}", settings());
    }
    terminal.send_keys(keys);
    terminal
}

#[cfg(target_os = "linux")]
#[test]
fn typed_key_is_stored_and_used_until_logout() {
    use std::os::unix::fs::PermissionsExt;

    let project = TestProject::new();
    let (address, heard) = start_server(chat_response("Ah, you."));
    let at = format!("{address}/v1");
    let shell = |line: &str, prompt: &str, keys: &str| {
        type_key(&project, &format!("{} {line}", common::ACP), prompt, keys)
    };
    let line = format!("agent login openai --at {at}");
    let screen = shell(&line, "(hidden)", "sk-typed\n").expect_exit(0);
    assert!(
        screen.contains("key saved to")
            && screen.contains("it will be checked with the first prompt")
            && !screen.contains("sk-typed"),
        "{screen}"
    );
    let file = project.sessions_directory().join("keys.json");
    let mode = file.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);

    let args = ["--model", "openai/x", "--base-url", &at];
    let mut editor = ScriptedEditor::start(agent_command(&project, &args), 1);
    let session = editor.new_session(project.path());
    editor.prompt(&session, "Hi").unwrap();
    let (head, _) = heard.join().unwrap();
    assert!(
        head.contains("authorization: Bearer sk-typed\r\n"),
        "{head}"
    );

    // With --model alone it is known whose key is meant.
    let line = "agent --model gemini/gemini-x login";
    shell(line, "API key for Google Gemini", "another\n").expect_exit(0);
    shell(line, "API key for Google Gemini", "other\u{3}").expect_exit(130);
    shell(line, "API key for Google Gemini", "\n").expect_exit(2);
    let mut editor = ScriptedEditor::start(agent_command(&project, &[]), 1);
    let (set, _) = option_values(&open_session(&mut editor, &project).unwrap());
    assert!(set[1].starts_with("model=gemini/"), "{set:?}");

    let out = |args: &[&str]| {
        let mut command = project.acp_command(&["agent", "logout"]);
        command.args(args);
        CommandResult::from_output(command.output().unwrap()).expect_code(0)
    };
    out(&["gemini"]).expect_stdout(&["logged out"]);
    out(&["gemini"]).expect_stdout(&["no key stored"]);
    out(&[]).expect_stdout(&["logged out"]);
    let mut editor = ScriptedEditor::start(agent_command(&project, &[]), 1);
    let (set, _) = option_values(&open_session(&mut editor, &project).unwrap());
    assert_eq!(set, ["mode=ask"]);
}

/// Tests that the terminal is restored, whichever signal interrupts the login.
#[cfg(target_os = "linux")]
#[test]
fn interrupted_login_restores_the_terminal() {
    for signal in ["TERM", "HUP"] {
        let project = TestProject::new();
        let login = format!(
            "sh -c 'echo pid:$$; exec {} agent login openai'",
            common::ACP
        );
        let line = format!("({login}; echo code:$?; stty -a)");
        let mut terminal = type_key(&project, &line, "(hidden)", "");
        let (_, pid) = terminal.seen.split_once("pid:").unwrap();
        let pid = pid.lines().next().unwrap().trim().to_owned();
        // The end-of-file key hands over half a line. What had not arrived when the program ended would be echoed by
        // the terminal, as it should be.
        let read = || {
            let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
            let bytes = io.lines().find_map(|line| line.strip_prefix("rchar: "));
            bytes.unwrap().parse::<u64>().unwrap()
        };
        let before = read();
        terminal.send_keys("sk-ty\u{4}");
        let begun = std::time::Instant::now();
        while read() < before + 5 {
            assert!(begun.elapsed().as_secs() < 60, "it reads nothing");
        }
        let killed = project
            .program_command("kill")
            .args(["-s", signal, &pid])
            .status();
        assert!(killed.unwrap().success());
        terminal.wait_for("code:");
        let screen = terminal.expect_exit(0);
        assert!(screen.contains("code:130"), "{signal}: {screen}");
        for set in [" echo ", " icanon ", "isig "] {
            assert!(screen.contains(set), "{signal}: {screen}");
        }
        assert!(!screen.contains("sk-ty"), "{signal}: {screen}");
        assert!(!project.sessions_directory().join("keys.json").exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn editor_logs_in_through_the_agent_program() {
    let project = TestProject::new();
    let this = format!("{} agent --model anthropic/claude-x", common::ACP);
    let refused = project
        .run_shell(&format!("acp run hello -- {this}"))
        .expect_code(1)
        .expect_stderr("ANTHROPIC_API_KEY");
    assert!(
        refused.stderr.contains("login --method anthropic"),
        "{refused:?}"
    );
    let line = format!("{} login --method anthropic -- {this}", common::ACP);
    let screen = type_key(&project, &line, "(hidden)", "sk-typed\n").expect_exit(0);
    assert!(
        screen.contains("logged in: API key for Anthropic"),
        "{screen}"
    );
    let mut editor = ScriptedEditor::start(
        agent_command(&project, &["--model", "anthropic/claude-x"]),
        1,
    );
    open_session(&mut editor, &project).unwrap();
    project
        .run_shell(&format!("acp logout -- {this}"))
        .expect_code(0)
        .expect_stdout(&["logged out"]);
    let mut editor = ScriptedEditor::start(
        agent_command(&project, &["--model", "anthropic/claude-x"]),
        1,
    );
    open_session(&mut editor, &project).unwrap_err();
}

#[test]
fn key_is_not_read_without_a_terminal() {
    let project = TestProject::new();
    for (args, said) in [
        (&["login", "openai"][..], "set OPENAI_API_KEY"),
        (
            &["login"],
            "specify a provider: anthropic, openai or gemini",
        ),
        (
            &["login", "acme"],
            "unknown provider acme; expected anthropic, openai or gemini",
        ),
        (&["login", "openai", "--at", "here"], "invalid URL here"),
    ] {
        let ended = CommandResult::from_output(agent_command(&project, args).output().unwrap());
        ended.expect_code(2).expect_stderr(said);
    }
    assert!(!project.sessions_directory().join("keys.json").exists());
}

#[test]
fn model_at_a_url_needs_no_key() {
    let text = json!({"choices": [{"index": 0, "delta": {"content": "Hello from home."}}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let events = format!("data: {text}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let (address, heard) = start_server(http_response("200 OK", "text/event-stream", &events));
    let project = TestProject::new();
    let address = format!("{address}/v1");
    let args = ["--model", "openai/qwen3:8b", "--base-url", &address];
    let mut editor = ScriptedEditor::start(agent_command(&project, &args), 1);
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
fn key_from_the_environment_is_used_and_never_shown() {
    let refusal = json!({"type": "error", "error": {"type": "authentication_error", "message": "no such key: sk-1234"}});
    let (address, heard) = start_server(http_response(
        "401 Unauthorized",
        "application/json",
        &refusal.to_string(),
    ));
    let project = TestProject::new();
    let mut command = agent_command(
        &project,
        &["--model", "anthropic/claude-x", "--base-url", &address],
    );
    command
        .env("ANTHROPIC_API_KEY", "sk-1234")
        .stderr(Stdio::piped());
    let mut editor = ScriptedEditor::start(command, 1);
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
fn provider_is_not_called_without_a_key() {
    let project = TestProject::new();
    let mut editor =
        ScriptedEditor::start(agent_command(&project, &["--model", "gemini/gemini-x"]), 1);
    let error = open_session(&mut editor, &project).unwrap_err();
    assert!(error.contains("GEMINI_API_KEY"), "{error}");
}

#[test]
fn unknown_model_is_a_usage_error() {
    let project = TestProject::new();
    for (args, why) in [
        (&["--model", "claude"][..], "expected PROVIDER/NAME"),
        (
            &["--model", "acme/x"],
            "unknown provider acme; expected anthropic, openai or gemini",
        ),
        (
            &["--model", "openai/x", "--base-url", "localhost"],
            "invalid URL localhost",
        ),
        (&["--base-url", "http://localhost"], "--model"),
        (
            &["--model", "openai/x", "--script", "x.json"],
            "cannot be used with",
        ),
    ] {
        let ended = CommandResult::from_output(agent_command(&project, args).output().unwrap());
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.stderr.contains(why), "{args:?}: {}", ended.stderr);
    }
}

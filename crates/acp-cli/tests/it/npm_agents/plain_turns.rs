//! A plain turn with each agent from npm, and what it says about itself.

use std::path::{Path, PathBuf};

use acp_agent::{Provider, WireFormat};
use serde_json::{Value, json};

use super::claude::claude_command;
use super::install::{CLAUDE, CODEX, GEMINI, OPENCODE};
use super::opencode::opencode_command;
use super::say_to;
use crate::common::TestProject;
use crate::common::prepared_model::PreparedModel;

/// Checks a plain turn and `acp inspect` with this agent, whose model speaks this wire format.
fn check_agent(
    program: Option<PathBuf>,
    format: impl Into<WireFormat>,
    command: impl Fn(&Path, &Path, &PreparedModel) -> String,
    expected: &Value,
) {
    let Some(program) = program else { return };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let reply = say_to("Please greet", "Hello, user.");
    let model = PreparedModel::with_format(format, vec![reply]);
    let agent = command(&program, home.path(), &model);
    let line = format!("acp run --output r.json 'Please greet' -- {agent}");
    project
        .run_shell(&line)
        .expect_code(0)
        .expect_stdout(&["Hello, user."]);
    let result: Value = serde_json::from_str(&project.read_file("r.json")).unwrap();
    assert_eq!(result["answer"], "Hello, user.", "{result:#}");
    assert_eq!(result["stopReason"], "end_turn", "{result:#}");
    let line = format!("acp inspect --format json -- {agent}");
    let ended = project.run_shell(&line).expect_code(0);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    for (path, value) in expected.as_object().unwrap() {
        let found = found.pointer(path);
        assert_eq!(found, Some(value), "{path}: {}", ended.stdout);
    }
}

/// Returns what `acp inspect` is expected to find: the protocol versions, and the methods for sessions. All of these
/// agents open a session without a login.
fn expect_session(versions: &[u8], methods: &[&str]) -> Value {
    json!({
        "/protocol/accepted": versions,
        "/capabilities/session_methods": methods,
        "/session/is_open": true,
        "/session/needs_login": false,
    })
}

#[test]
fn opencode_answers() {
    let command = |program: &Path, home: &Path, model: &PreparedModel| {
        opencode_command(program, home, model, &json!("allow"), &json!("allow"))
    };
    let expected = expect_session(&[1], &["new", "load", "resume", "fork", "list", "close"]);
    check_agent(
        OPENCODE.find_program(),
        Provider::OpenAi,
        command,
        &expected,
    );
}

#[test]
fn gemini_answers() {
    let command = |program: &Path, home: &Path, model: &PreparedModel| {
        format!(
            "env HOME={home} GEMINI_API_KEY=none GOOGLE_GEMINI_BASE_URL={} GEMINI_CLI_NO_RELAUNCH=true \
             node {} --acp --model gemini-2.5-pro",
            model.origin(),
            program.display(),
            home = home.display()
        )
    };
    let expected = expect_session(&[1], &["new", "load"]);
    check_agent(GEMINI.find_program(), Provider::Gemini, command, &expected);
}

#[test]
fn codex_answers() {
    let command = |program: &Path, home: &Path, model: &PreparedModel| {
        let config = format!(
            "model = \"gpt-5.4\"\nmodel_provider = \"prepared\"\n\
             [model_providers.prepared]\nname = \"Prepared\"\nbase_url = \"{}\"\nwire_api = \"responses\"\n",
            model.url()
        );
        std::fs::write(home.join("config.toml"), config).unwrap();
        format!(
            "env HOME={home} CODEX_HOME={home} OPENAI_API_KEY=none {}",
            program.display(),
            home = home.display()
        )
    };
    let expected = expect_session(&[1], &["new", "load", "resume", "list", "close"]);
    let format = WireFormat::OpenAiResponses;
    check_agent(CODEX.find_program(), format, command, &expected);
}

#[test]
fn claude_answers() {
    let expected = expect_session(
        &[1, 2],
        &["new", "load", "resume", "fork", "list", "close", "delete"],
    );
    let program = CLAUDE.find_program();
    check_agent(program, Provider::Anthropic, claude_command, &expected);
}

//! A test of undo with an agent from npm that writes files by itself and knows nothing of this project.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::*;
use crate::full_task::provider::{AnswerPiece, ProviderReply};
use prepared_model::{PreparedModel, say};
use rewind_by_agent::ask;

/// If this variable is set, the agent is downloaded, which takes 60 MB.
const DOWNLOAD_VARIABLE: &str = "ACP_TEST_NPM_AGENTS";

/// The agent's package, for any processor of this kind.
const PACKAGE: &str = "opencode-linux-x64-baseline";
const VERSION: &str = "1.18.33";

/// Returns the agent's program, and installs it if necessary. Says on stderr why there is none.
fn find_opencode() -> Option<PathBuf> {
    match install_opencode() {
        Ok(program) => Some(program),
        Err(reason) => {
            // Bypass the test harness, which hides the output of tests that pass.
            let _ = writeln!(std::io::stderr(), "skipped: {reason}");
            None
        }
    }
}

fn install_opencode() -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("the agent's package is for Linux on x86-64".to_owned());
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("opencode-{VERSION}"));
    let program = directory.join(format!("node_modules/{PACKAGE}/bin/opencode"));
    if program.exists() {
        return Ok(program);
    }
    if std::env::var_os(DOWNLOAD_VARIABLE).is_none() {
        return Err(format!(
            "{DOWNLOAD_VARIABLE} is not set, so the agent is not downloaded"
        ));
    }
    fs::create_dir_all(&directory).unwrap();
    let lock = File::create(directory.join(".lock")).unwrap();
    lock.lock().unwrap();
    let installed = Command::new("npm")
        .current_dir(&directory)
        .args(["install", "--no-save", "--ignore-scripts", "--no-audit"])
        .args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000"])
        .arg(format!("{PACKAGE}@{VERSION}"))
        .output()
        .map_err(|e| format!("npm cannot be started: {e}"))?;
    if !installed.status.success() {
        let said = String::from_utf8_lossy(&installed.stderr).into_owned();
        return Err(format!("npm cannot install {PACKAGE}: {said}"));
    }
    assert!(
        program.exists(),
        "{} is not in the package",
        program.display()
    );
    Ok(program)
}

/// Returns the command line of the agent, with a home of its own and this model.
fn opencode_command(program: &Path, home: &Path, model: &PreparedModel) -> String {
    let config = json!({
        "provider": {"prepared": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Prepared",
            "options": {"baseURL": model.url(), "apiKey": "none"},
            "models": {"m": {"name": "M"}},
        }},
        "model": "prepared/m",
        "small_model": "prepared/m",
        // It would ask the model for a title, at any time.
        "agent": {"title": {"disable": true}},
        "permission": "allow",
        "autoupdate": false,
        "share": "disabled",
    });
    let file = home.join("opencode.json");
    fs::write(&file, config.to_string()).unwrap();
    let settings = [
        "MODELS_FETCH",
        "AUTOUPDATE",
        "LSP_DOWNLOAD",
        "DEFAULT_PLUGINS",
    ];
    let settings = settings.map(|setting| format!("OPENCODE_DISABLE_{setting}=1"));
    format!(
        "env HOME={home} XDG_CONFIG_HOME={home}/c XDG_DATA_HOME={home}/d XDG_STATE_HOME={home}/s XDG_CACHE_HOME={home}/k \
         OPENCODE_CONFIG={} {} {} acp",
        file.display(),
        settings.join(" "),
        program.display(),
        home = home.display(),
    )
}

#[test]
fn files_that_another_agent_wrote_by_itself_are_restored() {
    let Some(program) = find_opencode() else {
        return;
    };
    let project = TestProject::new();
    let home = tempfile::tempdir().unwrap();
    let file = project.file("new.txt").display().to_string();
    let write = json!({"filePath": file, "content": "by the agent\n"});
    let model = PreparedModel::with_replies(vec![
        say("Hello, user."),
        ProviderReply::Says(vec![AnswerPiece::Call("call", "write", write)]),
        say("It is written."),
        say("We go on."),
    ]);
    let agent = opencode_command(&program, home.path(), &model);
    let mut screen = start_chat_with_args(&project, 100, 40, &format!("--allow all -- {agent}"));
    ask(&mut screen, "Greet me", "Hello, user.");
    ask(&mut screen, "Write the file", "It is written.");
    assert_eq!(project.read_file("new.txt"), "by the agent\n");
    screen.send_line("/undo");
    screen.wait_for("Undo 1 turn");
    screen.wait_for("delete new.txt");
    screen.wait_for("c and b continue the conversation in a new session");
    screen.send_keys("b");
    screen.wait_for("files restored");
    assert!(!project.file("new.txt").exists());
    screen.wait_for("Type a prompt; the conversation so far goes with it (1 KB)");
    ask(&mut screen, "What now?", "We go on.");
    let messages = model.last_messages(4);
    let said = messages.join("\n");
    assert!(
        said.contains("Greet me") && said.contains("Hello, user."),
        "{said}"
    );
    assert!(
        said.contains("What now?") && !said.contains("Write the file"),
        "{said}"
    );
}

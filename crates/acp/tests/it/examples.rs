//! Runs the examples as programs. `cargo test` builds them before these tests run.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

/// The timeout for each program.
const TIMEOUT: Duration = Duration::from_secs(60);

fn example_path(name: &str) -> PathBuf {
    // Next to the directory of this test.
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(|deps| deps.parent()).unwrap();
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = built.join("examples").join(file);
    assert!(
        path.exists(),
        "{} is not there; `cargo test -p acp-sdk --examples --test it examples` builds it",
        path.display()
    );
    path
}

async fn run_example(name: &str, args: &[&str]) -> Output {
    let mut command = Command::new(example_path(name));
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(TIMEOUT, command.output()).await;
    ended.expect("it ends").unwrap()
}

/// Runs an example, which must succeed, and returns its output.
async fn example_output(name: &str, args: &[&str]) -> String {
    let output = run_example(name, args).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    assert_eq!(errors, "", "{name}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_client_runs_the_agent_and_exits_with_it() {
    let agent = example_path("agent");
    let printed = example_output("client", &["Hello", agent.to_str().unwrap()]).await;
    assert_eq!(printed, "You said: Hello\n(end_turn)\n");
}

#[tokio::test]
async fn the_client_reports_errors() {
    let output = run_example("client", &["Hello"]).await;
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("usage: client"), "{errors}");

    // A program that is not an agent: it prints nothing and exits.
    let no_agent = example_path("extension");
    let output = run_example("client", &["Hello", no_agent.to_str().unwrap()]).await;
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("Closed("), "{errors}");
}

#[tokio::test]
async fn one_agent_supports_both_versions() {
    let printed = example_output("both_versions", &[]).await;
    let negotiated: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with("the agent"))
        .filter_map(|line| line.rsplit(": ").next())
        .collect();
    assert_eq!(
        negotiated,
        ["version 2", "version 1", "version 1"],
        "{printed}"
    );
    // The user sees the same in each version.
    let same = "  end_turn; items in the thread: 3";
    let ends = printed.lines().filter(|line| *line == same);
    assert_eq!(ends.count(), 3, "{printed}");
    assert_eq!(printed.matches("state_update").count(), 2, "{printed}");
}

#[tokio::test]
async fn reads_are_allowed_and_changes_rejected() {
    assert_eq!(
        example_output("permission", &[]).await,
        "Allow \"Read notes.txt\"?\n\
         Allow \"Delete notes.txt\"?\n\
         Read notes.txt: completed\n\
         Delete notes.txt: failed\n\
         (end_turn)\n"
    );
}

#[tokio::test]
async fn a_file_is_read_and_a_command_run_through_the_client() {
    let printed = example_output("files_and_terminals", &[]).await;
    let lines: Vec<&str> = printed.lines().collect();
    let [file, command, end] = lines[..] else {
        panic!("{printed}")
    };
    assert_eq!(file, "The first line is \"[package]\\n\".");
    assert!(command.starts_with("\"cargo "), "{command}");
    assert!(command.ends_with("exit code Some(0)."), "{command}");
    assert_eq!(end, "(end_turn)");
}

#[tokio::test]
async fn extensions_work_in_both_directions() {
    let printed = example_output("extension", &[]).await;
    let lines: Vec<&str> = printed.lines().collect();
    let [hint, sum, unknown, seen] = lines[..] else {
        panic!("{printed}")
    };
    assert_eq!(hint, "the agent received a hint: be quick");
    assert_eq!(sum, "the sum is 6");
    assert!(
        unknown.contains("Method not found: _example.com/product"),
        "{unknown}"
    );
    assert!(seen.starts_with("the selection is"), "{seen}");
    assert!(seen.contains("let answer = 42;"), "{seen}");
}

#[tokio::test]
async fn the_user_fills_in_a_form() {
    assert_eq!(
        example_output("elicitation", &[]).await,
        "What is your name?\nHello, Ada!\n"
    );
}

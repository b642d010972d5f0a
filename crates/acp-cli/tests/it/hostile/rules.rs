//! Attacks that try to get around a rule that allows or denies a command.

use serde_json::{Value, json};

use super::*;

/// Returns a project in which only commands that match this pattern are allowed.
fn project_that_allows(pattern: &str) -> TestProject {
    let project = TestProject::new();
    project.write_config(
        "permissions.toml",
        &format!("[[rule]]\ndecision = \"allow\"\ncommand = {pattern:?}\n"),
    );
    project.write_file("evil.sh", "touch stolen\n");
    project
}

/// Plays each step in its own project. Returns the steps that were not rejected or had an effect.
fn executed_steps(pattern: &str, prepare: impl Fn(&TestProject), steps: &[Value]) -> Vec<String> {
    let mut through = Vec::new();
    for step in steps {
        let project = project_that_allows(pattern);
        prepare(&project);
        agent::run_steps(&project, &["--allow", "reads"], std::slice::from_ref(step));
        let refused = agent::read_responses(&project)
            .iter()
            .any(|answer| answer["error"].is_object());
        if project.file("stolen").exists() || !refused {
            through.push(step.to_string());
        }
    }
    through
}

/// Returns steps that run a shell command line in various ways.
fn wrapped_commands(line: &str) -> Vec<Value> {
    vec![
        agent::terminal_step(line, &[]),
        agent::terminal_step("sh", &["-c", line]),
        agent::terminal_step("bash", &["-lc", line]),
    ]
}

#[test]
fn second_line_is_not_part_of_an_allowed_command() {
    let lines = [
        "echo\ntouch stolen",
        "echo x\ntouch stolen",
        "echo\rtouch stolen",
    ];
    let steps: Vec<Value> = lines
        .iter()
        .flat_map(|line| wrapped_commands(line))
        .collect();
    let through = executed_steps("echo *", |_| (), &steps);
    assert!(through.is_empty(), "{through:#?}");
}

#[test]
fn shell_expansion_is_not_covered_by_a_rule() {
    let mut steps = Vec::new();
    for line in [
        "git log *",
        "git log {--output=stolen,HEAD}",
        "git log ~",
        "git log ?ig*",
        "sh -c 'git log '*",
        "sh -c git\\ log\\ *",
        "sh -c 'git log '?sh*",
    ] {
        steps.extend(wrapped_commands(line));
    }
    // The file that the name matches is a command line.
    let prepare = |project: &TestProject| project.write_file("git log ;sh evil.sh", "");
    let through = executed_steps("git log *", prepare, &steps);
    assert!(through.is_empty(), "{through:#?}");
}

#[test]
fn command_line_is_not_mistaken_for_a_project_program() {
    let project = project_that_allows("echo *");
    std::fs::create_dir(project.file("echo ")).unwrap();
    project.write_file("evil", "#!/bin/sh\ntouch stolen\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.file("evil"), executable).unwrap();
    // A shell prints `/../evil`; as the path of a program, it leads to `evil`.
    let run = agent::terminal_step("echo /../evil", &[]);
    agent::run_steps(&project, &["--allow", "reads"], &[run]);
    assert!(!project.file("stolen").exists());
    let answers = agent::read_responses(&project);
    assert!(answers[0]["result"].is_object(), "{answers:?}");
}

#[test]
fn rule_does_not_allow_a_longer_line() {
    let call = |command: Value| {
        agent::permission_step(
            json!({"toolCallId": "c", "title": "Run a command", "kind": "execute",
            "rawInput": {"command": command}}),
        )
    };
    let steps = [
        call(json!("echo\ntouch stolen")),
        call(json!(["bash", "-lc", "echo x\ntouch stolen"])),
        call(json!("sh -c 'echo '*")),
        call(json!("echo \u{b}touch stolen")),
    ];
    let project = project_that_allows("echo *");
    agent::run_steps(&project, &["--allow", "reads"], &steps);
    let answers = agent::read_responses(&project);
    assert_eq!(answers.len(), steps.len());
    for answer in answers {
        let chosen = answer["result"]["outcome"]["optionId"].as_str();
        assert_eq!(chosen, Some("reject_once"), "{answer}");
    }
}

#[test]
fn denied_command_is_not_hidden_behind_another() {
    let project = TestProject::new();
    project.write_config(
        "permissions.toml",
        "[[rule]]\ndecision = \"deny\"\ncommand = \"touch *\"\n",
    );
    let lines = [
        "2>/dev/null touch stolen",
        "touch >/dev/null stolen",
        "env -u X touch stolen",
        "nice -n 5 touch stolen",
        "timeout -k 1 5 touch stolen",
        "flock lock touch stolen",
        "flock lock -c 'touch stolen'",
        "find . -maxdepth 0 -exec touch stolen \\;",
        "find . -maxdepth 0 -execdir touch stolen {} +",
        "script -qc 'touch stolen' /dev/null",
        "setsid -w touch stolen",
        "stdbuf -oL touch stolen",
        "xargs -a /dev/null touch stolen",
        "git -c 'alias.x=!touch stolen' x",
        "echo 'touch stolen' | sh",
        "bash <<< 'touch stolen'",
        "trap 'touch stolen' EXIT",
        "{touch,stolen}",
        "touch${IFS}stolen",
        "/usr/bin/touch stolen",
    ];
    let steps: Vec<Value> = lines
        .iter()
        .flat_map(|line| wrapped_commands(line))
        .collect();
    agent::run_steps(&project, &["--allow", "all"], &steps);
    let answers = agent::read_responses(&project);
    assert_eq!(answers.len(), steps.len());
    let started = steps.iter().zip(&answers);
    let started: Vec<_> = started.filter(|(_, a)| a["error"].is_null()).collect();
    assert!(started.is_empty(), "{started:#?}");
    assert!(!project.file("stolen").exists());
}

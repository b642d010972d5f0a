//! Getting past a rule that allows or forbids a command.

use serde_json::{Value, json};

use super::*;

/// A project in which the commands of this pattern, and no others, are allowed.
fn project_that_allows(pattern: &str) -> TestProject {
    let project = TestProject::new();
    project.configure(
        "permissions.toml",
        &format!("[[rule]]\ndecision = \"allow\"\ncommand = {pattern:?}\n"),
    );
    project.write("evil.sh", "touch stolen\n");
    project
}

/// Plays each step in a project of its own and gives those that did something that no rule allowed.
fn that_got_through(pattern: &str, prepare: impl Fn(&TestProject), steps: &[Value]) -> Vec<String> {
    let mut through = Vec::new();
    for step in steps {
        let project = project_that_allows(pattern);
        prepare(&project);
        agent::run(&project, &["--allow", "reads"], std::slice::from_ref(step));
        let refused = agent::answers(&project)
            .iter()
            .any(|answer| answer["error"].is_object());
        if project.file("stolen").exists() || !refused {
            through.push(step.to_string());
        }
    }
    through
}

/// The ways to have a shell run a line.
fn ways_to_run(line: &str) -> Vec<Value> {
    vec![
        agent::terminal(line, &[]),
        agent::terminal("sh", &["-c", line]),
        agent::terminal("bash", &["-lc", line]),
    ]
}

#[test]
fn a_second_line_is_no_part_of_an_allowed_command() {
    let lines = [
        "echo\ntouch stolen",
        "echo x\ntouch stolen",
        "echo\rtouch stolen",
    ];
    let steps: Vec<Value> = lines.iter().flat_map(|line| ways_to_run(line)).collect();
    let through = that_got_through("echo *", |_| (), &steps);
    assert!(through.is_empty(), "{through:#?}");
}

#[test]
fn what_a_shell_expands_is_not_what_was_allowed() {
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
        steps.extend(ways_to_run(line));
    }
    // The file that the name matches is a command line.
    let prepare = |project: &TestProject| project.write("git log ;sh evil.sh", "");
    let through = that_got_through("git log *", prepare, &steps);
    assert!(through.is_empty(), "{through:#?}");
}

#[test]
fn a_command_line_is_not_the_name_of_a_program_in_the_project() {
    let project = project_that_allows("echo *");
    std::fs::create_dir(project.file("echo ")).unwrap();
    project.write("evil", "#!/bin/sh\ntouch stolen\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.file("evil"), executable).unwrap();
    // A shell prints `/../evil`; as the path of a program, it leads to `evil`.
    let run = agent::terminal("echo /../evil", &[]);
    agent::run(&project, &["--allow", "reads"], &[run]);
    assert!(!project.file("stolen").exists());
    let answers = agent::answers(&project);
    assert!(answers[0]["result"].is_object(), "{answers:?}");
}

#[test]
fn permission_is_not_given_for_a_line_that_is_more_than_the_rule_says() {
    let call = |command: Value| {
        agent::ask(
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
    agent::run(&project, &["--allow", "reads"], &steps);
    let answers = agent::answers(&project);
    assert_eq!(answers.len(), steps.len());
    for answer in answers {
        let chosen = answer["result"]["outcome"]["optionId"].as_str();
        assert_eq!(chosen, Some("reject_once"), "{answer}");
    }
}

#[test]
fn a_denied_command_does_not_run_behind_another() {
    let project = TestProject::new();
    project.configure(
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
    let steps: Vec<Value> = lines.iter().flat_map(|line| ways_to_run(line)).collect();
    agent::run(&project, &["--allow", "all"], &steps);
    let answers = agent::answers(&project);
    assert_eq!(answers.len(), steps.len());
    let started = steps.iter().zip(&answers);
    let started: Vec<_> = started.filter(|(_, a)| a["error"].is_null()).collect();
    assert!(started.is_empty(), "{started:#?}");
    assert!(!project.file("stolen").exists());
}

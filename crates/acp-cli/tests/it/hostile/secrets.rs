//! An agent that looks for what it was not given: keys, and files that others had open.

use std::path::Path;
use std::process::Command;

use super::*;

#[test]
fn as_an_ordinary_user_too() {
    crate::ordinary_user::runs_the_tests_of(module_path!(), &[(ELSEWHERE, Path::new(ACP))]);
}

/// The id of the process that has started the agent, for a line of its shell.
const CLIENT: &str = r"client=$(sed 's/.*) [A-Z] \([0-9]*\) .*/\1/' /proc/$PPID/stat)";

#[test]
fn an_agent_does_not_find_the_keys_of_its_client() {
    let project = TestProject::new();
    let looks = [
        "tr '\\0' '\\n' < /proc/$client/environ",
        "cat /proc/$client/maps",
        "ls -l /proc/$client/fd",
        "head -c 1 /proc/$client/mem",
        "readlink /proc/$client/exe",
    ];
    let mut steps: Vec<_> = looks
        .iter()
        .map(|look| agent::shell(&format!("{CLIENT}; {look}")))
        .collect();
    steps.push(agent::shell(
        "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep ^KEPT_OUT",
    ));
    let mut run = agent::to_run(&project, &["--allow", "all"], &steps);
    let run = run
        .env("KEPT_OUT_API_KEY", "hush-of-the-client")
        .env("NOT_PASSED_ON", "here");
    CommandResult::of(run.output().unwrap()).code(0);
    let answers = agent::answers(&project);
    assert_eq!(answers.len(), steps.len(), "{answers:?}");
    // Root may look at everybody, and finds no key.
    assert!(!format!("{answers:?}").contains("hush"), "{answers:?}");
    if crate::ordinary_user::is_root() {
        let environment = answers[0]["shell"].as_str().unwrap();
        assert!(environment.contains("NOT_PASSED_ON=here"), "{environment}");
        return;
    }
    for (answer, look) in answers.iter().zip(looks) {
        assert_ne!(answer["code"], 0, "{look}: {answer}");
        assert_eq!(answer["shell"], "", "{look}");
    }
}

#[test]
fn a_key_that_was_passed_on_arrives() {
    let project = TestProject::new();
    let steps = [agent::shell("echo $PASSED_API_KEY $ALSO_TOKEN")];
    let args = [
        "--allow",
        "all",
        "--env",
        "PASSED_API_KEY",
        "--env",
        "ALSO_TOKEN=given",
    ];
    let mut run = agent::to_run(&project, &args, &steps);
    let run = run.env("PASSED_API_KEY", "passed");
    CommandResult::of(run.output().unwrap()).code(0);
    assert_eq!(agent::answers(&project)[0]["shell"], "passed given\n");
}

#[test]
fn what_the_client_was_started_with_open_is_closed_in_agents_and_commands() {
    let project = TestProject::new();
    project.write("secret", "hush\n");
    let steps = [
        agent::shell("ls -l /proc/$PPID/fd /proc/self/fd"),
        agent::terminal("sh", &["-c", "ls -l /proc/self/fd > fds"]),
        agent::wait_for("fds"),
    ];
    let acp = agent::to_run(&project, &["--allow", "all"], &steps);
    let mut run = Command::new("sh");
    run.args(["-c", r#"exec 8< "$0" 9< "$0"; exec "$@""#])
        .arg(project.file("secret"))
        .arg(acp.get_program())
        .args(acp.get_args())
        .current_dir(project.path())
        .envs(project.home());
    CommandResult::of(run.output().unwrap()).code(0);
    let answers = agent::answers(&project);
    let agents = answers[0]["shell"].as_str().unwrap();
    assert!(agents.contains("pipe:"), "{answers:?}");
    assert!(!agents.contains("secret"), "{agents}");
    let commands = project.read("fds");
    assert!(commands.contains("pipe:"), "{commands}");
    assert!(!commands.contains("secret"), "{commands}");
}

//! Attacks by an agent that looks for secrets, such as keys and files that other processes have open.

use std::path::Path;
use std::process::Command;

use super::*;

#[test]
fn tests_pass_as_an_ordinary_user() {
    crate::ordinary_user::rerun_as_ordinary_user(
        module_path!(),
        &[(BINARY_VARIABLE, Path::new(ACP))],
    );
}

/// A shell command that sets `client` to the id of the process that started the agent.
const FIND_CLIENT_PID: &str = r"client=$(sed 's/.*) [A-Z] \([0-9]*\) .*/\1/' /proc/$PPID/stat)";

#[test]
fn agent_cannot_find_the_keys_of_its_client() {
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
        .map(|look| agent::shell_step(&format!("{FIND_CLIENT_PID}; {look}")))
        .collect();
    steps.push(agent::shell_step(
        "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep ^KEPT_OUT",
    ));
    let mut run = agent::run_command(&project, &["--allow", "all"], &steps);
    let run = run
        .env("KEPT_OUT_API_KEY", "hush-of-the-client")
        .env("NOT_PASSED_ON", "here");
    CommandResult::from_output(run.output().unwrap()).expect_code(0);
    let answers = agent::read_responses(&project);
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
fn passed_key_reaches_the_agent() {
    let project = TestProject::new();
    let steps = [agent::shell_step("echo $PASSED_API_KEY $ALSO_TOKEN")];
    let args = [
        "--allow",
        "all",
        "--env",
        "PASSED_API_KEY",
        "--env",
        "ALSO_TOKEN=given",
    ];
    let mut run = agent::run_command(&project, &args, &steps);
    let run = run.env("PASSED_API_KEY", "passed");
    CommandResult::from_output(run.output().unwrap()).expect_code(0);
    assert_eq!(
        agent::read_responses(&project)[0]["shell"],
        "passed given\n"
    );
}

#[test]
fn inherited_file_descriptors_are_closed_in_agents_and_commands() {
    let project = TestProject::new();
    project.write_file("secret", "hush\n");
    let steps = [
        agent::shell_step("ls -l /proc/$PPID/fd /proc/self/fd"),
        agent::terminal_step("sh", &["-c", "ls -l /proc/self/fd > fds"]),
        agent::wait_step("fds"),
    ];
    let acp = agent::run_command(&project, &["--allow", "all"], &steps);
    let mut run = Command::new("sh");
    run.args(["-c", r#"exec 8< "$0" 9< "$0"; exec "$@""#])
        .arg(project.file("secret"))
        .arg(acp.get_program())
        .args(acp.get_args())
        .current_dir(project.path())
        .envs(project.home_variables());
    CommandResult::from_output(run.output().unwrap()).expect_code(0);
    let answers = agent::read_responses(&project);
    let agents = answers[0]["shell"].as_str().unwrap();
    assert!(agents.contains("pipe:"), "{answers:?}");
    assert!(!agents.contains("secret"), "{agents}");
    let commands = project.read_file("fds");
    assert!(commands.contains("pipe:"), "{commands}");
    assert!(!commands.contains("secret"), "{commands}");
}

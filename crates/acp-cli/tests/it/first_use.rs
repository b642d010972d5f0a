//! Tests of things that new users try in their first hour: pipes, keys, full disks, and pasting printed text.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::common::{CommandResult, TestProject};

/// Writes a script for an agent that repeats each prompt. Runs `opened` once a session is open.
fn echo_agent_script(project: &TestProject, opened: &str) -> String {
    let script = format!(
        r#"
tell() {{ printf '%s\n' "$1"; }}
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case $line in
    *'"initialize"'*) tell '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":1}}}}' ;;
    *'"session/new"'*)
        tell '{{"jsonrpc":"2.0","id":'$id',"result":{{"sessionId":"s"}}}}'
        {opened}
        ;;
    *'"session/prompt"'*)
        text=$(printf '%s' "$line" | sed 's/.*"text":"\(.*\)"}}\].*/\1/')
        tell '{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"heard: '"$text"'"}}}}}}}}'
        tell '{{"jsonrpc":"2.0","id":'$id',"result":{{"stopReason":"end_turn"}}}}'
        ;;
    *'"session/set_config_option"'*)
        printf '%s' "$line" > set
        tell '{{"jsonrpc":"2.0","id":'$id',"result":{{"configOptions":[]}}}}'
        ;;
    esac
done
"#
    );
    project.write_file("agent.sh", &script);
    "sh agent.sh".to_owned()
}

#[test]
fn piped_input_is_added_to_the_prompt() {
    let project = TestProject::new();
    let agent = echo_agent_script(&project, "");
    let shell = |line: &str| project.run_shell(&line.replace("AGENT", &agent));
    shell("printf 'a diff' | acp run review this -- AGENT")
        .expect_code(0)
        .expect_stdout(&["heard: review this", "a diff"]);
    shell("acp run review this -- AGENT < notes.txt")
        .expect_code(0)
        .expect_stdout(&["heard: review this", "first", "third"]);
    // The prompt is all there is.
    for line in [
        "acp run review this -- AGENT < /dev/null",
        "acp run review this -- AGENT <&-",
        "printf '' | acp run review this -- AGENT",
    ] {
        let ended = shell(line).expect_code(0);
        assert_eq!(ended.stdout, "heard: review this\n", "{line}");
    }
    // And so is what is piped in.
    shell("printf hello | acp run -- AGENT")
        .expect_code(0)
        .expect_stdout(&["heard: hello"]);
    shell("printf '\\377' | acp run review -- AGENT")
        .expect_code(2)
        .expect_stderr("stdin: invalid UTF-8 at byte 0");
}

#[test]
fn idle_pipe_does_not_block() {
    let project = TestProject::new();
    let agent = echo_agent_script(&project, "");
    let mut child = project
        .shell_command(&format!("acp run hello -- {agent}"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = child.stdin.take();
    CommandResult::from_output(child.wait_with_output().unwrap())
        .expect_code(0)
        .expect_stdout(&["heard: hello"])
        .expect_stderr("no input on stdin after");
    drop(pipe);
}

#[test]
fn output_write_error_is_reported() {
    let project = TestProject::new();
    for line in [
        "run /help",
        "run --format json /help",
        "agents",
        "permissions",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = project.acp_command(&args).stdout(full).output().unwrap();
        CommandResult::from_output(output)
            .expect_code(1)
            .expect_stderr("cannot write to stdout: No space left on device");
    }
}

#[test]
fn late_config_option_can_be_set() {
    let project = TestProject::new();
    // As one that asks a server first.
    let late = r#"sleep 0.3
        tell '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}}}'"#;
    let agent = echo_agent_script(&project, late);
    project
        .run_shell(&format!("acp run --set model=b hello -- {agent}"))
        .expect_code(0);
    assert!(project.read_file("set").contains(r#""value":"b""#));
    project
        .run_shell(&format!("acp run --set nonsense=b hello -- {agent}"))
        .expect_code(2)
        .expect_stderr("nonsense");
}

#[test]
fn missing_key_hint_names_a_working_command() {
    let project = TestProject::new();
    project.write_config(
        "config.toml",
        "[agent]\nmodel = \"anthropic/claude-sonnet-4-5\"\n",
    );
    let ended = project.run(&["hello"]).expect_code(1);
    assert!(
        ended.stderr.contains("\n  acp agent login anthropic  #"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("acp login"), "{ended:?}");
    // It is the right one: all that it lacks here is a terminal.
    project
        .run_shell("acp agent login anthropic")
        .expect_code(2)
        .expect_stderr("not a terminal: cannot read the key for Anthropic");
}

#[test]
fn storage_failure_is_reported_with_its_cause() {
    let project = TestProject::new();
    let nowhere = |args: &[&str]| {
        let mut command = project.agent_command(args);
        command.env("XDG_STATE_HOME", "/proc/nowhere");
        CommandResult::from_output(command.output().unwrap())
    };
    nowhere(&["/help"])
        .expect_code(0)
        .expect_stderr("this session is not stored: cannot write /proc/nowhere/acp");
    let ended = nowhere(&["--session", "build", "/help"])
        .expect_code(2)
        .expect_stderr(
            "cannot use --session build: sessions are not stored: cannot write /proc/nowhere/acp",
        );
    assert!(!ended.stderr.contains("loadSession"), "{ended:?}");
}

#[test]
fn resume_command_can_be_pasted() {
    let project = TestProject::new();
    for directory in ["a b", "-d", "it's"] {
        std::fs::create_dir(project.file(directory)).unwrap();
        let cwd = format!("--cwd={directory}");
        for session in [&[][..], &["--session=-x"], &["--session=the build"]] {
            let mut args = vec![cwd.as_str(), "/help"];
            args.extend(session);
            let ended = project.run(&args).expect_code(0);
            let command = ended.find_line("continue with: ");
            let command = command.trim_start_matches("continue with: ");
            project
                .run_shell(&command.replace("PROMPT", "/help"))
                .expect_code(0);
        }
    }
}

#[test]
fn missing_default_agent_is_not_listed_as_default() {
    let project = TestProject::new();
    project.write_config("config.toml", "default_agent = \"gonzo\"\n");
    let ended = CommandResult::from_output(project.acp_command(&["agents"]).output().unwrap())
        .expect_code(0)
        .expect_stderr("default agent not found: `gonzo`")
        .expect_stderr("change `default_agent` in");
    assert!(!ended.stdout.contains('*'), "{ended:?}");
}

#[test]
fn unreadable_trace_has_the_same_exit_code_in_each_command() {
    let project = TestProject::new();
    File::create(project.file("empty")).unwrap();
    for file in ["nowhere", "empty", "notes.txt"] {
        for command in [
            &["show"][..],
            &["lint"],
            &["html"],
            &["replay", "--as", "agent"],
        ] {
            let mut args = vec!["trace"];
            args.extend(command);
            args.push(file);
            CommandResult::from_output(project.acp_command(&args).output().unwrap())
                .expect_code(2)
                .expect_stderr(file);
        }
    }
}

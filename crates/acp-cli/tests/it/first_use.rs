//! What a new user tries in the first hour: pipes, keys, full disks, and pasting what is printed.

use std::fs::{File, OpenOptions};
use std::process::Stdio;

use crate::common::{CommandResult, TestProject};

/// A script that is an agent: it answers a prompt with the prompt. `opened` is what it does once a session is open.
fn echo_agent(project: &TestProject, opened: &str) -> String {
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
    project.write("agent.sh", &script);
    "sh agent.sh".to_owned()
}

#[test]
fn what_is_piped_in_goes_with_the_prompt() {
    let project = TestProject::new();
    let agent = echo_agent(&project, "");
    let shell = |line: &str| project.shell(&line.replace("AGENT", &agent));
    shell("printf 'a diff' | acp run review this -- AGENT")
        .code(0)
        .shows(&["heard: review this", "a diff"]);
    shell("acp run review this -- AGENT < notes.txt")
        .code(0)
        .shows(&["heard: review this", "first", "third"]);
    // The prompt is all there is.
    for line in [
        "acp run review this -- AGENT < /dev/null",
        "acp run review this -- AGENT <&-",
        "printf '' | acp run review this -- AGENT",
    ] {
        let ended = shell(line).code(0);
        assert_eq!(ended.stdout, "heard: review this\n", "{line}");
    }
    // And so is what is piped in.
    shell("printf hello | acp run -- AGENT")
        .code(0)
        .shows(&["heard: hello"]);
    shell("printf '\\377' | acp run review -- AGENT")
        .code(2)
        .says("stdin: invalid UTF-8 at byte 0");
}

#[test]
fn a_pipe_that_nobody_writes_to_holds_nothing_up() {
    let project = TestProject::new();
    let agent = echo_agent(&project, "");
    let mut child = project
        .in_shell(&format!("acp run hello -- {agent}"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = child.stdin.take();
    CommandResult::of(child.wait_with_output().unwrap())
        .code(0)
        .shows(&["heard: hello"])
        .says("no input on stdin after");
    drop(pipe);
}

#[test]
fn output_that_cannot_be_written_is_told() {
    let project = TestProject::new();
    for line in [
        "run /help",
        "run --format json /help",
        "agents",
        "permissions",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = project.acp(&args).stdout(full).output().unwrap();
        CommandResult::of(output)
            .code(1)
            .says("cannot write to stdout: No space left on device");
    }
}

#[test]
fn an_option_that_is_offered_late_can_be_set() {
    let project = TestProject::new();
    // As one that asks a server first.
    let late = r#"sleep 0.3
        tell '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}}}'"#;
    let agent = echo_agent(&project, late);
    project
        .shell(&format!("acp run --set model=b hello -- {agent}"))
        .code(0);
    assert!(project.read("set").contains(r#""value":"b""#));
    project
        .shell(&format!("acp run --set nonsense=b hello -- {agent}"))
        .code(2)
        .says("nonsense");
}

#[test]
fn a_missing_key_is_typed_by_a_command_that_works() {
    let project = TestProject::new();
    project.configure(
        "config.toml",
        "[agent]\nmodel = \"anthropic/claude-sonnet-4-5\"\n",
    );
    let ended = project.run(&["hello"]).code(1);
    assert!(
        ended.stderr.contains("\n  acp agent login anthropic  #"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("acp login"), "{ended:?}");
    // It is the right one: all that it lacks here is a terminal.
    project
        .shell("acp agent login anthropic")
        .code(2)
        .says("not a terminal: cannot read the key for Anthropic");
}

#[test]
fn sessions_that_cannot_be_kept_are_told_of_and_nobody_else_is_blamed() {
    let project = TestProject::new();
    let nowhere = |args: &[&str]| {
        let mut command = project.command(args);
        command.env("XDG_STATE_HOME", "/proc/nowhere");
        CommandResult::of(command.output().unwrap())
    };
    nowhere(&["/help"])
        .code(0)
        .says("this session is not stored: cannot write /proc/nowhere/acp");
    let ended = nowhere(&["--session", "build", "/help"]).code(2).says(
        "cannot use --session build: sessions are not stored: cannot write /proc/nowhere/acp",
    );
    assert!(!ended.stderr.contains("loadSession"), "{ended:?}");
}

#[test]
fn what_is_printed_to_go_on_with_can_be_pasted() {
    let project = TestProject::new();
    for directory in ["a b", "-d", "it's"] {
        std::fs::create_dir(project.file(directory)).unwrap();
        let cwd = format!("--cwd={directory}");
        for session in [&[][..], &["--session=-x"], &["--session=the build"]] {
            let mut args = vec![cwd.as_str(), "/help"];
            args.extend(session);
            let ended = project.run(&args).code(0);
            let command = ended.line("continue with: ");
            let command = command.trim_start_matches("continue with: ");
            project.shell(&command.replace("PROMPT", "/help")).code(0);
        }
    }
}

#[test]
fn a_default_agent_that_there_is_none_of_is_not_shown_as_the_default() {
    let project = TestProject::new();
    project.configure("config.toml", "default_agent = \"gonzo\"\n");
    let ended = CommandResult::of(project.acp(&["agents"]).output().unwrap())
        .code(0)
        .says("default agent not found: `gonzo`")
        .says("change `default_agent` in");
    assert!(!ended.stdout.contains('*'), "{ended:?}");
}

#[test]
fn a_trace_that_cannot_be_read_ends_each_command_with_the_same_code() {
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
            CommandResult::of(project.acp(&args).output().unwrap())
                .code(2)
                .says(file);
        }
    }
}

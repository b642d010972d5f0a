//! Tests of the environment passed to agents. Also tests that logs contain no secrets.

use std::process::Command;

use crate::common::{ACP, CommandResult, TestProject};

/// Returns a command that runs `acp` with secrets in its environment.
fn acp_command(project: &TestProject, args: &[&str]) -> Command {
    let mut command = project.acp_command(args);
    command
        .env("WONDER_API_KEY", "hush-1")
        .env("AWS_REGION", "hush-2")
        .env("SSH_AUTH_SOCK", "/hush-3")
        .env("LC_TIME", "C");
    command
}

fn run_acp(project: &TestProject, args: &[&str]) -> CommandResult {
    let mut all = vec!["run"];
    all.extend(args);
    CommandResult::from_output(acp_command(project, &all).output().unwrap())
}

/// Returns a shell command that records its environment and then runs the bundled agent.
fn agent_script() -> String {
    format!("env > given; exec '{ACP}' agent")
}

#[test]
fn agent_and_commands_get_required_and_requested_variables() {
    let project = TestProject::new();
    let agent = agent_script();
    // Version 1 runs commands in the client's terminals, version 2 in the agent itself.
    for version in ["1", "2"] {
        let go = |more: &[&str]| {
            let mut args = vec!["--protocol", version, "--allow", "all"];
            args.extend(more);
            let prompt = "/run env > commands";
            args.extend([prompt, "--", "sh", "-c", &agent]);
            run_acp(&project, &args).expect_code(0);
            ["given", "commands"].map(|name| project.read_file(name))
        };
        for env in go(&[]) {
            assert!(
                !env.contains("hush") && !env.contains("SSH_AUTH_SOCK"),
                "{env}"
            );
            assert!(
                env.contains("LC_TIME=C\n") && env.contains("PATH="),
                "{env}"
            );
        }
        let [given, _] = go(&["--env", "WONDER_API_KEY", "--env", "NEW=x=y"]);
        assert!(
            given.contains("WONDER_API_KEY=hush-1\n") && given.contains("NEW=x=y\n"),
            "{given}"
        );
        assert!(!given.contains("AWS_REGION"), "{given}");
    }

    // What is asked for is for the agent's commands in the client's terminals, too.
    let script = ["--allow", "all", "--env", "NEW=1", "/run env > commands"];
    run_acp(&project, &script).expect_code(0);
    assert!(project.read_file("commands").contains("NEW=1\n"));

    project.write_config(
        "config.toml",
        "[environment]\npass = [\"AWS_*\", \"NOT_SET\"]\n",
    );
    run_acp(&project, &["/help", "--", "sh", "-c", &agent]).expect_code(0);
    let given = project.read_file("given");
    assert!(
        given.contains("AWS_REGION=hush-2\n") && !given.contains("WONDER"),
        "{given}"
    );
    project.write_config("config.toml", "[environment]\npass = [\"A=B\"]\n");
    run_acp(&project, &["/help"])
        .expect_code(2)
        .expect_stderr("config.toml, environment.pass: invalid environment variable name: `A=B`");
}

#[test]
fn bridge_passes_on_the_environment_of_its_client() {
    let project = TestProject::new();
    let args = [
        "bridge",
        "--to",
        "2",
        "--env",
        "NEW=1",
        "--",
        "sh",
        "-c",
        "env > given",
    ];
    acp_command(&project, &args).output().unwrap();
    let given = project.read_file("given");
    assert!(
        given.contains("WONDER_API_KEY=hush-1\n") && given.contains("NEW=1\n"),
        "{given}"
    );
}

#[test]
fn missing_variable_cannot_be_passed() {
    let project = TestProject::new();
    let ended = run_acp(&project, &["--env", "NOT_SET_HERE", "/help"]).expect_code(2);
    ended.expect_stderr("--env NOT_SET_HERE: variable not set; use --env NOT_SET_HERE=VALUE");
    let ended = run_acp(&project, &["--env", "=hush", "/help"]).expect_code(2);
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
}

#[test]
fn agent_without_its_key_gets_a_hint() {
    let project = TestProject::new();
    let wants = |methods: &str| {
        format!(
            r#"while read -r line; do case $line in
              *'"initialize"'*) printf '%s\n' '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":1,"authMethods":[{methods}]}}}}';;
              *'"session/new"'*) printf '%s\n' '{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"Authentication required"}}}}';;
            esac; done"#
        )
    };
    let hint =
        "WONDER_API_KEY is set, but not passed to the agent; add --env WONDER_API_KEY to pass it";
    // By the draft's type, by what it says, and by its own name.
    let typed = r#"{"id":"k","name":"Key","type":"env_var","vars":[{"name":"WONDER_API_KEY"}]}"#;
    let told = r#"{"id":"k","name":"Key","description":"Set WONDER_API_KEY first."}"#;
    for agent in [wants(typed), wants(told)] {
        let ended = run_acp(&project, &["hi", "--", "sh", "-c", &agent])
            .expect_code(1)
            .expect_stderr(hint);
        assert!(!ended.stderr.contains("hush"), "{ended:#?}");
    }
    run_acp(&project, &["hi", "--", "sh", "-c", &wants(""), "wonder"])
        .expect_code(1)
        .expect_stderr(hint);
    let dies = "echo 'no WONDER_API_KEY' >&2; exit 1";
    run_acp(&project, &["hi", "--", "sh", "-c", dies])
        .expect_code(3)
        .expect_stderr(hint);
    // It has it, or it is about something else.
    for args in [
        &[
            "--env",
            "WONDER_API_KEY",
            "hi",
            "--",
            "sh",
            "-c",
            &wants(typed),
        ][..],
        &["hi", "--", "sh", "-c", &wants("")],
    ] {
        let ended = run_acp(&project, args).expect_code(1);
        assert!(
            !ended.stderr.contains("not passed to the agent"),
            "{ended:#?}"
        );
    }
    // What to type keeps what was given, without its value.
    let args = ["--env", "KEY=hush-4", "hi", "--", "sh", "-c", &wants(told)];
    let ended = run_acp(&project, &args)
        .expect_code(1)
        .expect_stderr("acp login --env KEY=... -- sh");
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
}

#[test]
fn logs_contain_no_secrets() {
    let project = TestProject::new();
    project.write_file(
        "mcp.json",
        r#"{"mcpServers": {
            "local": {"command": "true", "env": {"TOKEN": "hush-mcp-env"}},
            "web": {"url": "https://mcp.example.org", "headers": {"Authorization": "hush-mcp-header"}},
            "old": {"type": "sse", "url": "https://mcp.example.org", "headers": {"Authorization": "hush-mcp-header"}}
        }}"#,
    );
    // An agent that takes them all, has a command run with a secret, and one of a program that is not there.
    let agent = r#"create() { printf '{"jsonrpc":"2.0","id":"%s","method":"terminal/create","params":{"sessionId":"s","command":"%s","env":[{"name":"KEY","value":"hush-create"}]}}\n' "$1" "$2"; }
        while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true,"sse":true}}}}';;
          *'"session/new"'*) printf '%s\n' "$line" > opened; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*) create a true; create b no-such-program; create '' 'nul\u0000';;
          *'"id":""'*) printf '%s\n' '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
        esac; done"#;
    for last in [agent, "exit 3", "echo not a message; exit 0"] {
        let args = [
            "--log",
            "trace",
            "--allow",
            "all",
            "--mcp",
            "mcp.json",
            "--env",
            "WONDER_API_KEY",
            "--env",
            "OTHER=hush-env",
            "go",
            "--",
            "sh",
            "-c",
            last,
        ];
        let ended = run_acp(&project, &args);
        assert!(!ended.stderr.contains("hush"), "{ended:#?}");
        assert!(!ended.stdout.contains("hush"), "{ended:#?}");
    }
    // They did reach the agent.
    let opened = project.read_file("opened");
    assert!(
        opened.contains("hush-mcp-env") && opened.contains("hush-mcp-header"),
        "{opened}"
    );
    // Neither is one in what is said of a file that is wrong.
    project.write_file(
        "mcp.json",
        r#"{"mcpServers": {"x": {"command": "x", "env": {"A": ["hush-5"]}}}}"#,
    );
    let ended = run_acp(&project, &["--mcp", "mcp.json", "/help"]).expect_code(2);
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
    project.write_file(
        "mcp.json",
        r#"{"mcpServers": {"x": {"command": "x", "env": "hush-6"}}}"#,
    );
    let ended = run_acp(&project, &["--mcp", "mcp.json", "/help"]).expect_code(2);
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
}

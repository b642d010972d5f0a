//! What agents get of the environment, and that secrets are in no log.

use std::process::Command;

use crate::common::{ACP, CommandResult, TestProject};

/// `acp` with secrets in its environment.
fn acp(project: &TestProject, args: &[&str]) -> Command {
    let mut command = project.acp(args);
    command
        .env("WONDER_API_KEY", "hush-1")
        .env("AWS_REGION", "hush-2")
        .env("SSH_AUTH_SOCK", "/hush-3")
        .env("LC_TIME", "C");
    command
}

fn run(project: &TestProject, args: &[&str]) -> CommandResult {
    let mut all = vec!["run"];
    all.extend(args);
    CommandResult::of(acp(project, &all).output().unwrap())
}

/// The bundled agent, behind a shell that writes down what environment it was given.
fn agent() -> String {
    format!("env > given; exec '{ACP}' agent")
}

#[test]
fn an_agent_and_its_commands_get_what_they_need_and_what_is_asked_for() {
    let project = TestProject::new();
    let agent = agent();
    // Version 1 runs commands in the client's terminals, version 2 in the agent itself.
    for version in ["1", "2"] {
        let go = |more: &[&str]| {
            let mut args = vec!["--protocol", version, "--allow", "all"];
            args.extend(more);
            let prompt = "/run env > commands";
            args.extend([prompt, "--", "sh", "-c", &agent]);
            run(&project, &args).code(0);
            ["given", "commands"].map(|name| project.read(name))
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
    run(&project, &script).code(0);
    assert!(project.read("commands").contains("NEW=1\n"));

    project.configure(
        "config.toml",
        "[environment]\npass = [\"AWS_*\", \"NOT_SET\"]\n",
    );
    run(&project, &["/help", "--", "sh", "-c", &agent]).code(0);
    let given = project.read("given");
    assert!(
        given.contains("AWS_REGION=hush-2\n") && !given.contains("WONDER"),
        "{given}"
    );
    project.configure("config.toml", "[environment]\npass = [\"A=B\"]\n");
    run(&project, &["/help"])
        .code(2)
        .says("config.toml, environment.pass: invalid environment variable name: `A=B`");
}

#[test]
fn a_bridge_passes_on_what_its_client_has_given_it() {
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
    acp(&project, &args).output().unwrap();
    let given = project.read("given");
    assert!(
        given.contains("WONDER_API_KEY=hush-1\n") && given.contains("NEW=1\n"),
        "{given}"
    );
}

#[test]
fn what_is_not_there_cannot_be_given() {
    let project = TestProject::new();
    let ended = run(&project, &["--env", "NOT_SET_HERE", "/help"]).code(2);
    ended.says("--env NOT_SET_HERE: variable not set; use --env NOT_SET_HERE=VALUE");
    let ended = run(&project, &["--env", "=hush", "/help"]).code(2);
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
}

#[test]
fn an_agent_that_lacks_its_key_is_told_of_how_to_get_it() {
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
        let ended = run(&project, &["hi", "--", "sh", "-c", &agent])
            .code(1)
            .says(hint);
        assert!(!ended.stderr.contains("hush"), "{ended:#?}");
    }
    run(&project, &["hi", "--", "sh", "-c", &wants(""), "wonder"])
        .code(1)
        .says(hint);
    let dies = "echo 'no WONDER_API_KEY' >&2; exit 1";
    run(&project, &["hi", "--", "sh", "-c", dies])
        .code(3)
        .says(hint);
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
        let ended = run(&project, args).code(1);
        assert!(
            !ended.stderr.contains("not passed to the agent"),
            "{ended:#?}"
        );
    }
    // What to type keeps what was given, without its value.
    let args = ["--env", "KEY=hush-4", "hi", "--", "sh", "-c", &wants(told)];
    let ended = run(&project, &args)
        .code(1)
        .says("acp login --env KEY=... -- sh");
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
}

#[test]
fn no_secret_is_in_a_log() {
    let project = TestProject::new();
    project.write(
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
        let ended = run(&project, &args);
        assert!(!ended.stderr.contains("hush"), "{ended:#?}");
        assert!(!ended.stdout.contains("hush"), "{ended:#?}");
    }
    // They did reach the agent.
    let opened = project.read("opened");
    assert!(
        opened.contains("hush-mcp-env") && opened.contains("hush-mcp-header"),
        "{opened}"
    );
    // Neither is one in what is said of a file that is wrong.
    project.write(
        "mcp.json",
        r#"{"mcpServers": {"x": {"command": "x", "env": {"A": ["hush-5"]}}}}"#,
    );
    let ended = run(&project, &["--mcp", "mcp.json", "/help"]).code(2);
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
    project.write(
        "mcp.json",
        r#"{"mcpServers": {"x": {"command": "x", "env": "hush-6"}}}"#,
    );
    let ended = run(&project, &["--mcp", "mcp.json", "/help"]).code(2);
    assert!(!ended.stderr.contains("hush"), "{ended:#?}");
}

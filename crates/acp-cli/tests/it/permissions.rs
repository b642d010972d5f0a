//! Tests of how `acp run` applies rules and remembered answers, and of `acp permissions`.

use std::process::Stdio;

#[cfg(target_os = "linux")]
use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, CommandResult, TestProject};

impl TestProject {
    /// Writes the project's permission rules.
    fn write_project_rules(&self, rules: &str) {
        std::fs::create_dir_all(self.file(".acp")).unwrap();
        self.write_file(".acp/permissions.toml", rules);
    }

    fn run_permissions(&self, args: &[&str]) -> CommandResult {
        let mut command = self.acp_command(&["permissions"]);
        CommandResult::from_output(command.args(args).output().unwrap())
    }
}

/// Returns the command line of an agent that sends a request to the client without asking for permission, and writes
/// the response to the file `answer`.
fn requesting_agent_script(method: &str, params: &str) -> String {
    format!(
        r#"while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":1}}}}';;
          *'"session/new"'*) printf '%s\n' '{{"jsonrpc":"2.0","id":1,"result":{{"sessionId":"s"}}}}';;
          *'"session/prompt"'*) printf '%s\n' '{{"jsonrpc":"2.0","id":"q","method":"{method}","params":{params}}}';;
          *'"id":"q"'*)
            printf '%s\n' "$line" > answer
            printf '%s\n' '{{"jsonrpc":"2.0","id":2,"result":{{"stopReason":"end_turn"}}}}';;
        esac; done"#
    )
}

#[test]
fn user_rules_allow_and_deny() {
    let project = TestProject::new();
    project.write_config(
        "permissions.toml",
        r#"
        [[rule]]
        decision = "allow"
        command = "touch *"
        [[rule]]
        decision = "allow"
        kind = "edit"
        path = "*.txt"
        [[rule]]
        decision = "deny"
        path = ".env"
        "#,
    );
    project.write_file(".env", "SECRET=1\n");
    // Without a terminal nothing but reading is allowed otherwise.
    project
        .run(&["/run touch made"])
        .expect_code(0)
        .expect_stdout(&["completed"]);
    assert!(project.file("made").exists());
    project
        .run(&["/run touch more; rm made"])
        .expect_code(8)
        .expect_stderr("rejected by --allow reads");
    assert!(project.file("made").exists() && !project.file("more").exists());
    project
        .run(&["/edit notes.txt\nsecond\n===\n2nd"])
        .expect_code(0);
    assert_eq!(project.read_file("notes.txt"), "first\n2nd\nthird\n");

    let ended = project
        .run(&["--allow", "all", "/read .env"])
        .expect_code(8);
    assert!(!ended.stdout.contains("SECRET"), "{ended:#?}");
    ended.expect_stderr("permissions.toml, rule 3 (deny in `.env`): Read");
    project
        .run(&["--allow", "none", "/run touch none"])
        .expect_code(8)
        .expect_stderr("rejected by --allow none");
    assert!(!project.file("none").exists());
}

#[test]
fn project_rules_can_only_deny() {
    let project = TestProject::new();
    let rule =
        |decision: &str| format!("[[rule]]\ndecision = \"{decision}\"\ncommand = \"touch *\"\n");
    project.write_project_rules(&rule("allow"));
    project
        .run(&["/run touch made"])
        .expect_code(8)
        .expect_stderr("rejected by --allow reads");
    project.write_project_rules(&rule("deny"));
    project
        .run(&["--allow", "all", "/run true && touch made"])
        .expect_code(8)
        .expect_stderr("rejected by .acp/permissions.toml, rule 1 (deny `touch *`): ");
    assert!(!project.file("made").exists());
    // The same from a directory below, and for what the agent does not ask for.
    std::fs::create_dir(project.file(".git")).unwrap();
    std::fs::create_dir(project.file("below")).unwrap();
    let create = requesting_agent_script(
        "terminal/create",
        r#"{"sessionId":"s","command":"touch","args":["made"]}"#,
    );
    project
        .run(&[
            "--allow", "all", "--cwd", "below", "go", "--", "sh", "-c", &create,
        ])
        .expect_code(8)
        .expect_stderr("rule 1 (deny `touch *`): Run touch made");
    assert!(project.read_file("below/answer").contains("\"error\""));
    assert!(!project.file("below/made").exists());
}

#[test]
fn invalid_rules_are_reported_before_anything_starts() {
    for broken in ["defualt = \"ask\"", "[[rule]]\ndecision = \"deny\""] {
        let project = TestProject::new();
        project.write_project_rules(broken);
        let ended = project
            .run(&["--allow", "all", "/run touch made"])
            .expect_code(2);
        assert!(
            ended.stderr.contains(".acp/permissions.toml, line 1: "),
            "{ended:#?}"
        );
        let project = TestProject::new();
        project.write_config("permissions.toml", broken);
        project
            .run(&["/help"])
            .expect_code(2)
            .expect_stderr("acp/permissions.toml, line 1: ");
        project
            .run_permissions(&[])
            .expect_code(2)
            .expect_stderr("acp/permissions.toml, line 1: ");
        let project = TestProject::new();
        project.write_config("config.toml", "[environment]\npas = []");
        project
            .run(&["/help"])
            .expect_code(2)
            .expect_stderr("config.toml, line 2: unknown field `pas`");
    }
}

#[test]
fn questions_are_rejected_without_a_terminal() {
    let rules = "[[rule]]\ndecision = \"ask\"\nkind = [\"execute\", \"edit\", \"read\"]\n";
    let tried = [
        (
            "terminal/create",
            r#"{"sessionId":"s","command":"touch","args":["made"]}"#,
        ),
        (
            "fs/write_text_file",
            r#"{"sessionId":"s","path":"PROJECT/made","content":"x"}"#,
        ),
        (
            "fs/read_text_file",
            r#"{"sessionId":"s","path":"PROJECT/notes.txt"}"#,
        ),
        (
            "session/request_permission",
            r#"{"sessionId":"s","toolCall":{"toolCallId":"c","title":"It","kind":"execute"},"options":[{"optionId":"y","name":"Y","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}"#,
        ),
        (
            "elicitation/create",
            r#"{"sessionId":"s","mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
        ),
    ];
    for (method, params) in tried {
        // No stdin, one that is at its end, and one on which nothing ever comes.
        for stdin in ["0<&-", "</dev/null", "pipe"] {
            let project = TestProject::new();
            project.write_config("permissions.toml", rules);
            let root = std::fs::canonicalize(project.path()).unwrap();
            let agent =
                requesting_agent_script(method, &params.replace("PROJECT", root.to_str().unwrap()));
            project.write_file("agent.sh", &agent);
            let redirect = if stdin == "pipe" { "" } else { stdin };
            let run =
                format!("exec '{ACP}' run --timeout 60 --allow all go -- sh agent.sh {redirect}");
            let mut command = std::process::Command::new("sh");
            command
                .args(["-c", &run])
                .current_dir(project.path())
                .envs(project.home_variables());
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let held = child.stdin.take();
            let ended = CommandResult::from_output(child.wait_with_output().unwrap());
            // A form is not an action that could be denied.
            let code = if method == "elicitation/create" { 0 } else { 8 };
            let ended = ended.expect_code(code);
            drop(held);
            let answer = project.read_file("answer");
            assert!(!project.file("made").exists(), "{ended:#?}");
            match method {
                "session/request_permission" => {
                    assert!(answer.contains(r#""optionId":"n""#), "{answer}")
                }
                _ => assert!(answer.contains("\"error\""), "{answer}"),
            }
            if method != "elicitation/create" {
                ended.expect_stderr("rule 1 (ask execute, edit, read): no terminal on which to ask for permission: ");
            }
        }
    }
}

#[test]
fn effective_rules_are_listed() {
    let project = TestProject::new();
    let ended = project.run_permissions(&[]).expect_code(0);
    let ended = ended.expect_stdout(&[
        "Your rules: none (add them in ",
        "acp/permissions.toml",
        "Remembered answers in this project: nothing",
        "Project rules: none",
        "Everything else: as set by --allow.",
    ]);
    assert_eq!(ended.stderr, "");

    let rules = "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\nkind = [\"edit\", \"read\"]\npath = \"src/**\"\n";
    project.write_config("permissions.toml", rules);
    project.write_project_rules(
        r#"[[rule]]
        decision = "ask"
        command = ["git push*", "make \u001b[2J"]
        "#,
    );
    let ended = project.run_permissions(&[]).expect_code(0).expect_stdout(&[
        "Your rules, in ",
        "  1  allow  edit, read  path `src/**`\n",
        "  default: deny\n",
        "Project rules (can only add restrictions), in .acp/permissions.toml:\n",
        "  1  ask  anything  command `git push*` or `make ",
        "Everything else: denied by your default, unless overridden by --allow.",
    ]);
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:#?}");

    let ended = project
        .run_permissions(&["--format", "json"])
        .expect_code(0);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let root = std::fs::canonicalize(project.path()).unwrap();
    assert_eq!(json["project"], root.to_str().unwrap());
    assert_eq!(json["files"][0]["by"], "user");
    assert_eq!(json["files"][0]["default"], "deny");
    assert_eq!(json["files"][0]["rules"][0]["path"][0], "src/**");
    assert_eq!(json["files"][1]["by"], "project");
    assert_eq!(json["files"][1]["rules"][0]["decision"], "ask");
    assert_eq!(json["remembered"], serde_json::json!([]));

    project
        .run_permissions(&["revoke", "7"])
        .expect_code(2)
        .expect_stderr("remembered answer not found: 7");
    project.run_permissions(&["revoke"]).expect_code(2);
    project
        .run_permissions(&["revoke", "1", "--all"])
        .expect_code(2);
    project
        .run_permissions(&["revoke", "--all"])
        .expect_code(0)
        .expect_stdout(&["no remembered answers"]);
    project
        .run_permissions(&["--cwd", "nowhere"])
        .expect_code(2)
        .expect_stderr("nowhere");
}

#[cfg(target_os = "linux")]
#[test]
fn always_answer_is_remembered_until_revoked() {
    let project = TestProject::new();
    let start = |line: &str| CommandTerminal::start(&project, &format!("{ACP} run '{line}'"));
    let mut terminal = start("/run touch made");
    // The second option is the agent's "always".
    terminal.answer("answer [1-4]: ", "2\n");
    let screen = terminal.expect_exit(0);
    assert!(
        screen.contains("remembered for this project: allow execute `touch made`"),
        "{screen}"
    );
    std::fs::remove_file(project.file("made")).unwrap();

    // In another run, on a terminal and without one, nobody is asked again.
    let screen = start("/run touch made").expect_exit(0);
    assert!(!screen.contains("answer ["), "{screen}");
    std::fs::remove_file(project.file("made")).unwrap();
    project.run(&["/run touch made"]).expect_code(0);
    std::fs::remove_file(project.file("made")).unwrap();
    // It is for exactly this.
    project
        .run(&["/run touch made2"])
        .expect_code(8)
        .expect_stderr("rejected by --allow reads");

    let mut terminal = start("/run touch never");
    terminal.answer("answer [1-4]: ", "4\n");
    terminal.expect_exit(0);
    project
        .run(&["--allow", "all", "/run touch never"])
        .expect_code(8)
        .expect_stderr("rejected by your remembered answer 2 (see `acp permissions`): ");
    assert!(!project.file("never").exists());

    project.run_permissions(&[]).expect_code(0).expect_stdout(&[
        "Remembered answers in this project:\n",
        "  1  allow  execute  `touch made`  (20",
        "  2  deny   execute  `touch never`  (20",
        "acp permissions revoke NUMBER",
    ]);
    project
        .run_permissions(&["revoke", "1"])
        .expect_code(0)
        .expect_stdout(&["revoked: allow execute `touch made`"]);
    project
        .run(&["/run touch made"])
        .expect_code(8)
        .expect_stderr("rejected by --allow reads");
    assert!(!project.file("made").exists());
    project
        .run_permissions(&["revoke", "--all"])
        .expect_code(0)
        .expect_stdout(&["revoked 1 answer for "]);
    let json = project
        .run_permissions(&["--format", "json"])
        .expect_code(0)
        .stdout;
    assert!(json.contains("\"remembered\":[]"), "{json}");
}

#[cfg(target_os = "linux")]
#[test]
fn commands_that_begin_the_same_can_be_allowed_with_one_letter() {
    let project = TestProject::new();
    let start = |line: &str| CommandTerminal::start(&project, &format!("{ACP} run '{line}'"));
    let mut terminal = start("/run git status");
    terminal.wait_for("answer [1-5]: ");
    for part in [
        "[y] 1) Allow – allow once",
        "[p] 3) Always allow `git status *` – allow in this project, until you revoke it: every command that begins with git status, with any arguments",
        "[n] 4) Reject – reject once",
    ] {
        let seen = terminal
            .seen
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(seen.contains(part), "{part}: {seen}");
    }
    terminal.answer("answer [1-5]: ", "p\n");
    let screen = terminal.expect_exit(0);
    let remembered = "remembered for this project: allow execute `git status *`";
    assert!(screen.contains(remembered), "{screen}");
    // Nobody is asked again, but only for such a command alone.
    let screen = start("/run git status --short").expect_exit(0);
    assert!(!screen.contains("answer ["), "{screen}");
    for line in ["/run git status && touch made", "/run git stash"] {
        project
            .run(&[line])
            .expect_code(8)
            .expect_stderr("rejected by --allow reads");
    }
    assert!(!project.file("made").exists());
    project
        .run_permissions(&[])
        .expect_code(0)
        .expect_stdout(&["  1  allow  execute  `git status *`  (20"]);
    let json = project.run_permissions(&["--format", "json"]).stdout;
    assert!(json.contains(r#""commands":"git status *""#), "{json}");
}

#[cfg(target_os = "linux")]
#[test]
fn permission_can_be_remembered_for_the_project() {
    let project = TestProject::new();
    let create = requesting_agent_script(
        "terminal/create",
        r#"{"sessionId":"s","command":"touch","args":["made"]}"#,
    );
    project.write_file("agent.sh", &create);
    let line = format!("{ACP} run go -- sh agent.sh");
    let mut terminal = CommandTerminal::start(&project, &line);
    terminal.wait_for("answer [1-5]: ");
    for option in [
        "touch made",
        "1) Allow once",
        "2) Allow exactly this in this session",
        "3) Always allow exactly this in this project",
        "4) Reject",
        "5) Always reject exactly this in this project",
    ] {
        assert!(
            terminal.seen.contains(option),
            "{option}: {}",
            terminal.seen
        );
    }
    terminal.send_keys("3\n");
    terminal.expect_exit(0);
    let screen = CommandTerminal::start(&project, &line).expect_exit(0);
    assert!(!screen.contains("answer ["), "{screen}");
    project
        .run_permissions(&[])
        .expect_code(0)
        .expect_stdout(&["  1  allow  execute  `touch made`"]);
}

#[cfg(target_os = "linux")]
#[test]
fn ask_rule_answers_are_not_remembered() {
    let project = TestProject::new();
    project.write_project_rules("[[rule]]\ndecision = \"ask\"\ncommand = \"touch *\"\n");
    for _ in 0..2 {
        let line = format!("{ACP} run --allow all '/run touch made'");
        let mut terminal = CommandTerminal::start(&project, &line);
        // The bundled agent knows the rule and does not offer what would not be remembered.
        terminal.wait_for("answer [1-2]: ");
        assert!(!terminal.seen.contains("lways"), "{}", terminal.seen);
        terminal.send_keys("1\n");
        terminal.expect_exit(0);
        std::fs::remove_file(project.file("made")).unwrap();
    }
}

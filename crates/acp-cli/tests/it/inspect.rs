//! Tests of `acp inspect` with the bundled agent, a scripted one, shell scripts, and programs that are no agents.

use serde_json::{Value, json};

use crate::common::{ACP, CommandResult, TestProject};
use crate::serve::Server;

/// An agent that has everything, as a shell script. It writes the methods that it is asked to `methods`.
const FULL_AGENT: &str = r#"
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":([0-9]+).*/\1/p')
    printf '%s\n' "$line" | sed -E 's/.*"method":"([^"]*)".*/\1/' >> methods
    case $line in
    *'"method":"initialize"'*) answer='{
        "protocolVersion":1,
        "agentInfo":{"name":"full","title":"The \u001b[31mFull\u001b[0m\nAgent","version":"1.2"},
        "agentCapabilities":{
            "loadSession":true,
            "promptCapabilities":{"image":true},
            "mcpCapabilities":{"http":true},
            "sessionCapabilities":{"close":{},"delete":{},"dance":{"steps":3}},
            "_meta":{"example.org/undo":true}},
        "authMethods":[
            {"id":"web","name":"Browser","description":"Opens a page"},
            {"id":"shell","name":"Password","type":"terminal","args":["--login"]}],
        "_meta":{"steering":{"supported":true}}}' ;;
    *'"method":"session/new"'*)
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"available_commands_update","availableCommands":[
            {"name":"web","description":"Search the web","input":{"hint":"QUERY"}},
            {"name":"stop","description":"Stop"}]}}}' | tr -d '\n'
        echo
        answer='{"sessionId":"s1",
            "modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code","description":"Change files"}]},
            "models":{"currentModelId":"big","availableModels":[{"modelId":"big","name":"Big"},{"modelId":"small","name":"Small"}]},
            "configOptions":[{"id":"effort","name":"Effort","category":"thought_level","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]}' ;;
    *) answer='{}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$answer" | tr -d '\n'
    echo
done
"#;

/// Runs `acp inspect` in the project with a shell script as the agent.
fn inspect_script(project: &TestProject, options: &[&str], script: &str) -> CommandResult {
    let mut command = project.acp_command(&["inspect"]);
    command.args(options).args(["--", "sh", "-c", script]);
    CommandResult::from_output(command.output().unwrap())
}

fn inspect(project: &TestProject, args: &[&str]) -> CommandResult {
    let mut command = project.acp_command(&["inspect"]);
    CommandResult::from_output(command.args(args).output().unwrap())
}

fn parse_json(result: &CommandResult) -> Value {
    serde_json::from_str(&result.stdout).unwrap_or_else(|e| panic!("{e}: {result:#?}"))
}

#[test]
fn everything_that_an_agent_has_is_shown() {
    let project = TestProject::new();
    let result = inspect_script(&project, &[], FULL_AGENT)
        .expect_code(0)
        .expect_stdout(&[
            "The Full Agent 1.2\n",
            "name      full\n",
            "command   sh -c ",
            "protocol  1 (inspected in version 1)\n",
            "\nCapabilities\n",
            "prompts         text, resource links, images\n",
            "sessions        new, load, close, delete\n",
            "MCP servers     stdio, http\n",
            "other methods   _session/steering\n",
            "\nExtensions\n",
            "_meta.steering ",
            "agentCapabilities._meta.example.org/undo ",
            "agentCapabilities.sessionCapabilities.dance\n",
            r#"{"steps":3}"#,
            "\nLogins\n",
            "web    Browser                      Opens a page\n",
            "shell  Password (needs a terminal)\n",
            "\nSession\n  can be opened without a login\n",
            "\nModes\n  * ask   Ask\n    code  Code  Change files\n",
            "\nModels\n  * big    Big\n    small  Small\n",
            "\nOption effort (Effort)\n  * low   Low\n    high  High\n",
            "\nCommands\n  /web QUERY  Search the web\n  /stop       Stop\n",
        ]);
    assert!(!result.stdout.contains('\u{1b}'), "{result:#?}");
}

#[test]
fn text_of_the_agent_controls_neither_the_terminal_nor_the_screen() {
    let project = TestProject::new();
    let script = r#"
long=$(head -c 100000 /dev/zero | tr '\0' x)
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":([0-9]+).*/\1/p')
    case $line in
    *'"method":"initialize"'*) answer='"result":{"protocolVersion":1,"agentInfo":{"name":"\u001b]0;owned\u0007me\rhidden","version":"'$long'"}}' ;;
    *) answer='"error":{"code":-32603,"message":"\u001b[2J'$long'"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;
    let result = inspect_script(&project, &[], script)
        .expect_code(1)
        .expect_stdout(&["me", "hidden", "xxx", "\nSession\n  cannot be opened: "]);
    for shown in [&result.stdout, &result.stderr] {
        assert!(shown.len() < 6000, "{} bytes", shown.len());
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r']), "{result:#?}");
    }
}

#[test]
fn session_is_closed_and_deleted_and_no_prompt_is_sent() {
    let project = TestProject::new();
    inspect_script(&project, &[], FULL_AGENT).expect_code(0);
    let methods = project.read_file("methods");
    let of_session: Vec<&str> = methods
        .lines()
        .filter(|method| method.starts_with("session/"))
        .collect();
    let expected = ["session/new", "session/close", "session/delete"];
    assert_eq!(of_session, expected);
}

#[test]
fn no_session_is_opened_with_no_session() {
    let project = TestProject::new();
    let options = ["--no-session", "--format", "json"];
    let result = inspect_script(&project, &options, FULL_AGENT).expect_code(0);
    assert_eq!(parse_json(&result)["session"], Value::Null);
    assert!(!project.read_file("methods").contains("session/"));
}

#[test]
fn json_has_the_documented_members() {
    let project = TestProject::new();
    let result = inspect_script(&project, &["--format", "json"], FULL_AGENT).expect_code(0);
    let report = parse_json(&result);
    assert_eq!(report["agent"]["name"], "full");
    assert_eq!(report["agent"]["version"], "1.2");
    assert_eq!(report["agent"]["url"], Value::Null);
    assert_eq!(report["protocol"], json!({"inspected": 1, "accepted": [1]}));
    let capabilities = &report["capabilities"];
    assert_eq!(
        capabilities["prompt"],
        json!(["text", "resource_link", "image"])
    );
    assert_eq!(
        capabilities["session_methods"],
        json!(["new", "load", "close", "delete"])
    );
    assert_eq!(capabilities["mcp"], json!(["stdio", "http"]));
    assert_eq!(
        capabilities["extensions"]["_meta.steering"],
        json!({"supported": true})
    );
    let login = json!({
        "id": "shell", "name": "Password", "description": null, "type": "terminal", "needs_terminal": true,
    });
    assert_eq!(report["logins"][1], login);
    let session = &report["session"];
    assert_eq!(session["is_open"], true);
    assert_eq!(session["needs_login"], false);
    assert_eq!(session["mode"]["current"], "ask");
    assert_eq!(session["mode"]["values"][1]["description"], "Change files");
    assert_eq!(session["model"]["values"][1]["value"], "small");
    assert_eq!(session["options"][0]["id"], "effort");
    assert_eq!(
        session["commands"][0],
        json!({"name": "web", "description": "Search the web", "hint": "QUERY"})
    );
    assert_eq!(report["initialize"]["agentInfo"]["name"], "full");
}

#[test]
fn bundled_agent_is_inspected_in_both_versions() {
    let project = TestProject::new();
    // In version 2, `session/resume` replaces `session/load`.
    for (version, methods) in [("1", "new, load, resume"), ("2", "new, resume")] {
        inspect(&project, &["--protocol", version])
            .expect_code(0)
            .expect_stdout(&[
                "name      acp-agent\n",
                "command   acp agent\n",
                &format!("protocol  1, 2 (inspected in version {version})\n"),
                &format!("sessions        {methods}, fork, list, close, delete"),
                "\nLogins\n",
                "anthropic  API key for Anthropic (needs a terminal)",
                "\nModes\n  * ask ",
                "\nCommands\n",
                "/read PATH",
            ]);
    }
    // The sessions are gone.
    let listed = project.acp_command(&["sessions"]).output().unwrap();
    let listed = CommandResult::from_output(listed).expect_code(0);
    assert_eq!(listed.stdout, "", "{listed:#?}");
}

#[test]
fn agent_that_speaks_only_version_2_is_inspected_in_version_2() {
    let project = TestProject::new();
    let script = r#"
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":([0-9]+).*/\1/p')
    case $line in
    *'"method":"initialize"'*) answer='{"protocolVersion":2,"info":{"name":"new","version":"3"},"capabilities":{"session":{"mcp":{"stdio":{}}}}}' ;;
    *'"method":"session/new"'*) answer='{"sessionId":"s1"}' ;;
    *) answer='{}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$answer"
done
"#;
    inspect_script(&project, &[], script)
        .expect_code(0)
        .expect_stdout(&[
            "new 3\n",
            "protocol  2 (inspected in version 2)\n",
            "sessions        new, resume, list, close\n",
            "MCP servers     stdio\n",
            "\nLogins\n  none\n",
            "\nCommands\n  the agent reported none within 2 s\n",
        ]);
}

#[cfg(unix)]
#[test]
fn session_that_needs_a_login_is_not_an_error() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--ways plain,program");
    project
        .run_shell(&format!("acp inspect -- {agent}"))
        .expect_code(0)
        .expect_stdout(&[
            "\nLogins\n",
            "plain    By plain",
            "program  Password (needs a terminal)",
            "\nSession\n  needs a login: ",
            "acp login --method plain -- ",
        ]);
    let json = project
        .run_shell(&format!("acp inspect --format json -- {agent}"))
        .expect_code(0);
    let session = &parse_json(&json)["session"];
    assert_eq!(session["is_open"], false);
    assert_eq!(session["needs_login"], true);
}

#[test]
fn session_that_cannot_be_opened_is_reported_with_the_rest() {
    let project = TestProject::new();
    let script = r#"
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id":([0-9]+).*/\1/p')
    case $line in
    *'"method":"initialize"'*) answer='"result":{"protocolVersion":1,"agentInfo":{"name":"broken","version":"1"}}' ;;
    *) answer='"error":{"code":-32603,"message":"no disk"}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
"#;
    inspect_script(&project, &[], script)
        .expect_code(1)
        .expect_stdout(&["broken 1\n", "\nSession\n  cannot be opened: ", "no disk"])
        .expect_stderr("acp: cannot open a session: ");
}

#[test]
fn agent_that_hangs_is_given_up_after_the_time_limit() {
    let project = TestProject::new();
    let start = "echo starting >&2; cat > /dev/null";
    inspect_script(&project, &["--timeout", "1"], start)
        .expect_code(3)
        .expect_stderr("the agent did not respond to `initialize` within 1 s")
        .expect_stderr("wait longer with --timeout")
        .expect_stderr("starting");

    let script = r#"
read -r line
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"slow","version":"1"}}}'
cat > /dev/null
"#;
    inspect_script(&project, &["--timeout", "1"], script)
        .expect_code(1)
        .expect_stdout(&["slow 1\n", "cannot be opened"])
        .expect_stderr("the agent did not respond to `session/new` within 1 s");
}

#[test]
fn program_that_is_no_agent_is_an_error() {
    let project = TestProject::new();
    inspect_script(&project, &[], "echo 'usage: tool FILE' >&2; exit 2")
        .expect_code(3)
        .expect_stderr("the agent exited: exit code 2")
        .expect_stderr("usage: tool FILE");
    inspect_script(
        &project,
        &["--timeout", "1"],
        "echo Welcome; cat > /dev/null",
    )
    .expect_code(3)
    .expect_stderr("did not respond to `initialize`")
    .expect_stderr("Welcome");
    inspect(&project, &["--", "acp-no-such-agent"])
        .expect_code(3)
        .expect_stderr("command not found: `acp-no-such-agent`");
    inspect(&project, &["--agent", "no-such-name"]).expect_code(2);
    inspect(&project, &["--cwd", "no-such-directory"]).expect_code(2);
}

#[test]
fn agents_are_inspected_by_name_and_by_url() {
    let project = TestProject::new();
    project.write_config(
        "config.toml",
        &format!("[agents.mine]\ncommand = [{ACP:?}, \"agent\"]\n"),
    );
    inspect(&project, &["--agent", "mine", "--no-session"])
        .expect_code(0)
        .expect_stdout(&["name      acp-agent\n"]);

    let server = Server::start(&project, &[]);
    let result = inspect(&project, &["--url", server.url(), "--format", "json"]).expect_code(0);
    let report = parse_json(&result);
    assert_eq!(report["agent"]["name"], "acp-agent");
    assert_eq!(report["session"]["is_open"], true);
    let token = server.token();
    assert!(!result.stdout.contains(token.expose()), "{result:#?}");
}

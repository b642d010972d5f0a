//! Tests of `acp sessions` and `acp run --resume`. This test program also acts as the agent.

use crate::common::{CommandResult, TestProject};

const PROTOCOL_ARGS: [&str; 2] = ["--protocol 1", "--protocol 2"];

#[test]

fn all_pages_of_sessions_are_listed() {
    for version in PROTOCOL_ARGS {
        let project = TestProject::new();
        let agent = project.test_agent_command(&format!("{version} --sessions 2500"));
        let ended = project
            .run_shell(&format!("acp sessions {version} -- {agent}"))
            .expect_code(0);
        assert_eq!(ended.stderr, "");
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(lines.len(), 2500);
        let cwd = project.path().canonicalize().unwrap();
        let cwd = cwd.to_str().unwrap();
        assert_eq!(lines[0], format!("sess_0     2026-03-01  {cwd}  The first"));
        let last = lines[2499];
        assert!(last.starts_with("sess_2499  -"), "{last}");
        assert!(last.ends_with(&format!("{cwd}  (untitled)")), "{last}");
    }
    let project = TestProject::new();
    let agent = project.test_agent_command("--sessions 0");
    let ended = project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(0);
    assert_eq!(ended.stdout, "");
    ended.expect_stderr("no sessions");
}

#[test]

fn sessions_are_listed_as_json() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--sessions 1001");
    let ended = project
        .run_shell(&format!("acp sessions --format json -- {agent}"))
        .expect_code(0);
    let sessions: Vec<serde_json::Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(sessions.len(), 1001);
    assert_eq!(sessions[0]["title"], "The first\u{7}");
    assert_eq!(sessions[1000]["sessionId"], "sess_1000");
}

#[test]

fn list_is_filtered_by_directory() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--sessions 3");
    for directory in ["below", "elsewhere"] {
        std::fs::create_dir(project.file(directory)).unwrap();
    }
    let elsewhere = project.file("elsewhere").display().to_string();
    for cwd in [".", "below"] {
        // The agent runs there, and its sessions are where it runs.
        let ended = project
            .run_shell(&format!("acp sessions --cwd {cwd} -- {agent}"))
            .expect_code(0);
        assert_eq!(ended.stdout.lines().count(), 3, "{ended:?}");
        let moved = format!("acp sessions --cwd {cwd} -- sh -c 'cd {elsewhere}; exec {agent}'");
        project
            .run_shell(&moved)
            .expect_code(0)
            .expect_stderr("no sessions");
    }
    project
        .run_shell(&format!("acp sessions --cwd missing -- {agent}"))
        .expect_code(2)
        .expect_stderr("missing");
}

#[test]
fn sessions_of_this_directory_come_first_with_times_as_people_say_them() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("below")).unwrap();
    let run = |line: &str| project.run_shell(line).expect_code(0);
    run("acp run '/read notes.txt:1-1'");
    run("acp run '/read notes.txt:2-2'");
    project.write_file("below/other.txt", "other\n");
    run("acp run --cwd below '/read other.txt'");
    let titles = |listed: &CommandResult| -> Vec<String> {
        let titles = listed.stdout.lines().map(|line| {
            let (_, title) = line.rsplit_once("  ").unwrap();
            title.to_owned()
        });
        titles.collect()
    };
    let here = run("acp sessions");
    assert_eq!(
        titles(&here),
        [
            "/read notes.txt:2-2",
            "/read notes.txt:1-1",
            "/read other.txt"
        ]
    );
    assert!(
        here.stdout
            .lines()
            .all(|line| line.contains("  just now  ")),
        "{here:?}"
    );
    let below = project.run_shell("cd below && acp sessions").expect_code(0);
    assert_eq!(titles(&below)[0], "/read other.txt");
    // For programs, times are exact, and the order is the agent's.
    let json = run("acp sessions --format json").stdout;
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["title"], "/read other.txt");
    let changed = first["updatedAt"].as_str().unwrap();
    assert!(changed.ends_with('Z') && changed.contains('T'), "{changed}");
}

#[test]

fn list_length_is_limited() {
    let project = TestProject::new();
    // At the end of a page, and within one.
    for (sessions, more) in [(10_000, false), (10_001, true), (12_000, true)] {
        let agent = project.test_agent_command(&format!("--sessions {sessions}"));
        let ended = project
            .run_shell(&format!("acp sessions -- {agent}"))
            .expect_code(0);
        assert_eq!(ended.stdout.lines().count(), 10_000);
        assert_eq!(
            ended.stderr.contains("showing the first"),
            more,
            "{}",
            ended.stderr
        );
    }
}

#[test]

fn endless_list_is_an_error() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--endless");
    project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(1)
        .expect_stderr("the agent's session list never ends");
}

#[test]

fn unsupported_list_is_a_usage_error() {
    let project = TestProject::new();
    let agent = project.test_agent_command("");
    project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(2)
        .expect_stderr("sessionCapabilities.list");
    project
        .run_shell(&format!("acp run --resume sess_0 hello -- {agent}"))
        .expect_code(2)
        .expect_stderr("loadSession");
}

#[test]

fn list_may_require_a_login() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--sessions 3 --ways plain");
    let refused = project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(1);
    project
        .run_shell(&refused.find_line("acp login"))
        .expect_code(0);
    project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(0);
}

#[test]

fn old_session_continues_without_showing_its_history() {
    for version in PROTOCOL_ARGS {
        for opens in ["load", "resume", "load,resume"] {
            let project = TestProject::new();
            let agent = project.test_agent_command(&format!("{version} --opens {opens}"));
            let run = |options: &str| {
                project.run_shell(&format!("acp run {version} {options} hello -- {agent}"))
            };
            assert_eq!(
                run("--resume sess_0").expect_code(0).stdout,
                "you said hello\n"
            );
            let quiet = run("--resume sess_0 --format quiet").expect_code(0);
            assert_eq!((&*quiet.stdout, &*quiet.stderr), ("you said hello\n", ""));
            let json = run("--resume sess_0 --format json").expect_code(0).stdout;
            assert!(json.contains("you said hello"), "{json}");
            assert!(!json.contains("old "), "{json}");
            run("--resume sess_1")
                .expect_code(1)
                .expect_stderr("session not found: sess_1");
        }
    }
}

#[test]

fn resume_hint_is_printed_and_works() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("my dir")).unwrap();
    for opens in ["load", "resume"] {
        let agent = project.test_agent_command(&format!("--opens {opens}"));
        let ended = project
            .run_shell(&format!("acp run --cwd 'my dir' hello -- {agent}"))
            .expect_code(0);
        let hint = ended.find_line("acp run --resume sess_0");
        let (_, command) = hint.split_once("continue with: ").unwrap();
        assert!(command.contains("--cwd 'my dir' PROMPT"), "{command}");
        project
            .run_shell(command)
            .expect_code(0)
            .expect_stdout(&["you said PROMPT"]);
    }
}

#[test]

fn resume_hint_is_printed_only_on_a_terminal() {
    let project = TestProject::new();
    let keeps = project.test_agent_command("--opens load,resume");
    for format in ["quiet", "json"] {
        let ended = project
            .run_shell(&format!("acp run --format {format} hello -- {keeps}"))
            .expect_code(0);
        assert_eq!(ended.stderr, "");
    }
    let forgets = project.test_agent_command("");
    let ended = project
        .run_shell(&format!("acp run hello -- {forgets}"))
        .expect_code(0);
    assert_eq!(ended.stderr, "");
    // Where the bundled agent keeps nothing, it says nothing of it, whatever version 2 says that an agent
    // does.
    std::fs::create_dir_all(project.sessions_directory().join("sessions.db")).unwrap();
    for version in PROTOCOL_ARGS {
        let ended = project
            .run_shell(&format!("acp run {version} /help"))
            .expect_code(0);
        assert_eq!(ended.stderr, "");
    }
}

//! `acp sessions` and `acp run --resume`, with an agent that is this program itself.

use crate::common::TestProject;

const VERSIONS: [&str; 2] = ["--protocol 1", "--protocol 2"];

#[test]

fn all_sessions_are_listed_page_by_page() {
    for version in VERSIONS {
        let project = TestProject::new();
        let agent = project.agent(&format!("{version} --sessions 2500"));
        let ended = project
            .shell(&format!("acp sessions {version} -- {agent}"))
            .code(0);
        assert_eq!(ended.stderr, "");
        let lines: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(lines.len(), 2500);
        let cwd = project.path().canonicalize().unwrap();
        let cwd = cwd.to_str().unwrap();
        assert_eq!(
            lines[0],
            format!("sess_0    2026-03-01T12:00:00Z  {cwd}  The first")
        );
        let last = lines[2499];
        assert!(last.starts_with("sess_2499  -"), "{last}");
        assert!(last.ends_with(&format!("{cwd}  (untitled)")), "{last}");
    }
    let project = TestProject::new();
    let agent = project.agent("--sessions 0");
    let ended = project.shell(&format!("acp sessions -- {agent}")).code(0);
    assert_eq!(ended.stdout, "");
    ended.says("no sessions");
}

#[test]

fn sessions_are_listed_for_programs() {
    let project = TestProject::new();
    let agent = project.agent("--sessions 1001");
    let ended = project
        .shell(&format!("acp sessions --format json -- {agent}"))
        .code(0);
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

fn a_directory_narrows_the_list() {
    let project = TestProject::new();
    let agent = project.agent("--sessions 3");
    for directory in ["below", "elsewhere"] {
        std::fs::create_dir(project.file(directory)).unwrap();
    }
    let elsewhere = project.file("elsewhere").display().to_string();
    for cwd in [".", "below"] {
        // The agent runs there, and its sessions are where it runs.
        let ended = project
            .shell(&format!("acp sessions --cwd {cwd} -- {agent}"))
            .code(0);
        assert_eq!(ended.stdout.lines().count(), 3, "{ended:?}");
        let moved = format!("acp sessions --cwd {cwd} -- sh -c 'cd {elsewhere}; exec {agent}'");
        project.shell(&moved).code(0).says("no sessions");
    }
    project
        .shell(&format!("acp sessions --cwd missing -- {agent}"))
        .code(2)
        .says("missing");
}

#[test]

fn the_list_is_bounded() {
    let project = TestProject::new();
    // At the end of a page, and within one.
    for (sessions, more) in [(10_000, false), (10_001, true), (12_000, true)] {
        let agent = project.agent(&format!("--sessions {sessions}"));
        let ended = project.shell(&format!("acp sessions -- {agent}")).code(0);
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

fn a_list_without_an_end_is_an_error() {
    let project = TestProject::new();
    let agent = project.agent("--endless");
    project
        .shell(&format!("acp sessions -- {agent}"))
        .code(1)
        .says("the agent's session list never ends");
}

#[test]

fn what_the_agent_does_not_offer_is_wrong_usage() {
    let project = TestProject::new();
    let agent = project.agent("");
    project
        .shell(&format!("acp sessions -- {agent}"))
        .code(2)
        .says("sessionCapabilities.list");
    project
        .shell(&format!("acp run --resume sess_0 hello -- {agent}"))
        .code(2)
        .says("loadSession");
}

#[test]

fn a_list_may_need_a_login() {
    let project = TestProject::new();
    let agent = project.agent("--sessions 3 --ways plain");
    let refused = project.shell(&format!("acp sessions -- {agent}")).code(1);
    project.shell(&refused.line("acp login")).code(0);
    project.shell(&format!("acp sessions -- {agent}")).code(0);
}

#[test]

fn an_old_session_goes_on_and_its_past_is_not_shown() {
    for version in VERSIONS {
        for opens in ["load", "resume", "load,resume"] {
            let project = TestProject::new();
            let agent = project.agent(&format!("{version} --opens {opens}"));
            let run = |options: &str| {
                project.shell(&format!("acp run {version} {options} hello -- {agent}"))
            };
            assert_eq!(run("--resume sess_0").code(0).stdout, "you said hello\n");
            let quiet = run("--resume sess_0 --format quiet").code(0);
            assert_eq!((&*quiet.stdout, &*quiet.stderr), ("you said hello\n", ""));
            let json = run("--resume sess_0 --format json").code(0).stdout;
            assert!(json.contains("you said hello"), "{json}");
            assert!(!json.contains("old "), "{json}");
            run("--resume sess_1")
                .code(1)
                .says("session not found: sess_1");
        }
    }
}

#[test]

fn how_to_go_on_is_said_and_works() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("my dir")).unwrap();
    for opens in ["load", "resume"] {
        let agent = project.agent(&format!("--opens {opens}"));
        let ended = project
            .shell(&format!("acp run --cwd 'my dir' hello -- {agent}"))
            .code(0);
        let hint = ended.line("acp run --resume sess_0");
        let (_, command) = hint.split_once("continue with: ").unwrap();
        assert!(command.contains("--cwd 'my dir' PROMPT"), "{command}");
        project.shell(command).code(0).shows(&["you said PROMPT"]);
    }
}

#[test]

fn how_to_go_on_is_said_to_people_only() {
    let project = TestProject::new();
    let keeps = project.agent("--opens load,resume");
    for format in ["quiet", "json"] {
        let ended = project
            .shell(&format!("acp run --format {format} hello -- {keeps}"))
            .code(0);
        assert_eq!(ended.stderr, "");
    }
    let forgets = project.agent("");
    let ended = project
        .shell(&format!("acp run hello -- {forgets}"))
        .code(0);
    assert_eq!(ended.stderr, "");
    // Where the bundled agent keeps nothing, it says nothing of it, whatever version 2 says that an agent
    // does.
    std::fs::create_dir_all(project.sessions().join("sessions.db")).unwrap();
    for version in VERSIONS {
        let ended = project.shell(&format!("acp run {version} /help")).code(0);
        assert_eq!(ended.stderr, "");
    }
}

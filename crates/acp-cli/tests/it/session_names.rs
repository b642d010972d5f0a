//! Tests of sessions chosen by name: `acp run --session`, and `acp sessions name`, `forget` and `export`. In some
//! tests, this test program also acts as the agent.

use crate::common::{CommandResult, TestProject};

const PROTOCOL_ARGS: [&str; 2] = ["--protocol 1", "--protocol 2"];

/// Asserts that `acp sessions` prints a single line, and returns its words.
fn only_session_ids(project: &TestProject) -> Vec<String> {
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    listed.split_whitespace().map(str::to_owned).collect()
}

#[test]

fn named_session_is_started_and_continued() {
    let project = TestProject::new();
    let begun = project
        .run_shell("acp run --session build '/read notes.txt:1-1'")
        .expect_code(0);
    assert!(begun.stdout.contains("first"), "{begun:?}");
    let hint = begun.find_line("continue with: ");
    assert_eq!(hint, "continue with: acp run --session build PROMPT");
    let [name, id] = [0, 1].map(|column| only_session_ids(&project)[column].clone());
    assert_eq!(name, "build");
    let went_on = project
        .run_shell("acp run --session build '/read notes.txt:2-2'")
        .expect_code(0);
    // What was said before is not shown again.
    assert!(went_on.stdout.contains("second"), "{went_on:?}");
    assert!(!went_on.stdout.contains("first"), "{went_on:?}");
    assert_eq!(only_session_ids(&project)[1], id);
    // For programs, too.
    let json = project
        .run_shell("acp sessions --format json")
        .expect_code(0)
        .stdout;
    let session: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(session["sessionId"], *id);
    assert_eq!(session["_meta"]["acp/name"], "build");
    let refused = project.run_shell(&format!("acp run --session build --resume {id} hello"));
    refused.expect_code(2).expect_stderr("cannot be used with");
    project
        .run_shell("acp run --new hello")
        .expect_code(2)
        .expect_stderr("--session");
}

#[test]
fn short_options_and_other_words_do_the_same() {
    let project = TestProject::new();
    let run = |line: &str| project.run_shell(line).expect_code(0);
    project.write_file("prompt.txt", "/read notes.txt:1-1");
    let begun = run("acp run -s build -f prompt.txt");
    assert!(begun.stdout.contains("first"), "{begun:?}");
    let continued = run("acp run -c '/read notes.txt:2-2'");
    assert_eq!(
        continued.find_line("continue with: "),
        "continue with: acp run --session build PROMPT"
    );
    let id = only_session_ids(&project)[1].clone();
    run("acp sessions stop");
    run(&format!("acp run -r {id} '/read notes.txt:3-3'"));
    let piped = run("echo '/read notes.txt:2-2' | acp run -f -");
    assert!(piped.stdout.contains("second"), "{piped:?}");
    let listed = run("acp sessions list --format json");
    assert_eq!(listed.stdout, run("acp sessions --format json").stdout);
    assert!(listed.stdout.contains(&id), "{listed:?}");
    let shown = run("acp sessions show build").stdout;
    assert!(shown.contains("/read notes.txt:3-3"), "{shown}");
    assert_eq!(shown, run("acp sessions export build").stdout);
}

#[test]

fn name_belongs_to_an_agent_and_a_directory() {
    for version in PROTOCOL_ARGS {
        let project = TestProject::new();
        std::fs::create_dir(project.file("below")).unwrap();
        let opens = project.test_agent_command(&format!("{version} --opens load"));
        let other = project.test_agent_command(&format!("{version} --opens load --other"));
        let run = |cwd: &str, agent: &str| {
            let line = format!("acp run {version} --session it --cwd {cwd} hello -- {agent}");
            project
                .run_shell(&line)
                .expect_code(0)
                .expect_stdout(&["you said hello"])
                .stderr
        };
        // Each is the first of its name.
        for (cwd, agent) in [(".", &opens), ("below", &opens), (".", &other)] {
            run(cwd, agent);
        }
        let kept = std::fs::read_to_string(project.sessions_directory().join("session-names.json"))
            .unwrap();
        let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept["sessions"].as_array().unwrap().len(), 3, "{kept}");
        run(".", &opens);
        let kept = std::fs::read_to_string(project.sessions_directory().join("session-names.json"))
            .unwrap();
        assert_eq!(kept.matches("\"name\"").count(), 3, "{kept}");
    }
}

#[test]

fn concurrent_runs_do_not_lose_names() {
    let project = TestProject::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let agent = project.test_agent_command("--opens load");
    let started: Vec<_> = names
        .iter()
        .map(|name| {
            let line =
                format!("acp run --no-server --session {name} --format quiet hello -- {agent}");
            project.shell_command(&line).spawn().unwrap()
        })
        .collect();
    for child in started {
        CommandResult::from_output(child.wait_with_output().unwrap()).expect_code(0);
    }
    let listed = project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(0)
        .expect_stderr("the agent cannot list sessions");
    assert_eq!(listed.stdout.lines().count(), names.len(), "{listed:?}");
}

#[test]

fn concurrent_starts_give_the_name_to_one_session() {
    let project = TestProject::new();
    let runs = ["one", "two"].map(|prompt| {
        let line = format!("acp run --session it '/read notes.txt:1-1' # {prompt}");
        project.shell_command(&line).spawn().unwrap()
    });
    let ended =
        runs.map(|run| CommandResult::from_output(run.wait_with_output().unwrap()).expect_code(0));
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    let named = listed
        .lines()
        .filter(|line| line.starts_with("it "))
        .count();
    assert_eq!(named, 1, "{listed}");
    // Either both were one after the other in the same session, or the later one was told.
    let told = ended
        .iter()
        .filter(|ended| {
            ended
                .stderr
                .contains("in the meantime; the id of this session is")
        })
        .count();
    assert_eq!(listed.lines().count(), 1 + told, "{listed} {ended:?}");
}

#[test]

fn missing_session_is_restarted_only_on_request() {
    let project = TestProject::new();
    project
        .run_shell("acp run --no-server --session it /help")
        .expect_code(0);
    let before = only_session_ids(&project);
    for file in std::fs::read_dir(project.sessions_directory()).unwrap() {
        let file = file.unwrap().path();
        if file.to_string_lossy().contains("sessions.db") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let gone = project
        .run_shell("acp run --no-server --session it /help")
        .expect_code(1);
    let said = gone.find_line("no longer exists in");
    assert!(said.contains("`it`") && said.contains(&before[1]), "{said}");
    assert!(
        said.ends_with("use --new to start a new session under this name"),
        "{said}"
    );
    project
        .run_shell("acp run --no-server --session it --new /help")
        .expect_code(0);
    assert_ne!(only_session_ids(&project)[1], before[1]);
    project
        .run_shell("acp run --no-server --session it /help")
        .expect_code(0);
    // Another's agent, in both versions.
    for version in PROTOCOL_ARGS {
        let agent = project.test_agent_command(&format!("{version} --opens load,resume --forgets"));
        let run = format!("acp run {version} --no-server --session it hello -- {agent}");
        project.run_shell(&run).expect_code(0);
        project
            .run_shell(&run)
            .expect_code(1)
            .expect_stderr("no longer exists in");
    }
}

#[test]

fn agent_without_storage_has_no_named_sessions() {
    let project = TestProject::new();
    let agent = project.test_agent_command("");
    project
        .run_shell(&format!(
            "acp run --no-server --session it hello -- {agent}"
        ))
        .expect_code(2)
        .expect_stderr("does not store sessions");
    assert!(
        !project
            .sessions_directory()
            .join("session-names.json")
            .exists()
    );
}

#[test]

fn names_are_assigned_and_removed() {
    let project = TestProject::new();
    project.run_shell("acp run /help").expect_code(0);
    let [id] = [0].map(|column| only_session_ids(&project)[column].clone());
    project
        .run_shell(&format!("acp sessions name {id} old"))
        .expect_code(0);
    assert_eq!(only_session_ids(&project)[0], "old");
    project
        .run_shell("acp run --session old /help")
        .expect_code(0);
    assert_eq!(only_session_ids(&project)[1], id);
    project
        .run_shell("acp sessions name other old")
        .expect_code(2)
        .expect_stderr("is already used for session sess_");
    project
        .run_shell("acp sessions name other 'a\tb'")
        .expect_code(2)
        .expect_stderr("invalid session name: use one line");
    project
        .run_shell("acp sessions forget old")
        .expect_code(0)
        .expect_stdout(&["removed name old (sess_"]);
    project
        .run_shell("acp sessions forget old")
        .expect_code(2)
        .expect_stderr("the bundled agent has no session called `old`");
    assert_eq!(only_session_ids(&project)[0], id);
}

#[test]

fn session_is_renamed_archived_and_unarchived() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session it /help")
        .expect_code(0);
    project
        .run_shell("acp sessions rename it 'A title of mine'")
        .expect_code(0)
        .expect_stdout(&["renamed: A title of mine"]);
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    assert!(listed.ends_with("  A title of mine\n"), "{listed}");
    let id = only_session_ids(&project)[1].clone();

    project.run_shell("acp sessions archive it").expect_code(0);
    let listed = project.run_shell("acp sessions").expect_code(0);
    assert_eq!(listed.stdout, "");
    listed.expect_stderr("include archived ones with --archived");
    project
        .run_shell("acp sessions --archived")
        .expect_code(0)
        .expect_stdout(&["(archived) A title of mine"]);
    // It is kept: one can go on with it.
    project
        .run_shell("acp run --session it /help")
        .expect_code(0);
    project
        .run_shell(&format!("acp sessions unarchive {id}"))
        .expect_code(0);
    assert_eq!(only_session_ids(&project)[1], id);

    for command in ["archive none", "unarchive none", "rename none title"] {
        project
            .run_shell(&format!("acp sessions {command}"))
            .expect_code(1)
            .expect_stderr("session not found in the bundled agent: none");
    }
    let agent = project.test_agent_command("");
    project
        .run_shell(&format!("acp sessions archive it -- {agent}"))
        .expect_code(2)
        .expect_stderr("sessionCapabilities.archive");
}

#[test]

fn named_sessions_are_listed_if_the_agent_lists_none() {
    let project = TestProject::new();
    let agent = project.test_agent_command("--opens resume");
    project
        .run_shell(&format!("acp run --session it hello -- {agent}"))
        .expect_code(0);
    project
        .run_shell(&format!("acp sessions -- {agent}"))
        .expect_code(0)
        .expect_stdout(&["it  sess_0"]);
}

#[test]

fn corrupt_names_file_is_reported_and_kept() {
    let project = TestProject::new();
    std::fs::create_dir_all(project.sessions_directory()).unwrap();
    let file = project.sessions_directory().join("session-names.json");
    std::fs::write(&file, "[").unwrap();
    project
        .run_shell("acp run --session it /help")
        .expect_code(1)
        .expect_stderr("session-names.json");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "[");
}

#[test]

fn session_is_exported_as_markdown() {
    for version in PROTOCOL_ARGS {
        let project = TestProject::new();
        let run = |prompt: &str| {
            project.write_file("prompt", prompt);
            let line = format!("acp run {version} --allow all --session it --file prompt");
            project.run_shell(&line).expect_code(0);
        };
        run("/edit notes.txt\nsecond\n===\n2nd");
        run("/run echo '```'; exit 3");
        let export = format!("acp sessions export {version} it");
        let ended = project.run_shell(&export).expect_code(0);
        assert_eq!(ended.stderr, "");
        let document = ended.clone().expect_stdout(&[
            "# ",
            "## You\n\n/edit notes.txt\nsecond\n\\===\n2nd\n",
            "## Agent\n",
            "*edit, completed*",
            "```diff\n",
            "-second\n+2nd\n",
            "```\n",
            "## You\n\n/run echo",
            "*execute, failed*",
            "````",
            "\n```\n",
            "````",
            "Exit code 3.",
        ]);
        // To a file, which is not written over.
        project
            .run_shell(&format!("{export} --out it.md"))
            .expect_code(0);
        assert_eq!(project.read_file("it.md"), document.stdout);
        project
            .run_shell(&format!("{export} --out it.md"))
            .expect_code(2)
            .expect_stderr("--out it.md: file already exists");
    }
}

#[test]

fn export_failure_is_reported() {
    let project = TestProject::new();
    let resumes = project.test_agent_command("--opens resume");
    project
        .run_shell(&format!("acp sessions export sess_0 -- {resumes}"))
        .expect_code(2)
        .expect_stderr("cannot export sessions of");
    let forgets = project.test_agent_command("--opens load --forgets");
    let told = project
        .run_shell(&format!("acp sessions export sess_7 -- {forgets}"))
        .expect_code(1)
        .find_line("session not found in the agent ");
    assert!(told.ends_with(": sess_7"), "{told}");
    let loads = project.test_agent_command("--opens load");
    project
        .run_shell(&format!("acp sessions export sess_0 -- {loads}"))
        .expect_code(0)
        .expect_stdout(&["## You\n\nold question\n", "## Agent\n\nold answer\n"]);
}

#[test]
fn session_is_deleted_with_its_names_and_old_ones_are_pruned() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session it /help")
        .expect_code(0);
    project
        .run_shell("acp sessions delete it")
        .expect_code(2)
        .expect_stderr("use --yes");
    project
        .run_shell("acp sessions delete --yes it")
        .expect_code(0)
        .expect_stdout(&["deleted"]);
    project
        .run_shell("acp sessions forget it")
        .expect_code(2)
        .expect_stderr("no session called `it`");
    project
        .run_shell("acp sessions delete --yes it")
        .expect_code(1)
        .expect_stderr("session not found in the bundled agent: it");

    project
        .run_shell("acp run --session new /help")
        .expect_code(0);
    project
        .run_shell("acp sessions prune --older-than 1h --yes")
        .expect_code(0)
        .expect_stderr("no sessions are older");
    assert_eq!(only_session_ids(&project)[0], "new");
    project
        .run_shell("acp sessions prune --older-than 0m")
        .expect_code(2)
        .expect_stdout(&["new"])
        .expect_stderr("use --yes");
    project
        .run_shell("acp sessions prune --older-than 0m --yes")
        .expect_code(0)
        .expect_stdout(&["new", "deleted 1 session"]);
    let listed = project.run_shell("acp sessions").expect_code(0);
    assert_eq!(listed.stdout, "");
    project
        .run_shell("acp sessions prune --older-than soon")
        .expect_code(2)
        .expect_stderr("expected a number and a unit");
    let agent = project.test_agent_command("");
    project
        .run_shell(&format!("acp sessions delete --yes it -- {agent}"))
        .expect_code(2)
        .expect_stderr("sessionCapabilities.delete");
}

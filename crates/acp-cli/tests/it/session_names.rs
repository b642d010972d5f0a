//! Sessions by name: `acp run --session`, `acp sessions name`, `forget` and `export`. Some with an agent that is this
//! program itself.

use crate::common::{CommandResult, TestProject};

const VERSIONS: [&str; 2] = ["--protocol 1", "--protocol 2"];

/// The words of the only line that `acp sessions` prints.
fn only_session(project: &TestProject) -> Vec<String> {
    let listed = project.shell("acp sessions").code(0).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    listed.split_whitespace().map(str::to_owned).collect()
}

#[test]

fn a_session_is_begun_under_a_name_and_gone_on_with() {
    let project = TestProject::new();
    let begun = project
        .shell("acp run --session build '/read notes.txt:1-1'")
        .code(0);
    assert!(begun.stdout.contains("first"), "{begun:?}");
    let hint = begun.line("continue with: ");
    assert_eq!(hint, "continue with: acp run --session build PROMPT");
    let [name, id] = [0, 1].map(|column| only_session(&project)[column].clone());
    assert_eq!(name, "build");
    let went_on = project
        .shell("acp run --session build '/read notes.txt:2-2'")
        .code(0);
    // What was said before is not shown again.
    assert!(went_on.stdout.contains("second"), "{went_on:?}");
    assert!(!went_on.stdout.contains("first"), "{went_on:?}");
    assert_eq!(only_session(&project)[1], id);
    // For programs, too.
    let json = project.shell("acp sessions --format json").code(0).stdout;
    let session: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(session["sessionId"], *id);
    assert_eq!(session["_meta"]["acp/name"], "build");
    let refused = project.shell(&format!("acp run --session build --resume {id} hello"));
    refused.code(2).says("cannot be used with");
    project
        .shell("acp run --new hello")
        .code(2)
        .says("--session");
}

#[test]

fn a_name_is_one_of_an_agent_in_a_directory() {
    for version in VERSIONS {
        let project = TestProject::new();
        std::fs::create_dir(project.file("below")).unwrap();
        let opens = project.agent(&format!("{version} --opens load"));
        let other = project.agent(&format!("{version} --opens load --other"));
        let run = |cwd: &str, agent: &str| {
            let line = format!("acp run {version} --session it --cwd {cwd} hello -- {agent}");
            project
                .shell(&line)
                .code(0)
                .shows(&["you said hello"])
                .stderr
        };
        // Each is the first of its name.
        for (cwd, agent) in [(".", &opens), ("below", &opens), (".", &other)] {
            run(cwd, agent);
        }
        let kept = std::fs::read_to_string(project.sessions().join("session-names.json")).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept["sessions"].as_array().unwrap().len(), 3, "{kept}");
        run(".", &opens);
        let kept = std::fs::read_to_string(project.sessions().join("session-names.json")).unwrap();
        assert_eq!(kept.matches("\"name\"").count(), 3, "{kept}");
    }
}

#[test]

fn several_runs_at_once_lose_no_name() {
    let project = TestProject::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let agent = project.agent("--opens load");
    let started: Vec<_> = names
        .iter()
        .map(|name| {
            let line = format!("acp run --session {name} --format quiet hello -- {agent}");
            project.in_shell(&line).spawn().unwrap()
        })
        .collect();
    for child in started {
        CommandResult::of(child.wait_with_output().unwrap()).code(0);
    }
    let listed = project
        .shell(&format!("acp sessions -- {agent}"))
        .code(0)
        .says("the agent cannot list sessions");
    assert_eq!(listed.stdout.lines().count(), names.len(), "{listed:?}");
}

#[test]

fn of_two_that_begin_one_gets_the_name() {
    let project = TestProject::new();
    let runs = ["one", "two"].map(|prompt| {
        let line = format!("acp run --session it '/read notes.txt:1-1' # {prompt}");
        project.in_shell(&line).spawn().unwrap()
    });
    let ended = runs.map(|run| CommandResult::of(run.wait_with_output().unwrap()).code(0));
    let listed = project.shell("acp sessions").code(0).stdout;
    let named = listed
        .lines()
        .filter(|line| line.starts_with("it "))
        .count();
    assert_eq!(named, 1, "{listed}");
    // Either both were one after the other in the same session, or the later one was told.
    let told = ended
        .iter()
        .filter(|ended| ended.stderr.contains("in the meantime; this session is"))
        .count();
    assert_eq!(listed.lines().count(), 1 + told, "{listed} {ended:?}");
}

#[test]

fn a_session_that_is_gone_is_begun_anew_only_if_asked() {
    let project = TestProject::new();
    project.shell("acp run --session it /help").code(0);
    let before = only_session(&project);
    for file in std::fs::read_dir(project.sessions()).unwrap() {
        let file = file.unwrap().path();
        if file.to_string_lossy().contains("sessions.db") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let gone = project.shell("acp run --session it /help").code(1);
    let said = gone.line("no longer exists in");
    assert!(said.contains("`it`") && said.contains(&before[1]), "{said}");
    assert!(
        said.ends_with("use --new to start a new session under this name"),
        "{said}"
    );
    project.shell("acp run --session it --new /help").code(0);
    assert_ne!(only_session(&project)[1], before[1]);
    project.shell("acp run --session it /help").code(0);
    // Another's agent, in both versions.
    for version in VERSIONS {
        let agent = project.agent(&format!("{version} --opens load,resume --forgets"));
        let run = format!("acp run {version} --session it hello -- {agent}");
        project.shell(&run).code(0);
        project.shell(&run).code(1).says("no longer exists in");
    }
}

#[test]

fn an_agent_that_keeps_nothing_has_no_named_sessions() {
    let project = TestProject::new();
    let agent = project.agent("");
    project
        .shell(&format!("acp run --session it hello -- {agent}"))
        .code(2)
        .says("does not store sessions");
    assert!(!project.sessions().join("session-names.json").exists());
}

#[test]

fn names_are_given_and_taken_away() {
    let project = TestProject::new();
    project.shell("acp run /help").code(0);
    let [id] = [0].map(|column| only_session(&project)[column].clone());
    project
        .shell(&format!("acp sessions name {id} old"))
        .code(0);
    assert_eq!(only_session(&project)[0], "old");
    project.shell("acp run --session old /help").code(0);
    assert_eq!(only_session(&project)[1], id);
    project
        .shell("acp sessions name other old")
        .code(2)
        .says("is already used for sess_");
    project
        .shell("acp sessions name other 'a\tb'")
        .code(2)
        .says("invalid session name: use one line");
    project
        .shell("acp sessions forget old")
        .code(0)
        .shows(&["removed name old (sess_"]);
    project
        .shell("acp sessions forget old")
        .code(2)
        .says("no session of the bundled agent");
    assert_eq!(only_session(&project)[0], id);
}

#[test]

fn a_session_is_renamed_and_archived_and_listed_again() {
    let project = TestProject::new();
    project.shell("acp run --session it /help").code(0);
    project
        .shell("acp sessions rename it 'A title of mine'")
        .code(0)
        .shows(&["renamed: A title of mine"]);
    assert_eq!(only_session(&project)[4..].join(" "), "A title of mine");
    let id = only_session(&project)[1].clone();

    project.shell("acp sessions archive it").code(0);
    let listed = project.shell("acp sessions").code(0);
    assert_eq!(listed.stdout, "");
    listed.says("include archived ones with --archived");
    project
        .shell("acp sessions --archived")
        .code(0)
        .shows(&["(archived) A title of mine"]);
    // It is kept: one can go on with it.
    project.shell("acp run --session it /help").code(0);
    project
        .shell(&format!("acp sessions unarchive {id}"))
        .code(0);
    assert_eq!(only_session(&project)[1], id);

    for command in ["archive none", "unarchive none", "rename none title"] {
        project
            .shell(&format!("acp sessions {command}"))
            .code(1)
            .says("session not found in the bundled agent: none");
    }
    let agent = project.agent("");
    project
        .shell(&format!("acp sessions archive it -- {agent}"))
        .code(2)
        .says("sessionCapabilities.archive");
}

#[test]

fn named_sessions_of_an_agent_that_lists_none_are_listed() {
    let project = TestProject::new();
    let agent = project.agent("--opens resume");
    project
        .shell(&format!("acp run --session it hello -- {agent}"))
        .code(0);
    project
        .shell(&format!("acp sessions -- {agent}"))
        .code(0)
        .shows(&["it  sess_0"]);
}

#[test]

fn a_broken_file_of_names_is_told_and_stays() {
    let project = TestProject::new();
    std::fs::create_dir_all(project.sessions()).unwrap();
    let file = project.sessions().join("session-names.json");
    std::fs::write(&file, "[").unwrap();
    project
        .shell("acp run --session it /help")
        .code(1)
        .says("session-names.json");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "[");
}

#[test]

fn a_session_is_exported_as_markdown() {
    for version in VERSIONS {
        let project = TestProject::new();
        let run = |prompt: &str| {
            project.write("prompt", prompt);
            let line = format!("acp run {version} --allow all --session it --file prompt");
            project.shell(&line).code(0);
        };
        run("/edit notes.txt\nsecond\n===\n2nd");
        run("/run echo '```'; exit 3");
        let export = format!("acp sessions export {version} it");
        let ended = project.shell(&export).code(0);
        assert_eq!(ended.stderr, "");
        let document = ended.clone().shows(&[
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
        project.shell(&format!("{export} --out it.md")).code(0);
        assert_eq!(project.read("it.md"), document.stdout);
        project
            .shell(&format!("{export} --out it.md"))
            .code(2)
            .says("--out it.md: file already exists");
    }
}

#[test]

fn what_cannot_be_exported_is_told() {
    let project = TestProject::new();
    let resumes = project.agent("--opens resume");
    project
        .shell(&format!("acp sessions export sess_0 -- {resumes}"))
        .code(2)
        .says("cannot export sessions of");
    let forgets = project.agent("--opens load --forgets");
    let told = project
        .shell(&format!("acp sessions export sess_7 -- {forgets}"))
        .code(1)
        .line("session not found in the agent ");
    assert!(told.ends_with(": sess_7"), "{told}");
    let loads = project.agent("--opens load");
    project
        .shell(&format!("acp sessions export sess_0 -- {loads}"))
        .code(0)
        .shows(&["## You\n\nold question\n", "## Agent\n\nold answer\n"]);
}

//! Tests of the bundled agent's sessions, with agent processes started by an editor or a user.

use crate::common;
use std::process::Command;

use crate::common::editor::{ScriptedEditor, plan_steps};
use crate::common::{CommandResult, TestProject};
use serde_json::{Value, json};

/// Returns a script for a turn with every kind of update, along with the plans that the turn shows.
fn recorded_work() -> (String, Vec<Vec<(String, String)>>) {
    let pieces: Vec<String> = (0..30).map(|n| format!("piece {n} of it, ")).collect();
    let plan = |status: &str| json!([{"content": "Work", "status": status}]);
    let turn = json!([
        {"think": ["Let me", " see", "."]},
        {"plan": plan("in_progress")},
        {"say": pieces},
        {"list": {}},
        {"read": {"path": "notes.txt"}},
        {"say": ["Now", " I", " write", "."]},
        {"write": {"path": "new.txt", "text": "new\n"}},
        {"run": {"command": "echo one; echo two >&2"}},
        {"say": pieces},
        {"edit": {"path": "new.txt", "search": "new", "replacement": "old"}},
        {"plan": plan("completed")},
        {"say": "Done."},
        {"run": {"command": "echo three"}},
        {"say": pieces},
    ]);
    let script = json!({"turns": [turn, [{"say": "And on."}]]});
    let plans = ["in_progress", "completed"].map(|status| plan_steps(&plan(status)));
    (script.to_string(), plans.to_vec())
}

impl TestProject {
    fn scripted_agent_command(&self, script: &str, version: u16) -> Command {
        self.write_file(".script.json", script);
        let script = self.file(".script.json");
        let version = version.to_string();
        let script = script.to_str().unwrap();
        self.acp_command(&["agent", "--protocol", &version, "--script", script])
    }
}

#[test]
fn everything_shown_before_a_kill_is_replayed() {
    let (script, plans) = recorded_work();
    for version in [1, 2] {
        let mut killed = 0;
        // In each part of the turn, and when it has ended.
        for updates in [1, 3, 7, 20, 36, 40, 44, 50, 55, 60, 90, 100, 120, 9999] {
            let project = TestProject::new();
            project.allow_commands();
            let mut editor =
                ScriptedEditor::start(project.scripted_agent_command(&script, version), version);
            let session = editor.new_session(project.path());
            editor.start_prompt(&session, "Work\nhard");
            killed += usize::from(editor.read_updates(updates));
            let before = editor.kill();

            let mut editor =
                ScriptedEditor::start(project.scripted_agent_command(&script, version), version);
            let opened = editor.load_session(&session, project.path()).unwrap();
            let options = opened["configOptions"].to_string();
            assert!(options.contains(r#""currentValue":"code""#), "{options}");
            let after = editor.shown.clone();
            after.assert_includes(&before, &plans);
            let prompts = after
                .texts
                .values()
                .filter(|(who, _)| who == "user_message");
            let prompts: Vec<&str> = prompts.map(|(_, text)| text.as_str()).collect();
            assert_eq!(prompts, ["Work\nhard"]);

            // It goes on with what comes next, and is shown as one the next time.
            assert_eq!(editor.prompt(&session, "Go on").unwrap(), "end_turn");
            editor.close();
            let mut editor =
                ScriptedEditor::start(project.scripted_agent_command(&script, version), version);
            editor.load_session(&session, project.path()).unwrap();
            editor.shown.assert_includes(&after, &plans);
            let said = |text: &str| editor.shown.texts.values().any(|(_, said)| said == text);
            assert!(said("Go on") && said("And on."), "{:?}", editor.shown.texts);
        }
        assert!(killed > 9, "the turn has ended before most of the kills");
    }
}

#[test]
fn two_processes_share_a_store() {
    let project = TestProject::new();
    let turns = vec![r#"[{"say": ["a", "b", "c"]}, {"list": {}}, {"say": "d"}]"#; 40].join(", ");
    let script = format!(r#"{{"turns": [{turns}]}}"#);
    // Both are started at once, on a store that is not there yet.
    let start = || {
        let (project, script) = (&project, &script);
        move || ScriptedEditor::start(project.scripted_agent_command(script, 1), 1)
    };
    let (mut one, mut two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(start()), scope.spawn(start()));
        (one.join().unwrap(), two.join().unwrap())
    });
    // Each in a session of its own, both at the same time.
    let turns = |editor: &mut ScriptedEditor| {
        let session = editor.new_session(project.path());
        for turn in 0..20 {
            editor.prompt(&session, &format!("turn {turn}")).unwrap();
        }
        session
    };
    let sessions = std::thread::scope(|scope| {
        let (one, two) = (
            scope.spawn(|| turns(&mut one)),
            scope.spawn(|| turns(&mut two)),
        );
        [one.join().unwrap(), two.join().unwrap()]
    });
    let before = [one.shown.clone(), two.shown.clone()];
    assert_eq!(before[0].texts.len(), 2 * 20);
    // Each is shown what the other was.
    for (editor, (session, before)) in [&mut two, &mut one]
        .into_iter()
        .zip(sessions.iter().zip(&before))
    {
        editor.load_session(session, project.path()).unwrap();
        editor.shown.assert_includes(before, &[]);
    }
}

#[test]
fn stale_process_gets_an_error_until_it_loads_the_session() {
    let project = TestProject::new();
    let script = r#"{"turns": [[{"say": "1"}], [{"say": "2"}], [{"say": "3"}]]}"#;
    let start = || ScriptedEditor::start(project.scripted_agent_command(script, 1), 1);
    let (mut one, mut two) = (start(), start());
    let session = one.new_session(project.path());
    one.prompt(&session, "first").unwrap();
    two.load_session(&session, project.path()).unwrap();
    two.prompt(&session, "second").unwrap();
    let stale = one.prompt(&session, "lost").unwrap_err();
    assert!(
        stale.contains("was changed by another process; load it again"),
        "{stale}"
    );
    one.load_session(&session, project.path()).unwrap();
    one.prompt(&session, "third").unwrap();
    let mut said: Vec<&str> = one.shown.texts.values().map(|(_, said)| &**said).collect();
    said.sort_unstable();
    assert_eq!(said, ["1", "2", "3", "first", "second"]);
}

#[cfg(unix)]
#[test]
fn stored_files_are_private_regardless_of_umask() {
    use std::os::unix::fs::PermissionsExt;
    let project = TestProject::new();
    let agent = format!("umask 0; exec {} agent", common::ACP);
    let mut command = project.program_command("sh");
    command.args(["-c", &agent]);
    let mut editor = ScriptedEditor::start(command, 1);
    let session = editor.new_session(project.path());
    editor.prompt(&session, "/help").unwrap();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&project.sessions_directory()), 0o700);
    let mut files = Vec::new();
    for file in std::fs::read_dir(project.sessions_directory()).unwrap() {
        let file = file.unwrap();
        assert_eq!(mode(&file.path()), 0o600, "{}", file.path().display());
        files.push(file.file_name().into_string().unwrap());
    }
    files.sort();
    let expected = [
        "sessions.db",
        "sessions.db-shm",
        "sessions.db-wal",
        "sessions.lock",
    ];
    assert_eq!(files, expected);
}

#[test]
fn stored_session_is_continued() {
    for version in ["", " --protocol 2"] {
        let project = TestProject::new();
        let ended = project
            .run_shell(&format!("acp run{version} '/read notes.txt'"))
            .expect_code(0);
        let hint = ended.find_line("acp run --resume sess_");
        let (_, command) = hint.split_once("continue with: ").unwrap();
        let listed = project
            .run_shell(&format!("acp sessions{version}"))
            .expect_code(0)
            .stdout;
        let cwd = project.path().canonicalize().unwrap();
        let fields: Vec<&str> = listed.trim_end().split("  ").collect();
        assert_eq!(fields[2..], [cwd.to_str().unwrap(), "/read notes.txt"]);
        assert!(command.contains(fields[0]), "{command} {listed}");
        project
            .run_shell(&command.replace("PROMPT", "/help"))
            .expect_code(0);
        let listed = project
            .run_shell(&format!("acp sessions{version}"))
            .expect_code(0)
            .stdout;
        assert_eq!(listed.lines().count(), 1, "{listed}");
        let gone = project
            .run_shell("acp run --resume sess_gone /help")
            .expect_code(1);
        gone.expect_stderr("sess_gone");
    }
}

#[test]
fn agent_without_storage_warns_and_works() {
    let project = TestProject::new();
    std::fs::write(project.sessions_directory(), "no directory").unwrap();
    let output = project.acp_command(&["agent"]).output().unwrap();
    CommandResult::from_output(output)
        .expect_code(0)
        .expect_stderr("warning: sessions will not be stored: ");
    let asked = project
        .acp_command(&["agent", "--sessions", "notes.txt"])
        .output();
    CommandResult::from_output(asked.unwrap())
        .expect_code(2)
        .expect_stderr("--sessions: ");
    let mut command = project.acp_command(&["agent"]);
    command.env_remove("HOME").env_remove("XDG_STATE_HOME");
    // Whoever has no HOME may be known to the system all the same: then that is nobody's to write to here.
    command.args(["--sessions", "none"]);
    let mut editor = ScriptedEditor::start(command, 1);
    let session = editor.new_session(project.path());
    editor.prompt(&session, "/help").unwrap();
    let refused = editor.load_session(&session, project.path()).unwrap_err();
    assert!(refused.contains("session/load"), "{refused}");
}

#[test]
fn agent_with_a_broken_database_warns_once_and_keeps_sessions_in_memory() {
    let project = TestProject::new();
    std::fs::create_dir_all(project.sessions_directory()).unwrap();
    let database = project.sessions_directory().join("sessions.db");
    std::fs::write(&database, "no database, but of some length".repeat(100)).unwrap();
    let before = std::fs::read(&database).unwrap();
    let errors = project.path_outside("errors").join("stderr");
    let mut command = project.acp_command(&["agent"]);
    command.stderr(std::fs::File::create(&errors).unwrap());
    let mut editor = ScriptedEditor::start(command, 1);
    let session = editor.new_session(project.path());
    editor.prompt(&session, "/help").unwrap();
    editor.load_session(&session, project.path()).unwrap();
    let listed = editor.send_and_wait("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    editor.close();
    let errors = std::fs::read_to_string(&errors).unwrap();
    let warnings = errors.matches("warning: sessions will not be stored: ");
    assert_eq!(warnings.count(), 1, "{errors}");
    assert_eq!(std::fs::read(&database).unwrap(), before);
}

#[test]
fn deleted_session_is_not_listed_and_cannot_be_loaded() {
    let project = TestProject::new();
    let mut editor = ScriptedEditor::start(project.acp_command(&["agent"]), 1);
    let session = editor.new_session(project.path());
    editor.prompt(&session, "/help").unwrap();
    let list =
        |editor: &mut ScriptedEditor| editor.send_and_wait("session/list", json!({})).unwrap();
    assert_eq!(list(&mut editor)["sessions"][0]["sessionId"], session);
    let id: Value = session.clone().into();
    editor
        .send_and_wait("session/delete", json!({ "sessionId": id }))
        .unwrap();
    assert_eq!(list(&mut editor)["sessions"], json!([]));
    editor.prompt(&session, "/help").unwrap_err();
    editor.load_session(&session, project.path()).unwrap_err();
}

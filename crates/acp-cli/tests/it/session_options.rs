//! Tests of options with which `acp run` and `acp chat` open a session: `--fork`, `--add-dir` and `--model`.

use std::path::Path;

use crate::common::TestProject;
use crate::continue_latest::continuation;

/// Returns a project with a directory beside it, and the directory's path.
fn project_with_library() -> (TestProject, String) {
    let project = TestProject::new();
    let library = project.path_outside("library");
    std::fs::write(library.join("x.txt"), "from the library\n").unwrap();
    let library = library.canonicalize().unwrap();
    (project, library.to_str().unwrap().to_owned())
}

#[test]
fn fork_continues_in_a_copy() {
    let project = TestProject::new();
    let run = |line: &str| project.run_shell(line).expect_code(0);
    let first = continuation(&run("acp run '/read notes.txt:1-1'"));
    let id = first.trim_start_matches("--resume ").to_owned();
    let before = run(&format!("acp sessions export {id}")).stdout;
    for options in [format!("{first} --fork"), "--continue --fork".to_owned()] {
        let copied = run(&format!("acp run {options} '/read notes.txt:3-3'"));
        let copy = continuation(&copied);
        assert_ne!(copy, first, "{options}");
        // The copy has both turns, the session only its own.
        let copy = copy.trim_start_matches("--resume ");
        let text = run(&format!("acp sessions export {copy}")).stdout;
        assert!(text.contains("first") && text.contains("third"), "{text}");
        let after = run(&format!("acp sessions export {id}")).stdout;
        assert_eq!(after, before, "{options}");
    }
    assert_eq!(run("acp sessions").stdout.lines().count(), 3);
}

/// A copy of a session with a name has no name, so the name still means the session.
#[test]
fn copy_of_a_session_with_a_name_has_no_name() {
    let project = TestProject::new();
    let run = |line: &str| project.run_shell(line).expect_code(0);
    run("acp run --no-server --session build '/read notes.txt:1-1'");
    let copied = run("acp run --continue --fork '/read notes.txt:3-3'");
    assert!(continuation(&copied).starts_with("--resume "), "{copied:?}");
    let text = run("acp sessions export build").stdout;
    assert!(text.contains("first") && !text.contains("third"), "{text}");
}

#[test]
fn fork_requires_a_session_and_an_agent_that_can_copy_it() {
    let project = TestProject::new();
    for command in ["run hello", "run --session build hello"] {
        let ended = project.run_shell(&format!("acp {command} --fork < /dev/null"));
        ended.expect_code(2).expect_stderr("--fork");
    }
    let agent = project.test_agent_command("--opens load --sessions 1");
    project
        .run_shell(&format!("acp run --resume s --fork hello -- {agent}"))
        .expect_code(2)
        .expect_stderr("sessionCapabilities.fork");
}

#[test]
fn added_directory_belongs_to_the_session() {
    let (project, library) = project_with_library();
    let read = format!("'/read {library}/x.txt'");
    project
        .run_shell(&format!("acp run --allow reads {read}"))
        .expect_stdout(&["outside the session's directories"]);
    // It can be given twice, and together with the working directory.
    let ended = project
        .run_shell(&format!(
            "acp run --allow reads --add-dir {library} --add-dir {library}/. --add-dir . {read}"
        ))
        .expect_code(0)
        .expect_stdout(&["from the library"]);
    // So does the continuation that is printed.
    let options = continuation(&ended);
    assert!(
        options.contains(&format!("--add-dir {library}")),
        "{options}"
    );
    let trace = project
        .run_shell(&format!(
            "acp run --allow reads --format trace --add-dir {library} --add-dir . {read}"
        ))
        .expect_code(0);
    let expected = format!(r#""additionalDirectories":["{library}"]"#);
    assert!(trace.stdout.contains(&expected), "{}", trace.stdout);
}

#[test]
fn programs_in_a_sandbox_can_write_to_an_added_directory() {
    let (project, library) = project_with_library();
    let touch = format!("'/run touch {library}/y'");
    project
        .run_shell(&format!("acp run --allow all --sandbox {touch}"))
        .expect_stdout(&["exited with code 1"]);
    assert!(!Path::new(&library).join("y").exists());
    for (session, file) in [("", "y"), ("--session build", "z")] {
        let touch = format!("'/run touch {library}/{file}'");
        project
            .run_shell(&format!(
                "acp run {session} --allow all --sandbox --add-dir {library} {touch}"
            ))
            .expect_code(0);
        assert!(Path::new(&library).join(file).exists());
    }
    project.run_shell("acp sessions stop");
}

#[test]
fn added_directory_must_exist_and_be_supported() {
    let project = TestProject::new();
    project
        .run_shell("acp run --add-dir nowhere hello")
        .expect_code(2)
        .expect_stderr("--add-dir nowhere: No such file or directory");
    project
        .run_shell("acp run --add-dir notes.txt hello")
        .expect_code(2)
        .expect_stderr("--add-dir notes.txt: not a directory");
    let agent = project.test_agent_command("");
    let library = project.path_outside("library");
    let library = library.to_str().unwrap();
    project
        .run_shell(&format!("acp run --add-dir {library} hello -- {agent}"))
        .expect_code(2)
        .expect_stderr("sessionCapabilities.additionalDirectories");
}

//! Tests of what agents get: the project as the user has it, rules, and a copy that confines them.

use std::process::Command;

use serde_json::{Value, json};

use super::{ComparedProject, changed};
use crate::common::CommandResult;

#[test]
fn agents_start_from_the_users_files_and_do_not_touch_them() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    project.write_file(".gitignore", "secret\n");
    project.write_file("old.txt", "old\n");
    compared.commit();
    compared.git(&["tag", "v1"]);
    compared.git(&["remote", "add", "origin", "https://example.org/x"]);
    // Stashed, staged, changed, removed, untracked and ignored.
    project.write_file("notes.txt", "stashed\n");
    compared.git(&["stash", "--quiet"]);
    project.write_file("staged.txt", "staged\n");
    compared.git(&["add", "staged.txt"]);
    project.write_file("notes.txt", "changed\n");
    project.write_file("new file", "untracked\n");
    project.write_file("secret", "ignored\n");
    std::fs::remove_file(project.file("old.txt")).unwrap();
    let look = "cat notes.txt staged.txt 'new file' > OUTSIDE/seen; ls -A > OUTSIDE/list; \
        git status --short > OUTSIDE/status; git remote > OUTSIDE/remotes; git log --format=%s v1 > OUTSIDE/log";
    // What would touch the repository if it were the user's.
    let own = "git add -A; git -c user.name=B -c user.email=b commit -q -m mine; git branch other; git tag v2; \
        echo more >> notes.txt; git stash -q; git stash apply -q; git gc -q; rm 'new file'";
    compared.agents(&[("a", look), ("b", own)]);
    let before = compared.files();
    let compared_agents = compared.compare_json(&[])["agents"].take();
    assert_eq!(compared.files(), before);
    compared.expect_clean();

    let seen = |name: &str| std::fs::read_to_string(compared.outside.join(name)).unwrap();
    assert_eq!(seen("seen"), "changed\nstaged\nuntracked\n");
    assert_eq!(
        seen("list"),
        ".git\n.gitignore\nnew file\nnotes.txt\nstaged.txt\n"
    );
    assert_eq!(
        seen("status"),
        " M notes.txt\n D old.txt\nA  staged.txt\n?? \"new file\"\n"
    );
    assert_eq!(seen("remotes"), "");
    assert_eq!(seen("log"), "A commit\nA commit\n");
    assert_eq!(changed(&compared_agents[0]), [""; 0]);
    assert_eq!(
        changed(&compared_agents[1]),
        ["deleted new file", "modified notes.txt"]
    );
}

#[test]
fn agents_run_at_the_same_time_but_not_too_many() {
    let compared = ComparedProject::new();
    for name in ["one", "two"] {
        let made = Command::new("mkfifo")
            .arg(compared.outside.join(name))
            .status();
        assert!(made.unwrap().success());
    }
    // Each waits for the other.
    compared.agents(&[
        ("a", "echo > OUTSIDE/one; read x < OUTSIDE/two"),
        ("b", "read x < OUTSIDE/one; echo > OUTSIDE/two"),
    ]);
    compared.compare(&[]).expect_code(0);
    let alone = "mkdir OUTSIDE/lock || exit 1; git status > OUTSIDE/out; rmdir OUTSIDE/lock";
    compared.agents(&[("a", alone), ("b", alone)]);
    let json = compared.compare_json(&["--jobs", "1"]);
    for agent in 0..2 {
        assert_eq!(json["agents"][agent]["state"], "ended");
    }
}

#[test]
fn repository_without_commits_can_be_compared() {
    let compared = ComparedProject::without_repository();
    compared.git(&["init", "--quiet", "--initial-branch=main"]);
    compared.agents(&[
        (
            "a",
            "echo 4th >> notes.txt; git status --short > OUTSIDE/status",
        ),
        ("b", "true"),
    ]);
    let before = compared.files();
    compared.compare(&[]).expect_code(0);
    assert_eq!(compared.files(), before);
    let status = std::fs::read_to_string(compared.outside.join("status")).unwrap();
    assert_eq!(status, "?? notes.txt\n");
    compared.compare(&["--apply", "a"]).expect_code(0);
    let notes = "first\nsecond\nthird\n4th\n";
    assert_eq!(compared.project.read_file("notes.txt"), notes);
}

#[test]
fn repository_with_conflicts_can_be_compared() {
    let compared = ComparedProject::new();
    compared.git(&["switch", "--quiet", "--create", "other"]);
    compared.project.write_file("notes.txt", "theirs\n");
    compared.commit();
    compared.git(&["switch", "--quiet", "main"]);
    compared.project.write_file("notes.txt", "ours\n");
    compared.commit();
    let mut merge = compared.project.program_command("git");
    let merge = merge.args(["-c", "user.name=A", "-c", "user.email=a", "merge", "other"]);
    assert!(!compared.isolate(merge).output().unwrap().status.success());
    assert!(compared.project.read_file("notes.txt").contains("=====\n"));
    compared.agents(&[
        (
            "a",
            "grep -v '[<=>]' notes.txt > resolved; mv resolved notes.txt",
        ),
        ("b", "true"),
    ]);
    let index = std::fs::read(compared.project.file(".git/index")).unwrap();
    compared.compare(&["--apply", "a"]).expect_code(0);
    assert_eq!(compared.project.read_file("notes.txt"), "ours\ntheirs\n");
    assert_eq!(
        std::fs::read(compared.project.file(".git/index")).unwrap(),
        index
    );
}

#[test]
fn worktree_subdirectory_and_unusual_index_are_respected() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    std::fs::create_dir_all(project.file("sub/dir")).unwrap();
    project.write_file("sub/dir/file", "text\n");
    project.write_file("sparse", "text\n");
    project.write_file("assumed", "text\n");
    compared.commit();
    compared.git(&["update-index", "--split-index"]);
    compared.git(&["update-index", "--skip-worktree", "sparse"]);
    compared.git(&["update-index", "--assume-unchanged", "assumed"]);
    std::fs::remove_file(project.file("sparse")).unwrap();
    project.write_file("assumed", "changed\n");
    let does = "pwd > OUTSIDE/pwd; ls .. ../.. > OUTSIDE/list; cat ../../assumed >> file; echo more >> ../../assumed";
    compared.agents(&[("a", does), ("b", "true")]);
    let before = compared.files();
    let json = compared.compare_json(&["--cwd", "sub/dir"]);
    assert_eq!(compared.files(), before);
    assert_eq!(
        changed(&json["agents"][0]),
        ["modified assumed", "modified sub/dir/file"]
    );
    let pwd = std::fs::read_to_string(compared.outside.join("pwd")).unwrap();
    assert!(pwd.ends_with("/sub/dir\n"), "{pwd}");
    let list = std::fs::read_to_string(compared.outside.join("list")).unwrap();
    assert!(
        list.contains("assumed") && !list.contains("sparse"),
        "{list}"
    );

    // Variables of a hook, from which a user may have started the command, do not lead elsewhere.
    let other = compared.outside.join("other");
    let mut command = compared.command(&[
        "--agent", "a", "--allow", "all", "--apply", "a", "--cwd", "sub/dir", "go",
    ]);
    command.env("GIT_DIR", &other).env("GIT_INDEX_FILE", &other);
    CommandResult::from_output(command.output().unwrap()).expect_code(0);
    assert_eq!(project.read_file("assumed"), "changed\nmore\n");
    assert_eq!(project.read_file("sub/dir/file"), "text\nchanged\n");
}

#[test]
fn rules_apply_in_the_copies() {
    let compared = ComparedProject::new();
    let rules = "[[rule]]\ndecision = \"deny\"\ncommand = \"touch *\"\n";
    for directory in [".acp", "sub", "sub/.acp"] {
        std::fs::create_dir(compared.project.file(directory)).unwrap();
    }
    compared.project.write_file(".gitignore", ".acp\n");
    compared.commit();
    let run = || {
        let args = [
            "--agent", "acp", "--allow", "all", "--cwd", "sub", "--format", "json",
        ];
        let result = compared.compare_only(&[&args[..], &["/run touch made"]].concat());
        let json: Value = serde_json::from_str(&result.stdout).unwrap();
        json["agents"][0]["files"].clone()
    };
    assert_eq!(run().as_array().unwrap().len(), 1);
    for file in [".acp/permissions.toml", "sub/.acp/permissions.toml"] {
        compared.project.write_file(file, rules);
        assert_eq!(run(), json!([]), "{file}");
        std::fs::remove_file(compared.project.file(file)).unwrap();
    }
}

#[test]
fn agents_and_tests_are_confined_to_their_copies() {
    if let Err(error) = acp_host::Sandbox::new([]) {
        println!("skipped: {error}");
        return;
    }
    let compared = ComparedProject::new();
    let a = "echo 4th >> notes.txt; git add -A; git -c user.name=B -c user.email=b commit -q -m mine && say committed; \
        touch OUTSIDE/made PROJECT/made";
    compared.agents(&[("a", a), ("b", "true")]);
    let test = format!("touch here && ! touch {}/made", compared.outside.display());
    let json = compared.compare_json(&["--sandbox", "--test", &test]);
    assert_eq!(json["agents"][0]["answer"], "committed");
    assert_eq!(changed(&json["agents"][0]), ["modified notes.txt"]);
    assert_eq!(json["agents"][0]["test"]["exitCode"], 0);
    assert!(!compared.outside.join("made").exists());
    assert!(!compared.project.file("made").exists());
    // Only reading, for an agent that does not ask.
    let json = compared.compare_json(&["--sandbox=read-only"]);
    assert_eq!(changed(&json["agents"][0]), [""; 0]);
}

#[test]
fn mistakes_are_reported_before_anything_starts() {
    let compared = ComparedProject::without_repository();
    compared.agents(&[("a", "touch OUTSIDE/ran"), ("b", "touch OUTSIDE/ran")]);
    compared
        .compare(&[])
        .expect_code(2)
        .expect_stderr("not a git repository: ");
    compared.git(&["init", "--quiet", "--bare", "bare"]);
    compared
        .compare(&["--cwd", "bare"])
        .expect_code(2)
        .expect_stderr("a repository without files: ");
    compared.git(&["init", "--quiet"]);
    for (args, error) in [
        (
            &["--apply", "c"][..],
            "--apply c: not one of the agents: a, b",
        ),
        (&["--agent", "missing"], "missing"),
        (&["--cwd", "missing"], "--cwd missing"),
        (
            &["--writable", "."],
            "--writable and --reachable require --sandbox",
        ),
        (&["--timeout", "0"], "--timeout"),
    ] {
        compared.compare(args).expect_code(2).expect_stderr(error);
    }
    compared
        .compare_only(&["--agent", "a"])
        .expect_code(2)
        .expect_stderr("no prompt given");
    compared
        .compare_only(&["go"])
        .expect_code(2)
        .expect_stderr("--agent");
    assert!(!compared.outside.join("ran").exists());
    compared.expect_clean();
}

#[test]
fn same_agent_can_be_compared_with_two_models() {
    let compared = ComparedProject::new();
    let values = json!([{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]);
    let option = json!({
        "id": "llm", "name": "LLM", "category": "model", "type": "select",
        "currentValue": "large", "options": values,
    });
    let session = json!({"sessionId": "s", "configOptions": [option]});
    compared.agents_with_session(&[("a", "say \"model $model\"")], &session.to_string());
    let args = ["--agent", "a", "--agent", "a", "--format", "json", "go"];
    let models = ["--model", "large", "--model", "a-2=small"];
    let result = compared.compare_only(&[&args[..], &models].concat());
    let result = result.expect_code(0);
    let json: Value = serde_json::from_str(&result.stdout).unwrap();
    for (number, label, model) in [(0, "a", "large"), (1, "a-2", "small")] {
        let agent = &json["agents"][number];
        assert_eq!(agent["label"], label);
        assert_eq!(agent["answer"], format!("model {model}"));
    }
    let result = compared.compare_only(&[&args[..], &["--model", "a-2=huge"]].concat());
    let result = result.expect_code(0);
    let json: Value = serde_json::from_str(&result.stdout).unwrap();
    assert_eq!(json["agents"][0]["state"], "ended");
    assert_eq!(json["agents"][1]["exitCode"], 2);
}

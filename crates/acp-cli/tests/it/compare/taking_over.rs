//! Tests of taking changes over into the user's files.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::{ComparedProject, changed};
use crate::common::ACP;
#[cfg(target_os = "linux")]
use crate::common::terminal::CommandTerminal;

#[test]
fn all_kinds_of_changes_can_be_taken_over() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    std::fs::create_dir_all(project.file("kept/deep")).unwrap();
    for name in [
        "kept/deep/gone",
        "tool",
        "becomes-link",
        "becomes-directory",
    ] {
        project.write_file(name, "text\n");
    }
    project.write_file("binary", "\0old");
    symlink("tool", project.file("link")).unwrap();
    compared.commit();
    // Staged, and also changed since.
    project.write_file("notes.txt", "staged\n");
    compared.git(&["add", "notes.txt"]);
    project.write_file("notes.txt", "staged\nand more\n");
    let index = std::fs::read(project.file(".git/index")).unwrap();
    let does = "rm -r kept; chmod +x tool; printf 'new\\000\\001' > binary; ln -sf notes.txt link; \
        rm becomes-link; ln -s tool becomes-link; rm becomes-directory; mkdir becomes-directory; \
        echo x > becomes-directory/x; mkdir -p new/dir; printf 'no newline' > new/dir/file; \
        echo 3rd >> notes.txt; printf 'a\\r\\nb\\r\\n' > crlf";
    compared.agents(&[("a", does), ("b", "echo other > notes.txt")]);
    let before = compared.files();
    compared
        .compare(&["--apply", "a"])
        .expect_code(0)
        .expect_stderr("took over the changes of a");
    compared.expect_clean();
    let mut expected = before;
    let regular = expected[Path::new("tool")].0;
    let link = expected[Path::new("link")].0;
    let directory = expected[Path::new("kept")].0;
    expected.retain(|path, _| !path.starts_with("kept"));
    let files: [(&str, u32, &[u8]); 11] = [
        ("tool", regular | 0o111, b"text\n"),
        ("binary", regular, b"new\0\x01"),
        ("link", link, b"notes.txt"),
        ("becomes-link", link, b"tool"),
        ("becomes-directory", directory, b""),
        ("becomes-directory/x", regular, b"x\n"),
        ("new", directory, b""),
        ("new/dir", directory, b""),
        ("new/dir/file", regular, b"no newline"),
        ("notes.txt", regular, b"staged\nand more\n3rd\n"),
        ("crlf", regular, b"a\r\nb\r\n"),
    ];
    for (name, mode, contents) in files {
        expected.insert(name.into(), (mode, contents.to_owned()));
    }
    assert_eq!(compared.files(), expected);
    assert_eq!(std::fs::read(project.file(".git/index")).unwrap(), index);
}

#[test]
fn changes_through_links_are_not_taken_over() {
    let compared = ComparedProject::new();
    let project = &compared.project;
    std::fs::create_dir(project.file("sub")).unwrap();
    project.write_file("sub/file", "text\n");
    project.write_file(".gitignore", "out\n");
    compared.commit();
    // The link is the change, not what is behind it.
    let does = "rm -r sub; ln -s OUTSIDE sub; echo changed > sub/file";
    compared.agents(&[("a", does), ("b", "true")]);
    let json = compared.compare_json(&["--apply", "a"]);
    assert_eq!(
        changed(&json["agents"][0]),
        ["added sub", "deleted sub/file"]
    );
    let target = std::fs::read_link(project.file("sub")).unwrap();
    assert_eq!(target, compared.outside);
    // A link that only the user has.
    symlink(&compared.outside, project.file("out")).unwrap();
    let does = "rm .gitignore; mkdir out; echo made > out/made";
    compared.agents(&[("a", does), ("b", "true")]);
    compared
        .compare(&["--apply", "a"])
        .expect_code(1)
        .expect_stderr("affected file 'out/made' is beyond a symbolic link");
    assert!(!compared.outside.join("made").exists());
    assert!(project.file(".gitignore").exists());
}

#[test]
fn nothing_is_taken_over_if_the_user_has_changed_a_file() {
    let compared = ComparedProject::new();
    compared.project.write_file("other.txt", "other\n");
    compared.commit();
    // The agent plays the user.
    let a = "echo mine >> other.txt; echo mine >> notes.txt; echo of the user >> PROJECT/notes.txt";
    compared.agents(&[("a", a), ("b", "rm other.txt")]);
    let result = compared
        .compare(&["--apply", "a"])
        .expect_code(1)
        .expect_stderr(
            "the changes of a were not taken over: changed since the comparison began: notes.txt;",
        );
    assert_eq!(compared.project.read_file("other.txt"), "other\n");
    let notes = "first\nsecond\nthird\nof the user\n";
    assert_eq!(compared.project.read_file("notes.txt"), notes);
    let line = result.find_line("the changes are in ");
    let patch = line.split("the changes are in ").nth(1).unwrap();
    let text = std::fs::read_to_string(patch).unwrap();
    assert!(
        text.contains("diff --git a/other.txt b/other.txt"),
        "{text}"
    );
    assert!(text.contains("+mine"), "{text}");
    std::fs::remove_file(patch).unwrap();
    compared.expect_clean();

    // A new file that is in the way, and that git ignores. Nothing is applied, not even the other change.
    compared.project.write_file(".gitignore", "made\n");
    compared.project.write_file("made", "of the user\n");
    compared.agents(&[("a", "rm .gitignore; echo theirs > made"), ("b", "true")]);
    compared
        .compare(&["--apply", "a"])
        .expect_code(1)
        .expect_stderr("made: already exists in working directory");
    assert_eq!(compared.project.read_file("made"), "of the user\n");
    assert_eq!(compared.project.read_file(".gitignore"), "made\n");

    // Other files do not matter.
    let a = "echo mine >> other.txt; echo again >> PROJECT/notes.txt";
    compared.agents(&[("a", a), ("b", "true")]);
    compared.compare(&["--apply", "a"]).expect_code(0);
    assert_eq!(compared.project.read_file("other.txt"), "other\nmine\n");
}

#[cfg(target_os = "linux")]
fn start_on_terminal(compared: &ComparedProject) -> CommandTerminal {
    let temporary = compared.temporary.display();
    CommandTerminal::start(
        &compared.project,
        &format!(
            "TMPDIR={temporary} GIT_CONFIG_GLOBAL=/dev/null {ACP} compare --agent a --agent b --allow all go"
        ),
    )
}

#[test]
#[cfg(target_os = "linux")]
fn user_chooses_on_a_terminal_what_is_taken_over() {
    let compared = ComparedProject::new();
    let b = "echo 4th >> notes.txt; printf 'hidden \\033[8mtext\\n' > new";
    compared.agents(&[("a", "true"), ("b", b)]);
    let mut terminal = start_on_terminal(&compared);
    terminal.wait_for("number [1-1], or Enter for none: ");
    assert!(
        terminal.seen.contains("1) b (ended, 2 files)"),
        "{}",
        terminal.seen
    );
    terminal.send_keys("2\n");
    terminal.send_keys("1\n");
    terminal.wait_for("apply these changes to your files? [y/N] ");
    for part in ["M +1 -0 notes.txt", "| +4th", r"| +hidden \u{1b}[8mtext"] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    assert!(!compared.project.file("new").exists());
    terminal.send_keys("y\n");
    let screen = terminal.expect_exit(0);
    assert!(screen.contains("took over the changes of b"), "{screen}");
    assert!(compared.project.file("new").exists());
    compared.expect_clean();
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_taken_over_without_a_clear_answer() {
    let compared = ComparedProject::new();
    compared.agents(&[("a", "echo 4th >> notes.txt"), ("b", "true")]);
    let before = compared.files();
    for (first, second, code) in [
        ("\n", None, 0),
        ("1\n", Some("\n"), 0),
        ("1\n", Some("what\n"), 0),
        ("\u{3}", None, 130),
        ("1\n", Some("\u{3}"), 130),
    ] {
        let mut terminal = start_on_terminal(&compared);
        terminal.wait_for("or Enter for none: ");
        terminal.send_keys(first);
        if let Some(second) = second {
            terminal.wait_for("[y/N] ");
            terminal.send_keys(second);
        }
        terminal.expect_exit(code);
        assert_eq!(compared.files(), before);
        compared.expect_clean();
    }
}

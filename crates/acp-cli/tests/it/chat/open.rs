//! Tests of opening the files and links of the conversation.

use serde_json::json;

use super::*;

/// Starts a chat whose editor and browser write down their arguments, and lets the agent say this.
fn start_with_message(project: &TestProject, message: &str) -> ChatScreen {
    write_hello_file(project);
    write_agents_config(project, &[("player", "--player")]);
    std::fs::create_dir(project.file("bin")).unwrap();
    for (program, words) in [("vi", "an editor"), ("xdg-open", "a browser")] {
        let file = project.file("bin").join(program);
        let script = format!(
            "#!/bin/sh\necho {words}\nfor a in \"$@\"; do echo \"$a\" >> {program}.args; done\ntouch {program}.done\n"
        );
        std::fs::write(&file, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&file, mode).unwrap();
    }
    let bin = project.file("bin").display().to_string();
    let line = format!("env -u VISUAL EDITOR=vi PATH={bin}:$PATH {ACP} chat --agent player");
    let mut screen = ChatScreen::start(project, 80, 24, &line);
    screen.wait_for("· Player");
    play_steps(
        project,
        &mut screen,
        &json!([message_step(&format!("{message}\n\nThat is all."))]),
    );
    screen.wait_for("That is all.");
    screen.wait_until_gone("Esc: cancel");
    screen
}

/// Waits until the program has ended, and returns its arguments.
fn wait_for_arguments(screen: &mut ChatScreen, project: &TestProject, program: &str) -> String {
    screen.wait_for_matching_screen(program, |_| {
        project.file(&format!("{program}.done")).exists()
    });
    project.read_file(&format!("{program}.args"))
}

#[test]
fn file_of_the_conversation_is_opened_at_its_line() {
    let project = TestProject::new();
    project.write_file("-o.txt", "");
    let message = "The error is in `src/main.rs:2`, not in -o.txt or in src/none.rs.";
    let mut screen = start_with_message(&project, message);
    screen.send_keys(TAB);
    screen.send_keys("o");
    screen.wait_for("› src/main.rs:2");
    screen.wait_for("-o.txt");
    let list = screen.text();
    let (_, list) = list.split_once("╭ Open").unwrap();
    assert!(!list.contains("none.rs"), "{list}");
    screen.send_keys(ENTER);
    let arguments = wait_for_arguments(&mut screen, &project, "vi");
    let file = project.file("src/main.rs").display().to_string();
    assert_eq!(arguments, format!("+2\n{file}\n"));
    // The chat has the terminal again.
    screen.wait_for("The error is in");
    screen.wait_until_gone("╭ Open");
    // A name that looks like an option is a path.
    std::fs::remove_file(project.file("vi.done")).unwrap();
    screen.send_keys("o");
    screen.wait_for("› src/main.rs:2");
    screen.send_keys("-o");
    screen.wait_for("› -o.txt");
    screen.send_keys(ENTER);
    let arguments = wait_for_arguments(&mut screen, &project, "vi");
    let file = project.file("-o.txt").display().to_string();
    assert!(arguments.ends_with(&format!("\n{file}\n")), "{arguments}");
}

#[test]
fn link_is_shown_in_full_before_it_is_opened() {
    let project = TestProject::new();
    let secret = "s".repeat(150);
    let url = format!("https://docs.example@evil.example/x?a={secret}&b=$(id)");
    let mut screen = start_with_message(&project, &format!("See <{url}> for more."));
    screen.send_line("/open");
    screen.wait_for("╭ Open");
    screen.send_keys(ENTER);
    screen.wait_for("╭ Open this link?");
    screen.wait_for("o: open in browser");
    let text = screen.text();
    let rows = text.lines().filter_map(|row| {
        let (_, row) = row.split_once("│ ")?;
        Some(row.split_once(" │")?.0.trim())
    });
    let shown: String = rows.collect();
    assert!(shown.contains(&url), "{text}");
    screen.wait_for("! The part before the @ is not the site name. The site is");
    // Enter does not open it, because it has just chosen the link.
    screen.send_keys(ENTER);
    screen.wait_until_gone("╭ Open this link?");
    assert!(!project.file("xdg-open.args").exists());
    screen.send_line("/open");
    screen.wait_for("╭ Open");
    screen.send_keys(ENTER);
    screen.wait_for("╭ Open this link?");
    screen.send_keys("o");
    let arguments = wait_for_arguments(&mut screen, &project, "xdg-open");
    assert_eq!(arguments, format!("{url}\n"));
    screen.wait_for("opened in your browser");
}

#[test]
fn conversation_without_files_and_links_says_so() {
    let project = TestProject::new();
    let mut screen = start_with_message(&project, "Nothing to see here.");
    // The prompt names this file.
    std::fs::remove_file(project.file(".steps.json")).unwrap();
    screen.send_line("/open");
    screen.wait_for("no files or links in this conversation");
}

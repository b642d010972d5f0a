//! Tests of input: completion, pasting, attachments and the prompt history.

use super::*;

#[test]
fn commands_and_files_are_completed() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("/rea");
    screen.wait_for("/read");
    screen.send_keys("\t");
    screen.send_keys("@mai");
    screen.wait_for("src/main.rs");
    screen.send_keys("\t");
    screen.wait_for("/read @src/main.rs");
    screen.send_keys(ENTER);
    // It is sent as the file it is, not as its name.
    screen.wait_for("[file: file://");
    screen.wait_for("src/main.rs, 3 lines]");
}

#[test]
fn multiline_paste_is_one_unit() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    let lines: String = (0..200).map(|n| format!("line {n}\r")).collect();
    screen.send_keys(&format!("\u{1b}[200~{lines}\u{1b}[201~"));
    screen.wait_for("pasted 200 lines");
    // It still is one when it was sent.
    screen.send_keys(ENTER);
    screen.wait_for("▌ [pasted 200 lines]");
    screen.wait_for("heard 1 blocks");
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys("\u{1b}e");
    screen.send_keys("\u{1b}[1;5H");
    screen.wait_for("▌ line 0");
}

/// Returns the contents of an image file.
fn pixel_png() -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(answers::PIXEL_PNG_BASE64)
        .unwrap()
}

/// Writes an image to the project and returns its path.
fn write_image(project: &TestProject) -> String {
    std::fs::write(project.file("shot.png"), pixel_png()).unwrap();
    project.file("shot.png").display().to_string()
}

/// Pastes text as a terminal does.
fn paste(screen: &mut ChatScreen, text: &str) {
    screen.send_keys(&format!("\u{1b}[200~{text}\u{1b}[201~"));
}

#[test]
fn dropped_image_is_attached() {
    let project = TestProject::new();
    let picture = write_image(&project);
    let mut screen = start_with_player(&project, 80, 24, "--images");
    paste(&mut screen, &format!("'{picture}' "));
    screen.wait_for(" shot.png ");
    screen.send_keys("what is this?");
    screen.send_keys(ENTER);
    screen.wait_for("heard 2 blocks");
    screen.wait_for("[image: PNG 1×1");
    let said = read_record(&project);
    assert_eq!(said[0]["text"], "what is this?");
    assert_eq!(
        (&said[1]["type"], &said[1]["mimeType"]),
        (&"image".into(), &"image/png".into())
    );
    assert_eq!(said[1]["data"], answers::PIXEL_PNG_BASE64);
}

#[test]
fn mentioned_image_is_attached_in_place() {
    let project = TestProject::new();
    write_image(&project);
    let mut screen = start_with_player(&project, 80, 24, "--images");
    screen.send_keys("look at @sho");
    screen.wait_for("shot.png");
    screen.send_keys(TAB);
    screen.wait_for("@shot.png");
    screen.send_keys("and tell");
    screen.send_keys(ENTER);
    screen.wait_for("heard 3 blocks");
    let said = read_record(&project);
    assert_eq!(said[0]["text"], "look at ");
    assert_eq!(
        (&said[1]["type"], &said[1]["data"]),
        (&"image".into(), &answers::PIXEL_PNG_BASE64.into())
    );
}

#[test]
fn image_is_omitted_with_a_note_if_the_agent_does_not_accept_images() {
    let project = TestProject::new();
    let picture = write_image(&project);
    let mut screen = start_with_player(&project, 120, 24, "");
    paste(&mut screen, &picture);
    screen.wait_for("not attached (not supported by this agent); inserted as a file name");
    // Named, it is told where it is.
    screen.wait_for("@shot.png");
    screen.send_keys(ENTER);
    screen.wait_for("heard 1 blocks");
    let said = read_record(&project);
    assert_eq!(
        (&said[0]["type"], &said[0]["mimeType"]),
        (&"resource_link".into(), &"image/png".into())
    );
}

#[test]
fn file_is_attached_by_name() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "--embedded");
    screen.send_keys("\u{10}");
    screen.wait_for("╭ Commands");
    screen.send_keys("attach");
    screen.wait_for("› Attach file");
    screen.send_keys(ENTER);
    screen.wait_for("╭ Attach file");
    screen.send_keys("nowhere.txt");
    screen.send_keys(ENTER);
    screen.wait_for("nowhere.txt: ");
    screen.send_keys("\u{10}attach");
    screen.wait_for("› Attach file");
    screen.send_keys(ENTER);
    screen.wait_for("╭ Attach file");
    screen.send_keys("notes.txt");
    screen.send_keys(ENTER);
    screen.wait_for(" notes.txt ");
    screen.send_keys("read it");
    screen.send_keys(ENTER);
    screen.wait_for("heard 2 blocks");
    assert_eq!(
        read_record(&project)[1]["resource"]["text"],
        "first\nsecond\nthird\n"
    );
}

#[test]
fn prompt_history_is_recalled_by_up_and_search() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    for said in ["fix the parser", "measure the table", "explain the lines"] {
        screen.send_line(said);
        screen.wait_for(&format!("▌ {said}"));
        screen.wait_until_gone("Esc: cancel");
    }
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));

    // It is there the next time, too.
    let mut screen = start_with_player(&project, 80, 24, "");
    screen.send_keys(UP);
    screen.wait_for("│explain the lines");
    screen.send_keys(UP);
    screen.wait_for("│measure the table");
    screen.send_keys(DOWN);
    screen.wait_for("│explain the lines");
    screen.send_keys("\u{15}");
    screen.wait_for("Type a prompt");
    screen.send_keys("\u{12}");
    screen.send_keys("pars");
    screen.wait_for("fix the parser");
    screen.wait_until_gone("explain the lines");
    screen.send_keys(ENTER);
    screen.wait_for("│fix the parser");
    screen.send_keys(ENTER);
    screen.wait_for("▌ fix the parser");
    screen.wait_for("heard 1 blocks");
}

#[test]
fn files_and_commands_are_suggested_while_typing() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        write_hello_file(&project);
        let mut screen = start_chat(&project, columns, rows);
        screen.send_keys("compare @");
        screen.wait_for("src/main.rs");
        screen.wait_for("notes.txt");
        assert_golden(&mut screen, &project, &format!("files-{columns}x{rows}"));
        screen.send_keys("\u{15}/");
        screen.wait_for("/read");
        assert_golden(&mut screen, &project, &format!("commands-{columns}x{rows}"));
    }
}

#[test]
fn clipboard_image_is_attached() {
    let project = TestProject::new();
    write_image(&project);
    write_agents_config(&project, &[("player", "--player --images")]);
    // The desktop's program gives what is in a file; the clipboard is empty as long as there is none.
    std::fs::create_dir(project.file("bin")).unwrap();
    let program = "#!/bin/sh\nexec cat clipboard 2> /dev/null\n";
    project.write_file("bin/wl-paste", program);
    let bin = project.file("bin");
    let made = project.run_shell(&format!("chmod +x {}/wl-paste", bin.display()));
    made.expect_code(0);
    let line = format!(
        "WAYLAND_DISPLAY=wayland-0 PATH={}:$PATH {ACP} chat --agent player",
        bin.display()
    );
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.wait_for("· Player");
    screen.send_keys("\u{16}");
    screen.wait_for("no image on the clipboard");
    std::fs::copy(project.file("shot.png"), project.file("clipboard")).unwrap();
    screen.send_keys("\u{16}");
    screen.wait_for(" image clipboard-");
    screen.send_keys("what is this?");
    screen.send_keys(ENTER);
    screen.wait_for("heard 2 blocks");
    assert_eq!(read_record(&project)[1]["type"], "image");
}

#[test]
fn command_list_overlays_the_status_line() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        project.allow_commands();
        let mut screen = start_chat(&project, columns, rows);
        screen.send_line("/run echo begun; sleep 1000");
        screen.wait_for("Esc: cancel");
        screen.send_keys("/");
        screen.wait_for("/help");
        // It would stand in the middle of the list.
        screen.wait_until_gone("Esc: cancel");
        screen.send_keys(ESCAPE);
        screen.wait_for("Esc: cancel");
    }
}

#[test]
fn installed_editor_is_used_if_none_is_configured() {
    for (named, expected) in [
        ("", "by vi"),
        ("VISUAL=my-editor", "by mine"),
        ("EDITOR=my-editor", "by mine"),
    ] {
        let project = TestProject::new();
        std::fs::create_dir(project.path().join("bin")).unwrap();
        for (program, words) in [("vi", "by vi"), ("my-editor", "by mine")] {
            let path = format!("bin/{program}");
            project.write_file(&path, &format!("#!/bin/sh\necho {words} > \"$1\"\n"));
            let path = project.path().join(path);
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let bin = project.path().join("bin");
        let line = format!(
            "env -u VISUAL -u EDITOR PATH={}:$PATH {named} {ACP} chat",
            bin.display()
        );
        let mut screen = ChatScreen::start(&project, 80, 24, &line);
        screen.wait_for("Ask");
        screen.send_keys("\u{7}");
        screen.wait_for(expected);
    }
    let project = TestProject::new();
    let line = format!("env -u VISUAL -u EDITOR PATH=/nowhere {ACP} chat");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.wait_for("Ask");
    screen.send_keys("\u{7}");
    screen.wait_for("no editor found: set VISUAL or EDITOR (");
}

#[test]
fn prompt_cleared_by_escape_twice_can_be_brought_back() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("first thoughts");
    screen.wait_for("first thoughts");
    screen.send_keys("\u{1b}");
    screen.wait_for("Press Esc again to clear the prompt");
    assert!(screen.text().contains("first thoughts"));
    screen.send_keys("\u{1b}");
    screen.wait_until_gone("first thoughts");
    // Ctrl-_
    screen.send_keys("\u{1f}");
    screen.wait_for("first thoughts");
    screen.send_keys("\u{3}");
    screen.wait_until_gone("first thoughts");
    screen.wait_for("Prompt cleared; Ctrl-_ brings it back");
    screen.send_keys("\u{1f}");
    screen.wait_for("first thoughts");
}

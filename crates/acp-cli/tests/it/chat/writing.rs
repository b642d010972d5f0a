//! What is written: completed, pasted, attached, taken from the past.

use super::*;

#[test]
fn commands_and_files_are_completed() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    screen.key("/rea");
    screen.until("/read");
    screen.key("\t");
    screen.key("@mai");
    screen.until("src/main.rs");
    screen.key("\t");
    screen.until("/read @src/main.rs");
    screen.key(ENTER);
    // It is sent as the file it is, not as its name.
    screen.until("[file: file://");
    screen.until("src/main.rs, 3 lines]");
}

#[test]
fn many_lines_that_are_pasted_are_one_thing() {
    let project = TestProject::new();
    let mut screen = chat(&project, 80, 24);
    let lines: String = (0..200).map(|n| format!("line {n}\r")).collect();
    screen.key(&format!("\u{1b}[200~{lines}\u{1b}[201~"));
    screen.until("pasted 200 lines");
}

/// The bytes of a picture.
fn pixel() -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(answers::PIXEL)
        .unwrap()
}

/// A project with a picture in it, by its path.
fn with_picture(project: &TestProject) -> String {
    std::fs::write(project.file("shot.png"), pixel()).unwrap();
    project.file("shot.png").display().to_string()
}

/// Pastes, as a terminal does.
fn paste(screen: &mut ChatScreen, text: &str) {
    screen.key(&format!("\u{1b}[200~{text}\u{1b}[201~"));
}

#[test]
fn a_picture_that_is_dropped_goes_with_the_prompt() {
    let project = TestProject::new();
    let picture = with_picture(&project);
    let mut screen = with_player(&project, 80, 24, "--images");
    paste(&mut screen, &format!("'{picture}' "));
    screen.until(" shot.png ");
    screen.key("what is this?");
    screen.key(ENTER);
    screen.until("heard 2 blocks");
    screen.until("[image: PNG 1×1");
    let said = heard(&project);
    assert_eq!(said[0]["text"], "what is this?");
    assert_eq!(
        (&said[1]["type"], &said[1]["mimeType"]),
        (&"image".into(), &"image/png".into())
    );
    assert_eq!(said[1]["data"], answers::PIXEL);
}

#[test]
fn a_picture_that_is_named_goes_as_a_picture_where_it_stands() {
    let project = TestProject::new();
    with_picture(&project);
    let mut screen = with_player(&project, 80, 24, "--images");
    screen.key("look at @sho");
    screen.until("shot.png");
    screen.key(TAB);
    screen.until("@shot.png");
    screen.key("and tell");
    screen.key(ENTER);
    screen.until("heard 3 blocks");
    let said = heard(&project);
    assert_eq!(said[0]["text"], "look at ");
    assert_eq!(
        (&said[1]["type"], &said[1]["data"]),
        (&"image".into(), &answers::PIXEL.into())
    );
}

#[test]
fn an_agent_that_takes_no_pictures_is_given_none_and_one_is_told() {
    let project = TestProject::new();
    let picture = with_picture(&project);
    let mut screen = with_player(&project, 120, 24, "");
    paste(&mut screen, &picture);
    screen.until("not attached (not supported by this agent); inserted as a file name");
    // Named, it is told where it is.
    screen.until("@shot.png");
    screen.key(ENTER);
    screen.until("heard 1 blocks");
    let said = heard(&project);
    assert_eq!(
        (&said[0]["type"], &said[0]["mimeType"]),
        (&"resource_link".into(), &"image/png".into())
    );
}

#[test]
fn a_file_is_attached_by_its_name() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "--embedded");
    screen.key("\u{10}");
    screen.until("╭ Commands");
    screen.key("attach");
    screen.until("› Attach file");
    screen.key(ENTER);
    screen.until("╭ Attach file");
    screen.key("nowhere.txt");
    screen.key(ENTER);
    screen.until("nowhere.txt: ");
    screen.key("\u{10}attach");
    screen.until("› Attach file");
    screen.key(ENTER);
    screen.until("╭ Attach file");
    screen.key("notes.txt");
    screen.key(ENTER);
    screen.until(" notes.txt ");
    screen.key("read it");
    screen.key(ENTER);
    screen.until("heard 2 blocks");
    assert_eq!(
        heard(&project)[1]["resource"]["text"],
        "first\nsecond\nthird\n"
    );
}

#[test]
fn what_was_said_before_comes_back_by_up_and_by_search() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "");
    for said in ["fix the parser", "measure the table", "explain the lines"] {
        screen.say(said);
        screen.until(&format!("▌ {said}"));
        screen.until_gone("Esc: cancel");
    }
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));

    // It is there the next time, too.
    let mut screen = with_player(&project, 80, 24, "");
    screen.key(UP);
    screen.until("│explain the lines");
    screen.key(UP);
    screen.until("│measure the table");
    screen.key(DOWN);
    screen.until("│explain the lines");
    screen.key("\u{15}");
    screen.until("Type a prompt");
    screen.key("\u{12}");
    screen.key("pars");
    screen.until("fix the parser");
    screen.until_gone("explain the lines");
    screen.key(ENTER);
    screen.until("│fix the parser");
    screen.key(ENTER);
    screen.until("▌ fix the parser");
    screen.until("heard 1 blocks");
}

#[test]
fn files_and_commands_are_offered_while_one_types() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        hello(&project);
        let mut screen = chat(&project, columns, rows);
        screen.key("compare @");
        screen.until("src/main.rs");
        screen.until("notes.txt");
        is_golden(&mut screen, &project, &format!("files-{columns}x{rows}"));
        screen.key("\u{15}/");
        screen.until("/read");
        is_golden(&mut screen, &project, &format!("commands-{columns}x{rows}"));
    }
}

#[test]
fn the_image_on_the_clipboard_goes_with_the_prompt() {
    let project = TestProject::new();
    with_picture(&project);
    configure(&project, &[("player", "--player --images")]);
    // The desktop's program gives what is in a file; the clipboard is empty as long as there is none.
    std::fs::create_dir(project.file("bin")).unwrap();
    let program = "#!/bin/sh\nexec cat clipboard 2> /dev/null\n";
    project.write("bin/wl-paste", program);
    let bin = project.file("bin");
    let made = project.shell(&format!("chmod +x {}/wl-paste", bin.display()));
    made.code(0);
    let line = format!(
        "WAYLAND_DISPLAY=wayland-0 PATH={}:$PATH {ACP} chat --agent player",
        bin.display()
    );
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.until("· Player");
    screen.key("\u{16}");
    screen.until("no image on the clipboard");
    std::fs::copy(project.file("shot.png"), project.file("clipboard")).unwrap();
    screen.key("\u{16}");
    screen.until(" image clipboard-");
    screen.key("what is this?");
    screen.key(ENTER);
    screen.until("heard 2 blocks");
    assert_eq!(heard(&project)[1]["type"], "image");
}

#[test]
fn the_list_of_commands_lies_over_the_line_that_says_what_goes_on() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        project.allow_commands();
        let mut screen = chat(&project, columns, rows);
        screen.say("/run echo begun; sleep 1000");
        screen.until("Esc: cancel");
        screen.key("/");
        screen.until("/help");
        // It would stand in the middle of the list.
        screen.until_gone("Esc: cancel");
        screen.key(ESCAPE);
        screen.until("Esc: cancel");
    }
}

#[test]
fn without_an_editor_of_ones_own_one_that_is_there_is_taken() {
    for (named, expected) in [
        ("", "by vi"),
        ("VISUAL=my-editor", "by mine"),
        ("EDITOR=my-editor", "by mine"),
    ] {
        let project = TestProject::new();
        std::fs::create_dir(project.path().join("bin")).unwrap();
        for (program, words) in [("vi", "by vi"), ("my-editor", "by mine")] {
            let path = format!("bin/{program}");
            project.write(&path, &format!("#!/bin/sh\necho {words} > \"$1\"\n"));
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
        screen.until("Ask");
        screen.key("\u{7}");
        screen.until(expected);
    }
    let project = TestProject::new();
    let line = format!("env -u VISUAL -u EDITOR PATH=/nowhere {ACP} chat");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.until("Ask");
    screen.key("\u{7}");
    screen.until("no editor found: set VISUAL or EDITOR (");
}

//! Tests of images in `acp chat`: which ones are drawn, what is sent to the terminal, and what remains afterwards.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::screen::ChatScreen;
use crate::common::{ACP, TestProject};

/// An agent that accepts images. When prompted with `say NAME`, it sends the contents of the file called NAME.
const IMAGE_AGENT_SCRIPT: &str = r#"
while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":true}}}';;
    *'"session/new"'*) result='{"sessionId":"s"}';;
    *'"session/prompt"'*)
        for said in one many broken card; do
            case $line in *"say $said"*) cat "$said";; esac
        done
        result='{"stopReason":"end_turn"}';;
    *) continue;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// A command prefix that unsets the environment variables identifying the terminal in which the tests are run.
const WITHOUT_TERMINAL_VARIABLES: &str =
    "env -u TMUX -u STY -u KITTY_WINDOW_ID -u KONSOLE_VERSION -u LC_TERMINAL -u TERM_PROGRAM";

/// A 40×40 pixel PNG with a red upper half and a blue lower half.
const TWO_COLOR_IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAACgAAAAoCAIAAAADnC86AAAAL0lEQVR42u3QsQkAMAzAMP//dHpFyFCBd4GbOikwGAwGg8Hgj2CzwWAwGAwGg9d7cNs6GyLw6J8AAAAASUVORK5CYII=";

const RED: vt100::Color = vt100::Color::Rgb(255, 0, 0);
const BLUE: vt100::Color = vt100::Color::Rgb(0, 0, 255);

fn image_block(data: &str) -> String {
    format!(r#"{{"type":"image","mimeType":"image/png","data":"{data}","uri":"file:///a.png"}}"#)
}

fn update_line(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    ) + "\n"
}

fn message_update(content: &str) -> String {
    update_line(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","content":{content}}}"#
    ))
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

/// Starts a chat with the agent and the given image setting.
fn start_chat(project: &TestProject, images: &str) -> ChatScreen {
    start_chat_after(project, images, |_| {})
}

/// Like [`start_chat`], but calls `first` as soon as the chat has started.
fn start_chat_after(
    project: &TestProject,
    images: &str,
    first: impl FnOnce(&mut ChatScreen),
) -> ChatScreen {
    project.write_config("config.toml", &format!("[chat]\nimages = \"{images}\"\n"));
    project.write_file("agent.sh", IMAGE_AGENT_SCRIPT);
    project.write_file(
        "one",
        &(message_update(&image_block(TWO_COLOR_IMAGE)) + &message_update(&text_block("Nice."))),
    );
    let lines: Vec<String> = (0..60).map(|n| format!("line {n}\\n\\n")).collect();
    project.write_file("many", &message_update(&text_block(&lines.concat())));
    let card = format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"1","title":"Screenshot","status":"completed","content":[{{"type":"content","content":{}}}]}}"#,
        image_block(TWO_COLOR_IMAGE)
    );
    project.write_file("card", &update_line(&card));
    let half = &TWO_COLOR_IMAGE[..TWO_COLOR_IMAGE.len() / 8 * 4];
    project.write_file("broken", &message_update(&image_block(half)));
    // All that is sent to the terminal is kept as well.
    let line = format!("{WITHOUT_TERMINAL_VARIABLES} {ACP} chat -- sh agent.sh");
    let line = format!("script --quiet --return --flush --command '{line}' sent");
    let mut screen = ChatScreen::start(project, 80, 40, &line);
    first(&mut screen);
    // Its session is open: what the agent takes is known.
    screen.wait_for("1 · sh");
    screen
}

/// Returns all the output that has been sent to the terminal so far.
fn sent_images(project: &TestProject) -> String {
    let sent = std::fs::read(project.file("sent")).unwrap();
    String::from_utf8_lossy(&sent).into_owned()
}

/// Waits until the output sent to the terminal contains `text`, and returns all of it. The file with this output lags
/// behind the screen.
#[track_caller]
fn wait_for_sent_images(project: &TestProject, text: &str) -> String {
    let begun = std::time::Instant::now();
    loop {
        let sent = sent_images(project);
        if sent.contains(text) {
            return sent;
        }
        assert!(begun.elapsed().as_secs() < 60, "{text:?} is not sent");
        std::thread::yield_now();
    }
}

/// Returns the row where a text appears on the screen.
#[track_caller]
fn find_row(screen: &ChatScreen, text: &str) -> u16 {
    let shown = screen.text();
    let row = shown.lines().position(|line| line.contains(text));
    let row = row.unwrap_or_else(|| panic!("no {text}:\n{shown}"));
    row.try_into().unwrap()
}

/// Returns the colors of a cell's upper and lower halves.
#[track_caller]
fn cell_colors(screen: &ChatScreen, row: u16, column: u16) -> (vt100::Color, vt100::Color) {
    let cell = screen.screen().cell(row, column).unwrap();
    (cell.fgcolor(), cell.bgcolor())
}

/// Waits until exactly `rows` rows contain the given number of consecutive block characters.
#[track_caller]
fn wait_for_blocks(screen: &mut ChatScreen, rows: usize, columns: usize) {
    let whole = "▀".repeat(columns);
    screen.wait_for_matching_text(&format!("{rows} rows of {columns} blocks"), |text| {
        text.lines().filter(|line| line.contains(&whole)).count() == rows
    });
}

const CTRL_HOME: &str = "\u{1b}[1;5H";

const IMAGE_LABEL: &str = "[image: PNG 40×40, 104 bytes, file:///a.png]";

#[test]
fn block_images_have_the_image_colors_and_leave_nothing_behind() {
    let project = TestProject::new();
    // What the terminal can do is asked; this one answers too late, and nobody takes that for something typed.
    let mut screen = start_chat(&project, "auto");
    assert!(sent_images(&project).contains("\x1b[16t\x1b[c"));
    screen.send_keys("too \u{1b}[6;20;10t\u{1b}[?62;4;22clate");
    screen.wait_for("│too late ");
    screen.send_keys("\u{15}");
    screen.wait_for("Type a prompt");
    screen.send_line("say one");
    screen.wait_for("Nice.");
    wait_for_blocks(&mut screen, 20, 40);
    let is_there = |screen: &ChatScreen| {
        let label = find_row(screen, IMAGE_LABEL);
        assert_eq!(find_row(screen, "Nice."), label + 21);
        for column in [2, 20, 41] {
            assert_eq!(cell_colors(screen, label + 1, column), (RED, RED));
            assert_eq!(cell_colors(screen, label + 10, column), (RED, RED));
            assert_eq!(cell_colors(screen, label + 11, column), (BLUE, BLUE));
            assert_eq!(cell_colors(screen, label + 20, column), (BLUE, BLUE));
        }
        let beside = (vt100::Color::Default, vt100::Color::Default);
        assert_eq!(cell_colors(screen, label + 1, 42), beside);
    };
    is_there(&screen);
    // Help lies over it, and goes.
    screen.send_keys("?");
    screen.wait_for("╭ Help");
    screen.send_keys("\u{1b}");
    screen.wait_until_gone("╭ Help");
    wait_for_blocks(&mut screen, 20, 40);
    is_there(&screen);
    // Scrolled out in part, then wholly.
    screen.send_line("say many");
    screen.wait_for("line 59");
    screen.wait_until_gone("▀");
    screen.send_keys(CTRL_HOME);
    wait_for_blocks(&mut screen, 20, 40);
    // Half as high, it is half as large.
    screen.resize(80, 20);
    wait_for_blocks(&mut screen, 10, 20);
    super::stage::quit(&mut screen);
    let (code, text) = screen.wait_for_exit();
    assert_eq!(code, Some(0));
    assert!(!text.contains('▀'), "{text}");
}

#[test]
fn images_in_tool_calls_and_prompts_are_shown() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, "blocks");
    std::fs::write(
        project.file("own.png"),
        STANDARD.decode(TWO_COLOR_IMAGE).unwrap(),
    )
    .unwrap();
    // Dropped on the terminal, which pastes its path.
    let path = project.file("own.png");
    screen.send_keys(&format!("\u{1b}[200~{}\u{1b}[201~", path.display()));
    screen.wait_for("own.png");
    screen.send_keys("\r");
    screen.wait_for("[image: PNG 40×40");
    wait_for_blocks(&mut screen, 20, 40);
    let label = find_row(&screen, "[image: PNG 40×40");
    assert_eq!(cell_colors(&screen, label + 1, 2), (RED, RED));
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("say card");
    screen.wait_for("Screenshot");
    screen.wait_for_matching_text("the tool call's image at the end", |text| {
        let whole = format!("    {}", "▀".repeat(40));
        text.lines().filter(|line| **line == whole).count() == 20
    });
    let label = find_row(&screen, IMAGE_LABEL);
    assert_eq!(cell_colors(&screen, label + 1, 4), (RED, RED));
    assert_eq!(cell_colors(&screen, label + 20, 43), (BLUE, BLUE));
}

#[test]
fn kitty_gets_a_reencoded_image_and_deletes_it_afterwards() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, "kitty");
    screen.send_line("say one");
    screen.wait_for("Nice.");
    screen.wait_for("\u{10eeee}\u{305}\u{305}");
    // 40×40 pixels on cells of 10×20.
    let label = find_row(&screen, IMAGE_LABEL);
    assert_eq!(find_row(&screen, "Nice."), label + 3);
    let sent_so_far = wait_for_sent_images(&project, "\x1b_G");
    let commands: Vec<&str> = sent_so_far.split("\x1b_G").skip(1).collect();
    let (said, data) = commands[0].split_once(';').unwrap();
    let id = said
        .split(',')
        .find_map(|part| part.strip_prefix("i="))
        .unwrap();
    for part in ["a=T", "U=1", "f=100", "c=4", "r=2", "m=0"] {
        assert!(said.split(',').any(|said| said == part), "{part}: {said}");
    }
    let (data, _) = data.split_once("\x1b\\").unwrap();
    let png = STANDARD.decode(data).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(png[16..24], [0, 0, 0, 40, 0, 0, 0, 40]);
    // Its number is the color of its cells.
    let id: u32 = id.parse().unwrap();
    let [_, r, g, b] = id.to_be_bytes();
    let cell = screen.screen().cell(label + 1, 2).unwrap();
    assert_eq!(cell.fgcolor(), vt100::Color::Rgb(r, g, b));
    // Nothing the agent has sent went to the terminal as it came.
    assert!(!sent_so_far.contains(TWO_COLOR_IMAGE));
    // Scrolled out, no cell has it any more; at the end the terminal is told to forget it.
    screen.send_line("say many");
    screen.wait_for("line 59");
    screen.wait_until_gone("\u{10eeee}");
    super::stage::quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));
    let all = sent_images(&project);
    assert_eq!(all.matches("a=T").count(), 1);
    let forgotten = all
        .find(&format!("\x1b_Gq=2,a=d,d=I,i={id}\x1b\\"))
        .unwrap();
    assert!(forgotten < all.rfind("\x1b[?1049l").unwrap());
}

#[test]
fn sixel_terminal_gets_sixels() {
    let project = TestProject::new();
    let mut screen = start_chat_after(&project, "auto", |screen| {
        // What the terminal says comes the same way as what the person types meanwhile.
        screen.send_keys("say o\u{1b}[6;20;10t\u{1b}[?62;4;22c");
    });
    screen.wait_for("say o");
    screen.send_keys("ne\r");
    screen.wait_for("Nice.");
    let label = find_row(&screen, IMAGE_LABEL);
    assert_eq!(find_row(&screen, "Nice."), label + 3);
    let whole = "\x1b[4X\x1bP0;1q\"1;1;40;20#";
    let begun = std::time::Instant::now();
    while sent_images(&project).matches(whole).count() < 2 {
        assert!(begun.elapsed().as_secs() < 60, "{}", sent_images(&project));
        screen.settle();
    }
    let of = |row: usize| {
        sent_images(&project)
            .split(whole)
            .nth(row)
            .unwrap()
            .to_owned()
    };
    assert!(of(1).contains(";2;100;0;0#"), "{}", of(1));
    assert!(of(2).contains(";2;0;0;100#"), "{}", of(2));
}

#[test]
fn disabled_images_are_shown_as_labels() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, "off");
    screen.send_line("say one");
    screen.wait_for("Nice.");
    assert_eq!(
        find_row(&screen, "Nice."),
        find_row(&screen, IMAGE_LABEL) + 1
    );
    // Nor is the terminal asked anything.
    assert!(!sent_images(&project).contains("\x1b[16t"));
}

#[test]
fn broken_image_is_reported_in_its_place() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, "blocks");
    screen.send_line("say broken");
    screen.wait_for("cannot show the image: corrupt image");
    assert_eq!(
        find_row(&screen, "cannot show the image"),
        find_row(&screen, "[image: PNG 40×40") + 1
    );
}

#[test]
fn unknown_image_mode_is_an_error() {
    let project = TestProject::new();
    project.write_config("config.toml", "[chat]\nimages = \"ascii\"\n");
    let mut screen = ChatScreen::start(&project, 120, 24, &format!("{ACP} chat"));
    screen.wait_for("config.toml, line 2: unknown variant");
    assert_eq!(screen.wait_for_exit().0, Some(2));
}

//! Tests of how the agent's messages and thoughts are shown.

use serde_json::json;
use vt100::Color;

use super::*;

/// The first part of a message that uses many kinds of Markdown and is sent in two parts.
const MARKDOWN_START: &str = "## Why the parser was slow\n\nIt read **every line twice**: once to *count*, once to split. \
    The numbers are in [the profile](https://example.org/profile).\n\n- `read_line` allocates for each line\n- the table \
    grows one by one\n  1. first to 16\n";
const MARKDOWN_REST: &str = "  2. then to 32\n\n| step | before | after |\n|:--|--:|--:|\n| 読む | 120 ms | 60 ms |\n| split | 14 ms \
    | 14 ms |\n\n```rust\nfn main() {\n    let lines: usize = 42; // the answer\n    println!(\"{lines} lines\");\n}\n```\n\n> \
    Measured on one core.\n\nThat is all.";

#[test]
fn markdown_is_drawn_while_it_streams() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_with_player(&project, columns, rows, "");
        let mut steps: Vec<_> = split_into_pieces(MARKDOWN_START)
            .map(message_step)
            .collect();
        steps.push(wait_step("go"));
        steps.extend(split_into_pieces(MARKDOWN_REST).map(message_step));
        play_steps(&project, &mut screen, &json!(steps));
        screen.wait_for("first to 16");
        screen.wait_for("writing");
        assert_golden(
            &mut screen,
            &project,
            &format!("streaming-{columns}x{rows}"),
        );
        project.write_file("go", "");
        screen.wait_for("That is all.");
        screen.wait_until_gone("Esc: cancel");
        assert_golden(&mut screen, &project, &format!("answer-{columns}x{rows}"));
    }
}

/// Splits text into small chunks, the way models stream it.
fn split_into_pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

#[test]
fn markdown_is_shown_with_colors() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 100, 40, "");
    play_steps(
        &project,
        &mut screen,
        &json!([message_step(MARKDOWN_START), message_step(MARKDOWN_REST)]),
    );
    screen.wait_for("That is all.");
    screen.wait_until_gone("Esc: cancel");
    let heading = find_cell(&screen, "Why the parser");
    assert_eq!(
        (heading.fgcolor(), heading.bold()),
        (theme_color(ThemeRole::Heading), true)
    );
    assert!(find_cell(&screen, "every line twice").bold());
    assert!(find_cell(&screen, "count").italic());
    let link = find_cell(&screen, "the profile");
    assert_eq!(
        (link.fgcolor(), link.underline()),
        (theme_color(ThemeRole::Link), true)
    );
    // Where it leads is seen, for nobody can be sure to be able to point at it.
    screen.wait_for("https://example.org/profile");
    assert_color(&screen, "read_line", ThemeRole::Code);
    // Code has the colors of its language: what is a word of it, a comment and a text differ.
    assert_colored(&mut screen, "let lines");
    let colors =
        ["let lines", "// the answer", "\"{lines}"].map(|text| find_cell(&screen, text).fgcolor());
    for (n, color) in colors.iter().enumerate() {
        assert!(
            matches!(color, Color::Rgb(..)),
            "{color:?}\n{}",
            screen.text()
        );
        assert!(!colors[..n].contains(color), "{colors:?}");
    }
}

#[test]
fn table_with_wide_characters_is_aligned() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 60, 24, "");
    let table =
        "| 名前 | what it does |\n|--|--|\n| 読む | reads 本 and 📚 |\n| write | ✍ and é |\n";
    play_steps(&project, &mut screen, &json!([message_step(table)]));
    screen.wait_for("reads");
    screen.wait_until_gone("Esc: cancel");
    let (head, _) = find_position(&screen, "名前");
    let rows = [head, head + 2, head + 3];
    let bars = rows.map(|row| {
        let is_bar = |column: &u16| {
            screen
                .screen()
                .cell(row, *column)
                .is_some_and(|cell| cell.contents() == "│")
        };
        (0..60).filter(is_bar).collect::<Vec<u16>>()
    });
    assert_eq!(bars[0].len(), 1, "{}", screen.text());
    assert!(bars.iter().all(|at| *at == bars[0]), "{}", screen.text());
}

#[test]
fn thoughts_are_expanded_while_streaming_and_collapsed_afterwards() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    let steps = json!([
        thought_step("Is it the parser?\n\nThe profile says so."),
        wait_step("go"),
        message_step("It is the parser."),
        thought_step("Shall I say more?\n\nRather not."),
        message_step("No more."),
    ]);
    play_steps(&project, &mut screen, &steps);
    screen.wait_for("The profile says so.");
    screen.wait_for("thinking");
    assert!(find_cell(&screen, "The profile").italic());
    project.write_file("go", "");
    screen.wait_for("No more.");
    screen.wait_for("▸ thought: Is it the parser?");
    screen.wait_until_gone("The profile says so.");
    // One of them, chosen by keys.
    screen.send_keys(TAB);
    for _ in 0..3 {
        screen.send_keys(UP);
    }
    screen.send_keys(ENTER);
    screen.wait_for("The profile says so.");
    assert!(!screen.text().contains("Rather not."));
    screen.send_keys(ENTER);
    screen.wait_until_gone("The profile says so.");
    // All of them, by one key, from wherever one is.
    screen.send_keys(ESCAPE);
    screen.wait_for("?: help");
    screen.send_keys("\u{1b}e");
    screen.wait_for("The profile says so.");
    screen.wait_for("Rather not.");
    screen.send_keys("\u{1b}e");
    screen.wait_until_gone("Rather not.");
}

#[test]
fn image_is_a_label_on_terminals_without_images() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    let image = json!({"update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "image", "mimeType": "image/png", "data": PIXEL_PNG_BASE64}}});
    play_steps(
        &project,
        &mut screen,
        &json!([message_step("Here it is:"), image]),
    );
    screen.wait_for("Here it is:");
    screen.wait_for("[image: PNG 1×1, 70 bytes]");
}

/// A one-pixel image.
pub(crate) const PIXEL_PNG_BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

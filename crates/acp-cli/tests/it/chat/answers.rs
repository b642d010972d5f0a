//! What the agent says and thinks.

use serde_json::json;
use vt100::Color;

use super::*;

/// An answer with a bit of everything, in the pieces in which it comes.
const BEGINNING: &str = "## Why the parser was slow\n\nIt read **every line twice**: once to *count*, once to split. \
    The numbers are in [the profile](https://example.org/profile).\n\n- `read_line` allocates for each line\n- the table \
    grows one by one\n  1. first to 16\n";
const REST: &str = "  2. then to 32\n\n| step | before | after |\n|:--|--:|--:|\n| 読む | 120 ms | 60 ms |\n| split | 14 ms \
    | 14 ms |\n\n```rust\nfn main() {\n    let lines: usize = 42; // the answer\n    println!(\"{lines} lines\");\n}\n```\n\n> \
    Measured on one core.\n\nThat is all.";

#[test]
fn markdown_is_drawn_while_it_streams() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = with_player(&project, columns, rows, "");
        let mut steps: Vec<_> = pieces(BEGINNING).map(says).collect();
        steps.push(waits("go"));
        steps.extend(pieces(REST).map(says));
        play(&project, &mut screen, &json!(steps));
        screen.until("first to 16");
        screen.until("writing");
        is_golden(
            &mut screen,
            &project,
            &format!("streaming-{columns}x{rows}"),
        );
        project.write("go", "");
        screen.until("That is all.");
        screen.until_gone("Esc: cancel");
        is_golden(&mut screen, &project, &format!("answer-{columns}x{rows}"));
    }
}

/// A text in the small pieces in which models give it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

#[test]
fn what_markdown_means_is_seen_by_its_colors() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 100, 40, "");
    play(&project, &mut screen, &json!([says(BEGINNING), says(REST)]));
    screen.until("That is all.");
    screen.until_gone("Esc: cancel");
    let heading = cell(&screen, "Why the parser");
    assert_eq!((heading.fgcolor(), heading.bold()), (Color::Idx(5), true));
    assert!(cell(&screen, "every line twice").bold());
    assert!(cell(&screen, "count").italic());
    let link = cell(&screen, "the profile");
    assert_eq!((link.fgcolor(), link.underline()), (Color::Idx(4), true));
    // Where it leads is seen, for nobody can be sure to be able to point at it.
    screen.until("https://example.org/profile");
    assert_eq!(cell(&screen, "read_line").fgcolor(), Color::Idx(6));
    // Code has the colors of its language: what is a word of it, a comment and a text differ.
    colored(&mut screen, "let lines");
    let colors =
        ["let lines", "// the answer", "\"{lines}"].map(|text| cell(&screen, text).fgcolor());
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
fn a_table_with_wide_characters_is_straight() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 60, 24, "");
    let table =
        "| 名前 | what it does |\n|--|--|\n| 読む | reads 本 and 📚 |\n| write | ✍ and é |\n";
    play(&project, &mut screen, &json!([says(table)]));
    screen.until("reads");
    screen.until_gone("Esc: cancel");
    let (head, _) = find(&screen, "名前");
    let rows = [head, head + 2, head + 3];
    let bars = rows.map(|row| {
        let is_bar = |column: &u16| {
            screen
                .picture()
                .cell(row, *column)
                .is_some_and(|cell| cell.contents() == "│")
        };
        (0..60).filter(is_bar).collect::<Vec<u16>>()
    });
    assert_eq!(bars[0].len(), 1, "{}", screen.text());
    assert!(bars.iter().all(|at| *at == bars[0]), "{}", screen.text());
}

#[test]
fn thoughts_are_open_while_they_are_thought_and_folded_after() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "");
    let steps = json!([
        thinks("Is it the parser?\n\nThe profile says so."),
        waits("go"),
        says("It is the parser."),
        thinks("Shall I say more?\n\nRather not."),
        says("No more."),
    ]);
    play(&project, &mut screen, &steps);
    screen.until("The profile says so.");
    screen.until("thinking");
    assert!(cell(&screen, "The profile").italic());
    project.write("go", "");
    screen.until("No more.");
    screen.until("▸ thought: Is it the parser?");
    screen.until_gone("The profile says so.");
    // One of them, chosen by keys.
    screen.key(TAB);
    for _ in 0..3 {
        screen.key(UP);
    }
    screen.key(ENTER);
    screen.until("The profile says so.");
    assert!(!screen.text().contains("Rather not."));
    screen.key(ENTER);
    screen.until_gone("The profile says so.");
    // All of them, by one key, from wherever one is.
    screen.key(ESCAPE);
    screen.until("?: help");
    screen.key("\u{1b}e");
    screen.until("The profile says so.");
    screen.until("Rather not.");
    screen.key("\u{1b}e");
    screen.until_gone("Rather not.");
}

#[test]
fn an_image_is_labelled_where_the_terminal_shows_none() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "");
    let image = json!({"update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "image", "mimeType": "image/png", "data": PIXEL}}});
    play(&project, &mut screen, &json!([says("Here it is:"), image]));
    screen.until("Here it is:");
    screen.until("[image: PNG 1×1, 70 bytes]");
}

/// A picture of one pixel.
pub(crate) const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

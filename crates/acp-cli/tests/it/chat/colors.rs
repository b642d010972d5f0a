//! Which colors there are: all, 16, none; for dark and for light.

use serde_json::json;
use vt100::Color;

use super::*;

/// A screen with all that has colors, on a terminal with this in its environment.
fn with_colors(project: &TestProject, environment: &str, args: &str) -> ChatScreen {
    hello(project);
    configure(project, &[("player", "--player --options")]);
    let line = format!("env {environment} {ACP} chat --agent player {args}");
    let mut screen = ChatScreen::start(project, 100, 40, &line);
    screen.until("· Player");
    let diff = json!({"type": "diff", "path": project.file("src/main.rs").display().to_string(),
        "oldText": "fn main() {\n    one();\n}\n", "newText": "fn main() {\n    two();\n}\n"});
    let steps = json!([
        thinks("Which is it?"),
        says(
            "## A heading\n\nSome `code`, a [link](https://example.org) and\n\n```rust\nlet n = \"text\"; // why\n```\n"
        ),
        tool_call(
            json!({"toolCallId": "1", "title": "Edit", "kind": "edit", "status": "completed", "content": [diff]})
        ),
        tool_call(
            json!({"toolCallId": "2", "title": "Fetch", "kind": "fetch", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text", "text": "no answer"}}]})
        ),
        says("The end."),
        waits("go"),
    ]);
    play(project, &mut screen, &steps);
    screen.until("The end.");
    screen.until("✗ ↓ Fetch");
    screen
}

/// The colors of all cells, those of the text and those behind it.
fn colors(screen: &ChatScreen) -> Vec<Color> {
    let (rows, columns) = screen.picture().size();
    let places =
        (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
    let cells = places.filter_map(|(row, column)| screen.picture().cell(row, column));
    let all = cells.flat_map(|cell| [cell.fgcolor(), cell.bgcolor()]);
    all.filter(|color| *color != Color::Default).collect()
}

#[test]
fn without_colors_no_cell_has_one() {
    for environment in ["NO_COLOR=1", "-u COLORTERM TERM=dumb"] {
        let project = TestProject::new();
        let screen = with_colors(&project, environment, "");
        assert_eq!(colors(&screen), [], "{environment}\n{}", screen.text());
        // What colors would have said is said otherwise.
        assert!(cell(&screen, "A heading").bold());
        assert!(cell(&screen, "link").underline());
        let text = screen.text();
        assert!(
            text.contains("-     one();") && text.contains("+     two();"),
            "{text}"
        );
    }
}

#[test]
fn on_a_terminal_of_16_colors_only_those_are_used() {
    let project = TestProject::new();
    let mut screen = with_colors(&project, "-u COLORTERM TERM=xterm", "");
    colored(&mut screen, "\"text\"");
    let colors = colors(&screen);
    assert!(colors.len() > 20, "{}", screen.text());
    for color in colors {
        assert!(
            matches!(color, Color::Idx(..16)),
            "{color:?}\n{}",
            screen.text()
        );
    }
    assert_eq!(cell(&screen, "A heading").fgcolor(), Color::Idx(5));
    let code = ["let n", "\"text\"", "// why"].map(|text| cell(&screen, text).fgcolor());
    assert!(code[0] != code[1] && code[1] != code[2], "{code:?}");
}

#[test]
fn on_a_light_terminal_what_is_behind_changes_is_light() {
    for (environment, args, light) in [
        ("A=b", "", false),
        ("A=b", "--theme light", true),
        ("COLORFGBG=0;15", "", true),
        ("COLORFGBG=0;15", "--theme dark", false),
    ] {
        let project = TestProject::new();
        let mut screen = with_colors(&project, &format!("'{environment}'"), args);
        colored(&mut screen, "\"text\"");
        for changed in ["one();", "two();"] {
            let behind = cell(&screen, changed).bgcolor();
            let Color::Rgb(r, g, b) = behind else {
                panic!("{behind:?}\n{}", screen.text());
            };
            let bright = u16::from(r) + u16::from(g) + u16::from(b);
            assert_eq!(bright > 384, light, "{environment} {args}: {behind:?}");
        }
        // Code can be read on it.
        let Color::Rgb(r, g, b) = cell(&screen, "\"text\"").fgcolor() else {
            panic!("{}", screen.text());
        };
        let bright = u16::from(r) + u16::from(g) + u16::from(b);
        assert_eq!(bright < 384, light, "{environment} {args}: {r} {g} {b}");
    }
}

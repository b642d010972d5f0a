//! Tests of color support (24-bit, 16 colors or none) on dark and light terminals.

use serde_json::json;
use vt100::Color;

use super::*;

/// Starts a chat in this environment and shows everything that is drawn in color.
pub(super) fn start_with_colors(
    project: &TestProject,
    environment: &str,
    args: &str,
) -> ChatScreen {
    write_hello_file(project);
    write_agents_config(project, &[("player", "--player --options")]);
    let line = format!("env {environment} {ACP} chat --agent player {args}");
    let mut screen = ChatScreen::start(project, 100, 40, &line);
    screen.wait_for("· Player");
    let diff = json!({"type": "diff", "path": project.file("src/main.rs").display().to_string(),
        "oldText": "fn main() {\n    one();\n}\n", "newText": "fn main() {\n    two();\n}\n"});
    let steps = json!([
        thought_step("Which is it?"),
        message_step(
            "## A heading\n\nSome `code`, a [link](https://example.org) and\n\n```rust\nlet n = \"text\"; // why\n```\n"
        ),
        tool_call_step(
            json!({"toolCallId": "1", "title": "Edit", "kind": "edit", "status": "completed", "content": [diff]})
        ),
        tool_call_step(
            json!({"toolCallId": "2", "title": "Fetch", "kind": "fetch", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text", "text": "no answer"}}]})
        ),
        message_step("The end."),
        wait_step("go"),
    ]);
    play_steps(project, &mut screen, &steps);
    screen.wait_for("The end.");
    screen.wait_for("✗ ↓ Fetch");
    screen
}

/// Returns the foreground and background colors of all cells.
fn cell_colors(screen: &ChatScreen) -> Vec<Color> {
    let (rows, columns) = screen.screen().size();
    let places =
        (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
    let cells = places.filter_map(|(row, column)| screen.screen().cell(row, column));
    let all = cells.flat_map(|cell| [cell.fgcolor(), cell.bgcolor()]);
    all.filter(|color| *color != Color::Default).collect()
}

#[test]
fn nothing_is_colored_if_colors_are_disabled() {
    for environment in ["NO_COLOR=1", "-u COLORTERM TERM=dumb"] {
        let project = TestProject::new();
        let screen = start_with_colors(&project, environment, "");
        assert_eq!(cell_colors(&screen), [], "{environment}\n{}", screen.text());
        // What colors would have said is said otherwise.
        assert!(find_cell(&screen, "A heading").bold());
        assert!(find_cell(&screen, "link").underline());
        let text = screen.text();
        assert!(
            text.contains("-     one();") && text.contains("+     two();"),
            "{text}"
        );
    }
}

#[test]
fn sixteen_color_terminal_gets_only_those_colors() {
    let project = TestProject::new();
    let mut screen = start_with_colors(&project, "-u COLORTERM TERM=xterm", "");
    assert_colored(&mut screen, "\"text\"");
    let colors = cell_colors(&screen);
    assert!(colors.len() > 20, "{}", screen.text());
    for color in colors {
        assert!(
            matches!(color, Color::Idx(..16)),
            "{color:?}\n{}",
            screen.text()
        );
    }
    assert_eq!(find_cell(&screen, "A heading").fgcolor(), Color::Idx(5));
    let code = ["let n", "\"text\"", "// why"].map(|text| find_cell(&screen, text).fgcolor());
    assert!(code[0] != code[1] && code[1] != code[2], "{code:?}");
}

#[test]
fn light_terminal_gets_light_diff_backgrounds() {
    for (environment, args, light) in [
        ("A=b", "", false),
        ("A=b", "--theme light", true),
        ("COLORFGBG=0;15", "", true),
        ("COLORFGBG=0;15", "--theme dark", false),
    ] {
        let project = TestProject::new();
        let mut screen = start_with_colors(&project, &format!("'{environment}'"), args);
        assert_colored(&mut screen, "\"text\"");
        for changed in ["one();", "two();"] {
            let behind = find_cell(&screen, changed).bgcolor();
            let Color::Rgb(r, g, b) = behind else {
                panic!("{behind:?}\n{}", screen.text());
            };
            let bright = u16::from(r) + u16::from(g) + u16::from(b);
            assert_eq!(bright > 384, light, "{environment} {args}: {behind:?}");
        }
        // Code can be read on it.
        let Color::Rgb(r, g, b) = find_cell(&screen, "\"text\"").fgcolor() else {
            panic!("{}", screen.text());
        };
        let bright = u16::from(r) + u16::from(g) + u16::from(b);
        assert_eq!(bright < 384, light, "{environment} {args}: {r} {g} {b}");
    }
}

use acp::Thread;
use acp::thread::ThreadTerminal;
use acp::v1::TerminalId;
use proptest::prelude::*;
use ratatui::style::{Color, Modifier};
use ratatui::text::Line;
use serde_json::json;

use super::{CHUNK_BYTES, MAX_SCROLLBACK_LINES, TerminalText};
use crate::{Background, Colors, Theme};

/// A thread with a terminal.
struct TerminalFixture {
    thread: Thread,
    id: TerminalId,
}

impl TerminalFixture {
    fn new(text: &str) -> Self {
        let mut printed = Self {
            thread: Thread::new(),
            id: TerminalId::from("t"),
        };
        printed.print(text);
        printed
    }

    fn print(&mut self, text: &str) {
        self.thread.append_terminal_output(&self.id, text);
    }

    fn update(&mut self, update: serde_json::Value) {
        let mut object = json!({"sessionUpdate": "terminal_update", "terminalId": "t"});
        let fields = object.as_object_mut().unwrap();
        fields.extend(update.as_object().unwrap().clone());
        self.thread.apply(
            &serde_json::from_value::<acp::v2::SessionUpdate>(object)
                .unwrap()
                .into(),
        );
    }

    fn terminal(&self) -> &ThreadTerminal {
        self.thread.terminal(&self.id).unwrap()
    }
}

fn update_fully(text: &mut TerminalText, printed: &TerminalFixture, width: u16) {
    while text.update(printed.terminal(), width) {}
}

fn line_texts(text: &TerminalText) -> Vec<String> {
    let lines = text.lines(0..text.len(), &Theme::default());
    lines.iter().map(Line::to_string).collect()
}

/// Returns the lines shown for output that was printed all at once.
fn shown_lines(text: &str, width: u16) -> Vec<String> {
    let mut terminal = TerminalText::new();
    update_fully(&mut terminal, &TerminalFixture::new(text), width);
    line_texts(&terminal)
}

#[test]
fn output_wraps_at_the_view_width() {
    assert_eq!(
        shown_lines("one\ntwo\r\n\n  three", 20),
        ["one", "two", "", "  three"]
    );
    assert_eq!(shown_lines("abcdefg", 3), ["abc", "def", "g"]);
    // Wide characters are not split across rows.
    assert_eq!(shown_lines("漢字かな", 5), ["漢字", "かな"]);
    assert_eq!(shown_lines("a\tb", 20), ["a       b"]);
    assert_eq!(shown_lines("", 20), Vec::<String>::new());
}

#[test]
fn progress_output_is_overwritten() {
    assert_eq!(shown_lines("10%\r55%\r100%\ndone", 20), ["100%", "done"]);
    assert_eq!(shown_lines("downloading...\r\u{1b}[Kready", 20), ["ready"]);
    // Two bars, the upper one redrawn.
    assert_eq!(
        shown_lines("a 1%\nb 1%\n\u{1b}[2Aa 9%\n\u{1b}[1B", 20),
        ["a 9%", "b 1%"]
    );
    assert_eq!(shown_lines("gone\u{1b}[2J\u{1b}[Hhere", 20), ["here"]);
    // The screen of an editor disappears when it exits.
    assert_eq!(
        shown_lines("before\n\u{1b}[?1049hinside\u{1b}[?1049lafter", 20),
        ["before", "after"]
    );
}

#[test]
fn other_control_sequences_have_no_effect() {
    let commands = [
        "\u{1b}]0;a title\u{7}",
        "\u{1b}]52;c;c3RvbGVu\u{1b}\\",
        "\u{1b}Pq#0;2;0;0;0\n#0~~\u{1b}\\",
        "\u{1b}_Gf=24;AAAA\u{1b}\\",
        "\u{1b}(0",
        "\u{7}\u{0}\u{7f}\u{85}\u{202e}",
        "\u{1b}[5n\u{1b}[c",
        "\u{1b}[99999b",
    ];
    for command in commands {
        assert_eq!(
            shown_lines(&format!("a{command}b"), 20),
            ["ab"],
            "{command:?}"
        );
    }
    // The text of a link is shown, but cannot be clicked.
    assert_eq!(
        shown_lines(
            "\u{1b}]8;;https://bad.example\u{1b}\\good.example\u{1b}]8;;\u{1b}\\",
            20
        ),
        ["good.example"]
    );
    // An unterminated title does not swallow what follows.
    assert_eq!(shown_lines("\u{1b}]0;a title\nnext", 20), ["", "next"]);
    assert_eq!(shown_lines("-\u{1b}[9b", 20), ["----------"]);
    assert_eq!(shown_lines("a\u{fffd}b", 20), ["a?b"]);
}

#[test]
fn escape_sequences_split_across_updates_are_parsed() {
    let text = "x\u{1b}[1;31mred\u{1b}[0m\n\u{1b}]0;title\u{1b}\\漢字\u{1b}[2;1Hend\r\n";
    let whole = shown_lines(text, 12);
    assert_eq!(whole, ["xred", "end"]);
    let mut printed = TerminalFixture::new("");
    let mut terminal = TerminalText::new();
    for c in text.chars() {
        printed.print(&c.to_string());
        update_fully(&mut terminal, &printed, 12);
    }
    assert_eq!(line_texts(&terminal), whole);
}

#[test]
fn colors_match_those_of_the_terminal() {
    let printed = TerminalFixture::new(
        "\u{1b}[31mred\u{1b}[0m \u{1b}[38;5;208morange\u{1b}[m \u{1b}[38;2;10;20;250mblue\u{1b}[m \
         \u{1b}[1;4mbold\u{1b}[22;24m \u{1b}[7minverse\u{1b}[27m\u{1b}[2mdim\u{1b}[m \u{1b}[44m  \u{1b}[m   \n",
    );
    // The text is both on the screen and scrolled off it.
    let mut scrolled = TerminalFixture::new(&printed.terminal().output());
    scrolled.print(&"\n".repeat(60));
    let line = |printed: &TerminalFixture, colors| {
        let mut terminal = TerminalText::new();
        update_fully(&mut terminal, printed, 60);
        let theme = Theme::new(Background::Dark, colors);
        terminal.lines(0..1, &theme).remove(0)
    };
    for colors in [Colors::None, Colors::Ansi16, Colors::Full] {
        let shown = line(&printed, colors);
        assert_eq!(line(&scrolled, colors), shown);
        let style = |text: &str| {
            let span = shown.spans.iter().find(|span| span.content == text);
            span.unwrap_or_else(|| panic!("{text}: {shown:?}")).style
        };
        let fgs = ["red", "orange", "blue"].map(|text| {
            shown
                .spans
                .iter()
                .find(|span| span.content.contains(text))
                .unwrap()
                .style
                .fg
        });
        let wanted = match colors {
            Colors::None => [None, None, None],
            Colors::Ansi16 => [Some(Color::Red), Some(Color::Yellow), Some(Color::Blue)],
            Colors::Full => [
                Some(Color::Red),
                Some(Color::Indexed(208)),
                Some(Color::Rgb(10, 20, 250)),
            ],
        };
        assert_eq!(fgs, wanted, "{colors:?}");
        assert_eq!(
            style("bold").add_modifier,
            Modifier::BOLD | Modifier::UNDERLINED
        );
        assert_eq!(style("inverse").add_modifier, Modifier::REVERSED);
        assert_eq!(style("dim").add_modifier, Modifier::DIM);
        if colors != Colors::None {
            // A bar that is drawn with spaces.
            assert_eq!(style("  ").bg, Some(Color::Blue));
        }
    }
}

#[test]
fn scrolled_lines_are_kept_up_to_a_limit_and_the_rest_counted() {
    let text: String = (1..=3170).map(|n| format!("line {n}\n")).collect();
    let mut terminal = TerminalText::new();
    let printed = TerminalFixture::new(&text);
    update_fully(&mut terminal, &printed, 40);
    let all = line_texts(&terminal);
    // The cursor is on the last of 50 rows.
    assert_eq!(all.len(), 1 + MAX_SCROLLBACK_LINES + 49);
    assert_eq!(all[0], "⋯ 1,121 earlier lines");
    assert_eq!(all[1], "line 1122");
    assert_eq!(all.last().unwrap(), "line 3170");
    let tail = terminal.tail(3, &Theme::default());
    let tail: Vec<String> = tail.iter().map(Line::to_string).collect();
    assert_eq!(
        tail,
        [
            "⋯ 3,167 earlier lines",
            "line 3168",
            "line 3169",
            "line 3170"
        ]
    );
    let all = terminal.tail(usize::MAX, &Theme::default());
    assert_eq!(all.len(), terminal.len());

    let mut few = TerminalText::new();
    update_fully(&mut few, &TerminalFixture::new("one\ntwo\nthree\n"), 40);
    let tail = few.tail(2, &Theme::default());
    let tail: Vec<String> = tail.iter().map(Line::to_string).collect();
    assert_eq!(tail, ["⋯ 1 earlier line", "two", "three"]);
    assert_eq!(few.tail(3, &Theme::default()).len(), 3);
}

#[test]
fn output_dropped_by_the_thread_is_noted() {
    let mut printed = TerminalFixture::new("the first\n");
    let mut terminal = TerminalText::new();
    update_fully(&mut terminal, &printed, 40);
    for _ in 0..300 {
        printed.print(&format!("{}\n", "y".repeat(4095)));
    }
    printed.print("the last\n");
    update_fully(&mut terminal, &printed, 40);
    let all = line_texts(&terminal);
    assert!(all[0].starts_with("⋯ more than "), "{}", all[0]);
    assert_eq!(all.last().unwrap(), "the last");
}

#[test]
fn output_is_parsed_in_steps() {
    // Each of these sequences erases the whole screen, which is the most work for the fewest bytes.
    let printed = TerminalFixture::new(&"\u{1b}[2J".repeat(200_000));
    let mut terminal = TerminalText::new();
    assert!(terminal.update(printed.terminal(), 500));
    assert!(terminal.read_len >= CHUNK_BYTES as u64);
    assert!(terminal.read_len < printed.terminal().total_bytes());
}

#[test]
fn cleared_or_resized_screen_is_parsed_again() {
    let mut printed = TerminalFixture::new("");
    printed.update(json!({"output": {"data": "b25lIHR3bw=="}}));
    let mut terminal = TerminalText::new();
    update_fully(&mut terminal, &printed, 20);
    assert_eq!(line_texts(&terminal), ["one two"]);
    // Other output of the same length replaces it.
    printed.update(json!({"output": {"data": "dHdvIG9uZQ=="}}));
    update_fully(&mut terminal, &printed, 20);
    assert_eq!(line_texts(&terminal), ["two one"]);
    update_fully(&mut terminal, &printed, 4);
    assert_eq!(line_texts(&terminal), ["two", "one"]);
    printed.update(json!({"output": null}));
    update_fully(&mut terminal, &printed, 4);
    assert_eq!(line_texts(&terminal), Vec::<String>::new());

    // The output of a program that draws on 30 columns is shown on 30.
    printed.update(json!({"size": {"cols": 30, "rows": 10}}));
    printed.print(&"=".repeat(40));
    update_fully(&mut terminal, &printed, 80);
    assert_eq!(line_texts(&terminal), ["=".repeat(30), "=".repeat(10)]);
}

/// Generates a random mix of text and fragments of escape sequences.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,8}",
        "\\PC{0,6}",
        "[\u{0}-\u{1f}\u{7f}-\u{9f}]{0,3}",
        "\u{1b}\\[[?>!]?[0-9;:]{0,9}[@-~]",
        "\u{1b}[0-~]?",
        "[漢字👩\u{200d}🚀\u{fe0f}\u{301}\u{202e}\u{1100}\u{1161}\u{17d8}]{0,5}",
        Just("\u{1b}[999;999H".to_owned()),
        Just("\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_output_is_sanitized(text in hostile_text(), more in hostile_text(), width in 1_u16..200) {
        let mut printed = TerminalFixture::new(&text);
        let mut terminal = TerminalText::new();
        update_fully(&mut terminal, &printed, width);
        printed.print(&more);
        update_fully(&mut terminal, &printed, width);
        let both = terminal.lines(0..terminal.len(), &Theme::default());
        prop_assert_eq!(both.len(), terminal.len());
        for line in &both {
            let text = line.to_string();
            prop_assert!(line.width() <= usize::from(width), "{:?}", text);
            prop_assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{:?}", text);
        }
        // The output in two pieces has the same result as the output in one.
        let mut at_once = TerminalText::new();
        update_fully(&mut at_once, &TerminalFixture::new(&(text + &more)), width);
        prop_assert_eq!(at_once.lines(0..at_once.len(), &Theme::default()), both);
    }

    #[test]
    fn plain_text_is_shown_in_full(text in "[a-zA-Z0-9漢字é\n]{0,300}", width in 2_u16..200) {
        let shown = shown_lines(&text, width).concat();
        let wanted: String = text.chars().filter(|c| *c != '\n').collect();
        prop_assert_eq!(shown, wanted);
    }
}

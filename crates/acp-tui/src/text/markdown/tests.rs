use std::time::Duration;

use proptest::prelude::*;
use ratatui::buffer::CellWidth;
use ratatui::style::{Color, Modifier, Style};
use unicode_segmentation::UnicodeSegmentation;

use super::*;
use crate::theme::{Background, Colors};

fn test_theme() -> Theme {
    Theme::new(Background::Dark, Colors::Full)
}

/// Lays out a complete text without highlighting.
fn layout_fully<'m>(
    markdown: &'m mut MarkdownView,
    source: &str,
    width: u16,
    theme: &Theme,
) -> &'m [Line<'static>] {
    let patient = Instant::now() + Duration::from_secs(3600);
    markdown.lines(source, width, theme, patient)
}

/// Lays out a complete text with highlighting.
fn layout_with_highlights(
    markdown: &mut MarkdownView,
    source: &str,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut lines = layout_fully(markdown, source, width, theme).to_vec();
    // When all tests run together, the queue may drop texts until they are requested again.
    for _ in 0..1_000 {
        if !markdown.is_waiting() {
            break;
        }
        highlight::wait_until_idle();
        lines = layout_fully(markdown, source, width, theme).to_vec();
    }
    assert!(!markdown.is_waiting());
    lines
}

fn layout_lines(source: &str, width: u16) -> Vec<Line<'static>> {
    layout_with_highlights(&mut MarkdownView::default(), source, width, &test_theme())
}

fn line_texts(lines: &[Line<'_>]) -> Vec<String> {
    lines.iter().map(Line::to_string).collect()
}

fn shown_text(source: &str, width: u16) -> String {
    line_texts(&layout_lines(source, width)).join("\n")
}

/// Returns the style of the first span that is exactly `text`.
fn style_of(lines: &[Line<'_>], text: &str) -> Style {
    lines
        .iter()
        .flat_map(|line| &line.spans)
        .find(|span| span.content.trim() == text)
        .unwrap_or_else(|| panic!("{text} is missing: {lines:#?}"))
        .style
}

#[track_caller]
fn assert_shown(source: &str, width: u16, expected: &str) {
    let shown = shown_text(source, width);
    assert_eq!(shown, expected.trim_matches('\n'), "\n{shown}\n");
}

#[test]
fn inline_styles_are_applied() {
    let theme = test_theme();
    let lines = layout_lines(
        "# Top\n## Second\n\nplain *soft* **loud** ~~gone~~ `code` [a link](https://x.y)",
        60,
    );
    assert_eq!(
        line_texts(&lines),
        [
            "Top",
            "",
            "Second",
            "",
            "plain soft loud gone code a link (https://x.y)"
        ]
    );
    assert_eq!(
        style_of(&lines, "Top"),
        theme.heading.add_modifier(Modifier::UNDERLINED)
    );
    assert_eq!(style_of(&lines, "Second"), theme.heading);
    assert_eq!(style_of(&lines, "plain"), theme.text);
    assert!(
        style_of(&lines, "soft")
            .add_modifier
            .contains(Modifier::ITALIC)
    );
    assert_eq!(style_of(&lines, "loud"), theme.strong);
    assert!(
        style_of(&lines, "gone")
            .add_modifier
            .contains(Modifier::CROSSED_OUT)
    );
    assert_eq!(style_of(&lines, "code"), theme.code);
    assert_eq!(style_of(&lines, "a link"), theme.link);
    assert_eq!(style_of(&lines, "(https://x.y)"), theme.dim);
}

#[test]
fn code_is_distinguishable_without_colors() {
    let theme = Theme::new(Background::Dark, Colors::None);
    let mut markdown = MarkdownView::default();
    assert_eq!(
        line_texts(layout_fully(&mut markdown, "run `ls -l`", 40, &theme)),
        ["run `ls -l`"]
    );
}

#[test]
fn lists_are_indented_and_nested() {
    assert_shown(
        "Do:\n- one that is longer than a line\n- two\n  1. first\n  2. second\n     with more\n- [ ] open\n- [x] done\n\n10. ten\n11. eleven",
        20,
        "
Do:

• one that is longer
  than a line
• two
  1. first
  2. second with
     more
[ ] open
[x] done

10. ten
11. eleven",
    );
    // Empty lines between items are preserved.
    assert_shown("- one\n\n  more\n\n- two", 20, "• one\n\n  more\n\n• two");
    assert_shown("-\n- a", 20, "•\n• a");
}

#[test]
fn block_quotes_and_alerts_have_a_bar() {
    assert_shown(
        "> said by one\n> > and by another\n\n> [!WARNING]\n> Mind the gap.\n>\n> - a list",
        20,
        "
▎ said by one
▎
▎ ▎ and by another

▎ Warning
▎ Mind the gap.
▎
▎ • a list",
    );
}

#[test]
fn code_is_framed_highlighted_and_never_truncated() {
    let source =
        "So:\n```rust\nfn main() {\n\n    let a_long_name = 1;\n}\n```\nDone.\n\n    indented\n";
    assert_shown(
        source,
        20,
        "
So:

╭─ rust
│ fn main() {
│
│     let
┊ a_long_name = 1;
│ }
╰─

Done.

╭─
│ indented
╰─",
    );
    let lines = layout_lines(source, 40);
    assert!(matches!(style_of(&lines, "fn").fg, Some(Color::Rgb(..))));
    assert_ne!(style_of(&lines, "fn").fg, style_of(&lines, "1").fg);
    // In a list, code is part of the item.
    assert_shown(
        "1. do\n   ```sh\n   ls\n   ```\n2. then",
        20,
        "1. do\n   ╭─ sh\n   │ ls\n   ╰─\n2. then",
    );
}

#[test]
fn definition_after_a_list_is_not_part_of_it() {
    let source = "- item\n[foo]: http://a.b\n\n[foo]:\n    code\ntext\n\n";
    let mut markdown = MarkdownView::default();
    for (end, _) in source.char_indices() {
        layout_fully(&mut markdown, &source[..end], 40, &test_theme());
    }
    let pieces = line_texts(layout_fully(&mut markdown, source, 40, &test_theme()));
    assert_eq!(pieces, line_texts(&layout_lines(source, 40)));
    assert!(
        pieces.iter().any(|line| line.contains("[foo]")),
        "{pieces:?}"
    );
}

#[test]
fn empty_code_does_not_wait_for_highlights() {
    let mut markdown = MarkdownView::default();
    let source = "```py\n```\n\n- in a list\n  ```rs\n  ```\n\nand so on\n\n";
    layout_fully(&mut markdown, source, 40, &test_theme());
    assert!(!markdown.is_waiting());
}

#[test]
fn tables_are_aligned_and_fit() {
    let source = "| Name | Count | 日本 |\n|:-----|------:|:--:|\n| a | 1 | x |\n| longer name | 12345 | `y` |";
    assert_shown(
        source,
        40,
        "
Name        │ Count │ 日本
────────────┼───────┼─────
a           │     1 │  x
longer name │ 12345 │  y",
    );
    assert_shown(
        source,
        22,
        "
Name    │ Count │ 日本
────────┼───────┼─────
a       │     1 │  x
────────┼───────┼─────
longer  │ 12345 │  y
name    │       │",
    );
    assert_shown(
        source,
        12,
        "
Name: a
Count: 1
日本: x
────────
Name: longer
  name
Count: 12345
日本: y",
    );
    assert_eq!(
        style_of(&layout_lines(source, 40), "Count"),
        test_theme().strong
    );
}

#[test]
fn link_targets_are_always_shown() {
    assert_shown("<https://a.b> and <me@a.b>", 60, "https://a.b and me@a.b");
    assert_shown(
        "[https://good.org](https://evil.org)",
        60,
        "https://good.org (https://evil.org)",
    );
    assert_shown("![a cat](cat.png)", 60, "[image: a cat] (cat.png)");
    let data = format!("![](data:image/png;base64,{})", "A".repeat(100));
    assert_shown(&data, 80, "[image: ] (data:image/png;base64, 100 bytes)");
    // Definitions are shown where they were written. A reference to one in another unit is shown as written.
    assert_shown(
        "See [this][1] and [that].\n\n[1]: https://a.b\n[that]: https://c.d\n\nEnd.",
        60,
        "See [this][1] and [that].\n\n[1]: https://a.b\n[that]: https://c.d\n\nEnd.",
    );
    assert_shown(
        "[1]: https://a.b\nSee [this][1].",
        60,
        "[1]: https://a.b\n\nSee this (https://a.b).",
    );
    let theme = test_theme();
    let bare = layout_lines("(at https://a.b/c_d_e, or)", 60);
    assert_eq!(
        style_of(&bare, "https://a.b/c_d_e"),
        theme.text.patch(theme.link)
    );
    assert_shown("a[^1]\n\n[^1]: a note", 60, "a[^1]\n\n[^1]: a note");
}

#[test]
fn other_markdown_elements_are_rendered() {
    assert_shown("a  \nb\\\nc\nd", 60, "a\nb\nc d");
    assert_shown("a\n\n---\n\nb", 5, "a\n\n─────\n\nb");
    assert_shown(
        "<div>\n  <b>x</b>\n</div>\n\na <i>b</i><br>c",
        60,
        "<div>\n  <b>x</b>\n</div>\n\na <i>b</i>\nc",
    );
    assert_shown("2 &lt; 3 &amp; a\\*b", 60, "2 < 3 & a*b");
    assert_shown("", 60, "");
    assert_shown("\n \n", 60, "");
}

#[test]
fn control_sequences_are_removed() {
    assert_shown("a\u{1b}[31mb\u{202e}c &#27;[2J `\u{9b}2J`", 60, "abc  2J");
    // An unterminated sequence affects its own line only.
    assert_shown("a\u{1b}]0;title\n\nb", 60, "a\n\nb");
    assert_shown("```\u{1b}[0m\nx\u{7}y\r\n```", 60, "╭─\n│ xy\n╰─");
}

#[test]
fn unfinished_markdown_is_rendered_as_if_complete() {
    assert_shown("Look:\n```py\nx = 1", 20, "Look:\n\n╭─ py\n│ x = 1\n╰─");
    // An incomplete end of a fence is not shown as code.
    assert_shown("```py\nx = 1\n``", 20, "╭─ py\n│ x = 1\n╰─");
    assert_shown("```py\nx = 1\n```", 20, "╭─ py\n│ x = 1\n╰─");
    assert_shown("| a | b |\n|---|---|\n| 1", 20, "a │ b\n──┼──\n1 │");
}

#[test]
fn changed_text_width_or_theme_restarts_the_layout() {
    let theme = test_theme();
    let mut markdown = MarkdownView::default();
    layout_fully(&mut markdown, "one\n\ntwo three\n\nfour", 80, &theme);
    assert_eq!(
        line_texts(layout_fully(
            &mut markdown,
            "one\n\ntwo three\n\nfour",
            5,
            &theme
        )),
        ["one", "", "two", "three", "", "four"]
    );
    assert_eq!(
        line_texts(layout_fully(&mut markdown, "once\n\nmore", 5, &theme)),
        ["once", "", "more"]
    );
    assert_eq!(
        line_texts(layout_fully(&mut markdown, "on", 5, &theme)),
        ["on"]
    );
    let plain = Theme::new(Background::Light, Colors::None);
    assert_eq!(
        line_texts(layout_fully(&mut markdown, "`on`", 5, &plain)),
        ["`on`"]
    );
}

/// Appends chunks to a long message, and returns how many bytes were parsed for each chunk.
fn measure_append_cost(long: String, more: &[&str]) -> Vec<usize> {
    let theme = test_theme();
    let mut markdown = MarkdownView::default();
    let mut source = long;
    layout_fully(&mut markdown, &source, 80, &theme);
    more.iter()
        .map(|more| {
            let before = markdown.work_done;
            source.push_str(more);
            layout_fully(&mut markdown, &source, 80, &theme);
            markdown.work_done - before
        })
        .collect()
}

#[test]
fn append_costs_only_the_last_block() {
    let paragraph = "Some words of a paragraph, *stressed* and not.\n\n";
    let text = paragraph.repeat(500_000 / paragraph.len());
    let more = ["and twenty bytes...", " more\n", "\nThe next begins"];
    for worked in measure_append_cost(text.clone(), &more) {
        assert!(worked < 4 * paragraph.len(), "{worked}");
    }
    // An open fence, of which only the last line is parsed.
    let text = format!("```text\n{}", "some words of code\n".repeat(500_000 / 19));
    for worked in measure_append_cost(text, &["let a = 1;", "\n", "let b"]) {
        assert!(worked < 100, "{worked}");
    }
    // Only a part of an endless block or line is parsed.
    for text in [
        "- an item\n".repeat(50_000),
        "word ".repeat(100_000),
        "x".repeat(500_000),
    ] {
        for worked in measure_append_cost(text, &["more", "\n", "- more"]) {
            assert!(worked <= 3 * (MAX_UNIT_BYTES + MAX_PIECE_BYTES), "{worked}");
        }
    }
}

fn drawn_width(line: &Line<'_>) -> usize {
    line.spans
        .iter()
        .flat_map(|span| span.content.graphemes(true))
        .map(|sign| usize::from(sign.cell_width()))
        .sum()
}

const MARKDOWN_PIECES: &[&str] = &[
    "",
    "",
    "",
    " ",
    "# head",
    "##",
    "text *soft* text",
    "**open",
    "- item",
    "- ",
    "  - nested",
    "  under",
    "1. one",
    "2) two",
    "> said",
    ">",
    "> > deep",
    "```rust",
    "```",
    "````",
    "~~~",
    "   ```",
    "fn main() { 1 }",
    "/* open",
    "    code",
    "\tcode",
    "| a | b |",
    "|---|:-:|",
    "| c |",
    "---",
    "===",
    "<div>",
    "</div>",
    "<!-- open",
    "-->",
    "<pre>",
    "[foo]: http://a.b",
    "[foo]:",
    "\"title",
    "end\"",
    "[foo] [a][foo] [b][none]",
    "[^1]: note",
    "see[^1]",
    "- [ ] task",
    "- [x] done",
    "#",
    "日本語の文章です。",
    "`code`",
    "``` `x",
    "\r",
    "hard  ",
    "hard\\",
    "\u{1b}[1mx",
    "\u{1b}]0;",
    "a\rb",
    "👩‍👩‍👧‍👦 é",
    "[![x](y)](z)",
    "* * *",
    "+ plus",
    "   three",
    "\\",
    "<b>x</b>",
    "&amp;",
    "$x$",
    "---|---",
];

fn arbitrary_markdown() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(MARKDOWN_PIECES), 0..24)
        .prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn incremental_layout_equals_full_layout(
        source in arbitrary_markdown(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        width in 1u16..60,
    ) {
        let theme = test_theme();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(source.len() + 1)).collect();
        cuts.sort_unstable();
        let mut markdown = MarkdownView::default();
        for cut in cuts {
            if let Some(begun) = source.get(..cut) {
                layout_fully(&mut markdown, begun, width, &theme);
            }
        }
        let pieces = layout_with_highlights(&mut markdown, &source, width, &theme);
        let whole = layout_with_highlights(&mut MarkdownView::default(), &source, width, &theme);
        prop_assert_eq!(line_texts(&pieces), line_texts(&whole), "{:?}", source);
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn arbitrary_markdown_fits(
        source in prop_oneof![arbitrary_markdown(), any::<String>(), "[-*_`>#|\\[\\]()!<~ \n\t:.0-9a-z]{0,200}"],
        width in 0u16..200,
    ) {
        for line in layout_lines(&source, width) {
            prop_assert!(drawn_width(&line) <= usize::from(width.max(1)), "{width}: {line:?}");
            prop_assert!(!line.to_string().chars().any(char::is_control));
        }
    }

    #[test]
    fn every_word_is_shown(
        form in proptest::collection::vec((0usize..12, proptest::collection::vec("[b-df-hj-np-tv-z]{3}", 2)), 1..8),
        width in 24u16..120,
    ) {
        let source: String = form.iter().map(|(form, words)| {
            let (a, b) = (&words[0], &words[1]);
            match form {
                0 => format!("# {a} {b}\n\n"),
                1 => format!("{a}\n*{b}*\n\n"),
                2 => format!("- {a}\n  1. {b}\n\n"),
                3 => format!("> {a}\n>> {b}\n\n"),
                4 => format!("| {a} | x |\n|---|---|\n| y | {b} |\n\n"),
                5 => format!("```{a}\n{b}\n```\n"),
                6 => format!("    {a}\n\n<{b}>\n\n"),
                7 => format!("[{a}](http://{b})\n\n"),
                8 => format!("![{a}]({b})\n\n"),
                9 => format!("[^{a}]: {b}\n\n"),
                10 => format!("[{a}]: {b}\n\n"),
                _ => format!("- [ ] {a}  \n  **{b}\n\n"),
            }
        }).collect();
        let shown = shown_text(&source, width);
        for word in form.iter().flat_map(|(_, words)| words) {
            prop_assert!(shown.contains(word.as_str()), "{word}\n{source}\n{shown}");
        }
    }
}

use std::path::Path;
use std::time::Duration;

use acp::thread::{ThreadDiff, ThreadToolCallContent};
use proptest::prelude::*;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use serde_json::{Value, json};

use super::{DiffBudget, DiffLayout, DiffRequest, render_diff, render_diff_with_budget};
use crate::{Background, Colors, Theme};

/// Time limits that are never exceeded, however busy the machine is.
const UNLIMITED_BUDGET: DiffBudget = DiffBudget {
    lines: Duration::from_secs(600),
    words: Duration::from_secs(600),
};

fn v1_diff(path: &str, old: Option<&str>, new: &str) -> ThreadDiff {
    let content: acp::v1::ToolCallContent = serde_json::from_value(
        json!({"type": "diff", "path": path, "oldText": old, "newText": new}),
    )
    .unwrap();
    diff_from_content(content.into())
}

fn v2_diff(changes: Value, patch: Option<&str>) -> ThreadDiff {
    let patch = patch.map(|text| json!({"format": "git_patch", "text": text}));
    let content: acp::v2::ToolCallContent =
        serde_json::from_value(json!({"type": "diff", "changes": changes, "patch": patch}))
            .unwrap();
    diff_from_content(content.into())
}

fn diff_from_content(content: ThreadToolCallContent) -> ThreadDiff {
    match content {
        ThreadToolCallContent::Diff(diff) => diff,
        other => panic!("{other:?}"),
    }
}

fn diff_lines(
    of: &ThreadDiff,
    layout: DiffLayout,
    width: u16,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let cwd = Some(Path::new("/code"));
    render_diff_with_budget(
        UNLIMITED_BUDGET,
        DiffRequest {
            diff: of,
            cwd,
            shows_all: false,
        },
        layout,
        width,
        theme,
    )
}

fn line_texts(lines: &[Line<'_>]) -> Vec<String> {
    let text = lines
        .iter()
        .map(|line| line.to_string().trim_end().to_owned());
    text.collect()
}

fn unified_texts(of: &ThreadDiff, width: u16) -> Vec<String> {
    line_texts(&diff_lines(
        of,
        DiffLayout::Unified,
        width,
        &Theme::default(),
    ))
}

fn numbered_lines(range: std::ops::RangeInclusive<usize>) -> String {
    range.map(|n| format!("line {n}\n")).collect()
}

/// Returns the style of the first span that contains this text.
fn style_of(lines: &[Line<'_>], of: &str) -> Style {
    let mut spans = lines.iter().flat_map(|line| &line.spans);
    let found = spans.find(|span| span.content.contains(of));
    found
        .unwrap_or_else(|| panic!("{of:?} in {lines:#?}"))
        .style
}

#[test]
fn change_is_shown_with_context_and_line_numbers() {
    let old = numbered_lines(1..=40);
    let new = old
        .replace("line 10\n", "line ten\nand more\n")
        .replace("line 30\n", "");
    let shown = unified_texts(&v1_diff("/code/src/a.txt", Some(&old), &new), 60);
    assert_eq!(
        shown,
        [
            "src/a.txt  +2 -2",
            "⋯ 6 unchanged lines",
            " 7  7   line 7",
            " 8  8   line 8",
            " 9  9   line 9",
            "10    - line 10",
            "   10 + line ten",
            "   11 + and more",
            "11 12   line 11",
            "12 13   line 12",
            "13 14   line 13",
            "⋯ 13 unchanged lines",
            "27 28   line 27",
            "28 29   line 28",
            "29 30   line 29",
            "30    - line 30",
            "31 31   line 31",
            "32 32   line 32",
            "33 33   line 33",
            "⋯ 7 unchanged lines",
        ]
    );
}

#[test]
fn side_by_side_pairs_old_and_new_lines() {
    let of = v1_diff("/code/a", Some("one\ntwo\nthree\n"), "one\n2\n2½\nthree\n");
    let shown = line_texts(&diff_lines(
        &of,
        DiffLayout::SideBySide,
        41,
        &Theme::default(),
    ));
    assert_eq!(
        shown,
        [
            "a  +2 -1",
            "1   one             │1   one",
            "2 - two             │2 + 2",
            "                    │3 + 2½",
            "3   three           │4   three",
        ]
    );
    // A long line takes more rows on its side, and the other side is padded.
    let of = v1_diff("/code/a", Some("漢字漢字漢字漢字漢字\nx\n"), "b\nx\n");
    let shown = line_texts(&diff_lines(
        &of,
        DiffLayout::SideBySide,
        41,
        &Theme::default(),
    ));
    assert_eq!(
        shown,
        [
            "a  +1 -1",
            "1 - 漢字漢字漢字漢字│1 + b",
            "  -…漢字            │",
            "2   x               │2   x",
        ]
    );
    // `Auto` depends on the width; an added file has no other side.
    let both =
        |width| line_texts(&diff_lines(&of, DiffLayout::Auto, width, &Theme::default())).concat();
    assert!(both(100).contains('│'));
    assert!(!both(99).contains('│'));
    let new = v1_diff("/code/a", None, "b\n");
    assert_eq!(
        line_texts(&diff_lines(&new, DiffLayout::Auto, 120, &Theme::default())),
        ["a  new file  +1", "  1 + b"]
    );
}

#[test]
fn changed_words_are_emphasized() {
    let of = v1_diff(
        "/code/a",
        Some("let one = first(1);\n"),
        "let one = second(1);\n",
    );
    for (colors, layout) in [
        (Colors::Full, DiffLayout::Unified),
        (Colors::Full, DiffLayout::SideBySide),
        (Colors::Ansi16, DiffLayout::Unified),
        (Colors::None, DiffLayout::Unified),
    ] {
        let theme = Theme::new(Background::Dark, colors);
        let lines = diff_lines(&of, layout, 80, &theme);
        let is = |style: Style, of: Style| style.patch(of) == style;
        assert!(
            is(style_of(&lines, "first"), theme.removed_word),
            "{colors:?}"
        );
        assert!(
            is(style_of(&lines, "second"), theme.added_word),
            "{colors:?}"
        );
        assert!(
            !is(style_of(&lines, "let one"), theme.removed_word),
            "{colors:?}"
        );
        let span = lines
            .iter()
            .flat_map(|line| &line.spans)
            .find(|span| span.content.contains("first"));
        assert_eq!(span.unwrap().content, "first");
    }
}

#[test]
fn change_color_fills_the_line() {
    let of = v1_diff("/code/a", Some("old\n"), "new\n");
    let theme = Theme::new(Background::Light, Colors::Full);
    let all = diff_lines(&of, DiffLayout::Unified, 50, &theme);
    let removed = all
        .iter()
        .find(|line| line.to_string().contains("old"))
        .unwrap();
    assert_eq!(removed.width(), 50);
    assert!(
        removed.spans.iter().all(|span| span.style.bg.is_some()),
        "{removed:?}"
    );
    // Without colors, the sign shows what changed.
    let none = Theme::new(Background::Light, Colors::None);
    let all = diff_lines(&of, DiffLayout::Unified, 50, &none);
    assert_eq!(line_texts(&all), ["a  +1 -1", "1   - old", "  1 + new"]);
    let colors = |style: Style| [style.fg, style.bg];
    assert!(
        all.iter()
            .flat_map(|line| &line.spans)
            .all(|span| colors(span.style) == [None, None])
    );
}

#[test]
fn invisible_characters_are_shown_as_escapes() {
    let of = v1_diff("/code/a\u{1b}[2J", Some("a\n"), "a\u{202e}b\u{1b}[31m\n");
    let theme = Theme::new(Background::Dark, Colors::Ansi16);
    let all = diff_lines(&of, DiffLayout::Unified, 80, &theme);
    assert_eq!(
        line_texts(&all),
        [
            r"a\u{1b}[2J  +1 -1",
            "1   - a",
            r"  1 + a\u{202e}b\u{1b}[31m"
        ]
    );
    assert_eq!(style_of(&all, r"\u{202e}").fg, Some(Color::Yellow));
    // Spaces that a change leaves at the end of a line are visible.
    let all = diff_lines(
        &v1_diff("/code/a", Some("a\n"), "a  \n"),
        DiffLayout::Unified,
        80,
        &theme,
    );
    let spaces = all[2].spans.last().unwrap();
    assert_eq!(
        (&*spaces.content, spaces.style.add_modifier),
        ("  ", Modifier::REVERSED)
    );
}

#[test]
fn differing_line_endings_are_shown() {
    let all = unified_texts(
        &v1_diff("/code/a", Some("one\r\ntwo\r\n"), "one\r\n2\r\n"),
        40,
    );
    assert_eq!(all, ["a  +1 -1", "1 1   one", "2   - two", "  2 + 2"]);
    let all = unified_texts(&v1_diff("/code/a", Some("one\r\n"), "one\n"), 40);
    assert_eq!(all, ["a  +1 -1", "1   - one\\u{d}", "  1 + one"]);
    let all = unified_texts(&v1_diff("/code/a", Some("one"), "one\n"), 40);
    assert_eq!(
        all,
        [
            "a  +1 -1",
            "1   - one",
            "      no newline at end of file",
            "  1 + one"
        ]
    );
    let all = line_texts(&diff_lines(
        &v1_diff("/code/a", Some("one"), "one\n"),
        DiffLayout::SideBySide,
        50,
        &Theme::default(),
    ));
    assert!(all[2].starts_with("    no newline"), "{all:?}");
    // A carriage return alone does not end a line.
    let all = unified_texts(&v1_diff("/code/a", Some("a\rb\n"), "a\rc\n"), 40);
    assert_eq!(all, ["a  +1 -1", "1   - a\\u{d}b", "  1 + a\\u{d}c"]);
}

#[test]
fn unchanged_and_oversized_files_get_a_note() {
    assert_eq!(
        unified_texts(&v1_diff("/code/a", Some("x\n"), "x\n"), 40),
        ["a", "no changes"]
    );
    assert_eq!(
        unified_texts(&v1_diff("/code/a", None, ""), 40),
        ["a  new file", "empty file"]
    );
    let large = "x".repeat(3 * 1024 * 1024);
    let all = unified_texts(&v1_diff("/other/a", Some(&large), &large), 80);
    assert_eq!(
        all,
        [
            "/other/a",
            "too large to compare: 3,145,728 bytes before, 3,145,728 bytes now"
        ]
    );
}

#[test]
fn omitted_lines_are_counted() {
    let all = unified_texts(&v1_diff("/code/a", None, &numbered_lines(1..=12_345)), 60);
    assert_eq!(all.len(), 1 + 5_000 + 1);
    assert_eq!(all[0], "a  new file  +12,345");
    assert_eq!(all[5_001], "⋯ 7,345 more changed lines hidden");
}

#[test]
fn diff_without_time_budget_is_coarse() {
    let none = DiffBudget {
        lines: Duration::ZERO,
        words: Duration::ZERO,
    };
    let of = v1_diff("/code/a", Some("one\ntwo\nthree\n"), "1\ntwo\n3\n");
    let of = DiffRequest {
        diff: &of,
        cwd: None,
        shows_all: false,
    };
    let all = render_diff_with_budget(none, of, DiffLayout::Unified, 60, &Theme::default());
    let all = line_texts(&all);
    for line in ["- one", "+ 1", "- three", "+ 3"] {
        assert!(all.iter().any(|shown| shown.ends_with(line)), "{all:?}");
    }
    assert_eq!(
        all.last().unwrap(),
        "approximate diff (too large to compare exactly)"
    );
}

#[test]
fn patch_is_shown_by_file() {
    let patch = "diff --git /code/a.rs /code/a.rs\nindex 1..2 100644\n--- /code/a.rs\n+++ /code/a.rs\n\
        @@ -10,2 +10,3 @@ fn main() {\n one\n+two\n three\n\\ No newline at end of file\n\
        @@ -40 +41 @@\n--- not a header\n++++ either\n\
        diff --git /code/b /code/c\nsimilarity index 100%\nrename from /code/b\nrename to /code/c\n\
        diff --git /code/run /code/run\nold mode 100644\nnew mode 100755\n\
        diff --git /code/n /code/n\nnew file mode 100755\n--- /dev/null\n+++ /code/n\n@@ -0,0 +1 @@\n+x\n\
        diff --git /code/p.png /code/p.png\nBinary files /code/p.png and /code/p.png differ\n\
        diff --git \"/code/\\303\\251\" \"/code/\\303\\251\"\ndeleted file mode 100644\n--- \"/code/\\303\\251\"\n\
        +++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    let changes = json!([
        {"operation": "modify", "path": "/code/a.rs"},
        {"operation": "delete", "path": "/code/not-in-the-patch", "fileType": "symlink"},
    ]);
    let all = unified_texts(&v2_diff(changes, Some(patch)), 60);
    assert_eq!(
        all,
        [
            "a.rs  +2 -1",
            "⋯ 9 unchanged lines · fn main() {",
            "10 10   one",
            "   11 + two",
            "11 12   three",
            "⋯ 28 unchanged lines",
            "40    - -- not a header",
            "   41 + +++ either",
            "",
            "c  moved from /code/b",
            "",
            "run  mode 100644 → 100755",
            "",
            "n  new file, executable  +1",
            "  1 + x",
            "",
            "p.png  binary",
            "",
            "é  deleted  -1",
            "1   - gone",
            "",
            "not-in-the-patch  deleted, symbolic link",
        ]
    );
}

#[test]
fn unrecognized_lines_of_a_patch_are_shown() {
    let patch = "From: someone\ndiff --git /code/a /code/a\n--- /code/a\n+++ /code/a\n@@ -1 +1 @@\n-a\n+b\n\
        +a line that its header does not count\n@@ nonsense @@\n";
    let all = unified_texts(&v2_diff(json!([]), Some(patch)), 60);
    assert_eq!(
        all,
        [
            "From: someone",
            "",
            "a  +1 -1",
            "1   - a",
            "  1 + b",
            "+a line that its header does not count",
            "@@ nonsense @@",
        ]
    );
    // The patch has no git header lines.
    let all = unified_texts(
        &v2_diff(
            json!([]),
            Some("--- a\t2024\n+++ a\t2025\n@@ -1 +1 @@\n-a\n+b\n"),
        ),
        60,
    );
    assert_eq!(all, ["a  +1 -1", "1   - a", "  1 + b"]);
    let all = unified_texts(
        &v2_diff(
            json!([{"operation": "move", "path": "/code/b", "oldPath": "/code/a"}]),
            None,
        ),
        60,
    );
    assert_eq!(all, ["b  moved from /code/a"]);
}

#[test]
fn narrow_view_loses_no_text() {
    let of = v1_diff("/code/a", Some("one\n"), "abcdef\n");
    assert_eq!(unified_texts(&of, 10), ["a  +1 -1", "- one", "+ abcdef"]);
    assert_eq!(
        unified_texts(&of, 3),
        ["a", "+1", "-1", "-on", "-e", "+ab", "+cd", "+ef"]
    );
    assert_eq!(unified_texts(&of, 1).concat(), "a+1-1oneabcdef");
}

proptest! {
    #[test]
    fn no_line_is_wider_than_requested(
        old in proptest::option::of("([ab漢\t\r\u{202e}\u{1b}👩\u{200d}🚀\u{fe0f}\u{301}]{0,12}\n?){0,8}"),
        new in "([ab漢\t\r\u{202e}\u{1b}👩\u{200d}🚀\u{fe0f}\u{301}]{0,12}\n?){0,8}|[\\s\\S]{0,60}",
        width in 1_u16..200,
        layout in prop_oneof![Just(DiffLayout::Auto), Just(DiffLayout::Unified), Just(DiffLayout::SideBySide)],
        colors in prop_oneof![Just(Colors::None), Just(Colors::Ansi16), Just(Colors::Full)],
    ) {
        let theme = Theme::new(Background::Dark, colors);
        for line in diff_lines(&v1_diff("/code/a", old.as_deref(), &new), layout, width, &theme) {
            let text = line.to_string();
            prop_assert!(line.width() <= usize::from(width), "{text:?}");
            prop_assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
        }
    }

    #[test]
    fn arbitrary_patch_is_shown(
        lines in prop::collection::vec(
            prop_oneof![
                "[-+ \\\\]?[a漢\u{7}\r]{0,6}",
                "@@ -[0-9]{1,3}(,[0-9]{1,20})? \\+[0-9]{1,20} @@",
                Just("diff --git /a /a".to_owned()),
                Just("--- /a".to_owned()),
                Just("+++ \"/a\\777\\\"".to_owned()),
                Just("new mode 1".to_owned()),
                "\\PC{0,9}",
            ],
            0..30,
        ),
        width in 1_u16..200,
    ) {
        let patch = lines.join("\n");
        for line in render_diff(
            DiffRequest { diff: &v2_diff(json!([]), Some(&patch)), cwd: None, shows_all: false },
            DiffLayout::Auto,
            width,
            &Theme::default(),
        ) {
            prop_assert!(line.width() <= usize::from(width));
            prop_assert!(!line.to_string().contains(char::is_control));
        }
    }

    #[test]
    fn all_changed_lines_are_shown(
        old in prop::collection::vec("[a-d]{1,3}", 0..30),
        new in prop::collection::vec("[a-d]{1,3}", 0..30),
    ) {
        let join = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let shown = unified_texts(&v1_diff("/code/f", Some(&join(&old)), &join(&new)), 80);
        // Replacing the old lines with the shown ones gives the new text.
        let mut rebuilt = Vec::new();
        let mut at = 0;
        for line in shown.iter().skip(1).filter(|line| *line != "no changes") {
            if let Some(gap) = line.strip_prefix("⋯ ") {
                let count: usize = gap.split(' ').next().unwrap().parse().unwrap();
                rebuilt.extend(old[at..at + count].iter().cloned());
                at += count;
                continue;
            }
            let mut parts = line.rsplitn(2, ' ');
            let text = parts.next().unwrap().to_owned();
            let gutter = parts.next().unwrap();
            if gutter.ends_with('+') {
                rebuilt.push(text);
            } else {
                prop_assert_eq!(&old[at], &text);
                at += 1;
                if !gutter.ends_with('-') {
                    rebuilt.push(text);
                }
            }
        }
        if shown.get(1).is_some_and(|line| line == "no changes") {
            prop_assert_eq!(old, new);
        } else {
            prop_assert_eq!(rebuilt, new);
        }
    }
}

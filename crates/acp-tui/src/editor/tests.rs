//! Tests the editor from a user's point of view.

use std::time::{Duration, Instant};

use acp::v1::UnstructuredCommandInput;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;

use super::*;
use crate::{Background, Colors, Theme};

const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// An editor in a project with a few files.
struct EditorFixture {
    editor: PromptEditor,
    project: tempfile::TempDir,
}

impl EditorFixture {
    fn new() -> Self {
        Self::with_history(PromptHistory::default())
    }

    fn with_history(history: PromptHistory) -> Self {
        let project = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(project.path().join("src/deep")).unwrap();
        for (file, text) in [
            ("src/main.rs", "fn main() {}"),
            ("src/deep/my notes.md", "n"),
        ] {
            std::fs::write(project.path().join(file), text).unwrap();
        }
        let files = FileFinder::new(project.path().to_owned(), || {});
        let mut editor = PromptEditor::new(files, history);
        editor.set_commands(&[
            AvailableCommand::new("review", "Looks at changes")
                .input(UnstructuredCommandInput::new("what to look at")),
            AvailableCommand::new("compact", "Makes room"),
        ]);
        Self { editor, project }
    }

    /// Types characters and presses the keys named in angle brackets.
    fn press_keys(&mut self, keys: &str) -> EditorOutcome {
        let mut last = EditorOutcome::Ignored;
        let mut rest = keys;
        while let Some(c) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|r| r.split_once('>'));
            let (code, modifiers) = match named {
                Some((name, after)) => {
                    rest = after;
                    parse_key(name)
                }
                None => {
                    rest = &rest[c.len_utf8()..];
                    (KeyCode::Char(c), KeyModifiers::NONE)
                }
            };
            last = self.editor.handle_key(KeyEvent::new(code, modifiers));
        }
        last
    }

    /// Draws the editor on a screen of this size. Returns the screen, its rows and the cursor's position.
    fn draw(&mut self, width: u16, height: u16) -> (Buffer, Vec<String>, Position) {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        let own = self.editor.height(width, height).min(height);
        let area = Rect::new(0, height - own, width, own);
        let cursor = self
            .editor
            .draw(area, area, &mut buf, &Theme::default())
            .unwrap();
        assert!(area.contains(cursor));
        let line = |y| -> String { (0..width).map(|x| buf[(x, y)].symbol()).collect() };
        let lines = (0..height).map(|y| line(y).trim_end().to_owned()).collect();
        (buf, lines, cursor)
    }

    fn text(&self) -> &str {
        self.editor.buffer.text()
    }

    /// Waits until the file finder has matches for the current query.
    fn settle(&mut self) {
        let completion = self.editor.completion.as_ref().unwrap();
        let query = completion.trigger.query.clone();
        self.editor.files.matches_for(&query, LONG_TIMEOUT);
    }

    fn prompt_json(&mut self, takes: &PromptCapabilities) -> serde_json::Value {
        let draft = self.editor.take();
        serde_json::to_value(draft.build_content(takes).unwrap()).unwrap()
    }
}

fn parse_key(name: &str) -> (KeyCode, KeyModifiers) {
    let (modifiers, key) = match name.split_at_checked(2) {
        Some(("C-", key)) => (KeyModifiers::CONTROL, key),
        Some(("M-", key)) => (KeyModifiers::ALT, key),
        Some(("S-", key)) => (KeyModifiers::SHIFT, key),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match key {
        "enter" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "esc" => KeyCode::Esc,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "bs" => KeyCode::Backspace,
        "del" => KeyCode::Delete,
        other => KeyCode::Char(other.chars().next().unwrap()),
    };
    (code, modifiers)
}

#[test]
fn enter_submits_and_modified_enter_breaks_lines() {
    let mut w = EditorFixture::new();
    assert_eq!(w.press_keys("<enter>"), EditorOutcome::Ignored);
    assert_eq!(
        w.press_keys("one<S-enter>two<M-enter>three<C-j>four\\<enter>five<enter>"),
        EditorOutcome::Submit
    );
    assert_eq!(w.editor.take().text(), "one\ntwo\nthree\nfour\nfive");
    assert!(w.editor.is_empty());
    // Two backslashes stand for a literal one.
    assert_eq!(w.press_keys("a\\\\<enter>"), EditorOutcome::Submit);
    assert_eq!(w.press_keys("<C-z>"), EditorOutcome::Ignored);
    assert_eq!(w.press_keys("<C-c>"), EditorOutcome::Ignored);
    assert_eq!(w.press_keys("<esc>"), EditorOutcome::Ignored);
}

#[test]
fn readline_keys_move_and_delete() {
    let mut w = EditorFixture::new();
    w.press_keys("git log --oneline<C-w>");
    assert_eq!(w.text(), "git log ");
    // Consecutive kills are yanked together.
    w.press_keys("<C-w><C-y>");
    assert_eq!(w.text(), "git log --oneline");
    w.press_keys("<C-w>all<M-b><C-u><C-k><C-y>");
    assert_eq!(w.text(), "git log all");
    w.press_keys("<C-a><M-f>x<C-e>y<C-b><C-b>z");
    assert_eq!(w.text(), "gitx log alzly");
    w.press_keys("<C-a><M-d><C-d>");
    assert_eq!(w.text(), "log alzly");
    w.press_keys("<end><bs><bs><bs><M-bs>");
    assert_eq!(w.text(), "log ");
}

#[test]
fn undo_and_redo_work_by_words() {
    let mut w = EditorFixture::new();
    w.press_keys("one two three<C-_>");
    assert_eq!(w.text(), "one two ");
    w.press_keys("<C-/>");
    assert_eq!(w.text(), "one ");
    w.press_keys("<M-_><M-_>");
    assert_eq!(w.text(), "one two three");
    w.press_keys("<bs><bs><bs><bs><bs><bs><C-7>");
    assert_eq!(w.text(), "one two three");
    w.press_keys("<C-u><C-_>!");
    assert_eq!(w.text(), "one two three!");
    w.press_keys("<M-_>");
    assert_eq!(w.text(), "one two three!");
}

#[test]
fn cursor_moves_by_grapheme_clusters() {
    let mut w = EditorFixture::new();
    w.editor.paste("a👨\u{200d}👩\u{200d}👧e\u{301}你");
    let (_, lines, cursor) = w.draw(20, 6);
    // The cells after wide characters are blank.
    assert_eq!(lines[5], "a👨\u{200d}👩\u{200d}👧 e\u{301}你");
    assert_eq!(cursor.x, 6);
    w.press_keys("<left><left>");
    assert_eq!(w.draw(20, 6).2.x, 3);
    w.press_keys("<bs>");
    assert_eq!(w.text(), "ae\u{301}你");
    w.press_keys("<del>");
    assert_eq!(w.text(), "a你");
}

#[test]
fn text_wraps_grows_to_a_third_of_the_screen_and_scrolls() {
    let mut w = EditorFixture::new();
    assert_eq!(w.editor.height(80, 24), 1);
    w.press_keys("the quick brown fox");
    assert_eq!(w.editor.height(11, 24), 2);
    let (_, lines, cursor) = w.draw(11, 24);
    assert_eq!(&lines[22..], ["the quick", "brown fox"]);
    assert_eq!(cursor, Position::new(9, 23));
    w.editor.paste(&"\nx".repeat(9));
    assert_eq!(w.editor.height(11, 24), 8);
    let (_, lines, cursor) = w.draw(11, 24);
    assert_eq!((lines[16].as_str(), cursor.y), ("x         ↑", 23));
    w.press_keys("<C-home>");
    let (_, lines, cursor) = w.draw(11, 24);
    assert_eq!((lines[16].as_str(), cursor.y), ("the quick", 16));
    assert_eq!(lines[23], "x         ↓");
}

#[test]
fn up_and_down_keep_the_column_and_reach_the_history() {
    let history = PromptHistory::default();
    let mut w = EditorFixture::with_history(history.clone());
    for said in ["first", "second one<C-j>of two lines"] {
        w.press_keys(said);
        w.editor.take();
    }
    w.press_keys("abcd<C-j>x<C-j>efgh<up>");
    w.draw(80, 24);
    w.press_keys("<up>!");
    assert_eq!(w.text(), "abcd!\nx\nefgh");
    // On the first row, `Up` goes back in the history; `Down` returns to what was being written.
    w.press_keys("<up>");
    assert_eq!(w.text(), "second one\nof two lines");
    w.press_keys("<up>");
    assert_eq!(w.text(), "first");
    assert_eq!(w.press_keys("<up>"), EditorOutcome::Ignored);
    w.press_keys("<down>");
    assert_eq!(w.text(), "second one\nof two lines");
    w.press_keys("<down>");
    assert_eq!(w.text(), "abcd!\nx\nefgh");
    assert_eq!(w.press_keys("<down>"), EditorOutcome::Ignored);
    // Another editor shares the history, and a recalled prompt can be undone.
    let mut other = EditorFixture::with_history(history);
    other.press_keys("mine<up><up>");
    assert_eq!(other.text(), "first");
    other.press_keys("<C-_><C-_>");
    assert_eq!(other.text(), "mine");
}

#[test]
fn history_can_be_searched() {
    let mut w = EditorFixture::new();
    for said in ["explain the parser", "fix the lexer", "now run tests"] {
        w.press_keys(said);
        w.editor.take();
    }
    w.press_keys("draft<C-r>the");
    let (buf, lines, cursor) = w.draw(40, 12);
    assert_eq!(lines[11], "search: the");
    assert_eq!(cursor, Position::new(11, 11));
    assert_eq!(&lines[9..11], [" fix the lexer", " explain the parser"]);
    assert!(buf[(1, 9)].modifier.contains(Modifier::REVERSED));
    w.press_keys("<C-r><enter>");
    assert_eq!(w.text(), "explain the parser");
    w.press_keys("<C-r>zzz");
    assert_eq!(w.draw(40, 12).1[11], "search: zzz  no matches");
    w.press_keys("<enter><esc>");
    assert_eq!(w.text(), "explain the parser");
}

#[test]
fn long_paste_is_collapsed_and_sent_in_full() {
    let mut w = EditorFixture::new();
    let long = "line\r".repeat(240);
    w.press_keys("see ");
    w.editor.paste(&long);
    w.press_keys(" there");
    assert_eq!(w.text(), "see [pasted 240 lines] there");
    let (buf, lines, _) = w.draw(40, 12);
    assert_eq!(lines[11], "see [pasted 240 lines] there");
    assert_eq!(buf[(5, 11)].fg, Theme::default().accent.fg.unwrap());
    assert_ne!(buf[(24, 11)].fg, Theme::default().accent.fg.unwrap());
    // The cursor skips the mark as one unit, and it is deleted as one.
    w.press_keys("<M-b><left><left>");
    assert_eq!(w.draw(40, 12).2.x, 4);
    w.press_keys("<right><bs>");
    assert_eq!(w.text(), "see  there");
    w.press_keys("<C-_>");
    let said = w.prompt_json(&PromptCapabilities::new());
    assert_eq!(
        said[0]["text"],
        format!("see {} there", "line\n".repeat(240))
    );
}

#[test]
fn collapsed_paste_expands_unless_too_large() {
    let mut w = EditorFixture::new();
    w.editor.paste(&"x\n".repeat(12));
    assert!(w.draw(60, 12).1[11].contains("[pasted 12 lines] Tab: expand"));
    w.press_keys("<tab>");
    assert_eq!(w.text(), "x\n".repeat(12));
    w.editor.take();

    let huge = "x".repeat(paste::MAX_PASTE_BYTES + 1);
    let EditorOutcome::Note(why) = w.editor.paste(&huge) else {
        panic!("text over the limit was pasted");
    };
    assert!(why.contains("1 MiB"), "{why}");
    assert!(w.editor.is_empty());
    for _ in 0..4 {
        w.editor.paste(&huge[1..]);
    }
    assert!(matches!(w.editor.paste(&huge[1..]), EditorOutcome::Note(_)));
    // An expanded text is laid out with each key, so its length is limited.
    assert!(matches!(w.press_keys("<tab>"), EditorOutcome::Note(_)));
}

#[test]
fn dropped_files_are_attached_or_mentioned() {
    let mut w = EditorFixture::new();
    let picture = w.project.path().join("a picture.png");
    std::fs::write(&picture, b"\x89PNG").unwrap();
    let dropped = format!("'{}'", picture.display());
    w.editor
        .set_prompt_capabilities(PromptCapabilities::new().image(true));
    assert_eq!(w.editor.paste(&dropped), EditorOutcome::Changed);
    let notes = w.project.path().join("src/deep/my notes.md");
    w.press_keys("see");
    w.editor
        .paste(&notes.display().to_string().replace(' ', "\\ "));
    assert_eq!(w.text(), "see @src/deep/my notes.md ");
    let (_, lines, _) = w.draw(40, 12);
    assert_eq!(
        &lines[10..],
        [" image a picture.png", "see @src/deep/my notes.md"]
    );
    let said = w.prompt_json(&PromptCapabilities::new().image(true));
    assert_eq!(said[0]["text"], "see ");
    assert_eq!(said[1]["name"], "my notes.md");
    assert_eq!(said[2]["data"], "iVBORw==");

    // Backspace at the very start removes the last attachment.
    w.editor.paste(&dropped);
    w.press_keys("x<bs>");
    assert!(!w.editor.is_empty());
    w.press_keys("<bs>");
    assert!(w.editor.is_empty());

    w.editor.set_prompt_capabilities(PromptCapabilities::new());
    let EditorOutcome::Note(why) = w.editor.paste(&dropped) else {
        panic!("the file was attached instead of mentioned");
    };
    assert!(why.contains("not supported by this agent"), "{why}");
    assert_eq!(w.text(), "@a picture.png ");
}

#[test]
fn slash_commands_are_completed_and_show_their_hint() {
    let mut w = EditorFixture::new();
    w.press_keys("/");
    let (_, lines, _) = w.draw(60, 12);
    assert!(lines[8].contains("commands · 1 of 2"));
    assert_eq!(
        &lines[9..],
        [" /review   Looks at changes", " /compact  Makes room", "/"]
    );
    w.press_keys("r<enter>");
    assert_eq!(w.text(), "/review ");
    let (buf, lines, cursor) = w.draw(60, 12);
    assert_eq!(lines[11], "/review what to look at");
    assert_eq!(cursor.x, 8);
    assert!(buf[(9, 11)].modifier.contains(Modifier::DIM));
    w.press_keys("x");
    assert_eq!(w.draw(60, 12).1[11], "/review x");
    w.editor.take();
    // A command typed in full is sent at once, and Esc closes the list.
    assert_eq!(w.press_keys("/compact<enter>"), EditorOutcome::Submit);
    w.editor.take();
    w.press_keys("/<down><tab>");
    assert_eq!(w.text(), "/compact ");
    w.editor.take();
    w.press_keys("/re");
    assert!(w.editor.has_popup());
    assert_eq!(w.press_keys("<esc>"), EditorOutcome::Changed);
    assert!(!w.editor.has_popup());
    w.press_keys("v");
    assert!(!w.editor.has_popup());
    assert_eq!(w.press_keys("<enter>"), EditorOutcome::Submit);
}

#[test]
fn files_are_completed_in_place() {
    let mut w = EditorFixture::new();
    // This must work even on a busy machine.
    w.editor.completion_timeout = LONG_TIMEOUT;
    w.press_keys("explain @mai");
    w.settle();
    let (buf, lines, _) = w.draw(60, 12);
    assert_eq!(&lines[10..], [" src/main.rs", "explain @mai"]);
    assert_eq!(buf[(5, 10)].fg, Theme::default().matched.fg.unwrap());
    w.press_keys("<tab>and @");
    w.settle();
    // Tab continues into a directory, Enter chooses it. No key waits for the list to be shown.
    w.press_keys("sd<tab>");
    assert_eq!(w.text(), "explain @src/main.rs and @src/deep/");
    w.press_keys("<enter>please");
    assert_eq!(w.text(), "explain @src/main.rs and @src/deep/ please");
    let (buf, ..) = w.draw(60, 12);
    assert_eq!(buf[(9, 11)].fg, Theme::default().link.fg.unwrap());
    let said = w.prompt_json(&PromptCapabilities::new().embedded_context(true));
    assert_eq!(said[0]["text"], "explain ");
    assert_eq!(said[1]["resource"]["text"], "fn main() {}");
    assert_eq!(said[2]["text"], " and ");
    assert_eq!(said[3]["type"], "resource_link");
    assert!(said[3]["uri"].as_str().unwrap().ends_with("/src/deep/"));
    assert_eq!(said[4]["text"], " please");

    // A prompt recalled from the history has its file marks again, and a path typed in full is marked too.
    w.press_keys("<up>");
    assert_eq!(w.text(), "explain @src/main.rs and @src/deep/ please");
    assert_eq!(
        w.prompt_json(&PromptCapabilities::new())[1]["name"],
        "main.rs"
    );
    w.press_keys("@src/main.rs ok @src/nothing ok");
    let said = w.prompt_json(&PromptCapabilities::new());
    assert_eq!(said[0]["name"], "main.rs");
    assert_eq!(said[1]["text"], " ok @src/nothing ok");
}

#[test]
fn draft_is_restored_unchanged() {
    let mut w = EditorFixture::new();
    let notes = w.project.path().join("src/main.rs");
    w.editor.attach(&notes);
    w.editor.paste(&"x\n".repeat(20));
    let draft = w.editor.take();
    assert_eq!(
        (draft.display_text(), draft.attachments().len()),
        ("[pasted 20 lines]", 1)
    );
    w.press_keys("something else");
    w.editor.set(draft.clone());
    assert_eq!(w.editor.take(), draft);
    assert!(!draft.is_empty() && PromptDraft::default().is_empty());
}

#[test]
fn slow_file_search_does_not_block_typing() {
    let mut w = EditorFixture::new();
    // The finder's thread gets no further than its first matches.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    let stuck = move || {
        let _ = ended.lock().unwrap().recv();
    };
    w.editor.files = FileFinder::new(w.project.path().to_owned(), stuck);
    let began = Instant::now();
    w.press_keys("@");
    w.settle();
    w.press_keys("gone");
    assert_eq!(w.draw(80, 24).1[23], "@gone");
    // The list is for an earlier query, so no entry is chosen from it, and nothing is sent by mistake.
    assert!(w.editor.has_popup());
    assert!(matches!(w.press_keys("<enter>"), EditorOutcome::Note(_)));
    assert_eq!(w.text(), "@gone");
    w.press_keys("<esc>");
    assert_eq!(w.press_keys("<enter>"), EditorOutcome::Submit);
    assert!(began.elapsed() < LONG_TIMEOUT);
    drop(end);
}

#[test]
fn editor_is_readable_without_colors() {
    let mut w = EditorFixture::new();
    w.editor.set_placeholder("Say what is to be done\u{1b}[2J");
    let theme = Theme::new(Background::Light, Colors::None);
    let line = Rect::new(0, 3, 40, 1);
    let mut buf = Buffer::empty(Rect::new(0, 0, 40, 4));
    w.editor.draw(line, line, &mut buf, &theme);
    assert!(buf[(0, 3)].modifier.contains(Modifier::DIM));
    w.press_keys("/");
    w.editor.draw(line, line, &mut buf, &theme);
    assert!(buf[(1, 1)].modifier.contains(Modifier::REVERSED));
    assert!(!buf[(1, 2)].modifier.contains(Modifier::REVERSED));
}

/// Generates a random sequence of keys and pastes.
fn arbitrary_input() -> impl Strategy<Value = Vec<(u8, String)>> {
    let text = "(\\PC|[ \t\r\n\u{1b}\u{7}\u{200d}\u{301}\u{202e}\u{200b}\u{1f469}你/@a-c]){0,12}";
    proptest::collection::vec((0u8..30, text), 1..24)
}

const KEY_NAMES: [&str; 24] = [
    "<left>", "<right>", "<up>", "<down>", "<home>", "<end>", "<bs>", "<del>", "<C-w>", "<C-u>",
    "<C-k>", "<C-y>", "<M-b>", "<M-f>", "<M-d>", "<C-_>", "<M-_>", "<tab>", "<esc>", "<enter>",
    "<C-j>", "<C-r>", "<M-bs>", "<C-a>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_input_does_not_break_the_editor(done in arbitrary_input(), width in 1u16..200, height in 2u16..30) {
        let mut w = EditorFixture::new();
        // The timing of file searches must not affect this test.
        w.editor.files = FileFinder::new(w.project.path().join("gone"), || {});
        for (what, text) in &done {
            match KEY_NAMES.get(usize::from(*what)) {
                Some(key) => {
                    w.press_keys(key);
                }
                None if what % 2 == 0 => {
                    w.editor.paste(text);
                }
                None => {
                    w.editor.paste(&format!("{text}\n").repeat(12));
                }
            }
            let marked = w.editor.buffer.marked();
            prop_assert!(!marked.text().contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            let cursor = w.editor.buffer.cursor();
            prop_assert!(marked.text().is_char_boundary(cursor));
            for mark in marked.marks() {
                prop_assert!(marked.text()[mark.range.clone()].starts_with('['));
                prop_assert!(cursor <= mark.range.start || mark.range.end <= cursor);
            }
            let (buf, ..) = w.draw(width, height);
            for cell in buf.content() {
                prop_assert!(!cell.symbol().contains(char::is_control));
            }
        }
        // Undoing every step leads back to the start.
        w.press_keys("<esc><esc>");
        while w.editor.buffer.undo() {}
        prop_assert_eq!(w.text(), "");
    }
}

use crossterm::event::{KeyEvent, KeyModifiers};
use proptest::prelude::*;

use super::super::marked_text::MarkContent;
use super::super::{FileFinder, PromptDraft, PromptHistory};
use super::*;

/// Creates an editor in normal mode, with the text and the cursor at `|`.
fn editor_with(text: &str) -> PromptEditor {
    let cursor = text.find('|').unwrap();
    let files = FileFinder::new(std::env::temp_dir(), || {});
    let mut editor = PromptEditor::new(files, PromptHistory::default());
    editor.set_vim(true);
    editor.set(PromptDraft::from(text.replacen('|', "", 1).as_str()));
    press_keys(&mut editor, "\x1b");
    editor.buffer.move_cursor(cursor);
    editor
}

/// Presses keys: control characters are Esc, Enter and Ctrl with a letter.
fn press_keys(editor: &mut PromptEditor, keys: &str) -> EditorOutcome {
    let mut last = EditorOutcome::Ignored;
    for c in keys.chars() {
        let key = match c {
            '\x1b' => KeyCode::Esc.into(),
            '\r' => KeyCode::Enter.into(),
            '\x08' => KeyCode::Backspace.into(),
            '\x01'..='\x1a' => {
                let letter = char::from(c as u8 - 1 + b'a');
                KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
            }
            c if c.is_uppercase() => KeyEvent::new(KeyCode::Char(c), KeyModifiers::SHIFT),
            c => KeyCode::Char(c).into(),
        };
        last = editor.handle_key(key);
    }
    last
}

/// Returns the text with `|` at the cursor.
fn shown(editor: &PromptEditor) -> String {
    let mut text = editor.buffer.text().to_owned();
    text.insert(editor.buffer.cursor(), '|');
    text
}

#[track_caller]
fn assert_keys(cases: &[(&str, &str, &str)]) {
    for (before, keys, after) in cases {
        let mut editor = editor_with(before);
        press_keys(&mut editor, keys);
        assert_eq!(shown(&editor), *after, "{keys:?} in {before:?}");
    }
}

#[test]
fn motions_move_the_cursor() {
    assert_keys(&[
        ("one t|wo", "h", "one |two"),
        ("one |two", "2l", "one tw|o"),
        ("one tw|o", "l", "one tw|o"),
        ("a\n|b", "h", "a\n|b"),
        ("|one two.three", "w", "one |two.three"),
        ("|one two.three", "3w", "one two.|three"),
        ("|one two.three four", "2W", "one two.three |four"),
        ("one\n|two", "b", "|one\ntwo"),
        ("one two.thr|ee", "2b", "one two|.three"),
        ("one two.thr|ee", "B", "one |two.three"),
        ("|one two", "e", "on|e two"),
        ("on|e two", "e", "one tw|o"),
        ("on|e two.x", "E", "one two.|x"),
        ("  one t|wo", "0", "|  one two"),
        ("  one t|wo", "^", "  |one two"),
        ("o|ne\ntwo", "$", "on|e\ntwo"),
        ("o|ne\ntwo", "2$", "one\ntw|o"),
        ("one\n  two\nthr|ee", "gg", "|one\n  two\nthree"),
        ("|one\n  two\n three", "G", "one\n  two\n |three"),
        ("|one\n  two\nthree", "2G", "one\n  |two\nthree"),
        ("|one\n  two\nthree", "2gg", "one\n  |two\nthree"),
        ("|one\ntwo", "j", "one\n|two"),
        ("one\nt|wo", "k", "o|ne\ntwo"),
        ("|a-b-c", "f-", "a|-b-c"),
        ("|a-b-c", "2f-", "a-b|-c"),
        ("|a-b-c", "t-", "|a-b-c"),
        ("|ab-cd-e", "t-;", "ab-c|d-e"),
        ("|a-b-c", "f-;", "a-b|-c"),
        ("|a-b-c", "f-;,", "a|-b-c"),
        ("a-b-|c", "F-", "a-b|-c"),
        ("a-b-c|d", "T-", "a-b-|cd"),
        ("|abc", "fx", "|abc"),
        ("|a\nx", "fx", "|a\nx"),
        ("日|本語", "l", "日本|語"),
        ("one|", "", "one|"),
    ]);
}

#[test]
fn operators_change_the_text() {
    assert_keys(&[
        ("o|ne", "x", "o|e"),
        ("on|e", "x", "o|n"),
        ("o|ne two", "10x", "|o"),
        ("on|e", "X", "o|e"),
        ("|", "x", "|"),
        ("one\nt|wo\nthree", "dd", "one\n|three"),
        ("one\nt|wo", "dd", "|one"),
        ("o|ne", "dd", "|"),
        ("o|ne\ntwo\nthree", "2dd", "|three"),
        ("o|ne\ntwo\nthree", "dj", "|three"),
        ("one\ntwo\nth|ree", "dk", "|one"),
        ("one\nt|wo\nthree", "dG", "|one"),
        ("one\nt|wo\nthree", "dgg", "|three"),
        ("one t|wo", "D", "one |t"),
        ("one |two three", "dw", "one |three"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "2dw", "|three"),
        ("one two thr|ee", "db", "one two |ee"),
        ("|one two", "de", "| two"),
        ("one t|wo three", "d0", "|wo three"),
        ("one t|wo three", "d$", "one |t"),
        ("|a, b", "df,", "| b"),
        ("|a, b", "dt,", "|, b"),
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one t|wo", "rx", "one t|xo"),
        ("one t|wo", "2rx", "one tx|x"),
        ("one t|wo", "3rx", "one t|wo"),
        ("one t|wo", "xu", "one t|wo"),
        ("o|ne two", "xxu", "o|e two"),
        ("o|ne two", "xxu\x12", "o| two"),
        // Characters and lines that were deleted or yanked are put back.
        ("|ab", "xp", "b|a"),
        ("|ab", "xP", "|ab"),
        ("|one\ntwo", "ddp", "two\n|one"),
        ("one\n|two", "yyP", "one\n|two\ntwo"),
        ("one\n|two", "yykP", "|two\none\ntwo"),
        ("|one two", "yw$p", "one twoone| "),
        ("|ab", "yl3p", "aaa|ab"),
        ("|one", "yy2p", "one\n|one\none"),
        // A command that does not exist does nothing.
        ("one |two", "dz", "one |two"),
        ("one |two", "2gz", "one |two"),
        ("one |two", "d\x1bw", "one tw|o"),
    ]);
}

#[test]
fn commands_start_insert_mode() {
    assert_keys(&[
        ("o|ne", "ix\x1b", "o|xne"),
        ("o|ne", "ax\x1b", "on|xe"),
        ("  o|ne", "Ix\x1b", "  |xone"),
        ("o|ne", "Ax\x1b", "one|x"),
        ("o|ne\ntwo", "ox\x1b", "one\n|x\ntwo"),
        ("one\nt|wo", "Ox\x1b", "one\n|x\ntwo"),
        ("one |two three", "cwx\x1b", "one |x three"),
        ("one two| three", "cwx\x1b", "one two|xthree"),
        ("one tw|o three", "cwx\x1b", "one tw|x three"),
        ("|one two three", "c2wx\x1b", "|x three"),
        ("one t|wo three", "ciwx\x1b", "one |x three"),
        ("one t|wo", "Cx\x1b", "one t|x"),
        ("one\nt|wo\nthree", "ccx\x1b", "one\n|x\nthree"),
        ("one t|wo", "sx\x1b", "one t|xo"),
        ("one\nt|wo", "Sx\x1b", "one\n|x"),
    ]);
    let mut editor = editor_with("|");
    assert_eq!(editor.vim_mode().as_deref(), Some("NORMAL"));
    press_keys(&mut editor, "2d");
    assert_eq!(editor.vim_mode().as_deref(), Some("2d  NORMAL"));
    // Esc cancels the command, and then it is not for the editor.
    assert!(editor.uses_escape());
    press_keys(&mut editor, "\x1b");
    assert!(!editor.uses_escape());
    press_keys(&mut editor, "i");
    assert_eq!(editor.vim_mode().as_deref(), Some("INSERT"));
    assert!(editor.uses_escape());
    press_keys(&mut editor, "dw 0");
    assert_eq!(shown(&editor), "dw 0|");
}

#[test]
fn enter_sends_in_both_modes() {
    let mut editor = editor_with("|one");
    assert_eq!(press_keys(&mut editor, "\r"), EditorOutcome::Submit);
    editor.take();
    // The next prompt starts in insert mode.
    assert_eq!(editor.vim_mode().as_deref(), Some("INSERT"));
    assert_eq!(press_keys(&mut editor, "two\r"), EditorOutcome::Submit);
    assert_eq!(editor.text(), "two");
}

#[test]
fn mark_is_one_character() {
    let mut editor = editor_with("see |it");
    let mark = MarkedText::from_mark("[pasted 3 lines]", MarkContent::Paste("a\nb\nc".into()));
    editor.buffer.insert(mark);
    press_keys(&mut editor, "0w");
    assert_eq!(shown(&editor), "see |[pasted 3 lines]it");
    press_keys(&mut editor, "yl");
    press_keys(&mut editor, "$p");
    assert_eq!(editor.text(), "see a\nb\ncita\nb\nc");
    press_keys(&mut editor, "x");
    assert_eq!(editor.text(), "see a\nb\ncit");
}

#[test]
fn huge_counts_are_bounded() {
    let mut editor = editor_with("|0123456789");
    press_keys(&mut editor, "yy");
    press_keys(&mut editor, "99999999999999999999999999p");
    assert!(editor.text().len() <= 11 * (MAX_COUNT + 1));
    for _ in 0..4 {
        press_keys(&mut editor, "ggyG");
        press_keys(&mut editor, "9999p");
    }
    assert!(editor.text().len() <= MAX_PROMPT_BYTES);
}

proptest! {
    #[test]
    fn no_keys_break_the_editor(
        text in "(\\PC|[ \t\n\u{200d}\u{301}你a-c.,]){0,40}",
        keys in "[hjklwbeWBE0^$gGiaIAoOxXdDcCyYpPurRfFtTsS;,/1-9a-c .\n\x1b\x12\x08\u{301}你]{0,40}",
    ) {
        let mut editor = editor_with(&format!("|{}", text.replace('|', "")));
        editor.buffer.insert(MarkedText::from_mark("[x]", MarkContent::Paste("y".into())));
        for c in keys.chars() {
            press_keys(&mut editor, c.encode_utf8(&mut [0; 4]));
            let (text, cursor) = (editor.buffer.text(), editor.buffer.cursor());
            prop_assert!(text.is_char_boundary(cursor));
            let mark = editor.buffer.marked().mark_containing(cursor);
            prop_assert!(mark.is_none_or(|mark| mark.range.start == cursor));
            if editor.is_in_normal_mode() && editor.search.is_none() && !editor.uses_escape() {
                // The cursor is on a character, unless the line is empty.
                let line_start = cursor == 0 || text[..cursor].ends_with('\n');
                let at_end = text[cursor..].is_empty() || text[cursor..].starts_with('\n');
                prop_assert!(line_start || !at_end, "{text:?} {cursor}");
            }
        }
    }
}

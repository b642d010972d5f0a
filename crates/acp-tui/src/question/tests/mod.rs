//! Tests questions from a user's point of view, at 80 columns unless stated otherwise.

mod address;
mod form;
mod permission;

use super::*;
use std::path::Path;

use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp::v1::{
    ContentBlock, CreateElicitationRequest, Diff, ElicitationScope, PermissionOption,
    PermissionOptionKind, ToolCallContent, ToolCallLocation, ToolCallUpdate, ToolKind,
};
use acp_host::{AlwaysEffect, RememberedSubject};
use proptest::prelude::*;
use ratatui::buffer::CellWidth;
use serde_json::json;

use crate::theme::{Background, Colors};

const SETTLE_WAIT: Duration = Duration::from_secs(5);

fn open_question(question: ChatQuestion) -> Arc<OpenQuestion> {
    Arc::new(OpenQuestion {
        id: 7,
        session: None,
        question,
    })
}

/// A question that has been visible for a while.
struct ShownQuestion {
    view: QuestionView,
    now: Instant,
    theme: Theme,
}

impl ShownQuestion {
    fn new(question: ChatQuestion) -> Self {
        let now = Instant::now();
        Self {
            view: QuestionView::new(open_question(question), "fix-agent", now),
            now: now + SETTLE_WAIT,
            theme: Theme::default(),
        }
    }

    /// Presses a key after all visible parts have been drawn.
    fn press_key(&mut self, code: KeyCode) -> QuestionOutcome {
        self.draw(80, 24);
        self.view
            .handle_key(KeyEvent::new(code, KeyModifiers::NONE), self.now)
    }

    fn press_ctrl(&mut self, c: char) -> QuestionOutcome {
        self.draw(80, 24);
        let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        self.view.handle_key(key, self.now)
    }

    fn press_keys(&mut self, keys: &str) {
        for c in keys.chars() {
            let outcome = self.press_key(KeyCode::Char(c));
            assert!(
                matches!(outcome, QuestionOutcome::Changed),
                "{c}: {outcome:?}"
            );
        }
    }

    fn draw(&mut self, width: u16, most: u16) -> (Buffer, Option<Position>) {
        let theme = self.theme.clone();
        let look = DrawContext {
            theme: &theme,
            cwd: Path::new("/home/me/project"),
            frame: 0,
            images: None,
        };
        let height = self.view.height(width, most, &look);
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let cursor = self.view.draw(area, &mut buf, &look);
        (buf, cursor)
    }

    /// Returns the screen at 80 columns and at most 24 rows.
    fn screen(&mut self) -> String {
        buffer_text(&self.draw(80, 24).0)
    }
}

/// Returns a buffer's text without trailing spaces.
fn buffer_text(buf: &Buffer) -> String {
    let mut text = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let mut row = String::new();
        let mut skip = 0;
        for x in buf.area.left()..buf.area.right() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buf[(x, y)].symbol();
            skip = symbol.cell_width().saturating_sub(1);
            row.push_str(symbol);
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the position of text that fits on a single row.
fn find_text(buf: &Buffer, what: &str) -> (u16, u16) {
    let rows = buffer_text(buf);
    for (y, row) in rows.lines().enumerate() {
        if let Some(at) = row.find(what) {
            let x: u16 = row[..at].cell_width();
            return (x, u16::try_from(y).unwrap());
        }
    }
    panic!("{what} is missing from\n{rows}")
}

fn permission_option(id: &str, name: &str, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption::new(id, name, kind)
}

fn all_options() -> Vec<PermissionOption> {
    vec![
        permission_option("once", "Allow", PermissionOptionKind::AllowOnce),
        permission_option("always", "Always allow", PermissionOptionKind::AllowAlways),
        permission_option("no", "Reject", PermissionOptionKind::RejectOnce),
        permission_option("never", "Never", PermissionOptionKind::RejectAlways),
    ]
}

fn permission_question(
    call: ToolCallUpdate,
    options: Vec<PermissionOption>,
    always: AlwaysEffect,
) -> ChatQuestion {
    let request = PermissionRequest::new("s", &call, options, ThreadHandle::new());
    ChatQuestion::Permission(Box::new(request), always)
}

fn command_question(line: &str) -> ChatQuestion {
    let call = ToolCallUpdate::new("c")
        .title("Run the tests")
        .kind(ToolKind::Execute)
        .raw_input(json!({ "command": line, "cwd": "/home/me/project" }));
    permission_question(call, all_options(), AlwaysEffect::LeftToAgent)
}

/// Creates a form whose fields have the same order as in `schema`.
fn form_question(schema: &str) -> ChatQuestion {
    let schema = serde_json::from_str(schema).unwrap();
    elicitation_question(ElicitationMode::Form {
        requested_schema: schema,
    })
}

fn elicitation_question(mode: ElicitationMode) -> ChatQuestion {
    let scope = ElicitationScope::Session {
        session_id: "s".into(),
        tool_call_id: None,
    };
    let request = CreateElicitationRequest::new("Who are you?", mode, scope);
    ChatQuestion::Elicitation(Box::new(request))
}

#[test]
fn selection_is_visible_without_colors() {
    for (background, colors) in [
        (Background::Dark, Colors::None),
        (Background::Light, Colors::Ansi16),
        (Background::Light, Colors::Full),
    ] {
        let mut shown = ShownQuestion::new(command_question("make"));
        shown.theme = Theme::new(background, colors);
        shown.press_key(KeyCode::Down);
        let buf = shown.draw(80, 24).0;
        let (x, y) = find_text(&buf, "›1 y  Allow");
        let (style, selected) = (buf[(x + 6, y)].style(), shown.theme.selected);
        assert!(style.add_modifier.contains(selected.add_modifier));
        if selected.bg.is_some() {
            assert_eq!(style.bg, selected.bg);
        }
        if colors == Colors::None {
            let plain = ratatui::style::Color::Reset;
            let colors = buf.content().iter().map(|cell| (cell.fg, cell.bg));
            assert!(colors.into_iter().all(|colors| colors == (plain, plain)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_agent_text_fits_any_size(
        words in prop::collection::vec("(\\PC|[\u{0}-\u{20}\u{1b}\u{202e}\u{9b}日👩\u{200d}\u{301}]){0,40}", 6),
        width in 1_u16..200,
        most in 1_u16..40,
        which in 0..3,
        keys in prop::collection::vec(0_usize..9, 0..12),
    ) {
        let [title, text, line, name, path, more] = &words[..] else { unreachable!() };
        let question = match which {
            0 => {
                let call = ToolCallUpdate::new("c")
                    .title(title.as_str())
                    .content(vec![
                        ContentBlock::text(text.as_str()).into(),
                        ToolCallContent::Diff(Diff::new(path.as_str(), more.as_str())),
                    ])
                    .locations(vec![ToolCallLocation::new(path.as_str())])
                    .raw_input(json!({ "command": line, "cwd": path }));
                let options = vec![
                    permission_option("1", name, PermissionOptionKind::AllowAlways),
                    permission_option("2", more, PermissionOptionKind::RejectOnce),
                ];
                permission_question(call, options, AlwaysEffect::LeftToAgent)
            }
            1 => form_question(&json!({ "type": "object", "title": title, "description": text, "properties": {
                "a": { "type": "string", "title": name, "description": more, "default": line, "pattern": path },
                "b": { "type": "string", "oneOf": [{ "const": line, "title": name, "description": more }] },
                "c": { "type": "boolean", "title": more },
            } }).to_string()),
            _ => elicitation_question(ElicitationMode::Url { elicitation_id: "e".into(), url: format!("https://{line}") }),
        };
        let mut shown = ShownQuestion::new(question);
        let codes = [KeyCode::Up, KeyCode::Down, KeyCode::Tab, KeyCode::BackTab, KeyCode::PageDown,
            KeyCode::Char('i'), KeyCode::Char(' '), KeyCode::End, KeyCode::Left];
        for key in keys {
            shown.press_key(codes[key]);
            shown.draw(width, most);
        }
        let (buf, cursor) = shown.draw(width, most);
        for cell in buf.content() {
            let hostile = |c: char| c.is_control() || c == '\u{202e}';
            prop_assert!(!cell.symbol().contains(hostile), "{:?}", cell.symbol());
        }
        if let Some(cursor) = cursor {
            prop_assert!(buf.area.contains(cursor));
        }
    }
}

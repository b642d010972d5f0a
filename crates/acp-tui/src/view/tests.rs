use std::path::Path;

use acp::Thread;
use acp::v1::{ContentBlock, ContentChunk, SessionUpdate, ToolCall, ToolCallStatus, ToolKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ThreadView;
use crate::draw_context::DrawContext;
use crate::{Background, Colors, Theme};

fn add_message(thread: &mut Thread, text: &str) {
    let chunk = ContentChunk::new(ContentBlock::text(text));
    thread.apply(&SessionUpdate::AgentMessageChunk(chunk).into());
}

/// Creates a thread of messages. A thought follows each message, because adjacent messages would be joined.
fn thread_with_messages(count: usize) -> Thread {
    let mut thread = Thread::new();
    for n in 0..count {
        let thought = ContentChunk::new(ContentBlock::text("hm"));
        thread.apply(&SessionUpdate::AgentThoughtChunk(thought).into());
        add_message(&mut thread, &format!("message {n}"));
    }
    thread
}

/// Draws the thread and returns the lines of the screen.
fn draw_lines(view: &mut ThreadView, thread: &Thread, width: u16, height: u16) -> Vec<String> {
    let theme = Theme::new(Background::Dark, Colors::None);
    let look = DrawContext {
        theme: &theme,
        cwd: Path::new("/project"),
        frame: 0,
        images: None,
    };
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    view.draw(thread, area, &mut buf, &look);
    (0..height)
        .map(|y| {
            let row: String = (0..width).map(|x| buf[(x, y)].symbol()).collect();
            row.trim_end().to_owned()
        })
        .collect()
}

#[test]
fn view_starts_at_the_end_and_follows_it() {
    let mut thread = thread_with_messages(100);
    let mut view = ThreadView::default();
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "  message 99");
    assert!(!view.has_more_below());
    add_message(&mut thread, "\n\nand more");
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[3..], ["  message 99", "", "  and more"]);
}

#[test]
fn scroll_position_is_kept_while_items_are_added() {
    let mut thread = thread_with_messages(100);
    let mut view = ThreadView::default();
    draw_lines(&mut view, &thread, 40, 6);
    view.scroll_up(8);
    let before = draw_lines(&mut view, &thread, 40, 6);
    assert!(view.has_more_below());
    assert_eq!(before[5], "  message 97");
    add_message(&mut thread, "\n\nand more\n\nand still more");
    assert_eq!(draw_lines(&mut view, &thread, 40, 6), before);
    view.scroll_down(3);
    draw_lines(&mut view, &thread, 40, 6);
    view.scroll_down(1000);
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "  and still more");
    assert!(!view.has_more_below());
    // The view keeps following.
    add_message(&mut thread, "\n\nthe last");
    assert_eq!(draw_lines(&mut view, &thread, 40, 6)[5], "  the last");
}

#[test]
fn jump_to_the_beginning_is_cheap() {
    let thread = thread_with_messages(100);
    let mut view = ThreadView::default();
    draw_lines(&mut view, &thread, 40, 6);
    view.go_to_beginning();
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[0], "┊ ▸ thought: hm");
    assert_eq!(lines[2], "  message 0");
    view.scroll_up(10);
    assert_eq!(draw_lines(&mut view, &thread, 40, 6), lines);
    view.go_to_end();
    assert_eq!(draw_lines(&mut view, &thread, 40, 6)[5], "  message 99");
}

#[test]
fn only_visible_items_of_a_long_thread_are_laid_out() {
    let thread = thread_with_messages(20_000);
    let mut view = ThreadView::default();
    draw_lines(&mut view, &thread, 40, 20);
    assert!(view.layouts.len() < 50, "{} items", view.layouts.len());
    view.scroll_up(10);
    draw_lines(&mut view, &thread, 40, 20);
    assert!(view.layouts.len() < 80, "{} items", view.layouts.len());
}

#[test]
fn short_thread_starts_at_the_top() {
    let thread = thread_with_messages(1);
    let mut view = ThreadView::default();
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[..3], ["┊ ▸ thought: hm", "", "  message 0"]);
    view.scroll_up(5);
    view.scroll_down(2);
    assert_eq!(draw_lines(&mut view, &thread, 40, 6), lines);
}

#[test]
fn item_is_selected_revealed_and_expanded() {
    let thread = thread_with_messages(50);
    let mut view = ThreadView::default();
    draw_lines(&mut view, &thread, 40, 6);
    view.select(0, &thread);
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "┃ message 49");
    for _ in 0..9 {
        view.select(-1, &thread);
    }
    let lines = draw_lines(&mut view, &thread, 40, 6);
    assert_eq!(lines[0], "┃ ▸ thought: hm");
    view.toggle();
    assert_eq!(draw_lines(&mut view, &thread, 40, 6)[0], "┃ hm");
    view.toggle();
    view.deselect();
    assert_eq!(draw_lines(&mut view, &thread, 40, 6)[0], "┊ ▸ thought: hm");
}

#[test]
fn one_line_tool_calls_are_grouped() {
    let mut thread = Thread::new();
    for (id, title) in [("a", "Read `one.rs`"), ("b", "Read `two.rs`")] {
        let call = ToolCall::new(id, title)
            .kind(ToolKind::Read)
            .status(ToolCallStatus::Completed);
        thread.apply(&SessionUpdate::ToolCall(Box::new(call)).into());
    }
    add_message(&mut thread, "both read");
    let mut view = ThreadView::default();
    let lines = draw_lines(&mut view, &thread, 40, 4);
    assert_eq!(
        lines,
        ["  ✓ ▤ Read one.rs", "  ✓ ▤ Read two.rs", "", "  both read"]
    );
}

#[test]
fn view_can_be_drawn_at_any_size() {
    let mut thread = thread_with_messages(5);
    add_message(
        &mut thread,
        "\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n漢字 and 👩‍👩‍👧",
    );
    for width in 1..30 {
        for height in 0..8 {
            let mut view = ThreadView::default();
            draw_lines(&mut view, &thread, width, height);
            view.scroll_up(3);
            view.select(-2, &thread);
            draw_lines(&mut view, &thread, width, height);
        }
    }
}

/// Returns paragraphs that are all different.
fn long_text(from: usize, count: usize) -> String {
    let paragraph = |n| format!("paragraph {n}: {}\n\n", "some words of it ".repeat(8));
    (from..from + count).map(paragraph).collect()
}

#[test]
fn scrolling_up_reaches_the_end_of_a_long_message() {
    let mut thread = Thread::new();
    add_message(&mut thread, &long_text(0, 6_000));
    let thought = ContentChunk::new(ContentBlock::text("hm"));
    thread.apply(&SessionUpdate::AgentThoughtChunk(thought).into());
    add_message(&mut thread, "and then");
    let mut view = ThreadView::default();
    let before = draw_lines(&mut view, &thread, 60, 10);
    assert_eq!(before[9], "  and then");
    view.scroll_up(6);
    let mut drawings = 0;
    while view.is_unfinished() || drawings == 0 {
        // The item is not laid out at once, and nothing else is shown in the meantime.
        drawings += 1;
        let now = draw_lines(&mut view, &thread, 60, 10);
        if view.is_unfinished() {
            assert_eq!(now[9], before[9]);
        }
    }
    let lines = draw_lines(&mut view, &thread, 60, 10);
    assert!(drawings > 3, "{drawings}");
    assert!(
        lines.iter().any(|line| line.contains("paragraph 5999")),
        "{lines:?}"
    );
    // The view stays there at another width.
    view.scroll_up(3_000);
    draw_lines(&mut view, &thread, 60, 10);
    for _ in 0..2 {
        draw_lines(&mut view, &thread, 61, 10);
    }
    assert!(view.is_unfinished());
    view.scroll_down(1);
    while view.is_unfinished() {
        draw_lines(&mut view, &thread, 61, 10);
    }
    let lines = draw_lines(&mut view, &thread, 61, 10);
    assert!(
        lines.iter().any(|line| line.contains("paragraph 5")),
        "{lines:?}"
    );
    assert!(view.has_more_below());
}

#[test]
fn pages_can_be_scrolled_while_a_message_streams() {
    let mut thread = Thread::new();
    let mut view = ThreadView::default();
    let mut said = 0;
    for n in 0..60 {
        add_message(&mut thread, &long_text(said, 50));
        said += 50;
        if n % 6 == 5 {
            thread.apply(
                &SessionUpdate::ToolCall(ToolCall::new(format!("call-{n}"), "look").into()).into(),
            );
        }
        draw_lines(&mut view, &thread, 60, 12);
        if n == 20 {
            for _ in 0..6 {
                view.scroll_up(10);
                draw_lines(&mut view, &thread, 60, 12);
            }
        }
        if n > 20 {
            for up in [true, true, false, false] {
                let before = draw_lines(&mut view, &thread, 60, 12);
                if up {
                    view.scroll_up(10)
                } else {
                    view.scroll_down(10)
                }
                let mut after = draw_lines(&mut view, &thread, 60, 12);
                for _ in 0..200 {
                    if after != before {
                        break;
                    }
                    after = draw_lines(&mut view, &thread, 60, 12);
                }
                assert_ne!(after, before, "{n} {up}");
                let number = |lines: &[String]| {
                    lines.iter().find_map(|l| {
                        l.split_once("paragraph ")?
                            .1
                            .split(':')
                            .next()?
                            .parse::<usize>()
                            .ok()
                    })
                };
                assert!(
                    (number(&after) < number(&before)) == up,
                    "{n} {up}: {before:?} {after:?}"
                );
            }
        }
    }
}

#[test]
fn command_output_is_shown_once_in_an_expanded_card() {
    let raw = serde_json::json!({"exitCode": 0, "output": "one\r\ntwo\n", "text": ["one\ntwo"]});
    let text = ContentBlock::text("```console\none\ntwo\n```");
    let call = ToolCall::new("c", "Run `printf`")
        .kind(ToolKind::Execute)
        .status(ToolCallStatus::Completed)
        .content(vec![text.clone().into(), text.into()])
        .raw_output(raw);
    let mut thread = Thread::new();
    thread.apply(&SessionUpdate::ToolCall(Box::new(call)).into());
    let mut view = ThreadView::default();
    view.toggle_all();
    let lines = draw_lines(&mut view, &thread, 40, 14);
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("one"), count("two")), (1, 1), "{lines:#?}");
    // The content looks as on a terminal, without a frame around it, and everything else is there.
    assert!(lines.contains(&"    one".to_owned()), "{lines:#?}");
    assert_eq!(count("exitCode"), 1, "{lines:#?}");
    assert_eq!(count("\"output\""), 0, "{lines:#?}");
}

/// Adds a tool call, nested under `parent` as Claude Agent does it.
fn add_call(thread: &mut Thread, id: &str, parent: Option<&str>, status: ToolCallStatus) {
    let mut call = ToolCall::new(id, format!("Call {id}"));
    call.kind = ToolKind::Read;
    call.status = status;
    let meta = parent.map(|parent| serde_json::json!({"claudeCode": {"parentToolUseId": parent}}));
    call.meta = meta.map(|meta| serde_json::from_value(meta).unwrap());
    thread.apply(&SessionUpdate::ToolCall(call.into()).into());
}

#[test]
fn nested_calls_are_drawn_once_under_their_parent() {
    let mut thread = Thread::new();
    add_message(&mut thread, "I look.");
    add_call(&mut thread, "a", None, ToolCallStatus::InProgress);
    add_call(&mut thread, "b", None, ToolCallStatus::Completed);
    for n in 1..=8 {
        add_call(
            &mut thread,
            &format!("a{n}"),
            Some("a"),
            ToolCallStatus::Completed,
        );
    }
    add_call(&mut thread, "a1x", Some("a1"), ToolCallStatus::Completed);
    let mut view = ThreadView::default();
    let lines = draw_lines(&mut view, &thread, 40, 14);
    let calls = |lines: &[String]| -> Vec<String> {
        let lines = lines.iter().filter(|line| !line.trim().is_empty());
        lines
            .map(|line| {
                line.replace("→ ", "")
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    };
    let shown = calls(&lines);
    assert_eq!(shown[0], "I look.");
    assert!(shown[1].contains("Call a"), "{shown:?}");
    assert_eq!(shown[2], "│ … 3 earlier lines");
    assert!(
        shown[3].starts_with("│ ") && shown[3].contains("Call a3"),
        "{shown:?}"
    );
    assert!(
        shown[8].contains("Call a8") && shown[9].contains("Call b"),
        "{shown:?}"
    );
    assert_eq!(shown.len(), 10);
    // The selection skips what is nested: from b up to a, which is then expanded.
    view.select(0, &thread);
    view.select(-1, &thread);
    view.toggle();
    let shown = calls(&draw_lines(&mut view, &thread, 40, 14));
    assert!(
        shown
            .iter()
            .any(|line| line.contains("│ │ ") && line.contains("Call a1x")),
        "{shown:?}"
    );
    // A change of something nested is drawn.
    add_call(&mut thread, "a9", Some("a"), ToolCallStatus::Completed);
    let shown = calls(&draw_lines(&mut view, &thread, 40, 20));
    assert!(
        shown.iter().any(|line| line.contains("Call a9")),
        "{shown:?}"
    );
}

use std::path::Path;

use acp::Thread;
use acp::v1::{ContentBlock, ContentChunk, SessionUpdate, ToolCall, ToolCallStatus, ToolKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ThreadView;
use crate::draw_context::DrawContext;
use crate::{Background, Colors, Theme};

fn says(thread: &mut Thread, text: &str) {
    let chunk = ContentChunk::new(ContentBlock::text(text));
    thread.apply(&SessionUpdate::AgentMessageChunk(chunk).into());
}

/// Creates a thread of messages. A thought follows each message, because adjacent messages would be joined.
fn messages(count: usize) -> Thread {
    let mut thread = Thread::new();
    for n in 0..count {
        let thought = ContentChunk::new(ContentBlock::text("hm"));
        thread.apply(&SessionUpdate::AgentThoughtChunk(thought).into());
        says(&mut thread, &format!("message {n}"));
    }
    thread
}

/// Draws the thread and returns the lines of the screen.
fn drawn(view: &mut ThreadView, thread: &Thread, width: u16, height: u16) -> Vec<String> {
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
fn the_end_is_shown_and_followed() {
    let mut thread = messages(100);
    let mut view = ThreadView::default();
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "  message 99");
    assert!(!view.has_more_below());
    says(&mut thread, "\n\nand more");
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[3..], ["  message 99", "", "  and more"]);
}

#[test]
fn what_one_has_scrolled_to_stays_while_more_comes() {
    let mut thread = messages(100);
    let mut view = ThreadView::default();
    drawn(&mut view, &thread, 40, 6);
    view.scroll_up(8);
    let before = drawn(&mut view, &thread, 40, 6);
    assert!(view.has_more_below());
    assert_eq!(before[5], "  message 97");
    says(&mut thread, "\n\nand more\n\nand still more");
    assert_eq!(drawn(&mut view, &thread, 40, 6), before);
    view.scroll_down(3);
    drawn(&mut view, &thread, 40, 6);
    view.scroll_down(1000);
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "  and still more");
    assert!(!view.has_more_below());
    // The view keeps following.
    says(&mut thread, "\n\nthe last");
    assert_eq!(drawn(&mut view, &thread, 40, 6)[5], "  the last");
}

#[test]
fn the_beginning_is_as_near_as_the_end() {
    let thread = messages(100);
    let mut view = ThreadView::default();
    drawn(&mut view, &thread, 40, 6);
    view.go_to_beginning();
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[0], "┊ ▸ thought: hm");
    assert_eq!(lines[2], "  message 0");
    view.scroll_up(10);
    assert_eq!(drawn(&mut view, &thread, 40, 6), lines);
    view.go_to_end();
    assert_eq!(drawn(&mut view, &thread, 40, 6)[5], "  message 99");
}

#[test]
fn a_long_thread_is_not_laid_out_as_a_whole() {
    let thread = messages(20_000);
    let mut view = ThreadView::default();
    drawn(&mut view, &thread, 40, 20);
    assert!(view.layouts.len() < 50, "{} items", view.layouts.len());
    view.scroll_up(10);
    drawn(&mut view, &thread, 40, 20);
    assert!(view.layouts.len() < 80, "{} items", view.layouts.len());
}

#[test]
fn a_thread_that_fits_begins_at_the_top() {
    let thread = messages(1);
    let mut view = ThreadView::default();
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[..3], ["┊ ▸ thought: hm", "", "  message 0"]);
    view.scroll_up(5);
    view.scroll_down(2);
    assert_eq!(drawn(&mut view, &thread, 40, 6), lines);
}

#[test]
fn an_item_is_chosen_brought_into_sight_and_opened() {
    let thread = messages(50);
    let mut view = ThreadView::default();
    drawn(&mut view, &thread, 40, 6);
    view.select(0, &thread);
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "┃ message 49");
    for _ in 0..9 {
        view.select(-1, &thread);
    }
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[0], "┃ ▸ thought: hm");
    view.toggle();
    assert_eq!(drawn(&mut view, &thread, 40, 6)[0], "┃ hm");
    view.toggle();
    view.deselect();
    assert_eq!(drawn(&mut view, &thread, 40, 6)[0], "┊ ▸ thought: hm");
}

#[test]
fn tool_calls_of_one_line_stand_together() {
    let mut thread = Thread::new();
    for (id, title) in [("a", "Read `one.rs`"), ("b", "Read `two.rs`")] {
        let call = ToolCall::new(id, title)
            .kind(ToolKind::Read)
            .status(ToolCallStatus::Completed);
        thread.apply(&SessionUpdate::ToolCall(Box::new(call)).into());
    }
    says(&mut thread, "both read");
    let mut view = ThreadView::default();
    let lines = drawn(&mut view, &thread, 40, 4);
    assert_eq!(
        lines,
        ["  ✓ ▤ Read one.rs", "  ✓ ▤ Read two.rs", "", "  both read"]
    );
}

#[test]
fn every_size_can_be_drawn() {
    let mut thread = messages(5);
    says(
        &mut thread,
        "\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n漢字 and 👩‍👩‍👧",
    );
    for width in 1..30 {
        for height in 0..8 {
            let mut view = ThreadView::default();
            drawn(&mut view, &thread, width, height);
            view.scroll_up(3);
            view.select(-2, &thread);
            drawn(&mut view, &thread, width, height);
        }
    }
}

/// Returns paragraphs that are all different.
fn long(from: usize, count: usize) -> String {
    let paragraph = |n| format!("paragraph {n}: {}\n\n", "some words of it ".repeat(8));
    (from..from + count).map(paragraph).collect()
}

#[test]
fn who_goes_up_into_a_long_message_comes_to_its_end() {
    let mut thread = Thread::new();
    says(&mut thread, &long(0, 6_000));
    let thought = ContentChunk::new(ContentBlock::text("hm"));
    thread.apply(&SessionUpdate::AgentThoughtChunk(thought).into());
    says(&mut thread, "and then");
    let mut view = ThreadView::default();
    let before = drawn(&mut view, &thread, 60, 10);
    assert_eq!(before[9], "  and then");
    view.scroll_up(6);
    let mut drawings = 0;
    while view.is_unfinished() || drawings == 0 {
        // The item is not laid out at once, and nothing else is shown in the meantime.
        drawings += 1;
        let now = drawn(&mut view, &thread, 60, 10);
        if view.is_unfinished() {
            assert_eq!(now[9], before[9]);
        }
    }
    let lines = drawn(&mut view, &thread, 60, 10);
    assert!(drawings > 3, "{drawings}");
    assert!(
        lines.iter().any(|line| line.contains("paragraph 5999")),
        "{lines:?}"
    );
    // The view stays there at another width.
    view.scroll_up(3_000);
    drawn(&mut view, &thread, 60, 10);
    for _ in 0..2 {
        drawn(&mut view, &thread, 61, 10);
    }
    assert!(view.is_unfinished());
    view.scroll_down(1);
    while view.is_unfinished() {
        drawn(&mut view, &thread, 61, 10);
    }
    let lines = drawn(&mut view, &thread, 61, 10);
    assert!(
        lines.iter().any(|line| line.contains("paragraph 5")),
        "{lines:?}"
    );
    assert!(view.has_more_below());
}

#[test]
fn pages_can_be_turned_while_an_answer_comes() {
    let mut thread = Thread::new();
    let mut view = ThreadView::default();
    let mut said = 0;
    for n in 0..60 {
        says(&mut thread, &long(said, 50));
        said += 50;
        if n % 6 == 5 {
            thread.apply(
                &SessionUpdate::ToolCall(ToolCall::new(format!("call-{n}"), "look").into()).into(),
            );
        }
        drawn(&mut view, &thread, 60, 12);
        if n == 20 {
            for _ in 0..6 {
                view.scroll_up(10);
                drawn(&mut view, &thread, 60, 12);
            }
        }
        if n > 20 {
            for up in [true, true, false, false] {
                let before = drawn(&mut view, &thread, 60, 12);
                if up {
                    view.scroll_up(10)
                } else {
                    view.scroll_down(10)
                }
                let mut after = drawn(&mut view, &thread, 60, 12);
                for _ in 0..200 {
                    if after != before {
                        break;
                    }
                    after = drawn(&mut view, &thread, 60, 12);
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
fn what_a_command_printed_is_shown_once_in_an_opened_card() {
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
    let lines = drawn(&mut view, &thread, 40, 14);
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("one"), count("two")), (1, 1), "{lines:#?}");
    // The content looks as on a terminal, without a frame around it, and everything else is there.
    assert!(lines.contains(&"    one".to_owned()), "{lines:#?}");
    assert_eq!(count("exitCode"), 1, "{lines:#?}");
    assert_eq!(count("\"output\""), 0, "{lines:#?}");
}

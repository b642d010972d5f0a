use std::path::Path;

use acp::Thread;
use acp::v1::{ContentBlock, ContentChunk, SessionUpdate, ToolCall, ToolCallStatus, ToolKind};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::ThreadView;
use crate::look::Look;
use crate::{Background, Colors, Theme};

fn says(thread: &mut Thread, text: &str) {
    let chunk = ContentChunk::new(ContentBlock::text(text));
    thread.apply_v1(&SessionUpdate::AgentMessageChunk(chunk));
}

/// One message after the other, with a thought between them, or they would be one.
fn messages(count: usize) -> Thread {
    let mut thread = Thread::new();
    for n in 0..count {
        let thought = ContentChunk::new(ContentBlock::text("hm"));
        thread.apply_v1(&SessionUpdate::AgentThoughtChunk(thought));
        says(&mut thread, &format!("message {n}"));
    }
    thread
}

/// What is drawn, line by line.
fn drawn(view: &mut ThreadView, thread: &Thread, width: u16, height: u16) -> Vec<String> {
    let theme = Theme::new(Background::Dark, Colors::None);
    let look = Look {
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
    assert!(!view.is_behind());
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
    assert!(view.is_behind());
    assert_eq!(before[5], "  message 97");
    says(&mut thread, "\n\nand more\n\nand still more");
    assert_eq!(drawn(&mut view, &thread, 40, 6), before);
    view.scroll_down(3);
    drawn(&mut view, &thread, 40, 6);
    view.scroll_down(1000);
    let lines = drawn(&mut view, &thread, 40, 6);
    assert_eq!(lines[5], "  and still more");
    assert!(!view.is_behind());
    // And goes on following.
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
    assert!(view.laid.len() < 50, "{} items", view.laid.len());
    view.scroll_up(10);
    drawn(&mut view, &thread, 40, 20);
    assert!(view.laid.len() < 80, "{} items", view.laid.len());
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
        thread.apply_v1(&SessionUpdate::ToolCall(Box::new(call)));
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

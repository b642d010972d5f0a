use super::*;
use std::path::Path;

use proptest::prelude::*;
use ratatui::buffer::{Buffer, CellWidth};

use crate::Theme;
use crate::draw_context::DrawContext;

fn picker_item(n: u32, label: &str, detail: &str, group: &str) -> PickerItem<u32> {
    PickerItem {
        detail: detail.to_owned(),
        group: (!group.is_empty()).then(|| group.to_owned()),
        ..PickerItem::new(n, label)
    }
}

fn sample_models() -> Vec<PickerItem<u32>> {
    let mut items = vec![
        picker_item(1, "opus", "the largest", "Anthropic"),
        picker_item(2, "sonnet", "quick", "Anthropic"),
        picker_item(3, "日本モデル", "wide 👩\u{200d}👧", "Others"),
        picker_item(4, "gone", "", "Others"),
    ];
    items[1].is_current = true;
    items[3].disabled = Some("no key".to_owned());
    items
}

fn press_key(picker: &mut Picker<u32>, code: KeyCode) -> PickerOutcome<u32> {
    picker.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_text(picker: &mut Picker<u32>, text: &str) {
    for c in text.chars() {
        assert_eq!(press_key(picker, KeyCode::Char(c)), PickerOutcome::Changed);
    }
}

fn draw_picker(picker: &mut Picker<u32>, width: u16, height: u16) -> (Buffer, Option<Position>) {
    let theme = Theme::default();
    let look = DrawContext {
        theme: &theme,
        cwd: Path::new("/"),
        frame: 3,
        images: None,
    };
    let area = Rect::new(0, 0, width, height);
    // The screen below is full of wide characters.
    let mut buf = Buffer::empty(area);
    for y in 0..height {
        buf.set_string(0, y, "字".repeat(usize::from(width / 2)), theme.text);
    }
    let cursor = picker.draw(area, &mut buf, &look);
    (buf, cursor)
}

/// Returns the rows inside the popup's frame.
fn buffer_rows(buf: &Buffer) -> Vec<String> {
    let mut rows = Vec::new();
    for y in 0..buf.area.height {
        let mut row = String::new();
        let mut skip = 0;
        for x in 0..buf.area.width {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buf[(x, y)].symbol();
            skip = symbol.cell_width().saturating_sub(1);
            row.push_str(symbol);
        }
        let begin = row.find(['│', '╭', '╰']);
        let end = row.rfind(['│', '╮', '╯']);
        if let (Some(begin), Some(end)) = (begin, end) {
            rows.push(row[begin..end].trim_matches(['│', ' ']).to_owned());
        }
    }
    rows
}

fn shown_rows(picker: &mut Picker<u32>) -> Vec<String> {
    let rows = buffer_rows(&draw_picker(picker, 80, 24).0);
    // Between the line below the filter and the frame.
    rows[3..rows.len() - 1].to_vec()
}

#[test]
fn picker_is_a_window_with_groups_and_the_current_item_selected() {
    let mut picker = Picker::new("Model", sample_models()).with_action('d', "delete");
    let (buf, cursor) = draw_picker(&mut picker, 80, 24);
    let rows = buffer_rows(&buf);
    assert!(rows[0].starts_with("╭ Model ─"), "{rows:?}");
    assert!(
        rows[1].starts_with("> type to filter") && rows[1].ends_with('4'),
        "{rows:?}"
    );
    assert_eq!(
        rows[3..9],
        [
            "Anthropic",
            "opus        the largest",
            "● sonnet      quick",
            "Others",
            "日本モデル  wide 👩\u{200d}👧",
            "gone  (no key)"
        ]
    );
    assert!(
        rows[9].starts_with("╰ enter choose · ctrl-d delete · esc close ─"),
        "{rows:?}"
    );
    assert_eq!(picker.selected(), Some(&2));
    let cursor = cursor.unwrap();
    assert_eq!(buf[(cursor.x - 2, cursor.y)].symbol(), ">");
    // The window is in the middle, and no wide character of the screen is cut in half.
    let corner = buf
        .content()
        .iter()
        .position(|cell| cell.symbol() == "╭")
        .unwrap();
    let (x, y) = (corner % 80, corner / 80);
    assert!(x > 0 && y == (24 - 10) / 2, "{x} {y}");
    for y in 0..24_u16 {
        for x in 0..79_u16 {
            if buf[(x, y)].symbol().cell_width() == 2 {
                assert!(matches!(buf[(x + 1, y)].symbol(), " " | ""), "{x} {y}");
            }
        }
    }
    assert_eq!(
        press_key(&mut picker, KeyCode::Enter),
        PickerOutcome::Picked(2)
    );
    assert_eq!(press_key(&mut picker, KeyCode::Esc), PickerOutcome::Closed);
}

#[test]
fn typing_filters_and_arrows_select() {
    let mut picker = Picker::new("Model", sample_models()).with_action('d', "delete");
    type_text(&mut picker, "on");
    assert_eq!(shown_rows(&mut picker).len(), 2);
    let theme = Theme::default();
    let (buf, _) = draw_picker(&mut picker, 80, 24);
    let at = buf
        .content()
        .windows(6)
        .position(|cells| cells.iter().map(|cell| cell.symbol()).collect::<String>() == "sonnet");
    let at = at.unwrap();
    let is_marked = |at: usize| {
        let style = buf.content()[at].style();
        style.add_modifier.contains(theme.matched.add_modifier)
    };
    assert!(is_marked(at + 1) && is_marked(at + 2) && !is_marked(at + 3));
    // The group is shown in the row where there are no headings.
    assert!(
        shown_rows(&mut picker)
            .iter()
            .any(|row| row.ends_with("Anthropic"))
    );
    type_text(&mut picker, "zzz");
    assert_eq!(shown_rows(&mut picker), ["No matches."]);
    assert_eq!(
        press_key(&mut picker, KeyCode::Enter),
        PickerOutcome::Changed
    );
    let delete = KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL);
    assert_eq!(picker.handle_key(delete), PickerOutcome::Changed);
    // The first Escape clears the filter.
    assert_eq!(press_key(&mut picker, KeyCode::Esc), PickerOutcome::Changed);
    assert_eq!(picker.selected(), Some(&2));
    assert_eq!(picker.handle_key(delete), PickerOutcome::Action('d', 2));
    for (code, selected) in [
        (KeyCode::Home, 1),
        (KeyCode::Up, 4),
        (KeyCode::Down, 1),
        (KeyCode::End, 4),
    ] {
        assert_eq!(press_key(&mut picker, code), PickerOutcome::Changed);
        assert_eq!(picker.selected(), Some(&selected), "{code:?}");
    }
    // A disabled item cannot be chosen.
    assert_eq!(
        press_key(&mut picker, KeyCode::Enter),
        PickerOutcome::Changed
    );
    let other = KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL);
    assert_eq!(picker.handle_key(other), PickerOutcome::Ignored);
    picker.paste("opus\n");
    assert_eq!(
        press_key(&mut picker, KeyCode::Enter),
        PickerOutcome::Picked(1)
    );
}

#[test]
fn added_items_keep_the_selection() {
    let page = |from: u32, to: u32| -> Vec<PickerItem<u32>> {
        (from..to)
            .map(|n| PickerItem::new(n, format!("session {n}")))
            .collect()
    };
    let mut picker = Picker::new("Sessions", Vec::new());
    picker.set_loading(true);
    assert_eq!(shown_rows(&mut picker), ["⠸ loading…"]);
    picker.set_items(page(10, 60));
    draw_picker(&mut picker, 80, 24);
    press_key(&mut picker, KeyCode::PageDown);
    let selected = picker.selected().copied().unwrap();
    assert!(selected > 20, "{selected}");
    picker.set_items(page(0, 100));
    assert_eq!(picker.selected(), Some(&selected));
    let row = format!("› session {selected}");
    assert!(shown_rows(&mut picker).contains(&row));
    picker.set_loading(false);
    picker.set_error(Some("the agent\u{1b}[2J has gone".to_owned()));
    let rows = shown_rows(&mut picker);
    assert_eq!(rows.last().unwrap(), "the agent has gone");
    press_key(&mut picker, KeyCode::End);
    assert!(shown_rows(&mut picker).contains(&"› session 99".to_owned()));
    picker.set_items(page(0, 5));
    assert_eq!(picker.selected(), Some(&4));
    picker.set_items(Vec::new());
    picker.set_error(None);
    assert_eq!(shown_rows(&mut picker), ["No items."]);
    assert_eq!(picker.selected(), None);
}

#[test]
fn click_selects_the_item_under_the_mouse() {
    let mut picker = Picker::new("Model", sample_models());
    let (buf, _) = draw_picker(&mut picker, 80, 24);
    let at = buf
        .content()
        .windows(4)
        .position(|cells| cells.iter().map(|cell| cell.symbol()).collect::<String>() == "opus");
    let at = u16::try_from(at.unwrap()).unwrap();
    let at = Position::new(at % 80, at / 80);
    picker.scroll(2);
    picker.select_at(at);
    assert_eq!(picker.selected(), Some(&1));
    // A heading cannot be selected, and a click outside the window is not for the picker.
    picker.scroll(1);
    let before = picker.selected().copied();
    picker.select_at(Position::new(at.x, at.y - 1));
    picker.select_at(Position::new(0, 0));
    assert_eq!(picker.selected().copied(), before);
    picker.scroll(-9);
    picker.scroll(2);
    assert_eq!(picker.selected(), Some(&3));
    picker.scroll(-9);
    assert_eq!(picker.selected(), Some(&1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_label_fits_any_size(
        labels in prop::collection::vec("(\\PC|[\u{0}-\u{20}\u{1b}\u{202e}日👩\u{200d}\u{301}]){0,30}", 0..20),
        filter in "\\PC{0,3}",
        width in 1_u16..200,
        height in 1_u16..40,
        down in 0..25,
    ) {
        let items = (0..).zip(&labels).map(|(n, label)| picker_item(n, label, label, label)).collect();
        let mut picker = Picker::new("T", items);
        picker.paste(&filter);
        picker.set_error(labels.first().cloned());
        for _ in 0..down {
            press_key(&mut picker, KeyCode::Down);
        }
        let (buf, cursor) = draw_picker(&mut picker, width, height);
        for cell in buf.content() {
            let hostile = |c: char| c.is_control() || c == '\u{202e}';
            prop_assert!(!cell.symbol().contains(hostile));
        }
        if let Some(cursor) = cursor {
            prop_assert!(buf.area.contains(cursor));
        }
    }
}

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ImageFormat, Rgba, RgbaImage};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Style};

use super::*;

/// Returns an image whose upper half is red and whose lower half is blue.
pub(crate) fn two_color_image(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |_, y| {
        if y < height / 2 {
            Rgba([255, 0, 0, 255])
        } else {
            Rgba([0, 0, 255, 255])
        }
    })
}

/// Encodes an image as PNG in base64.
pub(crate) fn encode_base64_png(image: &RgbaImage) -> String {
    let mut png = Cursor::new(Vec::new());
    image.write_to(&mut png, ImageFormat::Png).unwrap();
    STANDARD.encode(png.into_inner())
}

const CELL_SIZE: PixelSize = PixelSize {
    width: 10,
    height: 20,
};

fn pixel_size(width: u32, height: u32) -> PixelSize {
    PixelSize { width, height }
}

#[test]
fn image_takes_no_more_cells_than_needed_or_available() {
    let canvas =
        ImageCanvas::new(ImageProtocol::Kitty { tmux: false }, Some(CELL_SIZE)).for_rows(24);
    assert_eq!(canvas.cells(pixel_size(100, 100), 76), Some((10, 5)));
    assert_eq!(canvas.cells(pixel_size(1, 1), 76), Some((1, 1)));
    assert_eq!(canvas.cells(pixel_size(101, 101), 76), Some((11, 6)));
    // As wide as the columns allow, and as high as its proportions require.
    assert_eq!(canvas.cells(pixel_size(2000, 400), 50), Some((50, 5)));
    // Not higher than half the screen.
    assert_eq!(canvas.cells(pixel_size(100, 10_000), 76), Some((1, 12)));
    assert_eq!(canvas.cells(pixel_size(4000, 1), 76), Some((76, 1)));
    assert_eq!(
        canvas.cells(pixel_size(u32::MAX, u32::MAX), 76),
        Some((24, 12))
    );
    assert_eq!(canvas.cells(pixel_size(0, 10), 76), None);
    // An image that is drawn as one sequence per row is never one column wide, or the cursor would be misplaced.
    let sixel =
        ImageCanvas::new(ImageProtocol::Sixel { tmux: false }, Some(CELL_SIZE)).for_rows(24);
    assert_eq!(sixel.cells(pixel_size(1, 1), 76), Some((2, 1)));
    assert_eq!(sixel.cells(pixel_size(1, 1), 1), None);
    // With half blocks there are two pixels in a cell.
    let blocks =
        ImageCanvas::new(ImageProtocol::Blocks(ColorDepth::Rgb), Some(CELL_SIZE)).for_rows(40);
    assert_eq!(blocks.cells(pixel_size(16, 16), 76), Some((16, 8)));
    assert_eq!(blocks.cells(pixel_size(640, 480), 76), Some((53, 20)));
}

/// A store that shows an image of 4×4 cells.
struct ImageScene {
    store: ImageStore,
    key: ImageKey,
    data: String,
}

impl ImageScene {
    fn new(way: ImageProtocol) -> Self {
        let canvas = ImageCanvas::new(way, Some(CELL_SIZE)).for_rows(24);
        let mut store = ImageStore::default();
        store.set_canvas(Some(canvas));
        let image = two_color_image(4 * canvas.cell_size.width, 4 * canvas.cell_size.height);
        let key = ImageKey {
            content_hash: 1,
            columns: 4,
            rows: 4,
            canvas,
        };
        Self {
            store,
            key,
            data: encode_base64_png(&image),
        }
    }

    fn row(&self, row: u16, y: u16) -> ImageRow {
        ImageRow {
            key: self.key,
            row,
            position: Position::new(2, y),
            item: 0,
            block: 0,
        }
    }

    /// Draws these rows at the top of the screen, then calls `over`, which may draw over them.
    fn draw_frame(&mut self, rows: std::ops::Range<u16>, over: impl FnOnce(&mut Buffer)) -> Buffer {
        let mut buf = Buffer::empty(Rect::new(0, 0, 10, 6));
        let rows: Vec<ImageRow> = rows.zip(0..).map(|(row, y)| self.row(row, y)).collect();
        self.store.begin_frame();
        let data = self.data.clone();
        self.store
            .paint(&rows, &mut buf, Style::new(), |_| Some(data.clone()));
        over(&mut buf);
        self.store.finish_frame(&mut buf);
        buf
    }

    /// Decodes the requested images and returns their number.
    fn run_decode_tasks(&mut self) -> usize {
        let wanted = self.store.take_tasks();
        let count = wanted.len();
        for task in wanted {
            self.store.add_result(task.decode());
        }
        count
    }
}

#[test]
fn visible_image_is_decoded_once_and_drawn_in_its_colors() {
    let mut scene = ImageScene::new(ImageProtocol::Blocks(ColorDepth::Rgb));
    let before = scene.draw_frame(0..4, |_| {});
    assert_eq!(before[(2, 0)].symbol(), " ");
    scene.draw_frame(0..4, |_| {});
    assert_eq!(scene.run_decode_tasks(), 1);
    let buf = scene.draw_frame(0..4, |_| {});
    assert_eq!(scene.run_decode_tasks(), 0);
    let (red, blue) = (Color::Rgb(255, 0, 0), Color::Rgb(0, 0, 255));
    for x in 2..6 {
        assert_eq!((buf[(x, 0)].fg, buf[(x, 0)].bg), (red, red));
        assert_eq!((buf[(x, 3)].fg, buf[(x, 3)].bg), (blue, blue));
    }
    assert_eq!(buf[(1, 0)].symbol(), " ");
    assert_eq!(buf[(6, 0)].symbol(), " ");
    // Only its lower half, because the upper half is scrolled out.
    let buf = scene.draw_frame(2..4, |_| {});
    assert_eq!(buf[(2, 0)].fg, blue);
    assert_eq!(buf[(2, 2)].symbol(), " ");
}

#[test]
fn undecodable_image_shows_the_reason_in_its_place() {
    let mut scene = ImageScene::new(ImageProtocol::Blocks(ColorDepth::Rgb));
    scene.data = "AAAA".to_owned();
    scene.draw_frame(0..4, |_| {});
    scene.run_decode_tasks();
    let buf = scene.draw_frame(0..4, |_| {});
    let first: String = (2..10).map(|x| buf[(x, 0)].symbol()).collect();
    assert_eq!(first, "cannot s");
}

#[test]
fn sixel_rows_are_drawn_completely_or_not_at_all() {
    let mut scene = ImageScene::new(ImageProtocol::Sixel { tmux: false });
    scene.draw_frame(0..4, |_| {});
    scene.run_decode_tasks();
    // Something covers a corner of the second row.
    let buf = scene.draw_frame(0..4, |buf| {
        buf[(5, 1)].set_symbol("╭");
    });
    assert!(
        buf[(2, 0)]
            .symbol()
            .starts_with("\x1b[4X\x1bP0;1q\"1;1;40;20")
    );
    assert_eq!(buf[(2, 1)].symbol(), " ");
    assert_eq!(buf[(3, 1)].symbol(), " ");
    assert_eq!(buf[(5, 1)].symbol(), "╭");
    assert!(buf[(2, 2)].symbol().contains("\x1bP0;1q"));
}

#[test]
fn cells_of_removed_sixels_are_redrawn() {
    let mut scene = ImageScene::new(ImageProtocol::Sixel { tmux: false });
    scene.draw_frame(0..4, |_| {});
    scene.run_decode_tasks();
    let shown = scene.draw_frame(0..4, |_| {});
    // The next drawing writes each of these cells, even if they seem to have been empty before.
    let empty = Buffer::empty(shown.area);
    let written: Vec<(u16, u16)> = shown.diff_iter(&empty).map(|(x, y, _)| (x, y)).collect();
    for y in 0..4 {
        for x in 2..6 {
            assert!(written.contains(&(x, y)), "{x} {y}: {written:?}");
        }
    }
    // The same if something covers the image.
    let covered = scene.draw_frame(0..4, |buf| {
        buf[(5, 1)].set_symbol("╭");
    });
    let written: Vec<(u16, u16)> = shown.diff_iter(&covered).map(|(x, y, _)| (x, y)).collect();
    assert_eq!(written, [(2, 1), (3, 1), (4, 1), (5, 1)]);
}

#[test]
fn kitty_gets_visible_images_and_deletes_unneeded_ones() {
    let mut scene = ImageScene::new(ImageProtocol::Kitty { tmux: false });
    let sent = |scene: &mut ImageScene| {
        let mut out = Vec::new();
        scene.store.send(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    scene.draw_frame(0..4, |_| {});
    scene.run_decode_tasks();
    let buf = scene.draw_frame(1..4, |_| {});
    assert!(buf[(2, 0)].symbol().starts_with('\u{10eeee}'));
    let first = sent(&mut scene);
    assert!(first.starts_with("\x1b_Gq=2,i="), "{first}");
    assert_eq!(sent(&mut scene), "", "once");
    let id = first[7..].split_once(',').unwrap().0.to_owned();
    // Many others follow, each visible once.
    let mut told = String::new();
    for content in 2..=80 {
        scene.key.content_hash = content;
        scene.draw_frame(0..4, |_| {});
        scene.run_decode_tasks();
        scene.draw_frame(0..4, |_| {});
        told += &sent(&mut scene);
    }
    assert!(told.contains(&format!("\x1b_Gq=2,a=d,d=I,{id}\x1b\\")));
    scene.key.content_hash = 1;
    scene.draw_frame(0..4, |_| {});
    assert_eq!(
        scene.run_decode_tasks(),
        1,
        "the image was evicted and must be decoded again"
    );
}

#[test]
fn commands_are_wrapped_for_tmux() {
    let command = "\x1b_Gx\x1b\\".to_owned();
    assert_eq!(
        wrap_for_tmux(command.clone(), true),
        "\x1bPtmux;\x1b\x1b_Gx\x1b\x1b\\\x1b\\"
    );
    assert_eq!(wrap_for_tmux(command.clone(), false), command);
}

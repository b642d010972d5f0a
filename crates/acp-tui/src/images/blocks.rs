//! Draws images with half-block characters. Each cell shows two pixels, one above the other.

use image::RgbaImage;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Style};

use super::ColorDepth;

/// The minimum alpha value at which a pixel is drawn.
const MIN_ALPHA: u8 = 128;

/// Draws one cell of an image with half blocks. `column` and `row` are the cell's position in the image.
pub(super) fn paint_cell(
    image: &RgbaImage,
    depth: ColorDepth,
    column: u16,
    row: u16,
    cell: &mut Cell,
) {
    let pixel = |y: u32| {
        let pixel = image.get_pixel_checked(u32::from(column), y)?;
        let [r, g, b, alpha] = pixel.0;
        (alpha >= MIN_ALPHA).then(|| match depth {
            ColorDepth::Rgb => Color::Rgb(r, g, b),
            ColorDepth::Indexed => Color::Indexed(nearest_indexed_color(r, g, b)),
        })
    };
    let (upper, lower) = (pixel(u32::from(row) * 2), pixel(u32::from(row) * 2 + 1));
    let (symbol, style) = match (upper, lower) {
        (Some(upper), Some(lower)) => ("▀", Style::new().fg(upper).bg(lower)),
        (Some(upper), None) => ("▀", Style::new().fg(upper)),
        (None, Some(lower)) => ("▄", Style::new().fg(lower)),
        (None, None) => (" ", Style::new()),
    };
    cell.set_symbol(symbol).set_style(style);
}

/// Returns the index of the nearest color that all 256-color terminals share. These colors are a 6×6×6 cube and 24
/// grays.
fn nearest_indexed_color(r: u8, g: u8, b: u8) -> u8 {
    const CUBE_LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level = |value: u8| match value {
        0..48 => 0,
        48..115 => 1,
        _ => (value - 35) / 40,
    };
    let far = |one: u8, other: u8| u32::from(one.abs_diff(other)).pow(2);
    let distance = |to: [u8; 3]| far(r, to[0]) + far(g, to[1]) + far(b, to[2]);
    let steps = [level(r), level(g), level(b)];
    let cube = steps.map(|step| CUBE_LEVELS.get(usize::from(step)).copied().unwrap_or(255));
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = u8::try_from((mean.max(8) - 3) / 10).unwrap_or(23).min(23);
    let shade = 8 + 10 * grey;
    if distance([shade; 3]) < distance(cube) {
        232 + grey
    } else {
        16 + 36 * steps[0] + 6 * steps[1] + steps[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    #[test]
    fn two_pixels_become_one_cell() {
        let mut image = RgbaImage::new(2, 3);
        image.put_pixel(0, 0, Rgba([1, 2, 3, 255]));
        image.put_pixel(0, 1, Rgba([4, 5, 6, 255]));
        image.put_pixel(0, 2, Rgba([7, 8, 9, 255]));
        image.put_pixel(1, 1, Rgba([4, 5, 6, 255]));
        let cell = |column, row| {
            let mut cell = Cell::default();
            paint_cell(&image, ColorDepth::Rgb, column, row, &mut cell);
            (cell.symbol().to_owned(), cell.fg, cell.bg)
        };
        let (one, two) = (Color::Rgb(1, 2, 3), Color::Rgb(4, 5, 6));
        assert_eq!(cell(0, 0), ("▀".to_owned(), one, two));
        let three = Color::Rgb(7, 8, 9);
        assert_eq!(cell(0, 1), ("▀".to_owned(), three, Color::Reset));
        assert_eq!(cell(1, 0), ("▄".to_owned(), two, Color::Reset));
        assert_eq!(cell(1, 1).0, " ");
    }

    #[test]
    fn nearest_palette_color_is_chosen() {
        assert_eq!(nearest_indexed_color(0, 0, 0), 16);
        assert_eq!(nearest_indexed_color(255, 255, 255), 231);
        assert_eq!(nearest_indexed_color(255, 0, 0), 196);
        assert_eq!(nearest_indexed_color(0, 95, 135), 24);
        assert_eq!(nearest_indexed_color(128, 128, 128), 244);
        assert_eq!(nearest_indexed_color(9, 8, 8), 232);
    }
}

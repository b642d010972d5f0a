//! Encodes images as sixels: six rows of pixels at a time, one color after another.
//! <https://vt100.net/docs/vt3xx-gp/chapter14.html>

use std::fmt::Write as _;

use color_quant::NeuQuant;
use image::RgbaImage;

/// The maximum number of colors in an image. Most current terminals with sixel support allow this many.
const MAX_COLORS: usize = 256;

/// The distance between the pixels that are sampled to choose colors.
const COLOR_SAMPLE_INTERVAL: i32 = 10;

/// The minimum alpha value at which a pixel is drawn.
const MIN_ALPHA: u8 = 128;

/// Encodes an image as one escape sequence per row of cells, so that each row can be drawn on its own.
pub(super) fn encode_rows(image: &RgbaImage, cell_height: u32) -> Vec<String> {
    let palette = NeuQuant::new(COLOR_SAMPLE_INTERVAL, MAX_COLORS, image.as_raw());
    let (width, height) = image.dimensions();
    // A pixel is looked up at most twice; a transparent one has no color.
    let indexed: Vec<Option<u8>> = image
        .pixels()
        .map(|pixel| {
            let opaque = pixel.0[3] >= MIN_ALPHA;
            opaque.then(|| u8::try_from(palette.index_of(&pixel.0)).unwrap_or(0))
        })
        .collect();
    let colors = palette.color_map_rgb();
    let line = usize::try_from(width).unwrap_or(usize::MAX);
    let tall = usize::try_from(cell_height).unwrap_or(usize::MAX);
    let stride = line.saturating_mul(tall).max(1);
    let rows = indexed.chunks(stride);
    let rows = rows.take(usize::try_from(height.div_ceil(cell_height.max(1))).unwrap_or(0));
    rows.map(|pixels| encode_strip(pixels, line, &colors))
        .collect()
}

/// Encodes one row of cells.
fn encode_strip(pixels: &[Option<u8>], width: usize, colors: &[u8]) -> String {
    let height = pixels.len() / width.max(1);
    // Pixels that are not drawn stay as they are; pixels are square.
    let mut out = format!("\x1bP0;1q\"1;1;{width};{height}");
    let mut used = [false; MAX_COLORS];
    for index in pixels.iter().flatten() {
        if let Some(used) = used.get_mut(usize::from(*index)) {
            *used = true;
        }
    }
    for (index, _) in used.iter().enumerate().filter(|(_, used)| **used) {
        if let Some([r, g, b]) = colors.get(index * 3..index * 3 + 3) {
            let percent = |value: u8| (u16::from(value) * 100 + 127) / 255;
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "#{index};2;{};{};{}",
                percent(*r),
                percent(*g),
                percent(*b)
            );
        }
    }
    for band in pixels.chunks(width.saturating_mul(6).max(1)) {
        encode_band(band, width, &mut out);
        out.push('-');
    }
    out.push_str("\x1b\\");
    out
}

/// Encodes a band, which is six rows of pixels.
fn encode_band(band: &[Option<u8>], width: usize, out: &mut String) {
    // For each color, in the order of the palette: a bit mask per column of the pixels that have it.
    let mut columns: Vec<Option<Vec<u8>>> = vec![None; MAX_COLORS];
    for (at, index) in band.iter().enumerate() {
        let Some(index) = index else { continue };
        let color = columns.get_mut(usize::from(*index));
        if let Some(color) = color {
            let color = color.get_or_insert_with(|| vec![0; width]);
            if let Some(bits) = color.get_mut(at % width) {
                *bits |= 1 << (at / width);
            }
        }
    }
    let mut begun = false;
    for (index, bits) in columns.iter().enumerate() {
        let Some(bits) = bits else { continue };
        if std::mem::replace(&mut begun, true) {
            // Return to the left edge.
            out.push('$');
        }
        let _ = write!(out, "#{index}");
        for run in bits.chunk_by(|one, other| one == other) {
            let sign = char::from(b'?' + run.first().copied().unwrap_or(0));
            match run.len() {
                n @ 0..=3 => out.extend(std::iter::repeat_n(sign, n)),
                n => {
                    let _ = write!(out, "!{n}{sign}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgba;

    #[test]
    fn each_row_of_cells_is_its_own_image() {
        let red = RgbaImage::from_pixel(8, 16, Rgba([255, 0, 0, 255]));
        let rows = encode_rows(&red, 8);
        assert_eq!(rows.len(), 2);
        for row in rows {
            let (head, rest) = row.split_once('#').unwrap();
            assert_eq!(head, "\x1bP0;1q\"1;1;8;8");
            let (color, rest) = rest.split_once('#').unwrap();
            let (index, color) = color.split_once(';').unwrap();
            assert_eq!(color, "2;100;0;0");
            // Six rows of pixels, then two.
            let six = format!("{index}!8~-#{index}!8B-\x1b\\");
            assert_eq!(rest, six);
        }
    }

    #[test]
    fn transparent_pixels_are_not_drawn() {
        let mut image = RgbaImage::new(4, 6);
        image.put_pixel(1, 2, Rgba([255, 255, 255, 255]));
        let row = encode_rows(&image, 6).remove(0);
        let (_, drawn) = row.rsplit_once('#').unwrap();
        let (_, drawn) = drawn.split_at(drawn.find(['?', '!']).unwrap());
        assert_eq!(drawn, "?C??-\x1b\\");
    }

    #[test]
    fn colors_are_preserved() {
        let image = crate::images::tests::two_color_image(64, 60);
        let row = encode_rows(&image, 60).remove(0);
        assert!(row.contains(";2;100;0;0"), "{row}");
        assert!(row.contains(";2;0;0;100"), "{row}");
    }
}

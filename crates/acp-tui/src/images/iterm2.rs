//! Encodes images for iTerm2's inline image protocol: a base64 file with its size in cells.
//! <https://iterm2.com/documentation-images.html>

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder as _, RgbaImage, imageops};

/// Encodes an image as one escape sequence per row of cells, so that each row can be drawn on its own.
pub(super) fn encode_rows(
    image: &RgbaImage,
    columns: u16,
    cell_height: u32,
) -> Result<Vec<String>, String> {
    let (width, height) = image.dimensions();
    let count = height / cell_height.max(1);
    let mut rows = Vec::new();
    for row in 0..count {
        let part = imageops::crop_imm(image, 0, row * cell_height, width, cell_height);
        let png = encode_png(&part.to_image())?;
        let size = png.len();
        let data = STANDARD.encode(png);
        rows.push(format!(
            "\x1b]1337;File=inline=1;size={size};width={columns};height=1;preserveAspectRatio=0;doNotMoveCursor=1:{data}\x07"
        ));
    }
    Ok(rows)
}

/// Encodes an image as PNG.
pub(super) fn encode_png(image: &RgbaImage) -> Result<Vec<u8>, String> {
    let mut png = Cursor::new(Vec::new());
    let encoder =
        PngEncoder::new_with_quality(&mut png, CompressionType::Fast, FilterType::Adaptive);
    encoder
        .write_image(
            image.as_raw(),
            image.width(),
            image.height(),
            ExtendedColorType::Rgba8,
        )
        .map_err(|e| e.to_string())?;
    Ok(png.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_an_image_file_of_one_row() {
        let image = crate::images::tests::two_color_image(40, 40);
        let rows = encode_rows(&image, 5, 20).unwrap();
        assert_eq!(rows.len(), 2);
        for (row, color) in rows.iter().zip([[255, 0, 0, 255], [0, 0, 255, 255]]) {
            let head = "\x1b]1337;File=inline=1;size=";
            let (size, rest) = row.strip_prefix(head).unwrap().split_once(';').unwrap();
            let (said, data) = rest.split_once(':').unwrap();
            assert_eq!(
                said,
                "width=5;height=1;preserveAspectRatio=0;doNotMoveCursor=1"
            );
            let png = STANDARD.decode(data.strip_suffix('\x07').unwrap()).unwrap();
            assert_eq!(png.len().to_string(), size);
            let read = image::load_from_memory(&png).unwrap().into_rgba8();
            assert_eq!(read.dimensions(), (40, 20));
            assert_eq!(read.get_pixel(10, 10).0, color);
        }
    }
}

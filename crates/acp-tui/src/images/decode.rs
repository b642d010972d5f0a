//! Decodes images and scales them to their display size.

use std::cell::Cell;
use std::io::Cursor;
use std::panic::AssertUnwindSafe;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::imageops::{self, FilterType};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder as _, ImageReader, Limits, RgbaImage};

use super::PixelSize;

/// The maximum length of image data to decode, in characters of base64.
pub(crate) const MAX_BASE64_BYTES: usize = 32 * 1024 * 1024;

/// The maximum number of pixels in an image to decode.
pub(crate) const MAX_PIXELS: u64 = 25 * 1000 * 1000;

/// The memory limit for decoding, in bytes.
const MAX_MEMORY_BYTES: u64 = 128 * 1024 * 1024;

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether panics on this thread are caught. A caught panic affects only a single image.
pub(crate) fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// Runs code that may panic, and turns panics into errors. Malformed images may trigger bugs in the decoders.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    IS_GUARDED.set(true);
    // Everything the closure created is dropped if it panics.
    let done = std::panic::catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    done.unwrap_or_else(|_| Err("corrupt image".to_owned()))
}

/// Decodes an image and scales it down to fit into `room`.
///
/// The image is never scaled up. The rest of `room`, to the right and below, is transparent.
///
/// # Errors
/// Fails if the image is corrupt, too large, or of an unsupported type. The error is a message for the user.
pub(super) fn decode_image(data: &str, room: PixelSize) -> Result<RgbaImage, String> {
    let too_large = || {
        format!(
            "too large: more than {} million pixels",
            MAX_PIXELS / 1_000_000
        )
    };
    if data.len() > MAX_BASE64_BYTES {
        return Err(format!(
            "too large: more than {} MiB",
            MAX_BASE64_BYTES / 1024 / 1024
        ));
    }
    let mut encoded = data.as_bytes().to_vec();
    encoded.retain(|byte| !byte.is_ascii_whitespace());
    let bytes = STANDARD.decode(&encoded);
    drop(encoded);
    let bytes = bytes.map_err(|_| "invalid base64 data".to_owned())?;
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|e| e.to_string())?;
    if reader.format().is_none() {
        return Err("unsupported image format".to_owned());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_MEMORY_BYTES);
    reader.limits(limits);
    let broken = |e: image::ImageError| match e {
        image::ImageError::Limits(_) => "too large to decode".to_owned(),
        image::ImageError::Unsupported(_) => "unsupported image format".to_owned(),
        _ => "corrupt image".to_owned(),
    };
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(too_large());
    }
    if decoder.total_bytes() > MAX_MEMORY_BYTES {
        return Err("too large to decode".to_owned());
    }
    // Cameras store their orientation. An image whose orientation cannot be read is shown as it is.
    let held = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let image = DynamicImage::from_decoder(decoder).map_err(broken)?;
    Ok(scale_to_fit(image, held, room))
}

/// Scales an image to fit into `room`, aligned to the upper left.
fn scale_to_fit(mut image: DynamicImage, held: Orientation, room: PixelSize) -> RgbaImage {
    let of = PixelSize {
        width: image.width(),
        height: image.height(),
    };
    let lies = matches!(
        held,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    );
    let to = match lies {
        true => fit_size(of.swap_axes(), room).swap_axes(),
        false => fit_size(of, room),
    };
    // A rough scaling that takes little memory, followed by a precise one.
    if of.width > to.width.saturating_mul(3) || of.height > to.height.saturating_mul(3) {
        image = image.thumbnail_exact(to.width * 2, to.height * 2);
    }
    if (image.width(), image.height()) != (to.width, to.height) {
        image = image.resize_exact(to.width, to.height, FilterType::Triangle);
    }
    image.apply_orientation(held);
    let image = image.into_rgba8();
    if image.dimensions() == (room.width, room.height) {
        return image;
    }
    let mut canvas = RgbaImage::new(room.width, room.height);
    imageops::replace(&mut canvas, &image, 0, 0);
    canvas
}

/// Returns the largest size with the same proportions that fits into `room`.
fn fit_size(of: PixelSize, room: PixelSize) -> PixelSize {
    let (width, height) = (u64::from(of.width).max(1), u64::from(of.height).max(1));
    let (most_width, most_height) = (u64::from(room.width), u64::from(room.height));
    if width <= most_width && height <= most_height {
        return of;
    }
    let pixels = |n: u64| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
    if width * most_height >= height * most_width {
        PixelSize {
            width: room.width,
            height: pixels((height * most_width / width).min(most_height)),
        }
    } else {
        PixelSize {
            width: pixels((width * most_height / height).min(most_width)),
            height: room.height,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::tests::{encode_base64_png, two_color_image};

    const TARGET_SIZE: PixelSize = PixelSize {
        width: 40,
        height: 20,
    };

    #[test]
    fn large_image_is_scaled_with_its_colors_and_proportions() {
        let made =
            decode_image(&encode_base64_png(&two_color_image(400, 400)), TARGET_SIZE).unwrap();
        assert_eq!(made.dimensions(), (40, 20));
        assert_eq!(made.get_pixel(2, 2).0, [255, 0, 0, 255]);
        assert_eq!(made.get_pixel(17, 17).0, [0, 0, 255, 255]);
        // The image is square; the rest of the room is left transparent.
        assert_eq!(made.get_pixel(21, 10).0[3], 0);
    }

    #[test]
    fn small_image_is_not_enlarged() {
        let made = decode_image(&encode_base64_png(&two_color_image(4, 4)), TARGET_SIZE).unwrap();
        assert_eq!(made.get_pixel(3, 3).0, [0, 0, 255, 255]);
        assert_eq!(made.get_pixel(4, 3).0[3], 0);
        assert_eq!(made.get_pixel(3, 4).0[3], 0);
    }

    #[test]
    fn rotated_image_is_turned_upright() {
        let image = DynamicImage::from(two_color_image(40, 80));
        let made = scale_to_fit(image, Orientation::Rotate90, TARGET_SIZE);
        assert_eq!(made.dimensions(), (40, 20));
        // The top of the stored image is on the right.
        assert_eq!(made.get_pixel(2, 10).0, [0, 0, 255, 255]);
        assert_eq!(made.get_pixel(37, 10).0, [255, 0, 0, 255]);
    }

    #[test]
    fn very_wide_image_becomes_one_line() {
        let made =
            decode_image(&encode_base64_png(&two_color_image(60_000, 1)), TARGET_SIZE).unwrap();
        assert_eq!(made.dimensions(), (40, 20));
        assert_eq!(made.get_pixel(39, 0).0, [0, 0, 255, 255]);
        assert_eq!(made.get_pixel(39, 1).0[3], 0);
    }

    #[test]
    fn base64_with_line_breaks_is_decoded() {
        let data = encode_base64_png(&two_color_image(4, 4));
        let (one, two) = data.split_at(10);
        assert!(decode_image(&format!("{one}\r\n{two}\n"), TARGET_SIZE).is_ok());
    }

    #[test]
    fn broken_image_error_gives_the_reason() {
        let whole = encode_base64_png(&two_color_image(400, 400));
        let why = |data: &str| decode_image(data, TARGET_SIZE).unwrap_err();
        assert_eq!(why("?!"), "invalid base64 data");
        assert_eq!(why("AAAA"), "unsupported image format");
        assert_eq!(why(&whole[..whole.len() / 8 * 4]), "corrupt image");
    }

    #[test]
    fn decoder_panic_is_reported_as_a_corrupt_image() {
        let why = catch_panic::<()>(|| panic!("the decoder panicked")).unwrap_err();
        assert_eq!(why, "corrupt image");
        assert!(!is_guarded());
    }

    #[test]
    fn decompression_bomb_is_rejected_by_its_header() {
        // A header for 65,000 × 65,000 pixels in a few bytes, which would decode to 17 GB.
        let mut png = Vec::new();
        let mut encoder = png_header(65_000, 65_000);
        png.append(&mut encoder);
        let why = decode_image(&STANDARD.encode(&png), TARGET_SIZE).unwrap_err();
        assert_eq!(why, "too large: more than 25 million pixels");
    }

    /// Returns a PNG file that has only a header, with this size.
    fn png_header(width: u32, height: u32) -> Vec<u8> {
        let chunk = |kind: &[u8; 4], data: &[u8]| {
            let mut crc = 0xffff_ffff_u32;
            for byte in kind.iter().chain(data) {
                crc ^= u32::from(*byte);
                for _ in 0..8 {
                    crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
                }
            }
            let length = u32::try_from(data.len()).unwrap();
            let mut chunk = length.to_be_bytes().to_vec();
            chunk.extend(kind);
            chunk.extend(data);
            chunk.extend((!crc).to_be_bytes());
            chunk
        };
        let mut header = width.to_be_bytes().to_vec();
        header.extend(height.to_be_bytes());
        header.extend([8, 6, 0, 0, 0]);
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        png.extend(chunk(b"IHDR", &header));
        png.extend(chunk(b"IDAT", b"\x78\x9c\x63\0\0"));
        png
    }
}

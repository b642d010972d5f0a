//! Describes images and other content that is not text.

use acp::v1::{ContentBlock, EmbeddedResourceResource};
use acp_host::terminal_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::columns::pluralize;

/// The maximum amount of image data to search for the image's dimensions, in base64 characters. Photos may start with
/// long metadata.
const MAX_HEADER_BYTES: usize = 512 * 1024;

/// The amount of image data to search first, in base64 characters.
const FIRST_HEADER_BYTES: usize = 4 * 1024;

/// Describes a content block on one line by its type, size and source. For a text block, returns the text.
pub(crate) fn describe_block(block: &ContentBlock) -> String {
    let text = match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            let mut said = media_type_name(&image.mime_type);
            if let Some((width, height)) = image_dimensions(&image.data) {
                said.push_str(&format!(" {width}×{height}"));
            }
            format_label(
                "image",
                &[
                    &said,
                    &format_size(decoded_len(&image.data)),
                    image.uri.as_deref().unwrap_or_default(),
                ],
            )
        }
        ContentBlock::Audio(audio) => format_label(
            "sound",
            &[
                &media_type_name(&audio.mime_type),
                &format_size(decoded_len(&audio.data)),
            ],
        ),
        ContentBlock::ResourceLink(link) => {
            let bytes = link.size.and_then(|size| u64::try_from(size).ok());
            let kind = link
                .mime_type
                .as_deref()
                .map(media_type_name)
                .unwrap_or_default();
            let name = link
                .title
                .as_deref()
                .filter(|title| !title.trim().is_empty());
            format_label(
                name.unwrap_or(&link.name),
                &[
                    &link.uri,
                    &kind,
                    &bytes.map(format_size).unwrap_or_default(),
                ],
            )
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::Text(text) => format_label(
                "file",
                &[&text.uri, &pluralize(text.text.lines().count(), "line")],
            ),
            EmbeddedResourceResource::Blob(blob) => {
                let kind = blob
                    .mime_type
                    .as_deref()
                    .map(media_type_name)
                    .unwrap_or_default();
                format_label(
                    "file",
                    &[&blob.uri, &kind, &format_size(decoded_len(&blob.blob))],
                )
            }
            _ => "[unknown resource type]".to_owned(),
        },
        _ => "[unknown content type]".to_owned(),
    };
    terminal_text::clean_line(&text)
}

/// Formats a description as `[label: one, another]`, omitting empty parts.
fn format_label(label: &str, said: &[&str]) -> String {
    let said = said
        .iter()
        .map(|said| terminal_text::clean_line(said).trim().to_owned());
    let said: Vec<String> = said.filter(|said| !said.is_empty()).collect();
    if said.is_empty() {
        return format!("[{label}]");
    }
    format!("[{label}: {}]", said.join(", "))
}

/// Returns the common name of a media type.
fn media_type_name(mime_type: &str) -> String {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let (_, kind) = essence.split_once('/').unwrap_or(("", essence));
    let kind = kind.split('+').next().unwrap_or(kind);
    let known = match kind {
        "mpeg" => "MP3",
        "plain" => "text",
        "octet-stream" => "",
        kind => &kind.strip_prefix("x-").unwrap_or(kind).to_uppercase(),
    };
    known.to_owned()
}

/// Returns an image's width and height in pixels, as given in its header.
pub(crate) fn image_dimensions(data: &str) -> Option<(usize, usize)> {
    // For most images, the first bytes are enough.
    [FIRST_HEADER_BYTES, MAX_HEADER_BYTES]
        .iter()
        .find_map(|most| {
            let is_base64 = |byte: &u8| !byte.is_ascii_whitespace();
            let mut header: Vec<u8> = data.bytes().filter(is_base64).take(*most).collect();
            header.truncate(header.len() / 4 * 4);
            let bytes = STANDARD.decode(header).ok()?;
            let size = imagesize::blob_size(&bytes).ok()?;
            Some((size.width, size.height))
        })
}

/// Returns the number of bytes that base64 data decodes to.
fn decoded_len(data: &str) -> u64 {
    let filled = data.trim_end_matches(['=', '\n', '\r']).len();
    filled as u64 * 3 / 4
}

/// Formats a rounded size: `512 bytes`, `4 KB`, `3.4 MB`.
fn format_size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match bytes {
        0 => "empty".to_owned(),
        1 => "1 byte".to_owned(),
        2..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{} KB", bytes.div_ceil(KIB)),
        _ => format!("{}.{} MB", bytes / MIB, bytes % MIB * 10 / MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn describe_json(block: serde_json::Value) -> String {
        describe_block(&serde_json::from_value(block).unwrap())
    }

    /// Returns the header of a PNG.
    fn png_bytes(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0]);
        bytes
    }

    fn describe_image(bytes: &[u8], mime_type: &str) -> String {
        describe_json(
            json!({"type": "image", "data": STANDARD.encode(bytes), "mimeType": mime_type}),
        )
    }

    #[test]
    fn image_label_has_its_dimensions() {
        let mut bytes = png_bytes(640, 480);
        bytes.resize(12 * 1024, 0);
        assert_eq!(
            describe_image(&bytes, "image/png"),
            "[image: PNG 640×480, 12 KB]"
        );
        let gif = b"GIF89a\x40\x01\xc8\0\0\0\0";
        assert_eq!(
            describe_image(gif, "image/gif"),
            "[image: GIF 320×200, 13 bytes]"
        );
        let mut webp = b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([0x7f, 2, 0, 0xdf, 1, 0]);
        assert_eq!(
            describe_image(&webp, "image/webp"),
            "[image: WEBP 640×480, 30 bytes]"
        );
        // A photo has metadata before its size.
        let mut jpeg = b"\xff\xd8\xff\xe1\xff\xfe".to_vec();
        jpeg.resize(4 + 0xfffe, 0);
        jpeg.extend(b"\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03");
        jpeg.resize(jpeg.len() + 16, 0);
        assert_eq!(
            describe_image(&jpeg, "image/jpeg"),
            "[image: JPEG 640×480, 65 KB]"
        );
    }

    #[test]
    fn unreadable_image_still_gets_a_label() {
        assert_eq!(
            describe_image(b"nothing of the kind", "image/png"),
            "[image: PNG, 19 bytes]"
        );
        assert_eq!(
            describe_json(json!({"type": "image", "data": "?!", "mimeType": "\u{1b}[2J"})),
            "[image: 1 byte]"
        );
        assert_eq!(
            describe_json(json!({"type": "hologram"})),
            "[unknown content type]"
        );
    }

    #[test]
    fn audio_and_resources_are_described() {
        let data = STANDARD.encode(vec![0; 1_300_000]);
        assert_eq!(
            describe_json(json!({"type": "audio", "data": data, "mimeType": "audio/x-wav"})),
            "[sound: WAV, 1.2 MB]"
        );
        assert_eq!(
            describe_json(
                json!({"type": "resource_link", "name": "report.pdf", "uri": "file:///report.pdf",
                "mimeType": "application/pdf", "size": 2048})
            ),
            "[report.pdf: file:///report.pdf, PDF, 2 KB]"
        );
        assert_eq!(
            describe_json(
                json!({"type": "resource", "resource": {"uri": "file:///a.rs", "text": "one\ntwo\n"}})
            ),
            "[file: file:///a.rs, 2 lines]"
        );
        assert_eq!(
            describe_json(
                json!({"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}})
            ),
            "[file: file:///b, 3 bytes]"
        );
        assert_eq!(
            describe_json(json!({"type": "text", "text": "a\u{7}\nb"})),
            "a b"
        );
    }
}

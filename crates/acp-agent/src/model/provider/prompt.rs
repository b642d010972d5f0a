//! What a person said, as the providers take it: text, and pictures where the model sees them.

use acp::v1::{ContentBlock, EmbeddedResourceResource};
use genai::chat::{Binary, ContentPart, MessageContent};

use super::convert::Reader;
use crate::tools::fenced;

/// What the person said.
pub(super) fn prompt(reader: Reader<'_>, content: &[ContentBlock]) -> MessageContent {
    let mut parts: Vec<ContentPart> = content
        .iter()
        .filter_map(|block| part(reader, block))
        .collect();
    if parts.is_empty() {
        parts.push(ContentPart::Text("(The prompt is empty.)".to_owned()));
    }
    MessageContent::from_parts(parts)
}

fn part(reader: Reader<'_>, block: &ContentBlock) -> Option<ContentPart> {
    let text = match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => {
            return Some(picture(
                reader,
                &image.mime_type,
                &image.data,
                image.uri.as_deref(),
            ));
        }
        ContentBlock::Audio(audio) => {
            format!(
                "(Here was sound, {}. It cannot be listened to.)",
                audio.mime_type
            )
        }
        ContentBlock::ResourceLink(link) => {
            let mut text = format!("(A link: {}, {}", link.name, link.uri);
            for more in [&link.title, &link.description, &link.mime_type]
                .into_iter()
                .flatten()
            {
                text.push_str(", ");
                text.push_str(more);
            }
            text.push(')');
            text
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => {
                format!("{}:\n{}", text.uri, fenced(&text.text))
            }
            EmbeddedResourceResource::Blob(blob) => {
                let mime_type = blob
                    .mime_type
                    .as_deref()
                    .unwrap_or("application/octet-stream");
                return Some(picture(reader, mime_type, &blob.blob, Some(&blob.uri)));
            }
            _ => return None,
        },
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(ContentPart::Text(text))
}

/// A picture, for a model that takes it; for any other, and for what is no picture, that there was one.
pub(super) fn picture(
    reader: Reader<'_>,
    mime_type: &str,
    data: &str,
    uri: Option<&str>,
) -> ContentPart {
    let named = uri.map(|uri| format!(" ({uri})")).unwrap_or_default();
    if !mime_type.starts_with("image/") {
        return ContentPart::Text(format!(
            "(Here was a file{named}, {mime_type}. It cannot be shown.)"
        ));
    }
    if !reader.images {
        return ContentPart::Text(format!(
            "(Here was a picture{named}, {mime_type}. This model takes no pictures.)"
        ));
    }
    ContentPart::Binary(Binary::from_base64(mime_type, data, None))
}

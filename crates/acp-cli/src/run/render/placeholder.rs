//! Placeholders for non-text content.

use acp::v1::{ContentBlock, EmbeddedResourceResource};
use acp_host::terminal_text;

/// Describes a content block in one line.
pub(super) fn placeholder(block: &ContentBlock) -> String {
    let text = match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[sound: {}]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::Text(text) => format!("[{}]", text.uri),
            EmbeddedResourceResource::Blob(blob) => format!("[{}]", blob.uri),
            _ => "[a resource]".to_owned(),
        },
        _ => "[unknown content type]".to_owned(),
    };
    terminal_text::clean_value(&text)
}

//! Converts the user's prompts to content that providers accept: text, and images if the model accepts them.

use std::borrow::Cow;

use acp::v1::{ContentBlock, EmbeddedResourceResource};

use super::wire_format::WireFormat;
use crate::text::to_code_block;

/// The model that a conversation is being converted for.
#[derive(Clone, Copy)]
pub(super) struct TargetModel<'a> {
    pub(super) format: WireFormat,
    /// The name of the model, as in [`OpaqueParts::by`](crate::OpaqueParts::by).
    pub(super) by: &'a str,
    pub(super) takes_images: bool,
}

/// A part of the user's message.
#[derive(Debug)]
pub(super) enum PromptPart<'a> {
    Text(Cow<'a, str>),
    Image {
        mime_type: &'a str,
        /// The image, encoded in base64.
        data: &'a str,
    },
}

/// Converts the user's prompt for a model.
pub(super) fn convert_prompt<'a>(
    target: TargetModel<'_>,
    content: &'a [ContentBlock],
) -> Vec<PromptPart<'a>> {
    let mut parts: Vec<PromptPart<'a>> = content
        .iter()
        .filter_map(|block| to_part(target, block))
        .collect();
    if parts.is_empty() {
        parts.push(PromptPart::Text("(empty prompt)".into()));
    }
    parts
}

fn to_part<'a>(target: TargetModel<'_>, block: &'a ContentBlock) -> Option<PromptPart<'a>> {
    let text = match block {
        ContentBlock::Text(text) => Cow::Borrowed(text.text.as_str()),
        ContentBlock::Image(image) => {
            return Some(convert_image(
                target,
                &image.mime_type,
                &image.data,
                image.uri.as_deref(),
            ));
        }
        ContentBlock::Audio(audio) => {
            let kind = &audio.mime_type;
            format!("(Audio omitted: {kind}. Audio is not supported.)").into()
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
            text.into()
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => {
                format!("{}:\n{}", text.uri, to_code_block(&text.text)).into()
            }
            EmbeddedResourceResource::Blob(blob) => {
                let mime_type = blob
                    .mime_type
                    .as_deref()
                    .unwrap_or("application/octet-stream");
                return Some(convert_image(
                    target,
                    mime_type,
                    &blob.blob,
                    Some(&blob.uri),
                ));
            }
            _ => return None,
        },
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(PromptPart::Text(text))
}

/// Converts an image for a model. Returns a note instead if the model does not accept images or the data is not an
/// image.
pub(super) fn convert_image<'a>(
    target: TargetModel<'_>,
    mime_type: &'a str,
    data: &'a str,
    uri: Option<&str>,
) -> PromptPart<'a> {
    let named = uri.map(|uri| format!(" ({uri})")).unwrap_or_default();
    if !mime_type.starts_with("image/") {
        let text = format!("(File omitted{named}: {mime_type}. It cannot be shown.)");
        return PromptPart::Text(text.into());
    }
    if !target.takes_images {
        let text =
            format!("(Image omitted{named}: {mime_type}. This model does not support images.)");
        return PromptPart::Text(text.into());
    }
    PromptPart::Image { mime_type, data }
}

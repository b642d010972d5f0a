//! Converts results from MCP servers for the user and the model.
//!
//! MCP and ACP have the same content blocks. The model gets the text, and images if it accepts them. Other content is
//! only mentioned.

use acp::v1::{ContentBlock, EmbeddedResourceResource, ImageContent, ToolCallContent};
use rmcp::model::{CallToolResult, ContentBlock as McpContentBlock, ReadResourceResult};
use serde_json::{Value, json};

use crate::reported_call::text_content;
use crate::text::{first_line, to_code_block, truncate_to_head};

/// The maximum length of a result for the model, in bytes.
const MAX_MODEL_TEXT_BYTES: usize = 64 * 1024;

/// The maximum length of a result's text for the user, in bytes.
const MAX_USER_TEXT_BYTES: usize = 256 * 1024;

/// The maximum number of content blocks in a result for the user.
const MAX_BLOCKS: usize = 256;

/// The maximum total size of the images, audio and files in a result for the user, in bytes of base64.
const MAX_USER_MEDIA_BYTES: usize = 8 * 1024 * 1024;

/// The maximum size, in bytes, of the structured result that is sent to the client in addition to the content.
const MAX_STRUCTURED_BYTES: usize = 64 * 1024;

/// The result of a tool, in separate forms for the model, the user and programs.
#[derive(Debug)]
pub(super) struct McpResult {
    pub(super) is_error: bool,
    /// The text of the result for the model.
    pub(super) text: String,
    /// The content blocks for the user.
    pub(super) content: Vec<ToolCallContent>,
    /// The structured result, for programs that use the client.
    pub(super) data: Value,
}

impl McpResult {
    /// Returns the images in the content, for models that accept images.
    pub(super) fn images(&self) -> Vec<ImageContent> {
        let images = self.content.iter().filter_map(|content| match content {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Image(image) => Some((**image).clone()),
                _ => None,
            },
            _ => None,
        });
        images.collect()
    }
}

/// Converts a content block from MCP. Returns `None` if its type is unknown.
pub(super) fn convert_block(block: &McpContentBlock) -> Option<ContentBlock> {
    let text = serde_json::to_string(block).ok()?;
    match serde_json::from_str(&text) {
        Ok(ContentBlock::Unknown(_)) | Err(_) => None,
        Ok(block) => Some(block),
    }
}

/// Converts the result of a tool.
pub(super) fn from_tool_result(result: &CallToolResult) -> McpResult {
    let mut collected = McpContent::default();
    for block in &result.content {
        match convert_block(block) {
            Some(block) => collected.add(block),
            None => collected.push_text("[unknown content type]"),
        }
    }
    let structured = result.structured_content.as_ref();
    let as_text = structured.map(|value| format!("{value:#}"));
    // Servers should also send the structured result as text, but this server has not.
    if let Some(as_text) = as_text.filter(|_| collected.text.is_empty()) {
        collected.push_text(&as_text);
        let shown = to_code_block(truncate_to_head(&as_text, MAX_USER_TEXT_BYTES));
        collected.push(text_content(shown));
    }
    let data = structured.filter(|value| value.to_string().len() <= MAX_STRUCTURED_BYTES);
    collected.finish(result.is_error == Some(true), data.cloned())
}

/// Converts the contents of a resource that was read.
pub(super) fn from_resource(result: ReadResourceResult) -> McpResult {
    let mut collected = McpContent::default();
    for contents in result.contents {
        let block = McpContentBlock::resource(contents);
        match convert_block(&block) {
            Some(block) => collected.add(block),
            None => collected.push_text("[unknown content type]"),
        }
    }
    collected.finish(false, None)
}

/// Creates a result with the same text for both the user and the model.
pub(super) fn from_text(said: &str) -> McpResult {
    let mut collected = McpContent::default();
    collected.add(ContentBlock::text(said));
    collected.finish(false, None)
}

#[derive(Default)]
struct McpContent {
    text: String,
    content: Vec<ToolCallContent>,
    shown_bytes: usize,
    media_bytes: usize,
}

impl McpContent {
    /// Appends text for the model.
    fn push_text(&mut self, said: &str) {
        if self.text.len() > MAX_MODEL_TEXT_BYTES {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        // Add one byte more than the limit, so that the result is truncated with a note at the end. Nothing is added
        // after that.
        let room = (MAX_MODEL_TEXT_BYTES + 1).saturating_sub(self.text.len());
        self.text.push_str(truncate_to_head(said, room));
    }

    /// Adds a block for the user, or a note if the block exceeds the limit. `length` is the size of its text in bytes.
    fn push_block(&mut self, block: ContentBlock, length: usize, what: &str) {
        if self.shown_bytes + length <= MAX_USER_TEXT_BYTES {
            self.shown_bytes += length;
            self.push(block.into());
        } else {
            self.push(text_content(format!("[{what} is too large to show]")));
        }
    }

    fn push(&mut self, shown: ToolCallContent) {
        match self.content.len() {
            0..MAX_BLOCKS => self.content.push(shown),
            MAX_BLOCKS => self.content.push(text_content("[more content omitted]")),
            _ => {}
        }
    }

    fn add(&mut self, block: ContentBlock) {
        match &block {
            ContentBlock::Text(said) => {
                self.push_text(&said.text);
                let room = MAX_USER_TEXT_BYTES.saturating_sub(self.shown_bytes);
                let cut = truncate_to_head(&said.text, room);
                self.shown_bytes += cut.len();
                if cut.len() == said.text.len() {
                    self.push(block.into());
                } else {
                    self.push(text_content(format!("{cut}\n\n[truncated]")));
                }
            }
            ContentBlock::Image(image) => {
                let what = format!("an image, {}", first_line(&image.mime_type));
                self.add_media(&what, image.data.len(), block.clone());
            }
            ContentBlock::Audio(audio) => {
                let what = format!("audio, {}", first_line(&audio.mime_type));
                self.add_media(&what, audio.data.len(), block.clone());
            }
            ContentBlock::Resource(embedded) => match &embedded.resource {
                EmbeddedResourceResource::Text(resource) => {
                    self.push_text(&format!("{}:\n{}", resource.uri, resource.text));
                    let length = resource.uri.len() + resource.text.len();
                    let what = format!("`{}`", first_line(&resource.uri));
                    self.push_block(block.clone(), length, &what);
                }
                EmbeddedResourceResource::Blob(resource) => {
                    let kind = resource.mime_type.as_deref().unwrap_or("of unknown type");
                    let what = format!("`{}`, {}", first_line(&resource.uri), first_line(kind));
                    self.add_media(&what, resource.blob.len(), block.clone());
                }
                _ => self.push_text("[unknown resource type]"),
            },
            ContentBlock::ResourceLink(link) => {
                let what = link.description.as_deref().or(link.title.as_deref());
                let what = what.unwrap_or(&link.name);
                self.push_text(&format!("[a link to the resource {}: {what}]", link.uri));
                let about = [&link.title, &link.description];
                let about = about.into_iter().flatten().map(String::len);
                let length = link.uri.len() + link.name.len() + about.sum::<usize>();
                let what = format!("a link to `{}`", first_line(&link.uri));
                self.push_block(block.clone(), length, &what);
            }
            _ => self.push_text("[unknown content type]"),
        }
    }

    fn add_media(&mut self, what: &str, size: usize, block: ContentBlock) {
        // Four characters of base64 encode three bytes.
        let bytes = size / 4 * 3;
        if self.media_bytes + size <= MAX_USER_MEDIA_BYTES {
            self.media_bytes += size;
            self.push(block.into());
            self.push_text(&format!("[{what}, about {bytes} bytes; shown to the user]"));
        } else {
            self.push_text(&format!(
                "[{what}, about {bytes} bytes; too large to be shown]"
            ));
            self.push(text_content(format!(
                "[{what}: about {bytes} bytes, too large to be shown]"
            )));
        }
    }

    fn finish(mut self, failed: bool, data: Option<Value>) -> McpResult {
        if self.text.len() > MAX_MODEL_TEXT_BYTES {
            self.text
                .truncate(truncate_to_head(&self.text, MAX_MODEL_TEXT_BYTES).len());
            self.text.push_str("\n[truncated]");
        }
        if self.text.is_empty() {
            self.text.push_str(if failed {
                "The tool failed without an error message."
            } else {
                "Done."
            });
        }
        if self.content.is_empty() {
            self.content.push(text_content(self.text.as_str()));
        }
        McpResult {
            is_error: failed,
            text: self.text,
            content: self.content,
            data: data.unwrap_or_else(|| json!({ "isError": failed })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::Resource;

    fn describe_result(given: &McpResult) -> String {
        serde_json::to_string(&given.content).unwrap()
    }

    #[test]
    fn every_content_kind_reaches_the_user_and_the_model() {
        let mut result = CallToolResult::success(vec![
            McpContentBlock::text("words"),
            McpContentBlock::image("aGVsbG8=", "image/png"),
            McpContentBlock::audio("aGVsbG8=", "audio/wav"),
            McpContentBlock::embedded_text("file:///a", "inside"),
            McpContentBlock::resource_link(
                Resource::new("db://b", "b").with_description("a table"),
            ),
        ]);
        result.structured_content = Some(json!({"n": 1}));
        let given = from_tool_result(&result);
        for part in [
            "words",
            "an image, image/png",
            "audio, audio/wav",
            "file:///a:\ninside",
            "db://b: a table",
        ] {
            assert!(given.text.contains(part), "{part}: {}", given.text);
        }
        for part in [
            "\"image\"",
            "\"audio\"",
            "\"resource\"",
            "\"resource_link\"",
            "aGVsbG8=",
        ] {
            assert!(
                describe_result(&given).contains(part),
                "{part}: {}",
                describe_result(&given)
            );
        }
        assert_eq!(given.content.len(), 5);
        assert_eq!((given.data, given.is_error), (json!({"n": 1}), false));
    }

    #[test]
    fn structured_content_alone_is_shown_as_text() {
        let mut result = CallToolResult::success(Vec::new());
        result.structured_content = Some(json!({"degrees": 7}));
        let given = from_tool_result(&result);
        assert!(given.text.contains("\"degrees\": 7"), "{}", given.text);
        assert!(describe_result(&given).contains("degrees"));
    }

    #[test]
    fn oversized_content_is_truncated_with_a_note() {
        let long = "é".repeat(MAX_USER_TEXT_BYTES);
        let given = from_tool_result(&CallToolResult::success(vec![
            McpContentBlock::text(long.clone()),
            McpContentBlock::text(long),
        ]));
        assert!(
            given.text.len() < MAX_MODEL_TEXT_BYTES + 100,
            "{}",
            given.text.len()
        );
        assert!(given.text.ends_with("[truncated]"));
        assert!(describe_result(&given).len() < MAX_USER_TEXT_BYTES + 1000);
        assert!(describe_result(&given).contains("[truncated]"));
        let picture = "A".repeat(MAX_USER_MEDIA_BYTES + 4);
        let given = from_tool_result(&CallToolResult::success(vec![McpContentBlock::image(
            picture,
            "image/png",
        )]));
        assert!(describe_result(&given).contains("too large to be shown"));
        assert!(given.text.contains("too large to be shown"));
    }

    #[test]
    fn excess_blocks_are_not_shown() {
        let link = || McpContentBlock::resource_link(Resource::new("db://b", "b"));
        for block in [
            McpContentBlock::text("x"),
            McpContentBlock::text(""),
            link(),
        ] {
            let given = from_tool_result(&CallToolResult::success(vec![block; 10_000]));
            assert_eq!(given.content.len(), MAX_BLOCKS + 1);
            assert!(describe_result(&given).contains("[more content omitted]"));
            assert!(
                given.text.len() < MAX_MODEL_TEXT_BYTES + 100,
                "{}",
                given.text.len()
            );
        }
        let long = Resource::new("db://b", "b").with_description("d".repeat(MAX_USER_TEXT_BYTES));
        let given = from_tool_result(&CallToolResult::success(vec![
            McpContentBlock::resource_link(long),
        ]));
        assert!(
            describe_result(&given).len() < 1000,
            "{}",
            describe_result(&given).len()
        );
    }

    #[test]
    fn failed_call_is_reported_as_failure() {
        let given = from_tool_result(&CallToolResult::error(vec![McpContentBlock::text(
            "no such city",
        )]));
        assert!(given.is_error);
        assert_eq!(given.text, "no such city");
        assert!(
            !from_tool_result(&CallToolResult::error(Vec::new()))
                .text
                .is_empty()
        );
    }
}

//! Represents a prompt before it is sent, and converts it to content blocks.

use std::path::PathBuf;
use std::sync::Arc;

use acp::v1::{ContentBlock, PromptCapabilities};
use acp_host::{Attachment, AttachmentError, AttachmentKind};

use super::marked_text::{MarkContent, MarkedText};

/// The maximum size, in bytes, of a mentioned text file to send along with the prompt. Only agents that accept embedded
/// resources get the contents.
const MAX_MENTIONED_BYTES: u64 = 64 * 1024;
/// The maximum size, in bytes, of an attached file to send along with the prompt. Larger files are sent as links.
const MAX_ATTACHED_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum total size of the files in one prompt, in bytes. In base64, they still fit into one message (see
/// [`acp::Limits::message`]).
const MAX_TOTAL_BYTES: u64 = 40 * 1024 * 1024;

/// A prompt before it is sent: text with marks, and attached files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PromptDraft {
    pub(super) marked_text: MarkedText,
    pub(super) attachments: Vec<PathBuf>,
}

/// A text in a prompt, and the label that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoldedText {
    pub(crate) label: String,
    pub(crate) text: Arc<str>,
}

/// The reason why a prompt was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{0}")]
    File(#[from] AttachmentError),
    #[error("attachments too large (limit: {} MiB in total); send fewer files", MAX_TOTAL_BYTES / 1024 / 1024)]
    TooLarge,
}

impl From<&str> for PromptDraft {
    fn from(text: &str) -> Self {
        Self {
            marked_text: MarkedText::from(acp_host::terminal_text::clean_text(text)),
            attachments: Vec::new(),
        }
    }
}

impl PromptDraft {
    /// Returns the text, with pasted text in full. A mentioned file appears as `@` and its name.
    pub(crate) fn text(&self) -> String {
        self.marked_text.to_full_text()
    }

    /// Returns the text as displayed, with labels in place of pasted text.
    pub(crate) fn display_text(&self) -> &str {
        self.marked_text.text()
    }

    /// Returns the texts that labels stand for.
    pub(crate) fn folded_texts(&self) -> impl Iterator<Item = FoldedText> {
        let marks = self.marked_text.marks().iter();
        marks.filter_map(|mark| {
            Some(FoldedText {
                label: self.marked_text.text().get(mark.range.clone())?.to_owned(),
                text: Arc::clone(mark.content.hidden_text()?),
            })
        })
    }

    /// Returns the attached files, excluding files mentioned in the text.
    pub(crate) fn attachments(&self) -> &[PathBuf] {
        &self.attachments
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.marked_text.text().trim().is_empty() && self.attachments.is_empty()
    }

    /// Builds the prompt's content blocks in the order written. Mentioned files keep their places in the text, and the
    /// attachments follow. Blocks while it reads the files.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if the agent does not accept its type.
    pub(crate) fn build_content(
        &self,
        takes: &PromptCapabilities,
    ) -> Result<Vec<ContentBlock>, SendError> {
        let mut content = Vec::new();
        let mut held = 0;
        let mut count = |file: &Attachment| {
            held += file.content_size();
            if held > MAX_TOTAL_BYTES {
                return Err(SendError::TooLarge);
            }
            Ok(())
        };
        let mut said = String::new();
        let mut from = 0;
        let text = self.marked_text.text();
        for mark in self.marked_text.marks() {
            said.push_str(&text[from..mark.range.start]);
            from = mark.range.end;
            match &mark.content {
                MarkContent::Paste(text) | MarkContent::CommandOutput(text) => said.push_str(text),
                MarkContent::File(path) => {
                    let file = Attachment::read(path, MAX_MENTIONED_BYTES)?;
                    push_text(&mut content, &mut said);
                    // A mentioned file is sent with its contents if the agent accepts them, and otherwise as a link.
                    let taken = match AttachmentKind::from_path(file.path()) {
                        AttachmentKind::Image => takes.image,
                        AttachmentKind::Audio => takes.audio,
                        AttachmentKind::Other => file.is_text(),
                    };
                    content.push(if taken {
                        count(&file)?;
                        file.content(takes)?
                    } else {
                        file.resource_link()
                    });
                }
            }
        }
        said.push_str(&text[from..]);
        said.truncate(said.trim_end().len());
        push_text(&mut content, &mut said);
        if let Some(ContentBlock::Text(first)) = content.first_mut() {
            // Leading empty lines are dropped, but not the indentation of pasted text.
            let indented = first.text.trim_start();
            let blank = first.text.len() - indented.len();
            let lines = first.text[..blank].rfind('\n').map_or(0, |end| end + 1);
            first.text.drain(..lines);
            if first.text.trim().is_empty() {
                content.remove(0);
            }
        }
        for path in &self.attachments {
            let file = Attachment::read(path, MAX_ATTACHED_BYTES)?;
            count(&file)?;
            content.push(file.content(takes)?);
        }
        Ok(content)
    }
}

fn push_text(content: &mut Vec<ContentBlock>, said: &mut String) {
    if !said.is_empty() {
        content.push(ContentBlock::text(std::mem::take(said)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn content_json(draft: &PromptDraft, takes: &PromptCapabilities) -> Value {
        serde_json::to_value(draft.build_content(takes).unwrap()).unwrap()
    }

    fn file_mention(path: PathBuf) -> MarkedText {
        let label = format!("@{}", path.file_name().unwrap().to_string_lossy());
        MarkedText::from_mark(label, MarkContent::File(path))
    }

    #[test]
    fn files_are_inserted_in_place_and_pasted_text_in_full() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.rs");
        std::fs::write(&file, "fn a() {}").unwrap();
        let mut marked = MarkedText::from("\n compare ");
        marked.push(&file_mention(file.clone()));
        marked.push(&MarkedText::from(" with "));
        let pasted = MarkContent::Paste("line\n".repeat(3).into());
        marked.push(&MarkedText::from_mark("[pasted 3 lines]", pasted));
        let draft = PromptDraft {
            marked_text: marked,
            attachments: vec![directory.path().to_owned()],
        };
        let said = content_json(&draft, &PromptCapabilities::new());
        assert_eq!(said[0], json!({"type": "text", "text": " compare "}));
        assert_eq!(said[1]["type"], "resource_link");
        assert_eq!(said[1]["name"], "a.rs");
        assert_eq!(said[2]["text"], " with line\nline\nline");
        assert_eq!(said[3]["type"], "resource_link");

        let said = content_json(&draft, &PromptCapabilities::new().embedded_context(true));
        assert_eq!(said[1]["resource"]["text"], "fn a() {}");

        std::fs::remove_file(&file).unwrap();
        let error = draft.build_content(&PromptCapabilities::new()).unwrap_err();
        assert!(error.to_string().contains("a.rs: "), "{error}");
    }

    #[test]
    fn unsupported_content_is_rejected_before_sending() {
        let directory = tempfile::tempdir().unwrap();
        let picture = directory.path().join("a.png");
        std::fs::write(&picture, b"\x89PNG").unwrap();
        let mut draft = PromptDraft::from("look");
        draft.attachments.push(picture.clone());
        let error = draft.build_content(&PromptCapabilities::new()).unwrap_err();
        assert!(error.to_string().contains("does not accept images"));
        // A mentioned image is sent as a link, like any other file, unless the agent accepts images.
        let named = PromptDraft {
            marked_text: file_mention(picture),
            attachments: Vec::new(),
        };
        let said = content_json(&named, &PromptCapabilities::new());
        assert_eq!(said[0]["type"], "resource_link");
        assert_eq!(said[0]["mimeType"], "image/png");
        assert_eq!(said.as_array().unwrap().len(), 1);
        let said = content_json(&named, &PromptCapabilities::new().image(true));
        assert_eq!(said[0]["type"], "image");
    }
}

//! The `read` tool, which reads a file.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use acp::v1::{ContentBlock, ImageContent, ToolKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{
    CallDescription, DraftSpec, Tool, ToolExecution, ToolFuture, ToolInvocation, ToolOutput,
    location,
};
use crate::permission::action::ToolAction;
use crate::permission::permit::Permit;
use crate::reported_call::text_content;
use crate::text::{to_code_block, truncate_to_head};
use crate::workspace::Workspace;
use crate::workspace::tool_failure::ToolFailure;
use crate::workspace::tree::DirectoryTree;

/// The default number of lines to read.
const DEFAULT_LINE_COUNT: u32 = 2000;

/// The maximum length of the returned text, in bytes.
const MAX_TEXT_BYTES: usize = 128 * 1024;

/// The maximum length of a returned line, in bytes. The rest of the line is omitted.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// The maximum size of an image, in bytes. Providers accept an image of this size even after base64 encoding.
const MAX_IMAGE_BYTES: u64 = 3 * 1024 * 1024;

/// The number of bytes to read to detect the type of a file.
const TYPE_DETECTION_BYTES: u64 = 8 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadTool {
    /// File path, absolute or relative to the working directory.
    path: String,
    /// First line to read, starting at 1.
    line: Option<u32>,
    /// Number of lines to read. Default: 2000.
    limit: Option<u32>,
}

/// The type of a file, as detected from its start.
enum DetectedContent {
    Text,
    Image {
        media_type: &'static str,
        bytes: Vec<u8>,
    },
    LargeImage {
        media_type: &'static str,
        size: u64,
    },
    Binary {
        size: u64,
    },
}

impl Tool for ReadTool {
    const NAME: &'static str = "read";

    const DESCRIPTION: &'static str = "\
        Read a text file or a range of its lines, at most 2000 lines and 128 KiB per call; use `line` to continue. Each line of the result starts with its number and a tab, which are not part of the file. Also shows images (PNG, JPEG, GIF, WebP). Read a file before you change it.";

    const DRAFT: Option<DraftSpec> = Some(DraftSpec {
        kind: ToolKind::Read,
        title: "Read a file",
        subject_field: "path",
        required_fields: &[],
    });
}

impl ToolInvocation for ReadTool {
    fn tool(&self) -> &str {
        Self::NAME
    }

    fn describe(&self, workspace: &Workspace) -> CallDescription {
        let path = workspace.absolute_path(&self.path);
        let mut title = format!("Read `{}`", workspace.display_path(&path));
        match (self.line, self.limit) {
            (line, Some(limit)) if limit > 1 => {
                let first = line.unwrap_or(1);
                title.push_str(&format!(
                    ", lines {first}–{}",
                    first.saturating_add(limit - 1)
                ));
            }
            (Some(line), Some(_)) => title.push_str(&format!(", line {line}")),
            (Some(line), None) => title.push_str(&format!(", from line {line}")),
            (None, _) => {}
        }
        CallDescription::new(title, ToolKind::Read, vec![location(&path, self.line)])
    }

    fn action(&self, workspace: &Workspace) -> Option<ToolAction> {
        Some(ToolAction::Read(workspace.absolute_path(&self.path)))
    }

    fn run<'a>(&'a self, execution: &'a mut ToolExecution<'_>, _: Permit) -> ToolFuture<'a> {
        Box::pin(self.read_file(execution))
    }
}

impl ReadTool {
    async fn read_file(
        &self,
        execution: &mut ToolExecution<'_>,
    ) -> Result<ToolOutput, ToolFailure> {
        let path = execution.workspace.absolute_path(&self.path);
        match detect_content(execution.workspace, &path).await? {
            DetectedContent::Text => self.read_text(execution.workspace, &path).await,
            DetectedContent::Image { media_type, bytes } => {
                Ok(self.image_output(media_type, &bytes))
            }
            DetectedContent::LargeImage { media_type, size } => Err(ToolFailure::failed(format!(
                "`{}` is an image ({media_type}) of {size} bytes, too large to show (limit: {MAX_IMAGE_BYTES} bytes).",
                self.path
            ))),
            DetectedContent::Binary { size } => Err(self.binary_error(Some(size))),
        }
    }

    async fn read_text(
        &self,
        workspace: &Workspace,
        path: &str,
    ) -> Result<ToolOutput, ToolFailure> {
        let limit = self.limit.unwrap_or(DEFAULT_LINE_COUNT);
        // Read one more line, to see whether there are more lines.
        let read = workspace
            .read_file(path, self.line, Some(limit.saturating_add(1)))
            .await;
        let read = read.map_err(|fault| match fault {
            ToolFailure::NotFound(why) => {
                ToolFailure::Failed(format!("File not found: `{}`: {why}", self.path))
            }
            other => other,
        })?;
        // The file is read through the client, and its size is unknown.
        if read.contains('\0') {
            return Err(self.binary_error(None));
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let first = self.line.unwrap_or(1).max(1) as usize;
        // The user sees the text of the file. The model also gets line numbers to refer to.
        let (mut kept, mut model_text) = (String::new(), String::new());
        let (mut count, mut cut) = (0_usize, false);
        let mut lines = read.split_inclusive('\n');
        for line in lines.by_ref().take(limit) {
            let shown = truncate_to_head(line, MAX_LINE_BYTES);
            if kept.len() + shown.len() > MAX_TEXT_BYTES {
                cut = true;
                break;
            }
            let left = line.len() - shown.len();
            let line = match left {
                0 => Cow::Borrowed(shown),
                _ => Cow::Owned(format!("{shown} [… {left} more bytes on this line]\n")),
            };
            kept.push_str(&line);
            model_text.push_str(&format!("{}\t{line}", first + count));
            count += 1;
        }
        let more = cut || lines.next().is_some();
        // A model that sets a limit knows that there may be more lines.
        let unsaid = more && (cut || self.limit.is_none());
        let mut shown = vec![text_content(to_code_block(&kept))];
        if unsaid {
            let last = first + count - 1;
            if !model_text.ends_with('\n') {
                model_text.push('\n');
            }
            model_text.push_str(&format!(
                "[Truncated after line {last}. Continue with `line`: {}.]\n",
                last + 1
            ));
            shown.push(text_content("Truncated."));
        } else if count == 0 && limit > 0 {
            model_text = match first {
                1 => "[The file is empty.]".to_owned(),
                _ => format!("[The file ends before line {first}.]"),
            };
            shown = vec![text_content(model_text.as_str())];
        }
        let data = json!({ "lines": count, "truncated": more });
        Ok(ToolOutput::completed(model_text, shown, data))
    }

    fn image_output(&self, media_type: &'static str, bytes: &[u8]) -> ToolOutput {
        let image = ImageContent::new(STANDARD.encode(bytes), media_type);
        let size = bytes.len();
        let model_text = format!("`{}` is an image: {media_type}, {size} bytes.", self.path);
        let shown = ContentBlock::Image(Box::new(image.clone()));
        let data = json!({ "mediaType": media_type, "bytes": size });
        let mut output = ToolOutput::completed(model_text, vec![shown.into()], data);
        output.images.push(image);
        output
    }

    fn binary_error(&self, size: Option<u64>) -> ToolFailure {
        let size = size
            .map(|size| format!(" of {size} bytes"))
            .unwrap_or_default();
        ToolFailure::failed(format!(
            "`{}` is a binary file{size}, or not valid UTF-8, and cannot be read as text. Use a command such as `file` or `xxd` to inspect it.",
            self.path
        ))
    }
}

/// Removes the line numbers from a result's text, because only the model needs them.
pub(crate) fn without_line_numbers(result: &str) -> String {
    let text = |line| match split_line_number(line) {
        Some((_, text)) => text,
        None => line,
    };
    result.split_inclusive('\n').map(text).collect()
}

fn split_line_number(line: &str) -> Option<(u64, &str)> {
    let (number, text) = line.split_once('\t')?;
    Some((number.parse().ok()?, text))
}

/// Detects the type of a file from its first bytes. A file that only the client can access is assumed to be text.
async fn detect_content(workspace: &Workspace, path: &str) -> Result<DetectedContent, ToolFailure> {
    if workspace.access().is_err() {
        return Ok(DetectedContent::Text);
    }
    let path = PathBuf::from(path);
    let looked = workspace.with_tree(move |tree, _| Ok(detect_in_tree(tree, &path)));
    Ok(looked.await?.unwrap_or(DetectedContent::Text))
}

fn detect_in_tree(tree: &DirectoryTree, path: &Path) -> Option<DetectedContent> {
    let mut file = tree.open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.by_ref()
        .take(TYPE_DETECTION_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(match media_type(&bytes) {
        Some(media_type) if size > MAX_IMAGE_BYTES => {
            DetectedContent::LargeImage { media_type, size }
        }
        Some(media_type) => {
            file.take(MAX_IMAGE_BYTES).read_to_end(&mut bytes).ok()?;
            DetectedContent::Image { media_type, bytes }
        }
        None if bytes.contains(&0) => DetectedContent::Binary { size },
        None => DetectedContent::Text,
    })
}

/// Returns the media type of an image, if it is one that models and editors support.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_are_removed() {
        let result =
            "7\ta\tb\n8\t\n9\t10\tc\n[Truncated after line 9. Continue with `line`: 10.]\n";
        assert_eq!(
            without_line_numbers(result),
            "a\tb\n\n10\tc\n[Truncated after line 9. Continue with `line`: 10.]\n"
        );
    }
}

//! Reads files to attach to a prompt, and converts them to content that the agent accepts.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use acp::v1::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, PromptCapabilities, ResourceLink, TextResourceContents,
};
use base64::Engine;

/// The maximum size of an image or audio file, in bytes. In base64, a file of this size still fits into a message that
/// a [connection](acp::Limits::message) can read.
const MAX_MEDIA_BYTES: u64 = 32 * 1024 * 1024;

/// A file or directory attached to a prompt (specification: Content).
///
/// The file is read when the attachment is created, so that errors are known before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    path: PathBuf,
    media_type: Option<String>,
    size: u64,
    content: AttachmentContent,
}

/// The data read for an attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AttachmentContent {
    /// The complete contents of the file.
    Bytes(Vec<u8>),
    /// Nothing, because the file is too large to send. The agent gets a link instead.
    Link,
    /// Nothing, because the path is a directory.
    Directory,
}

/// The kind of content to send a file as, based on its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind {
    /// An image in any format except SVG.
    Image,
    /// An audio file.
    Audio,
    /// Any other file, including SVG images.
    Other,
}

impl AttachmentKind {
    /// Returns the kind of attachment for the file at this path.
    #[must_use]
    pub fn from_path(path: &Path) -> Self {
        media_type(path).map_or(Self::Other, |media_type| Self::from_media_type(&media_type))
    }

    fn from_media_type(media_type: &str) -> Self {
        // An SVG is text, which is more useful to a model than an image it cannot draw.
        if media_type.starts_with("image/") && media_type != "image/svg+xml" {
            Self::Image
        } else if media_type.starts_with("audio/") {
            Self::Audio
        } else {
            Self::Other
        }
    }
}

/// The reason why a file cannot be attached. The error message starts with the file's path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachmentError {
    /// The file or directory cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory that cannot be read.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The path is a socket, a pipe or a device.
    #[error("{}: not a file or directory", path.display())]
    NotAFile {
        /// The path of the socket, pipe or device.
        path: PathBuf,
    },
    /// The image or audio file is too large for a message.
    #[error("{}: file too large (limit: {} MiB)", path.display(), MAX_MEDIA_BYTES / 1024 / 1024)]
    TooLarge {
        /// The path of the image or audio file.
        path: PathBuf,
    },
    /// The agent does not support images (`promptCapabilities.image`).
    #[error("{}: this agent does not accept images", path.display())]
    NoImages {
        /// The path of the image.
        path: PathBuf,
    },
    /// The agent does not support audio (`promptCapabilities.audio`).
    #[error("{}: this agent does not accept audio", path.display())]
    NoAudio {
        /// The path of the audio file.
        path: PathBuf,
    },
}

impl Attachment {
    /// Reads a file to attach to a prompt. Directories, and files over `embedded` bytes that are neither images nor
    /// audio, are sent only as links.
    ///
    /// # Errors
    /// The file cannot be read, is neither file nor directory, or is an image or audio file of more than 32 MiB.
    pub fn read(file: &Path, embedded: u64) -> Result<Self, AttachmentError> {
        let failed = |source| AttachmentError::Io {
            path: file.to_owned(),
            source,
        };
        let path = std::fs::canonicalize(file).map_err(failed)?;
        let found = std::fs::metadata(&path).map_err(failed)?;
        if found.is_dir() {
            return Ok(Self {
                path,
                media_type: None,
                size: 0,
                content: AttachmentContent::Directory,
            });
        }
        if !found.is_file() {
            let path = file.to_owned();
            return Err(AttachmentError::NotAFile { path });
        }
        let media_type = media_type(&path);
        let media = AttachmentKind::from_path(&path) != AttachmentKind::Other;
        // Media cannot be sent as a link, so it may be as large as a message allows.
        let most = if media { MAX_MEDIA_BYTES } else { embedded };
        let content = if found.len() > most {
            AttachmentContent::Link
        } else {
            // The file may have grown since its size was read.
            let mut bytes = Vec::new();
            let opened = std::fs::File::open(&path).map_err(failed)?;
            let read = opened.take(most.saturating_add(1)).read_to_end(&mut bytes);
            if read.map_err(failed)? as u64 > most {
                AttachmentContent::Link
            } else {
                AttachmentContent::Bytes(bytes)
            }
        };
        if media && content == AttachmentContent::Link {
            let path = file.to_owned();
            return Err(AttachmentError::TooLarge { path });
        }
        Ok(Self {
            path,
            media_type,
            size: found.len(),
            content,
        })
    }

    /// Returns the absolute path of the attached file or directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes read, all of which will be sent.
    #[must_use]
    pub fn content_size(&self) -> u64 {
        match &self.content {
            AttachmentContent::Bytes(bytes) => bytes.len() as u64,
            AttachmentContent::Link | AttachmentContent::Directory => 0,
        }
    }

    /// Returns `true` if the content is text that has been read in full.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(&self.content, AttachmentContent::Bytes(bytes) if std::str::from_utf8(bytes).is_ok())
    }

    /// Returns a link to the file, which every agent accepts.
    #[must_use]
    pub fn resource_link(&self) -> ContentBlock {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let mut link = ResourceLink::new(name.to_string_lossy(), self.uri());
        link.mime_type.clone_from(&self.media_type);
        if self.content != AttachmentContent::Directory {
            link.size = i64::try_from(self.size).ok();
        }
        ContentBlock::ResourceLink(Box::new(link))
    }

    /// Returns the content block to send. An image or audio file is sent as such. The contents of any other file are
    /// sent if the agent supports embedded content (`promptCapabilities.embeddedContext`), and a link otherwise.
    ///
    /// # Errors
    /// The attachment is an image or audio file, and the agent does not accept that kind.
    pub fn content(&self, takes: &PromptCapabilities) -> Result<ContentBlock, AttachmentError> {
        let AttachmentContent::Bytes(bytes) = &self.content else {
            return Ok(self.resource_link());
        };
        let base64 = || base64::engine::general_purpose::STANDARD.encode(bytes);
        let media_type = self.media_type.as_deref().unwrap_or_default();
        let path = || self.path.clone();
        Ok(match AttachmentKind::from_media_type(media_type) {
            AttachmentKind::Image if !takes.image => {
                return Err(AttachmentError::NoImages { path: path() });
            }
            AttachmentKind::Image => {
                let image = ImageContent::new(base64(), media_type).uri(self.uri());
                ContentBlock::Image(Box::new(image))
            }
            AttachmentKind::Audio if !takes.audio => {
                return Err(AttachmentError::NoAudio { path: path() });
            }
            AttachmentKind::Audio => {
                ContentBlock::Audio(Box::new(AudioContent::new(base64(), media_type)))
            }
            AttachmentKind::Other if !takes.embedded_context => self.resource_link(),
            AttachmentKind::Other => {
                let resource = match std::str::from_utf8(bytes) {
                    Ok(text) => {
                        let mut contents = TextResourceContents::new(text, self.uri());
                        contents.mime_type.clone_from(&self.media_type);
                        EmbeddedResourceResource::Text(contents)
                    }
                    Err(_) => {
                        let mut contents = BlobResourceContents::new(base64(), self.uri());
                        contents.mime_type.clone_from(&self.media_type);
                        EmbeddedResourceResource::Blob(contents)
                    }
                };
                ContentBlock::Resource(Box::new(EmbeddedResource::new(resource)))
            }
        })
    }

    fn uri(&self) -> String {
        let mut uri = file_uri(&self.path);
        if self.content == AttachmentContent::Directory && !uri.ends_with('/') {
            uri.push('/');
        }
        uri
    }
}

fn media_type(path: &Path) -> Option<String> {
    mime_guess::from_path(path).first_raw().map(str::to_owned)
}

/// Returns an absolute path as a `file:` URI.
fn file_uri(path: &Path) -> String {
    let mut uri = String::from("file://");
    let text = path.to_string_lossy().replace('\\', "/");
    if !text.starts_with('/') {
        uri.push('/');
    }
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMBEDDED_LIMIT_BYTES: u64 = 1024;

    fn read_attachment(name: &str, bytes: &[u8]) -> (tempfile::TempDir, Attachment) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let read = Attachment::read(&file, EMBEDDED_LIMIT_BYTES).unwrap();
        (directory, read)
    }

    fn content_json(attachment: &Attachment, takes: &PromptCapabilities) -> serde_json::Value {
        serde_json::to_value(attachment.content(takes).unwrap()).unwrap()
    }

    #[test]
    fn text_is_embedded_if_supported_and_linked_otherwise() {
        let (_directory, notes) = read_attachment("my notes.md", b"# Notes");
        let embedded = content_json(&notes, &PromptCapabilities::new().embedded_context(true));
        assert_eq!(embedded["resource"]["text"], "# Notes");
        let uri = embedded["resource"]["uri"].as_str().unwrap();
        assert!(uri.starts_with("file:///") && uri.ends_with("/my%20notes.md"));

        let link = content_json(&notes, &PromptCapabilities::new());
        assert_eq!(link["type"], "resource_link");
        assert_eq!(link["name"], "my notes.md");
        assert_eq!(link["size"], 7);
    }

    #[test]
    fn media_is_sent_only_if_supported() {
        let (_directory, picture) = read_attachment("a.png", b"\x89PNG");
        let error = picture.content(&PromptCapabilities::new()).unwrap_err();
        assert!(error.to_string().ends_with("does not accept images"));
        let taken = content_json(&picture, &PromptCapabilities::new().image(true));
        assert_eq!(taken["data"], "iVBORw==");

        let (_directory, sound) = read_attachment("a.wav", b"RIFF");
        let images = PromptCapabilities::new().image(true);
        let error = sound.content(&images).unwrap_err();
        assert!(error.to_string().ends_with("does not accept audio"));
        let taken = content_json(&sound, &PromptCapabilities::new().audio(true));
        assert_eq!(taken["type"], "audio");
    }

    #[test]
    fn large_files_and_directories_are_linked() {
        let all = PromptCapabilities::new().embedded_context(true);
        let (_directory, long) =
            read_attachment("long.txt", &[b'x'; EMBEDDED_LIMIT_BYTES as usize + 1]);
        assert_eq!(content_json(&long, &all)["size"], EMBEDDED_LIMIT_BYTES + 1);
        assert_eq!(long.content_size(), 0);

        let directory = tempfile::tempdir().unwrap();
        let link = content_json(
            &Attachment::read(directory.path(), EMBEDDED_LIMIT_BYTES).unwrap(),
            &all,
        );
        assert_eq!(link["type"], "resource_link");
        assert!(link["uri"].as_str().unwrap().ends_with('/'));

        let missing = Attachment::read(&directory.path().join("gone"), EMBEDDED_LIMIT_BYTES);
        assert!(missing.unwrap_err().to_string().contains("gone: "));
    }

    #[test]
    fn oversized_image_is_rejected_unread() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("huge.png");
        let huge = std::fs::File::create(&file).unwrap();
        huge.set_len(MAX_MEDIA_BYTES + 1).unwrap();
        let error = Attachment::read(&file, EMBEDDED_LIMIT_BYTES).unwrap_err();
        assert!(error.to_string().contains("file too large (limit: 32 MiB)"));
    }
}

//! What is said to the agent: the text and the files that go with it.

use std::io::Read;
use std::path::{Path, PathBuf};

use acp::v1::{
    AgentCapabilities, AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource,
    EmbeddedResourceResource, ImageContent, ResourceLink, TextResourceContents,
};
use base64::Engine;

use crate::args::RunArgs;
use crate::exit::Exit;

/// Files beyond this are not put into the prompt; the agent is given their place instead.
const EMBEDDED: u64 = 4 * 1024 * 1024;

/// The text, from wherever it was asked to be read.
pub(super) fn read(args: &RunArgs) -> Result<String, Exit> {
    let text = match (&args.file, args.prompt.as_slice()) {
        (Some(file), _) => std::fs::read_to_string(file)
            .map_err(|e| Exit::usage(format!("--file {}: {e}", file.display())))?,
        (None, [dash]) if dash == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Exit::usage(format!("stdin: {e}")))?;
            text
        }
        (None, words) => words.join(" "),
    };
    if text.trim().is_empty() {
        let message = "nothing to say: give a PROMPT, --file FILE, or - to read it from stdin";
        return Err(Exit::usage(message));
    }
    Ok(text)
}

/// A file that goes with the prompt.
#[derive(Debug)]
pub(super) struct Attachment {
    path: PathBuf,
    mime_type: Option<String>,
    size: u64,
    /// `None` for a file that is too large to be put into the prompt.
    bytes: Option<Vec<u8>>,
}

pub(super) fn attachments(files: &[PathBuf]) -> Result<Vec<Attachment>, Exit> {
    files.iter().map(|file| attachment(file)).collect()
}

fn attachment(file: &Path) -> Result<Attachment, Exit> {
    let wrong = |e: std::io::Error| Exit::usage(format!("--attach {}: {e}", file.display()));
    let path = std::fs::canonicalize(file).map_err(wrong)?;
    let meta = std::fs::metadata(&path).map_err(wrong)?;
    if !meta.is_file() {
        return Err(Exit::usage(format!(
            "--attach {}: not a file",
            file.display()
        )));
    }
    let mime_type = mime_guess::from_path(&path).first_raw().map(str::to_owned);
    let media = mime_type.as_deref().is_some_and(is_media);
    // Media has no other way to the agent, so it is read whatever its size.
    let bytes = if media || meta.len() <= EMBEDDED {
        Some(std::fs::read(&path).map_err(wrong)?)
    } else {
        None
    };
    Ok(Attachment {
        path,
        mime_type,
        size: meta.len(),
        bytes,
    })
}

fn is_media(mime_type: &str) -> bool {
    // An SVG is text, which is more use to a model than a picture it cannot draw.
    (mime_type.starts_with("image/") && mime_type != "image/svg+xml")
        || mime_type.starts_with("audio/")
}

/// The prompt's content: only what the agent takes.
pub(super) fn content(
    text: &str,
    attachments: &[Attachment],
    agent: &AgentCapabilities,
) -> Result<Vec<ContentBlock>, Exit> {
    let mut content = vec![ContentBlock::text(text)];
    for attachment in attachments {
        content.push(block(attachment, agent)?);
    }
    Ok(content)
}

fn block(attachment: &Attachment, agent: &AgentCapabilities) -> Result<ContentBlock, Exit> {
    let takes = &agent.prompt_capabilities;
    let Attachment {
        path,
        mime_type,
        size,
        bytes,
    } = attachment;
    let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let refused = |what: &str| {
        Exit::usage(format!(
            "--attach {}: this agent does not take {what}",
            path.display()
        ))
    };
    let uri = file_uri(path);
    match (mime_type.as_deref(), bytes) {
        (Some(mime_type), Some(bytes))
            if is_media(mime_type) && mime_type.starts_with("image/") =>
        {
            if !takes.image {
                return Err(refused("images"));
            }
            Ok(ContentBlock::Image(Box::new(
                ImageContent::new(base64(bytes), mime_type).uri(uri),
            )))
        }
        (Some(mime_type), Some(bytes)) if is_media(mime_type) => {
            if !takes.audio {
                return Err(refused("sound"));
            }
            Ok(ContentBlock::Audio(Box::new(AudioContent::new(
                base64(bytes),
                mime_type,
            ))))
        }
        (mime_type, Some(bytes)) if takes.embedded_context => {
            let resource = match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let mut contents = TextResourceContents::new(text, uri);
                    contents.mime_type = mime_type.map(str::to_owned);
                    EmbeddedResourceResource::Text(contents)
                }
                Err(_) => {
                    let mut contents = BlobResourceContents::new(base64(bytes), uri);
                    contents.mime_type = mime_type.map(str::to_owned);
                    EmbeddedResourceResource::Blob(contents)
                }
            };
            Ok(ContentBlock::Resource(Box::new(EmbeddedResource::new(
                resource,
            ))))
        }
        (mime_type, _) => {
            let name = path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy();
            let mut link = ResourceLink::new(name, uri);
            link.mime_type = mime_type.map(str::to_owned);
            link.size = i64::try_from(*size).ok();
            Ok(ContentBlock::ResourceLink(Box::new(link)))
        }
    }
}

/// An absolute path as a URI.
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
    use acp::v1::PromptCapabilities;

    fn file(name: &str, bytes: &[u8]) -> Attachment {
        let path = PathBuf::from("/work dir").join(name);
        let mime_type = mime_guess::from_path(&path).first_raw().map(str::to_owned);
        Attachment {
            path,
            mime_type,
            size: bytes.len() as u64,
            bytes: Some(bytes.to_vec()),
        }
    }

    fn agent(takes: PromptCapabilities) -> AgentCapabilities {
        AgentCapabilities::new().prompt_capabilities(takes)
    }

    #[test]
    fn text_is_embedded_where_that_is_taken_and_pointed_at_where_not() {
        let notes = file("notes.md", b"# Notes");
        let embedded = block(
            &notes,
            &agent(PromptCapabilities::new().embedded_context(true)),
        )
        .unwrap();
        let json = serde_json::to_value(embedded).unwrap();
        assert_eq!(json["resource"]["text"], "# Notes");
        assert_eq!(json["resource"]["uri"], "file:///work%20dir/notes.md");

        let link = block(&notes, &agent(PromptCapabilities::new())).unwrap();
        let json = serde_json::to_value(link).unwrap();
        assert_eq!(json["type"], "resource_link");
        assert_eq!(json["size"], 7);
    }

    #[test]
    fn media_goes_only_where_it_is_taken() {
        let picture = file("a.png", b"\x89PNG");
        let error = block(&picture, &agent(PromptCapabilities::new())).unwrap_err();
        assert_eq!(error.code, 2);
        assert!(error.message.unwrap().contains("does not take images"));
        let taken = block(&picture, &agent(PromptCapabilities::new().image(true))).unwrap();
        assert_eq!(serde_json::to_value(taken).unwrap()["data"], "iVBORw==");

        let sound = file("a.wav", b"RIFF");
        assert!(block(&sound, &agent(PromptCapabilities::new().image(true))).is_err());
        assert!(block(&sound, &agent(PromptCapabilities::new().audio(true))).is_ok());
    }
}

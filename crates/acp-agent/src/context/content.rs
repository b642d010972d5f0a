//! Converts the content of a prompt for the model. See "Content" in the specification. Models understand text and
//! images. Anything else becomes text that describes the content and where to find it.

use std::path::Path;

use acp::v1::{
    BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    ResourceLink, TextResourceContents,
};
use reqwest::Url;

use crate::text::{to_code_block, truncate_to_head};
use crate::workspace::Workspace;

/// The maximum number of bytes to include from one embedded resource. The model can read the rest with tools.
const MAX_RESOURCE_BYTES: usize = 64 * 1024;

/// The maximum number of bytes to include from all embedded resources of a prompt.
const MAX_TOTAL_BYTES: usize = 256 * 1024;

/// Converts the content of a prompt for the model.
pub(crate) fn convert_for_model(
    content: Vec<ContentBlock>,
    workspace: &Workspace,
) -> Vec<ContentBlock> {
    let mut room = MAX_TOTAL_BYTES;
    let model_text = content.into_iter().map(|block| match block {
        ContentBlock::ResourceLink(link) => ContentBlock::text(link_text(&link, workspace)),
        ContentBlock::Resource(embedded) => {
            convert_embedded_resource(*embedded, workspace, &mut room)
        }
        other => other,
    });
    model_text.collect()
}

/// The target of a URI: a file or some other resource.
enum UriTarget {
    /// A file that tools can read. Contains the path to display.
    Within(String),
    /// A file that tools cannot read. Contains the path to display.
    Outside(String),
    /// A resource that is not a file, such as a web page.
    Other,
}

fn parse_uri(uri: &str, workspace: &Workspace) -> UriTarget {
    let Some((url, path)) = file_uri_path(uri) else {
        return UriTarget::Other;
    };
    let within = workspace
        .turn
        .roots()
        .iter()
        .any(|root| path.starts_with(root));
    let mut shown = workspace.display_path(&path.to_string_lossy());
    // Editors put line numbers in the fragment.
    if let Some(fragment) = url.fragment().filter(|fragment| !fragment.is_empty()) {
        shown.push_str(&format!(" ({fragment})"));
    }
    if within {
        UriTarget::Within(shown)
    } else {
        UriTarget::Outside(shown)
    }
}

fn file_uri_path(uri: &str) -> Option<(Url, std::path::PathBuf)> {
    if Path::new(uri).is_absolute() {
        let url = Url::from_file_path(uri).ok()?;
        return Some((url, uri.into()));
    }
    let url = Url::parse(uri).ok()?;
    let path = (url.scheme() == "file").then(|| url.to_file_path().ok())??;
    Some((url, path))
}

fn link_text(link: &ResourceLink, workspace: &Workspace) -> String {
    let mut text = match parse_uri(&link.uri, workspace) {
        UriTarget::Within(path) => format!(
            "The user refers to the file `{path}`. Its content is not included; read it with a tool."
        ),
        UriTarget::Outside(path) => format!(
            "The user refers to `{path}`, which is outside the session's directories. Tools cannot read it."
        ),
        UriTarget::Other => format!("The user refers to `{}` (<{}>).", link.name, link.uri),
    };
    for about in [&link.title, &link.description].into_iter().flatten() {
        text.push(' ');
        text.push_str(truncate_to_head(about, 1024));
    }
    text
}

fn convert_embedded_resource(
    embedded: EmbeddedResource,
    workspace: &Workspace,
    room: &mut usize,
) -> ContentBlock {
    match embedded.resource {
        EmbeddedResourceResource::Text(text) => {
            ContentBlock::text(attachment_text(&text, workspace, room))
        }
        EmbeddedResourceResource::Blob(blob) => blob_content(blob, workspace),
        _ => ContentBlock::text("The user attached content of an unknown type."),
    }
}

/// Returns a display name for an attached resource, for use in a sentence.
fn display_name(uri: &str, workspace: &Workspace) -> String {
    match parse_uri(uri, workspace) {
        UriTarget::Within(path) => format!("the file `{path}`"),
        UriTarget::Outside(path) => {
            format!("the file `{path}`, which is outside the session's directories")
        }
        UriTarget::Other => format!("<{uri}>"),
    }
}

fn attachment_text(text: &TextResourceContents, workspace: &Workspace, room: &mut usize) -> String {
    let kept = truncate_to_head(&text.text, MAX_RESOURCE_BYTES.min(*room));
    *room -= kept.len();
    let name = display_name(&text.uri, workspace);
    let more = match parse_uri(&text.uri, workspace) {
        UriTarget::Within(_) => "; read it with a tool if needed",
        // No tool can read the resource.
        UriTarget::Outside(_) | UriTarget::Other => "",
    };
    if kept.is_empty() && !text.text.is_empty() {
        return format!(
            "The user attached {name} ({} bytes). It is too large to include here{more}.",
            text.text.len()
        );
    }
    let mut model_text = format!("The user attached {name}:\n\n{}", to_code_block(kept));
    if kept.len() < text.text.len() {
        model_text.push_str(&format!(
            "\n\nThese are the first {} of its {} bytes{more}.",
            kept.len(),
            text.text.len()
        ));
    }
    model_text
}

fn blob_content(blob: BlobResourceContents, workspace: &Workspace) -> ContentBlock {
    match blob.mime_type {
        Some(mime) if mime.starts_with("image/") => {
            ContentBlock::Image(ImageContent::new(blob.blob, mime).uri(blob.uri).into())
        }
        mime => ContentBlock::text(format!(
            "The user attached {}. It is not text{} and cannot be included here.",
            display_name(&blob.uri, workspace),
            mime.map(|mime| format!(" ({mime})")).unwrap_or_default()
        )),
    }
}

//! What comes with a prompt beside its text: the specification's page "Content". Models understand text and
//! pictures; all else becomes text that says what it is and where.

use std::path::Path;

use acp::v1::{
    BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    ResourceLink, TextResourceContents,
};
use reqwest::Url;

use crate::text::{fenced, head};
use crate::workspace::Workspace;

/// The most that is told of one embedded resource, in bytes. What is longer is read by the tools.
const MAX_ONE: usize = 64 * 1024;

/// The most that is told of all embedded resources of a prompt, in bytes.
const MAX_ALL: usize = 256 * 1024;

/// The content of a prompt, as a model is told it.
pub(crate) fn for_model(content: Vec<ContentBlock>, workspace: &Workspace) -> Vec<ContentBlock> {
    let mut room = MAX_ALL;
    let told = content.into_iter().map(|block| match block {
        ContentBlock::ResourceLink(link) => ContentBlock::text(linked(&link, workspace)),
        ContentBlock::Resource(embedded) => embed(*embedded, workspace, &mut room),
        other => other,
    });
    told.collect()
}

/// Where a URI leads.
enum Target {
    /// To a file that the tools can read, by a path as people read it.
    Within(String),
    /// To a file that they cannot.
    Outside(String),
    /// Somewhere else.
    Other,
}

fn target(uri: &str, workspace: &Workspace) -> Target {
    let Some((url, path)) = file(uri) else {
        return Target::Other;
    };
    let within = workspace
        .turn
        .roots()
        .iter()
        .any(|root| path.starts_with(root));
    let mut shown = workspace.shown(&path.to_string_lossy());
    // Editors name lines in it.
    if let Some(fragment) = url.fragment().filter(|fragment| !fragment.is_empty()) {
        shown.push_str(&format!(" ({fragment})"));
    }
    if within {
        Target::Within(shown)
    } else {
        Target::Outside(shown)
    }
}

fn file(uri: &str) -> Option<(Url, std::path::PathBuf)> {
    if Path::new(uri).is_absolute() {
        let url = Url::from_file_path(uri).ok()?;
        return Some((url, uri.into()));
    }
    let url = Url::parse(uri).ok()?;
    let path = (url.scheme() == "file").then(|| url.to_file_path().ok())??;
    Some((url, path))
}

fn linked(link: &ResourceLink, workspace: &Workspace) -> String {
    let mut text = match target(&link.uri, workspace) {
        Target::Within(path) => format!(
            "The person refers to the file `{path}`. Its content is not shown here: read it with a tool."
        ),
        Target::Outside(path) => format!(
            "The person refers to `{path}`, which is outside of the session's directories: the tools cannot \
             read it."
        ),
        Target::Other => format!("The person refers to `{}` (<{}>).", link.name, link.uri),
    };
    for about in [&link.title, &link.description].into_iter().flatten() {
        text.push(' ');
        text.push_str(head(about, 1024));
    }
    text
}

fn embed(embedded: EmbeddedResource, workspace: &Workspace, room: &mut usize) -> ContentBlock {
    match embedded.resource {
        EmbeddedResourceResource::Text(text) => {
            ContentBlock::text(attached(&text, workspace, room))
        }
        EmbeddedResourceResource::Blob(blob) => bytes(blob, workspace),
        _ => ContentBlock::text("The person attached something of a kind that is not known here."),
    }
}

/// What an attached resource is called.
fn name(uri: &str, workspace: &Workspace) -> String {
    match target(uri, workspace) {
        Target::Within(path) => format!("the file `{path}`"),
        Target::Outside(path) => {
            format!("the file `{path}`, which is outside of the session's directories")
        }
        Target::Other => format!("<{uri}>"),
    }
}

fn attached(text: &TextResourceContents, workspace: &Workspace, room: &mut usize) -> String {
    let kept = head(&text.text, MAX_ONE.min(*room));
    *room -= kept.len();
    let name = name(&text.uri, workspace);
    let more = match target(&text.uri, workspace) {
        Target::Within(_) => "; if it matters, read it with a tool",
        // No tool reaches it.
        Target::Outside(_) | Target::Other => "",
    };
    if kept.is_empty() && !text.text.is_empty() {
        return format!(
            "The person attached {name} ({} bytes). There was no room left to show it here{more}.",
            text.text.len()
        );
    }
    let mut told = format!("The person attached {name}:\n\n{}", fenced(kept));
    if kept.len() < text.text.len() {
        told.push_str(&format!(
            "\n\nThese are the first {} of its {} bytes{more}.",
            kept.len(),
            text.text.len()
        ));
    }
    told
}

fn bytes(blob: BlobResourceContents, workspace: &Workspace) -> ContentBlock {
    match blob.mime_type {
        Some(mime) if mime.starts_with("image/") => {
            ContentBlock::Image(ImageContent::new(blob.blob, mime).uri(blob.uri).into())
        }
        mime => ContentBlock::text(format!(
            "The person attached {}. It is no text{}, and cannot be shown here.",
            name(&blob.uri, workspace),
            mime.map(|mime| format!(" but {mime}")).unwrap_or_default()
        )),
    }
}

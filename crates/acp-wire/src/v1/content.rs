//! Content blocks, which are the same as in MCP. See the specification's page "Content".

use crate::RawObject;
use crate::lenient::Lenient;

tagged! {
    /// A block of content in a prompt, a message or a tool call.
    ///
    /// Nearly all blocks are text. The larger, rare variants are boxed to keep the type small.
    pub enum ContentBlock by "type" {
        /// Text, usually Markdown. Every agent accepts text.
        Text(TextContent) = "text",
        /// An image. In prompts, it requires the prompt capability `image`.
        Image(Box<ImageContent>) = "image",
        /// Audio data. In prompts, it requires the prompt capability `audio`.
        Audio(Box<AudioContent>) = "audio",
        /// A link to a resource that the agent can fetch. Every agent accepts links.
        ResourceLink(Box<ResourceLink>) = "resource_link",
        /// A resource with its contents. In prompts, it requires the prompt capability `embeddedContext`.
        Resource(Box<EmbeddedResource>) = "resource",
    }
}

impl ContentBlock {
    /// Creates a text block without annotations.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns the text of a text block, or `None` for other content.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

record! {
    /// Hints about how to use or show content.
    pub struct Annotations {
        /// The intended audience of the content.
        optional_list audience: Role,
        /// The time of the last change (ISO 8601).
        optional last_modified: String,
        /// The importance, from 0 to 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_fraction))]
        optional priority: f64,
    }
}

open_enum! {
    /// The intended audience of content: the user or the assistant.
    pub enum Role {
        /// The assistant, meaning the model.
        Assistant = "assistant",
        /// The person at the client.
        User = "user",
    }
}

record! {
    /// Text in a prompt, a message or a tool call.
    pub struct TextContent {
        /// The text to show, or to send to the model.
        required text: String,
        /// Hints about how to use or show the content.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// Image data with its media type.
    pub struct ImageContent {
        /// The data, encoded as base64.
        required data: String,
        /// The media type, such as `image/png`.
        required mime_type: String,
        /// The URI of the image's source.
        optional uri: String,
        /// Hints about how to use or show the content.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// Audio data with its media type.
    pub struct AudioContent {
        /// The data, encoded as base64.
        required data: String,
        /// The media type, such as `audio/wav`.
        required mime_type: String,
        /// Hints about how to use or show the content.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// A link to a resource, without its contents.
    pub struct ResourceLink {
        /// The resource's name, such as a file name.
        required name: String,
        /// The URI that identifies the resource.
        required uri: String,
        /// The title to show to the user instead of the name.
        optional title: String,
        /// A description to show to the user.
        optional description: String,
        /// The media type, such as `text/plain`.
        optional mime_type: String,
        /// The size in bytes. Not negative.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_non_negative))]
        optional size: i64,
        /// Icons for the resource. Only in version 2. Version 1 clients ignore them.
        optional_list icons: Icon,
        /// Hints about how to use or show the content.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// An icon for a resource. Only in version 2.
    pub struct Icon {
        /// The URI of the icon's image file.
        required src: String,
        /// The media type to assume if the image's server does not specify one.
        optional mime_type: String,
        /// The sizes that the icon is meant for, such as `48x48`, or `any`.
        optional_list sizes: String,
        /// The theme that the icon is designed for.
        optional theme: IconTheme,
    }
}

open_enum! {
    /// The theme that an icon is designed for.
    pub enum IconTheme {
        /// The icon is for a light theme.
        Light = "light",
        /// The icon is for a dark theme.
        Dark = "dark",
    }
}

record! {
    /// A resource whose contents are part of the block.
    pub struct EmbeddedResource {
        /// The contents, as text or binary data.
        required resource: EmbeddedResourceResource,
        /// Hints about how to use or show the content.
        optional annotations: Box<Annotations>,
    }
}

/// The contents of a resource: an object with either `text` or `blob`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(untagged)]
#[non_exhaustive]
pub enum EmbeddedResourceResource {
    /// The resource is text.
    Text(TextResourceContents),
    /// The resource is binary.
    Blob(BlobResourceContents),
}

impl<'de> serde::Deserialize<'de> for EmbeddedResourceResource {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(d)?;
        if object.has("text") {
            object.read().map(Self::Text)
        } else {
            object.read().map(Self::Blob)
        }
        .map_err(serde::de::Error::custom)
    }
}

impl Lenient for EmbeddedResourceResource {
    fn lenient<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        crate::lenient::read_via_raw(d)
    }
}

record! {
    /// The contents of a resource that is text.
    pub struct TextResourceContents {
        /// The resource's text.
        required text: String,
        /// The URI, such as `file:///home/me/main.rs`.
        required uri: String,
        /// The media type, such as `text/plain`.
        optional mime_type: String,
    }
}

record! {
    /// The contents of a resource that is not text.
    pub struct BlobResourceContents {
        /// The data, encoded as base64.
        required blob: String,
        /// The URI that identifies the resource.
        required uri: String,
        /// The media type, such as `text/plain`.
        optional mime_type: String,
    }
}

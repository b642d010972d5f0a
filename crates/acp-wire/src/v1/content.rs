//! Content blocks: the specification's page Content, the same as MCP's.

use crate::RawObject;
use crate::lenient::Lenient;

tagged! {
    /// A piece of content in a prompt, a message or a tool call.
    ///
    /// Nearly all of it is text; what is larger and rare is behind a pointer, so that it is cheap to hand on.
    pub enum ContentBlock by "type" {
        /// Text, by default Markdown. Every agent takes it.
        Text(TextContent) = "text",
        /// A picture. In prompts: needs the `image` prompt capability.
        Image(Box<ImageContent>) = "image",
        /// Sound. In prompts: needs the `audio` prompt capability.
        Audio(Box<AudioContent>) = "audio",
        /// A pointer to something the agent can fetch. Every agent takes it.
        ResourceLink(Box<ResourceLink>) = "resource_link",
        /// A resource with its contents. In prompts: needs the `embeddedContext` prompt capability.
        Resource(Box<EmbeddedResource>) = "resource",
    }
}

impl ContentBlock {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if that is what it is.
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
    /// Hints about how content is meant to be used or shown.
    pub struct Annotations {
        /// For whom it is meant.
        optional_list audience: Role,
        /// When it last changed (ISO 8601).
        optional last_modified: String,
        /// How important it is, from 0 to 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_share))]
        optional priority: f64,
    }
}

open_enum! {
    /// Who is speaking or spoken to.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The user.
        User = "user",
    }
}

record! {
    /// Text.
    pub struct TextContent {
        /// The text.
        required text: String,
        /// Hints.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// A picture.
    pub struct ImageContent {
        /// Its bytes in base64.
        required data: String,
        /// Its media type, such as `image/png`.
        required mime_type: String,
        /// Where it came from.
        optional uri: String,
        /// Hints.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// Sound.
    pub struct AudioContent {
        /// Its bytes in base64.
        required data: String,
        /// Its media type, such as `audio/wav`.
        required mime_type: String,
        /// Hints.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// A pointer to a resource.
    pub struct ResourceLink {
        /// The name that is shown to the user.
        required name: String,
        /// Where it is.
        required uri: String,
        /// The title that is shown to the user.
        optional title: String,
        /// What it is.
        optional description: String,
        /// Its media type.
        optional mime_type: String,
        /// Its size in bytes, at least 0.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_not_negative))]
        optional size: i64,
        /// Icons to show it with. Version 2; clients of version 1 pass over them.
        optional_list icons: Icon,
        /// Hints.
        optional annotations: Box<Annotations>,
    }
}

record! {
    /// An icon. Version 2.
    pub struct Icon {
        /// Where it is.
        required src: String,
        /// Its media type, where the source does not tell.
        optional mime_type: String,
        /// The sizes it is good for: `48x48`, or `any`.
        optional_list sizes: String,
        /// What it is drawn for.
        optional theme: IconTheme,
    }
}

open_enum! {
    /// What an icon is drawn for.
    pub enum IconTheme {
        /// Light backgrounds.
        Light = "light",
        /// Dark backgrounds.
        Dark = "dark",
    }
}

record! {
    /// A resource with its contents.
    pub struct EmbeddedResource {
        /// The contents.
        required resource: EmbeddedResourceResource,
        /// Hints.
        optional annotations: Box<Annotations>,
    }
}

/// The contents of a resource: told apart by having `text` or `blob`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[serde(untagged)]
#[non_exhaustive]
pub enum EmbeddedResourceResource {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
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
        crate::lenient::via_raw(d)
    }
}

record! {
    /// A resource that is text.
    pub struct TextResourceContents {
        /// The text.
        required text: String,
        /// What it is, such as `file:///home/me/main.rs`.
        required uri: String,
        /// Its media type.
        optional mime_type: String,
    }
}

record! {
    /// A resource that is bytes.
    pub struct BlobResourceContents {
        /// The bytes in base64.
        required blob: String,
        /// What it is.
        required uri: String,
        /// Its media type.
        optional mime_type: String,
    }
}

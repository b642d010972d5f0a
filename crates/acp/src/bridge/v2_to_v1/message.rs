//! The translation of messages. In version 2, an agent can send a whole message repeatedly; version 1 has only chunks.
//! So the bridge sends only the text that was added.

use acp_wire::RawObject;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::json::{UpdateTranslation, items, object, to_raw_value};
use crate::lru_map::LruMap;

/// The messages that the client has received, whole or in part.
#[derive(Default)]
pub(super) struct DownMessages(LruMap<SentText, 1024>);

/// The part of a message that the client has received, as a digest to check whether a longer message starts with it.
#[derive(Debug, Default, Clone)]
struct SentText {
    digest: TextDigest,
    /// The id by which the client knows the message, if it differs from the agent's.
    renamed_id: Option<String>,
}

/// The length and the hash of all bytes added so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextDigest {
    length: usize,
    hash: u64,
}

impl Default for TextDigest {
    fn default() -> Self {
        // The start value of FNV-1a. The hash does not depend on how the bytes are split into chunks.
        Self {
            length: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }
}

impl TextDigest {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns what follows in `bytes` after the bytes added so far, or `None` if `bytes` does not start with them.
    pub(super) fn rest<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (begin, rest) = bytes.split_at_checked(self.length)?;
        let mut sum = Self::default();
        sum.add(begin);
        (sum == *self).then_some(rest)
    }
}

/// Returns the bytes of a content block for a digest: the text of a text block, or the JSON of any other block. The
/// flag is `true` for a text block.
fn bytes_of(block: &RawValue) -> (Vec<u8>, bool) {
    let read = object(Some(block));
    let text = read.field::<String>("text");
    match text.filter(|_| read.field::<String>("type").as_deref() == Some("text")) {
        Some(text) => (text.into_bytes(), true),
        None => {
            // This byte never occurs in text.
            let mut bytes = vec![0xff];
            bytes.extend_from_slice(block.get().as_bytes());
            bytes.push(0xff);
            (bytes, false)
        }
    }
}

impl DownMessages {
    /// Translates a chunk of a message.
    pub(super) fn chunk(&mut self, mut update: RawObject) -> UpdateTranslation {
        let Some(id) = update.field::<String>("messageId") else {
            return UpdateTranslation::Unchanged;
        };
        let sent = self.0.touch(&id);
        if let Some(block) = update.get("content") {
            sent.digest.add(&bytes_of(block).0);
        }
        match &sent.renamed_id {
            Some(renamed) => {
                update.set("messageId", to_raw_value(renamed));
                UpdateTranslation::Changed(update)
            }
            None => UpdateTranslation::Unchanged,
        }
    }

    /// Translates a whole message to chunks with the part that the client does not have yet.
    pub(super) fn update_whole(
        &mut self,
        kind: &str,
        update: &RawObject,
    ) -> Vec<UpdateTranslation> {
        let (Some(id), Some(content)) =
            (update.field::<String>("messageId"), update.get("content"))
        else {
            return Vec::new();
        };
        let blocks: Vec<Box<RawValue>> = if content.get() == "null" {
            Vec::new()
        } else {
            items(update, "content")
        };
        let sent = self.0.touch(&id);
        let all: Vec<u8> = blocks.iter().flat_map(|block| bytes_of(block).0).collect();
        let known = match sent.digest.rest(&all) {
            Some(_) => sent.digest.length,
            None => {
                // Sent chunks cannot be withdrawn, so send the whole message again under another id.
                *sent = SentText {
                    digest: TextDigest::default(),
                    renamed_id: Some(Uuid::new_v4().to_string()),
                };
                0
            }
        };
        sent.digest = TextDigest::default();
        sent.digest.add(&all);
        let id = sent.renamed_id.clone().unwrap_or(id);
        let mut emits = Vec::new();
        let mut at = 0;
        for block in blocks {
            let (bytes, is_text) = bytes_of(&block);
            let begin = at;
            at += bytes.len();
            if at <= known || bytes.is_empty() {
                continue;
            }
            let new = bytes.get(known.saturating_sub(begin)..).unwrap_or_default();
            let block = match std::str::from_utf8(new) {
                Ok(text) if is_text && new.len() < bytes.len() => {
                    to_raw_value(&object! { "type": "text", "text": text })
                }
                _ => block,
            };
            let mut chunk = object! { "sessionUpdate": kind, "messageId": id, "content": block };
            if let Some(meta) = super::non_null(update, "_meta").filter(|_| emits.is_empty()) {
                chunk.push("_meta".to_owned(), meta.to_owned());
            }
            emits.push(UpdateTranslation::Changed(chunk));
        }
        emits
    }
}

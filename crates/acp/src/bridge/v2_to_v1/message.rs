//! Translates messages. A version 2 agent can send a full message repeatedly. Version 1 has only chunks, so the bridge
//! sends only the added text.

use acp_wire::RawObject;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::json::{TranslatedUpdate, list_items, to_object, to_raw_value};
use crate::lru_map::LruMap;

/// The messages that the client has received, in full or in part.
#[derive(Default)]
pub(super) struct SentMessages(LruMap<SentText, 1024>);

/// A digest of the part of a message that the client has received, used to check whether a longer message starts with
/// that part.
#[derive(Debug, Default, Clone)]
struct SentText {
    digest: TextDigest,
    /// The id by which the client knows the message, if it differs from the agent's id.
    renamed_id: Option<String>,
}

/// The length and hash of a growing sequence of bytes.
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

    /// Returns the rest of `bytes` after the bytes that the digest covers, or `None` if `bytes` does not start with
    /// them.
    pub(super) fn strip_prefix<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (begin, rest) = bytes.split_at_checked(self.length)?;
        let mut sum = Self::default();
        sum.add(begin);
        (sum == *self).then_some(rest)
    }
}

/// Returns a content block's bytes for a digest: a text block's text, or any other block's JSON. The flag is `true` for
/// a text block.
fn digest_bytes(block: &RawValue) -> (Vec<u8>, bool) {
    let read = to_object(Some(block));
    let text = read.field::<String>("text");
    match text.filter(|_| read.field::<String>("type").as_deref() == Some("text")) {
        Some(text) => (text.into_bytes(), true),
        None => {
            // The byte 0xff never occurs in text.
            let mut bytes = vec![0xff];
            bytes.extend_from_slice(block.get().as_bytes());
            bytes.push(0xff);
            (bytes, false)
        }
    }
}

impl SentMessages {
    /// Translates a chunk of a message.
    pub(super) fn translate_chunk(&mut self, mut update: RawObject) -> TranslatedUpdate {
        let Some(id) = update.field::<String>("messageId") else {
            return TranslatedUpdate::Unchanged;
        };
        let sent = self.0.get_or_insert(&id);
        if let Some(block) = update.get("content") {
            sent.digest.add(&digest_bytes(block).0);
        }
        match &sent.renamed_id {
            Some(renamed) => {
                update.set("messageId", to_raw_value(renamed));
                TranslatedUpdate::Changed(update)
            }
            None => TranslatedUpdate::Unchanged,
        }
    }

    /// Translates a full message into chunks with only the part that the client does not have yet.
    pub(super) fn translate_message(
        &mut self,
        kind: &str,
        update: &RawObject,
    ) -> Vec<TranslatedUpdate> {
        let (Some(id), Some(content)) =
            (update.field::<String>("messageId"), update.get("content"))
        else {
            return Vec::new();
        };
        let blocks: Vec<Box<RawValue>> = if content.get() == "null" {
            Vec::new()
        } else {
            list_items(update, "content")
        };
        let sent = self.0.get_or_insert(&id);
        let all: Vec<u8> = blocks
            .iter()
            .flat_map(|block| digest_bytes(block).0)
            .collect();
        let known = match sent.digest.strip_prefix(&all) {
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
            let (bytes, is_text) = digest_bytes(&block);
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
            if let Some(meta) = super::get_non_null(update, "_meta").filter(|_| emits.is_empty()) {
                chunk.push("_meta".to_owned(), meta.to_owned());
            }
            emits.push(TranslatedUpdate::Changed(chunk));
        }
        emits
    }
}

//! Defines the entries of a session's history.

use acp::{Update, v1, v2};

use super::error::StoreError;
use crate::context::compaction::Compaction;
use crate::model::message::ModelMessage;

/// The kind of a history entry. Each kind is stored as its number, which therefore must never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEntryKind {
    /// An update of the session, in the form of protocol version 1.
    UpdateV1 = 1,
    /// An update of the session, in the form of protocol version 2.
    UpdateV2 = 2,
    /// A message of the conversation with the model.
    Message = 3,
    /// A compaction of all earlier messages of the conversation.
    Compaction = 4,
}

impl StoreEntryKind {
    /// Returns the kind with this number.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        let all = [
            Self::UpdateV1,
            Self::UpdateV2,
            Self::Message,
            Self::Compaction,
        ];
        all.into_iter().find(|kind| *kind as i64 == number)
    }
}

/// One step of a session's history.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreEntry {
    /// The kind of entry, which determines the format of `body`.
    pub kind: StoreEntryKind,
    /// The content of the entry as JSON. A store does not need to understand it.
    pub body: String,
}

/// The parsed content of an entry.
#[derive(Debug, Clone)]
// The values are created one at a time and passed on.
#[allow(clippy::large_enum_variant)]
pub(crate) enum StoreEntryContent {
    Update(Update),
    Message(ModelMessage),
    Compaction(Compaction),
}

impl StoreEntry {
    /// Creates an entry of this kind with this content.
    pub fn new(kind: StoreEntryKind, body: impl Into<String>) -> Self {
        Self {
            kind,
            body: body.into(),
        }
    }

    /// Creates an entry from an update that is sent to the client.
    pub(crate) fn from_update(update: &Update) -> Result<Self, StoreError> {
        // Use version 1 if it can express the whole update. That is true of most updates, and earlier releases can read
        // them.
        if let Some(update) = update.clone().into_v1() {
            return Self::from_serializable(StoreEntryKind::UpdateV1, &update);
        }
        match update.clone().into_v2() {
            Some(update) => Self::from_serializable(StoreEntryKind::UpdateV2, &update),
            None => Err(StoreError::Failed(
                "cannot store an update that neither protocol version can represent".to_owned(),
            )),
        }
    }

    /// Creates an entry from a message of the conversation with the model.
    pub(crate) fn from_message(message: &ModelMessage) -> Result<Self, StoreError> {
        Self::from_serializable(StoreEntryKind::Message, message)
    }

    /// Creates an entry from a compaction.
    pub(crate) fn from_compaction(compaction: &Compaction) -> Result<Self, StoreError> {
        Self::from_serializable(StoreEntryKind::Compaction, compaction)
    }

    fn from_serializable(
        kind: StoreEntryKind,
        value: &impl serde::Serialize,
    ) -> Result<Self, StoreError> {
        match serde_json::to_string(value) {
            Ok(body) => Ok(Self { kind, body }),
            Err(e) => Err(StoreError::Failed(format!("cannot serialize: {e}"))),
        }
    }

    /// Parses the content of the entry.
    pub(crate) fn parse(&self) -> Result<StoreEntryContent, StoreError> {
        let read = match self.kind {
            StoreEntryKind::UpdateV1 => serde_json::from_str::<v1::SessionUpdate>(&self.body)
                .map(|update| StoreEntryContent::Update(update.into())),
            StoreEntryKind::UpdateV2 => serde_json::from_str::<v2::SessionUpdate>(&self.body)
                .map(|update| StoreEntryContent::Update(update.into())),
            StoreEntryKind::Message => {
                serde_json::from_str(&self.body).map(StoreEntryContent::Message)
            }
            StoreEntryKind::Compaction => {
                serde_json::from_str(&self.body).map(StoreEntryContent::Compaction)
            }
        };
        read.map_err(|e| StoreError::Corrupt(e.to_string()))
    }
}

impl StoreEntryContent {
    /// Serializes the content as an entry.
    pub(crate) fn to_entry(&self) -> Result<StoreEntry, StoreError> {
        match self {
            Self::Update(update) => StoreEntry::from_update(update),
            Self::Message(message) => StoreEntry::from_message(message),
            Self::Compaction(compaction) => StoreEntry::from_compaction(compaction),
        }
    }
}

//! A session's log, entry by entry.

use acp::{Update, v1, v2};

use super::error::StoreError;
use crate::context::compaction::Compaction;
use crate::model::message::ModelMessage;

/// What an entry is. The numbers are how it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEntryKind {
    /// What the client was shown, in the words of version 1.
    UpdateV1 = 1,
    /// What the client was shown, in the words of version 2.
    UpdateV2 = 2,
    /// What the model was told.
    Message = 3,
    /// What the model was told until here was made shorter, and how.
    Compaction = 4,
}

impl StoreEntryKind {
    /// The kind with this number.
    #[must_use]
    pub fn of(number: i64) -> Option<Self> {
        let all = [
            Self::UpdateV1,
            Self::UpdateV2,
            Self::Message,
            Self::Compaction,
        ];
        all.into_iter().find(|kind| *kind as i64 == number)
    }
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreEntry {
    /// What it is.
    pub kind: StoreEntryKind,
    /// It as JSON. A store need not understand it.
    pub body: String,
}

/// An entry, understood.
#[derive(Debug, Clone)]
// They are made one by one and given on.
#[allow(clippy::large_enum_variant)]
pub(crate) enum StoreEntryContent {
    Update(Update),
    Message(ModelMessage),
    Compaction(Compaction),
}

impl StoreEntry {
    /// An entry.
    pub fn new(kind: StoreEntryKind, body: impl Into<String>) -> Self {
        Self {
            kind,
            body: body.into(),
        }
    }

    /// What the client is going to be shown.
    pub(crate) fn from_update(update: &Update) -> Result<Self, StoreError> {
        // Version 1 where it says all of it: that is what most of a log is, and what earlier releases read.
        if let Some(update) = update.clone().into_v1() {
            return Self::write(StoreEntryKind::UpdateV1, &update);
        }
        match update.clone().into_v2() {
            Some(update) => Self::write(StoreEntryKind::UpdateV2, &update),
            None => Err(StoreError::Failed(
                "cannot store an update that has no representation in either protocol version"
                    .to_owned(),
            )),
        }
    }

    /// What the model is going to be told.
    pub(crate) fn from_message(message: &ModelMessage) -> Result<Self, StoreError> {
        Self::write(StoreEntryKind::Message, message)
    }

    /// How what the model was told was made shorter.
    pub(crate) fn from_compaction(compaction: &Compaction) -> Result<Self, StoreError> {
        Self::write(StoreEntryKind::Compaction, compaction)
    }

    fn write(kind: StoreEntryKind, value: &impl serde::Serialize) -> Result<Self, StoreError> {
        match serde_json::to_string(value) {
            Ok(body) => Ok(Self { kind, body }),
            Err(e) => Err(StoreError::Failed(format!("cannot serialize: {e}"))),
        }
    }

    /// Understands it.
    pub(crate) fn read(&self) -> Result<StoreEntryContent, StoreError> {
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
        read.map_err(|e| StoreError::Unreadable(e.to_string()))
    }
}

impl StoreEntryContent {
    /// It as an entry.
    pub(crate) fn write(&self) -> Result<StoreEntry, StoreError> {
        match self {
            Self::Update(update) => StoreEntry::from_update(update),
            Self::Message(message) => StoreEntry::from_message(message),
            Self::Compaction(compaction) => StoreEntry::from_compaction(compaction),
        }
    }
}

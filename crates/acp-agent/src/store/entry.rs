//! A session's log, entry by entry.

use acp::{Update, v1, v2};

use super::error::StoreError;
use crate::context::compaction::Compaction;
use crate::model::message::Message;

/// What an entry is. The numbers are how it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// What the client was shown, in the words of version 1.
    ShownV1 = 1,
    /// What the client was shown, in the words of version 2.
    ShownV2 = 2,
    /// What the model was told.
    Message = 3,
    /// What the model was told until here was made shorter, and how.
    Compaction = 4,
}

impl EntryKind {
    /// The kind with this number.
    #[must_use]
    pub fn of(number: i64) -> Option<Self> {
        let all = [
            Self::ShownV1,
            Self::ShownV2,
            Self::Message,
            Self::Compaction,
        ];
        all.into_iter().find(|kind| *kind as i64 == number)
    }
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// It as JSON. A store need not understand it.
    pub body: String,
}

/// An entry, understood.
#[derive(Debug, Clone)]
// They are made one by one and given on.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Content {
    Shown(Update),
    Message(Message),
    Compaction(Compaction),
}

impl Entry {
    /// An entry.
    pub fn new(kind: EntryKind, body: impl Into<String>) -> Self {
        Self {
            kind,
            body: body.into(),
        }
    }

    /// What the client is going to be shown.
    pub(crate) fn shown(update: &Update) -> Result<Self, StoreError> {
        // Version 1 where it says all of it: that is what most of a log is, and what earlier releases read.
        if let Some(update) = update.clone().into_v1() {
            return Self::write(EntryKind::ShownV1, &update);
        }
        match update.clone().into_v2() {
            Some(update) => Self::write(EntryKind::ShownV2, &update),
            None => Err(StoreError::Failed(
                "an update that neither version has words for cannot be kept".to_owned(),
            )),
        }
    }

    /// What the model is going to be told.
    pub(crate) fn message(message: &Message) -> Result<Self, StoreError> {
        Self::write(EntryKind::Message, message)
    }

    /// How what the model was told was made shorter.
    pub(crate) fn compaction(compaction: &Compaction) -> Result<Self, StoreError> {
        Self::write(EntryKind::Compaction, compaction)
    }

    fn write(kind: EntryKind, value: &impl serde::Serialize) -> Result<Self, StoreError> {
        match serde_json::to_string(value) {
            Ok(body) => Ok(Self { kind, body }),
            Err(e) => Err(StoreError::Failed(format!("it cannot be written: {e}"))),
        }
    }

    /// Understands it.
    pub(crate) fn read(&self) -> Result<Content, StoreError> {
        let read = match self.kind {
            EntryKind::ShownV1 => serde_json::from_str::<v1::SessionUpdate>(&self.body)
                .map(|update| Content::Shown(update.into())),
            EntryKind::ShownV2 => serde_json::from_str::<v2::SessionUpdate>(&self.body)
                .map(|update| Content::Shown(update.into())),
            EntryKind::Message => serde_json::from_str(&self.body).map(Content::Message),
            EntryKind::Compaction => serde_json::from_str(&self.body).map(Content::Compaction),
        };
        read.map_err(|e| StoreError::Unreadable(e.to_string()))
    }
}

impl Content {
    /// It as an entry.
    pub(crate) fn write(&self) -> Result<Entry, StoreError> {
        match self {
            Self::Shown(update) => Entry::shown(update),
            Self::Message(message) => Entry::message(message),
            Self::Compaction(compaction) => Entry::compaction(compaction),
        }
    }
}

//! Session modes: the specification's page of that name. Config options supersede them.

use serde::{Deserialize, Deserializer, Serialize};

use super::SessionId;
use crate::{Meta, RawObject};

string_id! {
    /// Names a mode.
    pub struct SessionModeId;
}

record! {
    /// The modes of a session.
    pub struct SessionModeState {
        /// The one it is in.
        required current_mode_id: SessionModeId,
        /// All of them.
        required_list available_modes: SessionMode,
    }
}

record! {
    /// A mode.
    pub struct SessionMode {
        /// Its id.
        required id: SessionModeId,
        /// The name that is shown to the user.
        required name: String,
        /// What it does.
        optional description: String,
    }
}

record! {
    /// `session/set_mode`.
    pub struct SetSessionModeRequest {
        /// The session.
        required session_id: SessionId,
        /// One of its available modes.
        required mode_id: SessionModeId,
    }
}

/// The answer to `session/set_mode`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SetSessionModeResponse {
    /// Custom data. Read from `meta` as well, as one page of the specification writes it.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl SetSessionModeResponse {
    /// The empty answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<'de> Deserialize<'de> for SetSessionModeResponse {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(d)?;
        Ok(Self {
            meta: object.field("_meta").or_else(|| object.field("meta")),
        })
    }
}

record! {
    /// The session's mode has changed.
    pub struct CurrentModeUpdate from ReadCurrentModeUpdate {
        /// The mode it is in now. Read from `modeId` as well, as one page of the specification
        /// writes it.
        required current_mode_id: SessionModeId,
    }
}

/// An alias would refuse an update that has both names, which is what an agent writes that wants
/// to be understood by everyone.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadCurrentModeUpdate {
    #[serde(default, deserialize_with = "crate::lenient::option")]
    current_mode_id: Option<SessionModeId>,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    mode_id: Option<SessionModeId>,
    #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
    meta: Option<Meta>,
}

impl TryFrom<ReadCurrentModeUpdate> for CurrentModeUpdate {
    type Error = &'static str;
    fn try_from(read: ReadCurrentModeUpdate) -> Result<Self, Self::Error> {
        let current_mode_id = read
            .current_mode_id
            .or(read.mode_id)
            .ok_or("missing field `currentModeId`")?;
        Ok(Self {
            current_mode_id,
            meta: read.meta,
        })
    }
}

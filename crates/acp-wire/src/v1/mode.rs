//! Session modes, which are superseded by config options. See the specification's page "Session Modes".

use serde::{Deserialize, Deserializer, Serialize};

use super::SessionId;
use crate::{Meta, RawObject};

string_id! {
    /// The id of a session mode, chosen by the agent.
    pub struct SessionModeId;
}

record! {
    /// The modes that a session can be in, and its current one.
    pub struct SessionModeState {
        /// The mode that the session is in now.
        required current_mode_id: SessionModeId,
        /// The modes to choose from.
        required_list available_modes: SessionMode,
    }
}

record! {
    /// A mode that a session can be in. The mode determines what the agent may do without asking.
    pub struct SessionMode {
        /// The id used to switch to the mode.
        required id: SessionModeId,
        /// The name to show to the user.
        required name: String,
        /// A description to show to the user.
        optional description: String,
    }
}

record! {
    /// The `session/set_mode` request: switches a session to another mode.
    pub struct SetSessionModeRequest {
        /// The session whose mode to switch.
        required session_id: SessionId,
        /// The mode to switch to, one of the available modes.
        required mode_id: SessionModeId,
    }
}

/// The response to `session/set_mode`, sent once the mode is switched.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct SetSessionModeResponse {
    /// Custom data (`_meta`). Also accepted under the name `meta`, which one page of the specification uses.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::meta))]
    pub meta: Option<Meta>,
}

impl SetSessionModeResponse {
    /// Creates a response without custom data.
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
    /// An update that reports the session's current mode.
    pub struct CurrentModeUpdate from RawCurrentModeUpdate {
        /// The mode that the session is in now. Also accepted under the name `modeId`, which one page of the
        /// specification uses.
        required current_mode_id: SessionModeId,
    }
}

/// [`CurrentModeUpdate`] as received, which may use either name for the mode id, or both. A serde alias would reject an
/// update with both names, which an agent may send to be compatible with every client.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCurrentModeUpdate {
    #[serde(default, deserialize_with = "crate::lenient::option")]
    current_mode_id: Option<SessionModeId>,
    #[serde(default, deserialize_with = "crate::lenient::option")]
    mode_id: Option<SessionModeId>,
    #[serde(default, rename = "_meta", deserialize_with = "crate::lenient::option")]
    meta: Option<Meta>,
}

impl TryFrom<RawCurrentModeUpdate> for CurrentModeUpdate {
    type Error = &'static str;
    fn try_from(read: RawCurrentModeUpdate) -> Result<Self, Self::Error> {
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

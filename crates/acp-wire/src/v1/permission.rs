//! Permissions: Tool calls, "Requesting Permission".

use super::{SessionId, ToolCallUpdate};

string_id! {
    /// Names an option of a permission request.
    pub struct PermissionOptionId;
}

record! {
    /// `session/request_permission`.
    pub struct RequestPermissionRequest {
        /// The session.
        required session_id: SessionId,
        /// The tool call it is about, with what the user needs to decide.
        required tool_call: ToolCallUpdate,
        /// What the user can answer.
        required_list options: PermissionOption,
    }
}

record! {
    /// An answer that the user can give.
    pub struct PermissionOption {
        /// Its id.
        required option_id: PermissionOptionId,
        /// What it says.
        required name: String,
        /// What it means.
        tolerant kind: PermissionOptionKind,
    }
}

open_enum! {
    /// What an answer means.
    pub enum PermissionOptionKind {
        /// Yes, this time.
        AllowOnce = "allow_once",
        /// Yes, and the same from now on.
        AllowAlways = "allow_always",
        /// No, this time.
        RejectOnce = "reject_once",
        /// No, and the same from now on.
        RejectAlways = "reject_always",
    }
}

impl Default for PermissionOptionKind {
    /// Agents are known to leave the kind out. Nothing may be chosen by itself then.
    fn default() -> Self {
        Self::Unknown(String::new())
    }
}

impl PermissionOptionKind {
    /// Whether it says yes.
    #[must_use]
    pub fn allows(&self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Whether it says no.
    #[must_use]
    pub fn rejects(&self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

record! {
    /// The answer to `session/request_permission`.
    pub struct RequestPermissionResponse {
        /// What was decided.
        required outcome: RequestPermissionOutcome,
    }
}

tagged! {
    /// What was decided.
    pub enum RequestPermissionOutcome by "outcome" {
        /// Nothing: the turn was cancelled.
        Cancelled(CancelledPermissionOutcome) = "cancelled",
        /// One of the options.
        Selected(SelectedPermissionOutcome) = "selected",
    }
}

impl RequestPermissionOutcome {
    /// The turn was cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::Cancelled(CancelledPermissionOutcome::new())
    }

    /// One of the options.
    pub fn selected(option: impl Into<PermissionOptionId>) -> Self {
        Self::Selected(SelectedPermissionOutcome::new(option))
    }
}

record! {
    /// The turn was cancelled before anything was decided.
    pub struct CancelledPermissionOutcome {}
}

record! {
    /// One of the options was chosen.
    pub struct SelectedPermissionOutcome {
        /// The id of the selected option.
        required option_id: PermissionOptionId,
    }
}

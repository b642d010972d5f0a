//! Permission requests: the specification's page "Tool Calls", "Requesting Permission".

use super::{SessionId, ToolCallUpdate};

string_id! {
    /// The id of an option of a permission request.
    pub struct PermissionOptionId;
}

record! {
    /// The `session/request_permission` request.
    pub struct RequestPermissionRequest {
        /// The id of the session.
        required session_id: SessionId,
        /// The tool call, with the information that the user needs to decide.
        required tool_call: ToolCallUpdate,
        /// The options that the user can choose from.
        required_list options: PermissionOption,
    }
}

record! {
    /// An option of a permission request.
    pub struct PermissionOption {
        /// The id of the option.
        required option_id: PermissionOptionId,
        /// The text to show to the user.
        required name: String,
        /// The meaning of the option.
        tolerant kind: PermissionOptionKind,
    }
}

open_enum! {
    /// The meaning of a permission option.
    pub enum PermissionOptionKind {
        /// Allow this time.
        AllowOnce = "allow_once",
        /// Allow now and from now on.
        AllowAlways = "allow_always",
        /// Reject this time.
        RejectOnce = "reject_once",
        /// Reject now and from now on.
        RejectAlways = "reject_always",
    }
}

impl Default for PermissionOptionKind {
    /// Returns an unknown kind, because some agents omit it. Such an option must not be chosen automatically.
    fn default() -> Self {
        Self::Unknown(String::new())
    }
}

impl PermissionOptionKind {
    /// Returns `true` if the option allows the tool call.
    #[must_use]
    pub fn allows(&self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Returns `true` if the option rejects the tool call.
    #[must_use]
    pub fn rejects(&self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

record! {
    /// The response to `session/request_permission`.
    pub struct RequestPermissionResponse {
        /// The outcome.
        required outcome: RequestPermissionOutcome,
    }
}

tagged! {
    /// The outcome of a permission request.
    pub enum RequestPermissionOutcome by "outcome" {
        /// The turn was cancelled before the user decided.
        Cancelled(CancelledPermissionOutcome) = "cancelled",
        /// The user selected one of the options.
        Selected(SelectedPermissionOutcome) = "selected",
    }
}

impl RequestPermissionOutcome {
    /// Creates the outcome of a cancelled turn.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::Cancelled(CancelledPermissionOutcome::new())
    }

    /// Creates the outcome for a selected option.
    pub fn selected(option: impl Into<PermissionOptionId>) -> Self {
        Self::Selected(SelectedPermissionOutcome::new(option))
    }
}

record! {
    /// The outcome when the turn was cancelled before the user decided.
    pub struct CancelledPermissionOutcome {}
}

record! {
    /// The outcome when the user selected an option.
    pub struct SelectedPermissionOutcome {
        /// The id of the selected option.
        required option_id: PermissionOptionId,
    }
}

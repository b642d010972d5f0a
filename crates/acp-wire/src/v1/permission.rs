//! Permission requests. See "Requesting Permission" on the specification's page "Tool Calls".

use super::{SessionId, ToolCallUpdate};

string_id! {
    /// The id of an option, unique in its permission request.
    pub struct PermissionOptionId;
}

record! {
    /// The `session/request_permission` request: asks for the user's permission.
    pub struct RequestPermissionRequest {
        /// The session that the tool call belongs to.
        required session_id: SessionId,
        /// The tool call, with the information that the user needs to decide.
        required tool_call: ToolCallUpdate,
        /// The options that the user can choose from.
        required_list options: PermissionOption,
    }
}

record! {
    /// An option that the user can choose in a permission request.
    pub struct PermissionOption {
        /// The id to send in the response if the user chooses this option.
        required option_id: PermissionOptionId,
        /// The label to show to the user.
        required name: String,
        /// The effect of choosing the option.
        tolerant kind: PermissionOptionKind,
    }
}

open_enum! {
    /// The effect of choosing a permission option.
    pub enum PermissionOptionKind {
        /// Allows this tool call.
        AllowOnce = "allow_once",
        /// Allows this tool call, and similar ones from now on.
        AllowAlways = "allow_always",
        /// Rejects this tool call.
        RejectOnce = "reject_once",
        /// Rejects this tool call, and similar ones from now on.
        RejectAlways = "reject_always",
    }
}

impl Default for PermissionOptionKind {
    /// Returns an unknown kind, for options that are sent without one. Such an option must not be chosen automatically.
    fn default() -> Self {
        Self::Unknown(String::new())
    }
}

impl PermissionOptionKind {
    /// Returns `true` if choosing the option allows the tool call.
    #[must_use]
    pub fn allows(&self) -> bool {
        matches!(self, Self::AllowOnce | Self::AllowAlways)
    }

    /// Returns `true` if choosing the option rejects the tool call.
    #[must_use]
    pub fn rejects(&self) -> bool {
        matches!(self, Self::RejectOnce | Self::RejectAlways)
    }
}

record! {
    /// The response to `session/request_permission`, with the user's decision.
    pub struct RequestPermissionResponse {
        /// The user's choice, or `cancelled`.
        required outcome: RequestPermissionOutcome,
    }
}

tagged! {
    /// How a permission request ended: the user selected an option, or the turn was cancelled.
    pub enum RequestPermissionOutcome by "outcome" {
        /// The turn was cancelled before the user decided.
        Cancelled(CancelledPermissionOutcome) = "cancelled",
        /// The user selected one of the options.
        Selected(SelectedPermissionOutcome) = "selected",
    }
}

impl RequestPermissionOutcome {
    /// Creates the outcome of a request whose turn was cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::Cancelled(CancelledPermissionOutcome::new())
    }

    /// Creates the outcome of a request in which the user selected `option`.
    pub fn selected(option: impl Into<PermissionOptionId>) -> Self {
        Self::Selected(SelectedPermissionOutcome::new(option))
    }
}

record! {
    /// The empty content of the `cancelled` outcome.
    pub struct CancelledPermissionOutcome {}
}

record! {
    /// The content of the `selected` outcome.
    pub struct SelectedPermissionOutcome {
        /// The option that the user selected.
        required option_id: PermissionOptionId,
    }
}

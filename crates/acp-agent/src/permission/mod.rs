//! Permissions for tool calls, as decided by the mode, the rules and the user.

pub(crate) mod action;
pub(crate) mod ask;
pub(crate) mod context;
pub(crate) mod permit;
pub(crate) mod rules;
pub(crate) mod subject;

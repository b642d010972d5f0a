//! Permission for what changes something: what mode and rules say to it, and what the person does.

pub(crate) mod action;
pub(crate) mod ask;
pub(crate) mod context;
pub(crate) mod permit;
pub(crate) mod rules;
pub(crate) mod subject;

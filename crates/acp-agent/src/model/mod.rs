//! Models, which write responses and decide which tools to call.

pub(crate) mod error;
pub(crate) mod interface;
pub(crate) mod message;
pub(crate) mod offline;
pub(crate) mod provider;
pub(crate) mod scripted;
pub(crate) mod step;
pub(crate) mod thought;

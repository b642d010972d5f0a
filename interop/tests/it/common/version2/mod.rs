//! What must happen between us and a peer on an official SDK that speaks the draft of version 2, whichever
//! SDK that is: their programs are twins.

pub(crate) mod agent;
pub(crate) mod client;

//! Agents and their sessions.

mod desk;

pub(crate) use desk::{Answer, Asked, Desk, Question};

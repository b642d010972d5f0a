//! Agents and their sessions.

mod client;
mod desk;
mod link;

pub(crate) use client::Notes;
pub(crate) use desk::{Answer, Asked, Desk, Question};
pub(crate) use link::{GRACE, Link, Surroundings, Trouble, connect, spawn, tail};

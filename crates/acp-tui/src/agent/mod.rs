//! Agents and their sessions.

mod client;
mod desk;
mod link;
mod trouble;

#[cfg(test)]
pub(crate) use client::Ask;
pub(crate) use client::Notes;
pub(crate) use desk::{Answer, Asked, Desk, Question};
pub(crate) use link::{GRACE, Link, Surroundings, connect, spawn};
pub(crate) use trouble::{Cure, Gone, Trouble, tail};

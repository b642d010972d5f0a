//! Agents by name: those that the user has configured, those that a project brings, and well-known ones.
//!
//! What a name means: the user's agent of that name, or else the well-known one, or else the project's. A project can so
//! never put a program of its own under a name that already means another.

pub(crate) mod choice;
pub(crate) mod list;
pub(crate) mod project;
pub(crate) mod settings;
pub(crate) mod state_paths;
pub(crate) mod well_known;

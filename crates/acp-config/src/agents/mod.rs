//! Named agents: those in the user's configuration, those of a project, and well-known ones.
//!
//! A name means the user's agent of that name, or else the well-known one, or else the project's. So a project can
//! never put a program of its own under a name that already has another meaning.

pub(crate) mod choice;
pub(crate) mod list;
pub(crate) mod project;
pub(crate) mod settings;
pub(crate) mod state_paths;
pub(crate) mod well_known;

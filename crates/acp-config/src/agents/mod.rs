//! Agents that can be chosen by name: from the user's configuration, installed from a registry, well-known, or from the
//! project.
//!
//! If several agents have the same name, the user's takes precedence, then the installed one, then the
//! well-known one, and then the project's.
//! A project can therefore never replace an agent that the user knows by its name.

pub(crate) mod choice;
pub(crate) mod installed;
pub(crate) mod list;
pub(crate) mod path_mapping;
pub(crate) mod project;
pub(crate) mod remote;
pub(crate) mod remote_url;
pub(crate) mod settings;
pub(crate) mod state_paths;
mod token_file;
pub(crate) mod well_known;

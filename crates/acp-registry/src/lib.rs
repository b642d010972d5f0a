//! Installs agents from a registry of the [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! A registry is a JSON file that lists agents and where their programs come from. [`RegistrySource`] reads it from a URL
//! or a file, [`AgentOffer`] says what an agent in it would be on this machine, and [`install()`] downloads, checks and
//! unpacks it. What is installed is recorded in [`acp_config::InstalledAgents`], from which agents are started.
//!
//! Nothing in a registry or in a download is trusted. Sizes are limited, names and paths are checked, and an archive is
//! unpacked to a directory of its own, which gets its final name only if everything in it is in order.
//!
//! This crate requires a tokio runtime with I/O and time enabled. [`install()`] unpacks on the thread that polls it.

mod archive;
mod cache;
mod download;
mod error;
mod index;
mod install;
mod names;
mod offer;
mod package;
mod source;

pub use download::{DownloadPreview, Downloader};
pub use error::RegistryError;
pub use index::{BinaryTarget, DistributionKinds, PackageTarget, RegistryAgent, RegistryIndex};
pub use install::{install, remove};
pub use names::{check_id, check_version};
pub use offer::{AgentOffer, OfferedDistribution, current_platform};
pub use source::{CacheUse, LoadedRegistry, OFFICIAL_REGISTRY, RegistrySource};

//! The address of a store.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

/// Where sessions are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreAddress {
    /// In an SQLite file, or in a directory with one.
    File(PathBuf),
    /// In a PostgreSQL database, by its URL.
    Postgres(String),
}

/// Whether and where sessions are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// They are not.
    None,
    /// At this address.
    At(StoreAddress),
}

impl StoreChoice {
    /// Reads `none` or an address. A path need not be text.
    pub(crate) fn from_os(text: OsString) -> Result<Self, String> {
        match text.to_str() {
            Some("none") => Ok(Self::None),
            _ => StoreAddress::from_os(text).map(Self::At),
        }
    }
}

impl StoreAddress {
    /// Reads an address. A path need not be text.
    pub(crate) fn from_os(text: OsString) -> Result<Self, String> {
        match text.to_str() {
            Some(text) => text.parse(),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.split_once("://") {
            Some((scheme, _)) => Err(format!(
                "unknown kind of store: {scheme}; expected a file or postgres://…"
            )),
            None if text.is_empty() => Err("the path is missing".to_owned()),
            None => Ok(Self::File(text.into())),
        }
    }
}

//! Unpacks archives that nobody has vetted.
//!
//! Files are only created in a directory of their own, through a handle that cannot lead out of it. What an archive must
//! not contain is refused, not skipped or repaired.

mod paths;
mod tar;
mod unpacker;
mod zip;

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use bzip2::bufread::MultiBzDecoder;
use cap_std::fs::Dir;
use flate2::bufread::MultiGzDecoder;
use reqwest::Url;

pub(crate) use paths::entry_path;
pub(crate) use unpacker::ArchiveLimits;
use unpacker::{LimitedReader, Unpacker};

/// Files with these endings install a program, which is not the same as unpacking one.
const INSTALLERS: [&str; 6] = [".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage"];

/// Other archives, which are no programs either.
const OTHER_ARCHIVES: [&str; 7] = [".tar", ".tar.xz", ".txz", ".tar.zst", ".7z", ".gz", ".xz"];

/// The kind of a download, which the ending of its URL tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchiveKind {
    TarGz,
    TarBz2,
    Zip,
    /// The program itself.
    Program,
}

impl ArchiveKind {
    /// Returns the kind of the download with this URL.
    ///
    /// # Errors
    /// Downloads of this kind are not supported.
    pub(crate) fn from_url(url: &Url) -> Result<Self, String> {
        let path = url.path().to_ascii_lowercase();
        let kinds = [
            (".tar.gz", Self::TarGz),
            (".tgz", Self::TarGz),
            (".tar.bz2", Self::TarBz2),
            (".tbz2", Self::TarBz2),
            (".zip", Self::Zip),
        ];
        if let Some((_, kind)) = kinds.iter().find(|(ending, _)| path.ends_with(ending)) {
            return Ok(*kind);
        }
        let mut others = INSTALLERS.iter().chain(&OTHER_ARCHIVES);
        match others.find(|ending| path.ends_with(**ending)) {
            Some(ending) => Err(format!(
                "downloads of the kind {ending} are not supported, only .tar.gz, .tar.bz2, .zip and programs"
            )),
            None => Ok(Self::Program),
        }
    }
}

/// Unpacks a download to an empty directory. `program` is the name of the file if the download is a program.
///
/// # Errors
/// The archive is damaged, contains something that it must not, or is beyond the limits. What was unpacked so far
/// remains.
pub(crate) fn unpack(
    mut file: File,
    kind: ArchiveKind,
    to: &Dir,
    program: &str,
    limits: ArchiveLimits,
) -> Result<(), String> {
    file.rewind().map_err(|e| e.to_string())?;
    let mut unpacker = Unpacker::new(to, limits);
    match kind {
        ArchiveKind::TarGz => {
            let reader = MultiGzDecoder::new(BufReader::new(file));
            tar::unpack_tar(LimitedReader::new(reader, limits), &mut unpacker)?;
        }
        ArchiveKind::TarBz2 => {
            let reader = MultiBzDecoder::new(BufReader::new(file));
            tar::unpack_tar(LimitedReader::new(reader, limits), &mut unpacker)?;
        }
        ArchiveKind::Zip => zip::unpack_zip(file, &mut unpacker)?,
        ArchiveKind::Program => {
            check_is_program(&file)?;
            unpacker.add_file(program, true, &mut file)?;
        }
    }
    unpacker.finish()
}

/// Checks that a download is not an archive whose URL hides it. It would fail only when the agent is started.
fn check_is_program(mut file: &File) -> Result<(), String> {
    const SIGNATURES: [&[u8]; 3] = [b"\x1f\x8b", b"BZh", b"PK\x03\x04"];
    let mut start = Vec::new();
    let read = file.take(4).read_to_end(&mut start);
    read.and_then(|_| file.rewind())
        .map_err(|e| e.to_string())?;
    match SIGNATURES
        .iter()
        .any(|signature| start.starts_with(signature))
    {
        true => Err(
            "it is an archive, but its URL does not end in .tar.gz, .tar.bz2 or .zip".to_owned(),
        ),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;

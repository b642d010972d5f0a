//! Unpacks tar archives.
//!
//! Long names are read here and not by the `tar` crate, which would keep a name of any length in memory.

use std::io::{self, Read};

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::paths::entry_path;
use super::unpacker::Unpacker;

/// The maximum size of a header that contains a long name.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// Names that are too long for the header of the next entry.
#[derive(Default)]
struct LongNames {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Unpacks a tar archive, and reads the rest of the stream, whose end may contain a checksum.
pub(super) fn unpack_tar(from: impl Read, unpacker: &mut Unpacker<'_>) -> Result<(), String> {
    let mut archive = Archive::new(from);
    let mut names = LongNames::default();
    let entries = archive.entries().map_err(|e| e.to_string())?.raw(true);
    for entry in entries {
        let mut entry = entry.map_err(|e| format!("the archive is damaged: {e}"))?;
        match entry.header().entry_type() {
            EntryType::GNULongName => names.path = Some(read_long_name(&mut entry)?),
            EntryType::GNULongLink => names.link = Some(read_long_name(&mut entry)?),
            EntryType::XHeader => read_extensions(&mut entry, &mut names)?,
            // It contains nothing about files. `git archive` writes the id of the commit into it.
            EntryType::XGlobalHeader => {}
            kind => unpack_entry(&mut entry, kind, std::mem::take(&mut names), unpacker)?,
        }
    }
    let mut rest = archive.into_inner();
    let read = io::copy(&mut rest, &mut io::sink());
    read.map_err(|e| format!("the archive is damaged: {e}"))?;
    Ok(())
}

fn unpack_entry(
    entry: &mut Entry<'_, impl Read>,
    kind: EntryType,
    names: LongNames,
    unpacker: &mut Unpacker<'_>,
) -> Result<(), String> {
    let path = match names.path {
        Some(path) => path,
        None => entry.header().path_bytes().into_owned(),
    };
    let path = entry_path(text(&path)?)?;
    let link = match names.link {
        Some(link) => Some(link),
        None => entry
            .header()
            .link_name_bytes()
            .map(|link| link.into_owned()),
    };
    let link = link.unwrap_or_default();
    match kind {
        EntryType::Directory => unpacker.add_directory(&path),
        EntryType::Regular | EntryType::Continuous => {
            let mode = entry.header().mode().unwrap_or_default();
            let size = entry
                .header()
                .size()
                .map_err(|e| format!("the size of {path:?} is not valid: {e}"))?;
            let mut counted = CountingReader {
                from: entry,
                read: 0,
            };
            unpacker.add_file(&path, mode & 0o111 != 0, &mut counted)?;
            match counted.read == size {
                true => Ok(()),
                false => Err(format!("the archive ends in the middle of {path:?}")),
            }
        }
        EntryType::Symlink => unpacker.add_link(&path, text(&link)?),
        EntryType::Link => unpacker.add_hard_link(&path, &entry_path(text(&link)?)?),
        EntryType::Char | EntryType::Block => Err(format!("{path:?} is a device")),
        EntryType::Fifo => Err(format!("{path:?} is a named pipe")),
        _ => Err(format!("{path:?} is an entry of an unknown kind")),
    }
}

/// Reads the extended header of the next entry.
fn read_extensions(entry: &mut Entry<'_, impl Read>, names: &mut LongNames) -> Result<(), String> {
    let bytes = read_header(entry)?;
    for extension in PaxExtensions::new(&bytes) {
        let extension = extension.map_err(|e| format!("an extended header is not valid: {e}"))?;
        let value = extension.value_bytes().to_vec();
        match extension.key_bytes() {
            b"path" => names.path = Some(value),
            b"linkpath" => names.link = Some(value),
            // The size in the entry's own header would not count.
            b"size" => return Err("an extended header changes the size of a file".to_owned()),
            key if key.starts_with(b"GNU.sparse.") => {
                return Err("sparse files are not supported".to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_long_name(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, String> {
    let mut bytes = read_header(entry)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    Ok(bytes)
}

fn read_header(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = entry.take(MAX_HEADER_BYTES + 1).read_to_end(&mut bytes);
    let read = read.map_err(|e| format!("the archive is damaged: {e}"))?;
    match read as u64 > MAX_HEADER_BYTES {
        true => Err(format!("a header is larger than {MAX_HEADER_BYTES} bytes")),
        false => Ok(bytes),
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| {
        format!(
            "the path {:?} is not valid UTF-8",
            String::from_utf8_lossy(bytes)
        )
    })
}

/// A reader that counts bytes.
struct CountingReader<'a, R> {
    from: &'a mut R,
    read: u64,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

//! Unpacks zip archives.

use std::fs::File;
use std::io::{BufReader, Read};

use flate2::bufread::DeflateDecoder;
use rawzip::{
    CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
};

use super::paths::entry_path;
use super::unpacker::Unpacker;

/// The maximum length of a symbolic link's target.
const MAX_TARGET_BYTES: u64 = 4096;

/// Unpacks a zip archive. Only its directory at the end counts, as for other programs.
pub(super) fn unpack_zip(file: File, unpacker: &mut Unpacker<'_>) -> Result<(), String> {
    let damaged = |e: rawzip::Error| format!("the archive is damaged: {e}");
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file, &mut buffer).map_err(damaged)?;
    let mut entries = archive.entries(&mut buffer);
    let mut count = 0;
    while let Some(entry) = entries.next_entry().map_err(damaged)? {
        count += 1;
        let raw = entry.file_path();
        let path = std::str::from_utf8(raw.as_bytes())
            .map_err(|_| "a path is not valid UTF-8".to_owned())?;
        let path = entry_path(path)?;
        let mode = entry.mode();
        if entry.flags().is_encrypted() {
            return Err(format!("{path:?} is encrypted"));
        }
        if entry.is_dir() {
            unpacker.add_directory(&path)?;
            continue;
        }
        let method = entry.compression_method();
        let wayfinder = entry.wayfinder();
        if mode.is_symlink() {
            let mut target = String::new();
            let mut reader =
                open_entry(&archive, wayfinder, method, &path)?.take(MAX_TARGET_BYTES + 1);
            let read = reader.read_to_string(&mut target);
            read.map_err(|e| format!("cannot read {path:?}: {e}"))?;
            if target.len() as u64 > MAX_TARGET_BYTES {
                return Err(format!(
                    "the target of the symbolic link {path:?} is too long"
                ));
            }
            unpacker.add_link(&path, &target)?;
        } else if is_special(mode.value()) {
            return Err(format!(
                "{path:?} is neither a file, a directory nor a link"
            ));
        } else {
            let mut reader = open_entry(&archive, wayfinder, method, &path)?;
            unpacker.add_file(&path, mode.permissions() & 0o111 != 0, &mut reader)?;
        }
    }
    match count == archive.entries_hint() {
        true => Ok(()),
        false => Err("the archive is damaged: the number of its entries is wrong".to_owned()),
    }
}

/// Returns a reader of an entry's contents, which fails at the end if their size or checksum is wrong.
fn open_entry<'a>(
    archive: &'a ZipArchive<FileReader>,
    wayfinder: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    path: &str,
) -> Result<Box<dyn Read + 'a>, String> {
    let entry = archive.get_entry(wayfinder);
    let entry = entry.map_err(|e| format!("cannot read {path:?}: {e}"))?;
    let compressed = BufReader::new(entry.reader());
    Ok(match method {
        CompressionMethod::STORE => Box::new(entry.verifying_reader(compressed)),
        CompressionMethod::DEFLATE => {
            Box::new(entry.verifying_reader(DeflateDecoder::new(compressed)))
        }
        other => {
            return Err(format!(
                "{path:?} is compressed in an unsupported way ({other:?})"
            ));
        }
    })
}

/// Returns `true` if a Unix mode is that of a device, pipe or socket. Archives from other systems have no type in it.
fn is_special(mode: u32) -> bool {
    const TYPE: u32 = 0o170_000;
    const FILE: u32 = 0o100_000;
    const DIRECTORY: u32 = 0o040_000;
    ![0, FILE, DIRECTORY].contains(&(mode & TYPE))
}

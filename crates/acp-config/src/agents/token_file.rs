//! Reads tokens from files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The maximum size of a token file, in bytes.
const MAX_FILE_SIZE: u64 = 4096;

/// Reads the token from a file, and trims it. Also returns a warning if other users can read the file.
///
/// # Errors
/// The file cannot be read, is empty, or is not text.
pub(super) fn read_token_file(file: &Path) -> Result<(String, Option<String>), String> {
    let shown = file.display();
    let failed = |e: io::Error| format!("{shown}: {e}");
    let opened = File::open(file).map_err(failed)?;
    let note = can_others_read(&opened)
        .then(|| format!("warning: other users can read {shown}; run `chmod 600` on it"));
    let mut text = String::new();
    opened
        .take(MAX_FILE_SIZE)
        .read_to_string(&mut text)
        .map_err(failed)?;
    match text.trim() {
        "" => Err(format!("{shown}: the file contains no token")),
        token => Ok((token.to_owned(), note)),
    }
}

#[cfg(unix)]
fn can_others_read(file: &File) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata();
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn can_others_read(_: &File) -> bool {
    false
}

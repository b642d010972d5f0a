//! Reads small text files that a project or the user provides for the agent.

use std::io::{self, Read};
use std::path::Path;

use acp_host::{PathError, Roots};

/// The start of a text file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileHead {
    pub(crate) text: String,
    /// Whether the file is longer than `text`.
    pub(crate) is_truncated: bool,
}

/// Reads at most `most` bytes of a file under these roots. Returns `None` if the file does not exist. May block.
///
/// # Errors
/// The path is not a regular file, leads out of the roots, cannot be read, or is not UTF-8. The message does not
/// include the path.
pub(crate) fn read_file_head(
    roots: &Roots,
    path: &Path,
    most: usize,
) -> Result<Option<FileHead>, String> {
    let file = match roots.open_file(path) {
        Ok(file) => file,
        Err(refusal) if is_missing(&refusal) => return Ok(None),
        Err(refusal) => return Err(refusal.to_string()),
    };
    let mut bytes = Vec::new();
    // Read one byte more, to see whether the file is longer.
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(|e| e.to_string())?;
    let cut = bytes.len() > most;
    bytes.truncate(most);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The limit may be in the middle of a character.
        Err(e) if cut && e.utf8_error().error_len().is_none() => {
            let end = e.utf8_error().valid_up_to();
            let mut bytes = e.into_bytes();
            bytes.truncate(end);
            String::from_utf8(bytes).unwrap_or_default()
        }
        Err(_) => return Err("it is not valid UTF-8".to_owned()),
    };
    Ok(Some(FileHead {
        text,
        is_truncated: cut,
    }))
}

/// Returns `true` if the error means that the file does not exist.
pub(crate) fn is_missing(refusal: &PathError) -> bool {
    matches!(refusal, PathError::Io(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::open([dir.path().to_owned()]).unwrap();
        let path = dir.path().join("a");
        let beginning = |text: &str, cut| {
            Ok(Some(FileHead {
                text: text.to_owned(),
                is_truncated: cut,
            }))
        };
        assert_eq!(read_file_head(&roots, &path, 9), Ok(None));
        std::fs::write(&path, "aé").unwrap();
        assert_eq!(read_file_head(&roots, &path, 3), beginning("aé", false));
        assert_eq!(read_file_head(&roots, &path, 2), beginning("a", true));
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert!(read_file_head(&roots, &path, 9).is_err());
        assert!(read_file_head(&roots, dir.path(), 9).is_err());
    }
}

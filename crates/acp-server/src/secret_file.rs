//! Stores a server's token and self-signed certificate in files that only their owner can read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use acp_remote::server::{TlsError, TlsIdentity};
use acp_remote::{InvalidToken, Token};
use tempfile::{NamedTempFile, PersistError};

/// The maximum size of a file, in bytes.
const MAX_SIZE: u64 = 1024 * 1024;

/// An error that occurred while reading or storing a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretFileError {
    /// The operating system reported an error.
    #[error("{}: {source}", file.display())]
    Io {
        /// The path of the file.
        file: PathBuf,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// The file does not contain a valid token.
    #[error("{}: {source}", file.display())]
    Token {
        /// The path of the file.
        file: PathBuf,
        /// The error from parsing the token.
        source: InvalidToken,
    },
    /// The file is too large to be one of these.
    #[error("{}: file too large (limit: {MAX_SIZE} bytes)", file.display())]
    TooLarge {
        /// The path of the file.
        file: PathBuf,
    },
    /// Other users can read the file.
    #[error("{}: other users can read this file; run `chmod 600` on it", file.display())]
    Exposed {
        /// The path of the file.
        file: PathBuf,
    },
    /// The certificate or its key is unusable, or no certificate could be created.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Returns the token in a file, and whether the file was created. If the file does not exist, creates it with a random
/// token.
///
/// # Errors
/// The file cannot be read or created, is not a token, or can be read by others.
pub fn token_from_file(file: &Path) -> Result<(Token, bool), SecretFileError> {
    let invalid = |source| SecretFileError::Token {
        file: file.to_owned(),
        source,
    };
    if let Some(text) = read_private(file)? {
        return Ok((Token::new(&text).map_err(invalid)?, false));
    }
    let token = Token::random();
    match write_private(file, &format!("{}\n", token.expose())) {
        Ok(()) => Ok((token, true)),
        // Another server has just created it.
        Err(SecretFileError::Io { source, .. })
            if source.kind() == io::ErrorKind::AlreadyExists =>
        {
            let text = read_private(file)?.unwrap_or_default();
            Ok((Token::new(&text).map_err(invalid)?, false))
        }
        Err(e) => Err(e),
    }
}

/// Returns the self-signed certificate in a file, with its key. If the file does not exist, creates both for the given
/// host names. This way, the fingerprint that clients trust stays the same.
///
/// # Errors
/// The file cannot be read or created, is not a certificate with a key, or can be read by others.
pub fn self_signed_identity(file: &Path, names: &[String]) -> Result<TlsIdentity, SecretFileError> {
    if let Some(pem) = read_private(file)? {
        return Ok(TlsIdentity::from_pem(pem.as_bytes(), pem.as_bytes())?);
    }
    let (identity, certificate, key) = TlsIdentity::self_signed(names)?;
    write_private(file, &format!("{certificate}{key}"))?;
    Ok(identity)
}

/// Reads a file that only its owner may read. Returns `None` if it does not exist.
pub(crate) fn read_private(file: &Path) -> Result<Option<String>, SecretFileError> {
    let failed = |source| SecretFileError::Io {
        file: file.to_owned(),
        source,
    };
    let opened = match File::open(file) {
        Ok(opened) => opened,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let metadata = opened.metadata().map_err(failed)?;
        if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
            return Err(SecretFileError::Exposed {
                file: file.to_owned(),
            });
        }
    }
    let mut text = String::new();
    opened
        .take(MAX_SIZE + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    // A part of it must not be taken for the whole, which might then be written back.
    if text.len() as u64 > MAX_SIZE {
        return Err(SecretFileError::TooLarge {
            file: file.to_owned(),
        });
    }
    Ok(Some(text))
}

/// Creates a file that only its owner can read. Fails if it exists.
fn write_private(file: &Path, text: &str) -> Result<(), SecretFileError> {
    write(file, text, |new| new.persist_noclobber(file))
}

/// Creates or replaces a file that only its owner can read.
pub(crate) fn replace_private(file: &Path, text: &str) -> Result<(), SecretFileError> {
    write(file, text, |new| new.persist(file))
}

/// Writes a file as a whole, or not at all.
fn write(
    file: &Path,
    text: &str,
    persist: impl FnOnce(NamedTempFile) -> Result<File, PersistError>,
) -> Result<(), SecretFileError> {
    let failed = |source| SecretFileError::Io {
        file: file.to_owned(),
        source,
    };
    let directory = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut directories = std::fs::DirBuilder::new();
    directories.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        directories.mode(0o700);
    }
    directories.create(directory).map_err(failed)?;
    // Readable by its owner only from the beginning.
    let mut new = NamedTempFile::new_in(directory).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    new.as_file().sync_all().map_err(failed)?;
    persist(new).map_err(|e| failed(e.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_created_once() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("state/token");
        let (first, is_new) = token_from_file(&file).unwrap();
        assert!(is_new);
        let (second, is_new) = token_from_file(&file).unwrap();
        assert!(!is_new);
        assert_eq!(first.expose(), second.expose());
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_others_can_read_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("token");
        token_from_file(&file).unwrap();
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        let error = token_from_file(&file).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_certificate_keeps_its_fingerprint() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("certificate.pem");
        let names = ["localhost".to_owned()];
        let first = self_signed_identity(&file, &names).unwrap();
        let second = self_signed_identity(&file, &["example.org".to_owned()]).unwrap();
        assert_eq!(first.fingerprint(), second.fingerprint());
    }

    #[test]
    fn an_invalid_token_is_reported_with_its_file() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("token");
        write_private(&file, "two words\n").unwrap();
        let error = token_from_file(&file).unwrap_err().to_string();
        assert!(
            error.contains("token: invalid token: expected 1 to 1024"),
            "{error}"
        );
    }
}

//! Hashes of settings: short names for files and sockets that belong to one combination of settings.

use std::ffi::OsStr;

use sha2::{Digest, Sha256};

/// Hashes lists of words. Lengths are hashed too, so no two combinations of lists are hashed alike.
pub(crate) struct SettingsHash(Sha256);

impl SettingsHash {
    pub(crate) fn new() -> Self {
        Self(Sha256::new())
    }

    #[must_use]
    pub(crate) fn with_list<W: AsRef<OsStr>>(mut self, words: &[W]) -> Self {
        self.0.update(words.len().to_le_bytes());
        for word in words {
            let word = word.as_ref().as_encoded_bytes();
            self.0.update(word.len().to_le_bytes());
            self.0.update(word);
        }
        self
    }

    /// Returns the first 8 bytes of the hash in hexadecimal. Sockets have short paths, so a file's name is short, too.
    pub(crate) fn name(self) -> String {
        self.into_hex(8)
    }

    /// Returns the first bytes of the hash in hexadecimal.
    pub(crate) fn into_hex(self, bytes: usize) -> String {
        let hash = self.0.finalize();
        hash.iter()
            .take(bytes)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_lists_are_told_apart() {
        let of = |lists: &[&[&str]]| {
            let hash = lists
                .iter()
                .fold(SettingsHash::new(), |hash, list| hash.with_list(list));
            hash.name()
        };
        let one = of(&[&["a", "bc"], &["d"]]);
        assert_eq!(one.len(), 16);
        assert_eq!(one, of(&[&["a", "bc"], &["d"]]));
        for other in [
            of(&[&["ab", "c"], &["d"]]),
            of(&[&["a"], &["bc", "d"]]),
            of(&[&["a", "bc", "d"], &[]]),
        ] {
            assert_ne!(one, other);
        }
    }
}

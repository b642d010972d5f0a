//! The providers' API keys, which are either passed by the caller or entered by the user and stored in a file.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::model::provider::name::Provider;
use crate::model::provider::secret::Secret;
use crate::private_file::{self, PrivateFileError};

/// The maximum size of a key file, in bytes.
const MAX_FILE_SIZE: u64 = 64 * 1024;

/// The account that an API key belongs to: a provider, or a URL that uses a provider's wire format. The key of one
/// account is never sent to the server of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    provider: Provider,
    /// The URL, if it is not the provider's own.
    url: Option<String>,
}

impl Account {
    /// Creates the account for a URL that uses a provider's wire format.
    pub(crate) fn for_url(provider: Provider, address: impl Into<String>) -> Self {
        let address = Some(address.into());
        Self {
            provider,
            url: address,
        }
    }

    /// Returns the account's provider or, for a URL, the provider whose wire format the URL uses.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// Returns the URL, if it is not the provider's own.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Returns a name to show to users: the host and port of the URL, or the provider.
    pub(crate) fn host_or_provider(&self) -> &str {
        let Some(address) = &self.url else {
            return self.provider.as_str();
        };
        let rest = address
            .split_once("://")
            .map_or(address.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Returns the account's name in the key file.
    fn name(&self) -> String {
        match &self.url {
            None => self.provider.to_string(),
            Some(address) => format!("{} {address}", self.provider),
        }
    }
}

impl From<Provider> for Account {
    fn from(provider: Provider) -> Self {
        Self {
            provider,
            url: None,
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.url {
            None => f.write_str(self.provider.as_str()),
            Some(address) => write!(f, "{} at {address}", self.provider),
        }
    }
}

/// The sources from which the agent reads API keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeySources {
    given_keys: Vec<(Provider, Secret)>,
    file: Option<KeyFile>,
}

impl KeySources {
    /// Creates an empty set of sources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider's key, which takes precedence over a key in the file.
    #[must_use]
    pub fn with_key(mut self, provider: Provider, key: Secret) -> Self {
        self.given_keys.push((provider, key));
        self
    }

    /// Adds a key file. The agent then offers auth methods that run its program in a terminal, as `login PROVIDER` or,
    /// for a model at a URL, as `login PROVIDER --at URL`. The program must implement these commands with
    /// [`KeyFile::store`].
    #[must_use]
    pub fn with_file(mut self, file: KeyFile) -> Self {
        self.file = Some(file);
        self
    }

    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    pub(crate) fn has_explicit_key(&self, account: &Account) -> bool {
        self.explicit_keys().get(account).is_some()
    }

    pub(crate) fn key_file(&self) -> Option<&KeyFile> {
        self.file.as_ref()
    }

    /// Returns the keys that were added with [`with_key`](Self::with_key), but not those in the file.
    pub(crate) fn explicit_keys(&self) -> KeySet {
        let mut all = BTreeMap::new();
        for (provider, key) in &self.given_keys {
            all.entry(Account::from(*provider).name())
                .or_insert_with(|| key.clone());
        }
        KeySet(all)
    }

    /// Reads the key file and returns its keys together with the added ones.
    pub(crate) fn read_keys(&self) -> Result<KeySet, KeyFileError> {
        let mut found = self.explicit_keys();
        if let Some(file) = &self.file {
            for (name, key) in file.read()? {
                found.0.entry(name).or_insert_with(|| Secret::new(key));
            }
        }
        Ok(found)
    }
}

/// API keys, indexed by account name.
pub(crate) struct KeySet(BTreeMap<String, Secret>);

impl KeySet {
    pub(crate) fn get(&self, account: &Account) -> Option<Secret> {
        self.0.get(&account.name()).cloned()
    }
}

/// A file of API keys that only its owner can read. It is a JSON object that maps account names to keys. A file that
/// others can read is rejected rather than repaired, because others may have read the keys already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// Creates a handle to the key file at this path. The file and its directory need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the key file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores an account's key, replacing any existing one.
    ///
    /// # Errors
    /// The file exists and cannot be used, or it cannot be written. In both cases it stays unchanged.
    pub fn store(&self, account: &Account, key: &Secret) -> Result<(), KeyFileError> {
        self.update(|keys| {
            keys.insert(account.name(), key.reveal().to_owned());
        })
    }

    /// Removes the key of an account or, for `None`, all keys. Returns the number of keys removed.
    ///
    /// # Errors
    /// The same as for [`store`](Self::store).
    pub fn remove(&self, account: Option<&Account>) -> Result<usize, KeyFileError> {
        if !self.path.exists() {
            return Ok(0);
        }
        let mut forgotten = 0;
        self.update(|keys| {
            let before = keys.len();
            match account {
                Some(account) => drop(keys.remove(&account.name())),
                None => keys.clear(),
            }
            forgotten = before - keys.len();
        })?;
        Ok(forgotten)
    }

    fn error(&self, why: impl fmt::Display) -> KeyFileError {
        KeyFileError::Failed {
            path: self.path.display().to_string(),
            why: why.to_string(),
        }
    }

    fn read(&self) -> Result<BTreeMap<String, String>, KeyFileError> {
        let path = || self.path.display().to_string();
        let file = match private_file::open(&self.path) {
            Ok(private_file::PrivateFileCheck::Private(file)) => file,
            Ok(private_file::PrivateFileCheck::ReadableByOthers) => {
                return Err(KeyFileError::ReadableByOthers { path: path() });
            }
            Ok(private_file::PrivateFileCheck::WrongOwner) => {
                return Err(KeyFileError::WrongOwner { path: path() });
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(e) => return Err(self.error(e)),
        };
        let mut text = String::new();
        let read = file.take(MAX_FILE_SIZE + 1).read_to_string(&mut text);
        read.map_err(|e| self.error(e))?;
        if text.len() as u64 > MAX_FILE_SIZE {
            return Err(self.error(format!("file larger than {MAX_FILE_SIZE} bytes")));
        }
        // The parser's message may contain a key, so keep only the line.
        serde_json::from_str(&text).map_err(|e| KeyFileError::Malformed {
            path: path(),
            line: e.line(),
        })
    }

    /// Changes the keys and replaces the file atomically. A lock prevents other processes from changing the file in the
    /// meantime.
    fn update(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, String>),
    ) -> Result<(), KeyFileError> {
        let parent = self.path.parent();
        let directory = parent.ok_or_else(|| self.error("not a file path"))?;
        let private = |e| match e {
            PrivateFileError::WrongOwner { path } => KeyFileError::WrongOwner { path },
            PrivateFileError::Failed(why) => self.error(why),
        };
        let directory = private_file::make_private_dir(directory).map_err(private)?;
        let lock = directory.join("keys.lock");
        private_file::make_private_file(&lock).map_err(private)?;
        let lock = std::fs::File::open(&lock).and_then(|lock| lock.lock().map(|()| lock));
        let _lock = lock.map_err(|e| self.error(e))?;
        let mut keys = self.read()?;
        change(&mut keys);
        let new = directory.join(format!("keys.{}.new", std::process::id()));
        let written = (|| {
            let mut text = serde_json::to_vec_pretty(&keys)?;
            text.push(b'\n');
            // A killed process with the same id may have left this file behind.
            let _ = std::fs::remove_file(&new);
            let mut file = private_file::new(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)
        })();
        written.map_err(|e: std::io::Error| {
            let _ = std::fs::remove_file(&new);
            self.error(e)
        })
    }
}

/// An error that prevents the use of a key file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// Other users can read the file.
    #[error(
        "insecure permissions on key file {path}: other users can read it; run `chmod 600 {path}`, and replace the keys if someone may have read them"
    )]
    ReadableByOthers {
        /// The path of the key file.
        path: String,
    },
    /// The file belongs to another user, or is not a regular file.
    #[error("key file {path} is not a regular file owned by you; remove it and log in again")]
    WrongOwner {
        /// The path of the file or directory that has the wrong owner.
        path: String,
    },
    /// The file is not a JSON object of strings.
    #[error("malformed key file {path}, line {line}; remove it and log in again")]
    Malformed {
        /// The path of the key file.
        path: String,
        /// The line number of the error, counted from 1.
        line: usize,
    },
    /// An operation on the file failed.
    #[error("cannot use key file {path}: {why}")]
    Failed {
        /// The path of the key file.
        path: String,
        /// The reason why the operation failed.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_looked_up_by_account() {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(dir.path().join("acp/keys.json"));
        let elsewhere = Account::for_url(Provider::OpenAi, "http://a.test/v1/");
        file.store(&Provider::OpenAi.into(), &Secret::new("one"))
            .unwrap();
        file.store(&elsewhere, &Secret::new("two")).unwrap();
        file.store(&Provider::Gemini.into(), &Secret::new("three"))
            .unwrap();
        let keys = KeySources::new()
            .with_key(Provider::Gemini, Secret::new("given"))
            .with_file(file.clone());
        let found = keys.read_keys().unwrap();
        let of = |account: &Account| found.get(account).map(|key| key.reveal().to_owned());
        assert_eq!(of(&Provider::OpenAi.into()).as_deref(), Some("one"));
        assert_eq!(of(&elsewhere).as_deref(), Some("two"));
        assert_eq!(of(&Provider::Gemini.into()).as_deref(), Some("given"));
        assert_eq!(of(&Provider::Anthropic.into()), None);
        assert_eq!(file.remove(Some(&elsewhere)), Ok(1));
        assert_eq!(file.remove(Some(&elsewhere)), Ok(0));
        assert_eq!(file.remove(None), Ok(2));
        assert_eq!(file.remove(None), Ok(0));
    }

    #[cfg(unix)]
    #[test]
    fn key_file_is_private_to_its_user() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(dir.path().join("acp/keys.json"));
        file.store(&Provider::OpenAi.into(), &Secret::new("sk-1"))
            .unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.path()), 0o600);
        assert_eq!(mode(file.path().parent().unwrap()), 0o700);
        let opened = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(file.path(), opened).unwrap();
        let path = file.path().display().to_string();
        let refused = KeyFileError::ReadableByOthers { path };
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
        assert_eq!(file.read(), Err(refused.clone()));
        // No key is added to such a file either.
        let kept = file.store(&Provider::Gemini.into(), &Secret::new("x"));
        assert_eq!(kept, Err(refused));
        std::fs::remove_file(file.path()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", file.path()).unwrap();
        assert!(file.read().is_err());
    }

    #[test]
    fn malformed_key_file_is_rejected_without_repeating_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(dir.path().join("keys.json"));
        let mut written = private_file::new(file.path()).unwrap();
        written.write_all(b"{\n\"openai\": sk-secret}").unwrap();
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(!error.contains("sk-secret"), "{error}");
    }
}

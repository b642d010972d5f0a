//! The file that stores users. Only its owner can read it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::user::User;
use crate::secret_file::{SecretFileError, read_private, replace_private};

/// An error of the file that stores users.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserFileError {
    /// The file cannot be read or written, or can be read by others.
    #[error(transparent)]
    File(#[from] SecretFileError),
    /// The file is not valid.
    #[error("{}: {reason}", file.display())]
    Invalid {
        /// The path of the file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There already is a user with this name.
    #[error("user already exists: {0}")]
    Exists(String),
    /// There is no user with this name.
    #[error("user not found: {0}")]
    NotFound(String),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserFile {
    #[serde(default, rename = "user")]
    users: Vec<User>,
}

/// Reads the users in a file. There are none if it does not exist.
///
/// # Errors
/// The file cannot be read, is invalid, or can be read by others.
pub fn read_users(file: &Path) -> Result<Vec<User>, UserFileError> {
    let Some(text) = read_private(file)? else {
        return Ok(Vec::new());
    };
    let invalid = |reason: String| UserFileError::Invalid {
        file: file.to_owned(),
        reason,
    };
    let parsed: UserFile = toml::from_str(&text).map_err(|error| invalid(error.to_string()))?;
    let users = parsed.users;
    for (index, user) in users.iter().enumerate() {
        if users[..index]
            .iter()
            .any(|other| other.name() == user.name())
        {
            return Err(invalid(format!("two users are called {}", user.name())));
        }
    }
    Ok(users)
}

/// Adds a user to a file, which is created if it does not exist.
///
/// # Errors
/// There is a user with this name, or the file cannot be read or written.
pub fn add_user(file: &Path, user: User) -> Result<(), UserFileError> {
    let mut users = read_users(file)?;
    if users.iter().any(|other| other.name() == user.name()) {
        return Err(UserFileError::Exists(user.name().to_string()));
    }
    users.push(user);
    write_users(file, users)
}

/// Removes a user from a file.
///
/// # Errors
/// There is no user with this name, or the file cannot be read or written.
pub fn remove_user(file: &Path, name: &str) -> Result<(), UserFileError> {
    let mut users = read_users(file)?;
    let before = users.len();
    users.retain(|user| &**user.name() != name);
    if users.len() == before {
        return Err(UserFileError::NotFound(name.to_owned()));
    }
    write_users(file, users)
}

fn write_users(file: &Path, users: Vec<User>) -> Result<(), UserFileError> {
    let text = toml::to_string(&UserFile { users }).map_err(|error| UserFileError::Invalid {
        file: file.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(replace_private(file, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::{Scope, UserLimits, Users};

    #[test]
    fn users_are_found_by_their_tokens_until_they_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("state/users.toml");
        let limits = UserLimits::new(Some(2), None);
        let (anna, token) = User::new("anna", [Scope::Prompt], true, limits).unwrap();
        add_user(&file, anna.clone()).unwrap();
        let (other, _) = User::new("bob", [], false, UserLimits::default()).unwrap();
        add_user(&file, other).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(token.expose()), "{text}");
        let users = Users::open(&file).unwrap();
        let found = users.with_token(token.expose().as_bytes()).unwrap();
        assert_eq!(*found, anna);
        assert!(found.can(Scope::Look) && found.can(Scope::Prompt) && !found.can(Scope::Answer));
        assert!(users.with_token(b"").is_none());
        assert_eq!(
            add_user(&file, anna.clone()).unwrap_err().to_string(),
            "user already exists: anna"
        );
        remove_user(&file, "anna").unwrap();
        assert_eq!(
            remove_user(&file, "anna").unwrap_err().to_string(),
            "user not found: anna"
        );
        assert_eq!(read_users(&file).unwrap().len(), 1);
        users.replace(read_users(&file).unwrap());
        assert!(!users.is_current(&anna));
    }

    #[test]
    fn a_file_that_is_too_large_is_not_written_back_in_part() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("users.toml");
        let text = "# a comment\n".repeat(100_000);
        replace_private(&file, &text).unwrap();
        let (anna, _) = User::new("anna", [], false, UserLimits::default()).unwrap();
        let error = add_user(&file, anna).unwrap_err().to_string();
        assert!(error.contains("file too large"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn an_invalid_file_is_rejected() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("users.toml");
        for text in [
            "user = 1",
            "[[user]]\nname = \"a b\"\ntoken_sha256 = \"\"\ncan = []",
            "[[user]]\nname = \"a\"\ntoken_sha256 = \"\"\ncan = [\"fly\"]",
            "[[user]]\nname = \"a\"\ntoken_sha256 = \"\"\ncan = []\nown_session = true",
            "[[user]]\nname = \"a\"\ntoken_sha256 = \"\"\ncan = []\n[[user]]\nname = \"a\"\ntoken_sha256 = \"\"\ncan = []",
        ] {
            replace_private(&file, text).unwrap();
            assert!(read_users(&file).is_err(), "{text}");
        }
    }
}

//! Checks the ids and versions of agents, which become parts of paths and of commands.

/// The maximum length of an id, which is also that of an agent's name in the configuration.
const MAX_ID_BYTES: usize = 64;

/// The maximum length of a version.
const MAX_VERSION_BYTES: usize = 64;

/// Names of devices, which are no file names on Windows.
const DEVICE_NAMES: [&str; 4] = ["aux", "con", "nul", "prn"];

/// Checks an agent's id: lowercase letters, digits and hyphens, starting with a letter.
///
/// # Errors
/// The id is invalid. The error says what is allowed.
pub fn check_id(id: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = id.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !id.chars().all(plain) || id.len() > MAX_ID_BYTES {
        return Err(format!(
            "invalid agent id {id:?}: use at most {MAX_ID_BYTES} lowercase letters, digits and `-`, starting with a letter"
        ));
    }
    if is_device_name(id) {
        return Err(format!(
            "invalid agent id {id:?}: a device on Windows has this name"
        ));
    }
    Ok(())
}

/// Checks a version: three numbers, and possibly a suffix such as `-beta.1`.
///
/// # Errors
/// The version is invalid. The error says what is allowed.
pub fn check_version(version: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-+._".contains(c);
    let mut parts = version.splitn(3, '.');
    let is_number = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    let has_numbers = is_number(parts.next()) && is_number(parts.next());
    let rest = parts.next().unwrap_or_default();
    let is_valid = has_numbers
        && rest.starts_with(|c: char| c.is_ascii_digit())
        && !version.contains("..")
        && !version.ends_with('.')
        && version.chars().all(plain)
        && version.len() <= MAX_VERSION_BYTES;
    match is_valid {
        true => Ok(()),
        false => Err(format!(
            "invalid version {version:?}: expected three numbers such as 1.2.3, and possibly a suffix such as -beta.1"
        )),
    }
}

/// Returns `true` if a file cannot have this name on Windows, because it is that of a device.
pub(crate) fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    let is_port = |port: &str| {
        stem.strip_prefix(port)
            .is_some_and(|digit| digit.len() == 1 && digit.bytes().all(|b| b.is_ascii_digit()))
    };
    DEVICE_NAMES.contains(&stem.as_str()) || is_port("com") || is_port("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_versions_cannot_lead_out_of_their_directory() {
        for id in ["goose", "a1-b", "claude-acp"] {
            check_id(id).unwrap();
        }
        for id in [
            "",
            "..",
            ".",
            "a/b",
            "a\\b",
            "/a",
            "A",
            "1a",
            "-a",
            "a_b",
            "a b",
            "a@1",
            "é",
            "con",
            "com1",
            "a\n",
            &"a".repeat(65),
        ] {
            check_id(id).unwrap_err();
        }
        for version in [
            "1.2.3",
            "2026.10.01",
            "1.0.0-beta.1",
            "0.1.2+build",
            "1.2.3.4",
        ] {
            check_version(version).unwrap();
        }
        for version in [
            "",
            "1",
            "1.2",
            "1.2.",
            "latest",
            "../1.2.3",
            "1.2.3/..",
            "1.2..3",
            "1.2.3-..",
            "1.2.x",
            "v1.2.3",
            "1.2.3 ",
            "1.2.3\n",
            "1.2.3\\x",
            "^1.2.3",
            &format!("1.2.3{}", "0".repeat(64)),
        ] {
            check_version(version).unwrap_err();
        }
    }
}

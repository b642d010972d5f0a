//! Hides this process's secrets from the agents and commands that it starts. The secrets are keys in its environment,
//! its memory, and files left open by its parent.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use crate::sys;

/// The variables that [`protect_secrets`] has removed from the environment, with their values.
static REMOVED_VARIABLES: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Hides this process's secrets from the processes it starts. Call this first in `main`, before starting any threads.
/// If a second thread already exists, the environment is not changed.
///
/// - Only root may inspect the process: its environment, its memory or its files, under `/proc/PID` or by tracing it.
///   It also leaves no core dump.
/// - Variables with names like keys are removed from the environment, and from what `/proc/PID/environ` shows to root.
///   [`variable`] and [`variables`] still return them.
/// - What the process was started with open, except its standard streams, is closed in everything it starts.
///
/// Does nothing on systems other than Linux.
pub fn protect_secrets() {
    sys::hide_this_process();
    sys::close_inherited_in_children();
    let taken = sys::take_variables(is_secret_name);
    // A second call has nothing left to remove.
    let _ = REMOVED_VARIABLES.set(taken);
}

/// Returns the value of an environment variable that this process was started with.
#[must_use]
pub fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    let name = name.as_ref();
    let taken = REMOVED_VARIABLES.get().and_then(|taken| taken.get(name));
    taken.cloned().or_else(|| std::env::var_os(name))
}

/// Returns all environment variables that this process was started with.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    hidden_variables().chain(std::env::vars_os())
}

/// Returns the variables that have been removed from the environment.
pub(crate) fn hidden_variables() -> impl Iterator<Item = (OsString, OsString)> {
    let taken = REMOVED_VARIABLES.get().into_iter().flatten();
    taken.map(|(name, value)| (name.clone(), value.clone()))
}

/// Returns `true` if a variable's name looks like that of a secret.
fn is_secret_name(name: &OsStr) -> bool {
    /// Words that indicate a secret if a variable's name contains them, separated from other words by underscores.
    const SECRET_WORDS: [&str; 12] = [
        "APIKEY",
        "AUTH",
        "CREDENTIAL",
        "CREDENTIALS",
        "KEY",
        "KEYS",
        "PASS",
        "PASSWD",
        "PASSWORD",
        "PAT",
        "SECRET",
        "TOKEN",
    ];
    let Some(name) = name.to_str() else {
        return false;
    };
    // An MCP proxy reads its token from the environment.
    let is_own = name == "ACP_MCP_TOKEN";
    let is_socket = name.ends_with("_SOCK");
    let name = name.to_ascii_uppercase();
    !is_own && !is_socket && name.split('_').any(|word| SECRET_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_variables_are_recognized_by_name() {
        for name in [
            "OPENAI_API_KEY",
            "GH_TOKEN",
            "github_token",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD_X_PASSWORD",
        ] {
            assert!(is_secret_name(OsStr::new(name)), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "SSH_AUTH_SOCK",
            "ACP_MCP_TOKEN",
            "XDG_STATE_HOME",
            "KEYBOARD",
            "TERM",
        ] {
            assert!(!is_secret_name(OsStr::new(name)), "{name}");
        }
    }
}

//! The environment variables of agents and commands.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::process::Command;

use crate::process_secrets;

/// Variables that most programs need to work on this platform and for the current user. None of them is secret. A
/// trailing `*` matches any suffix.
const PASSED_VARIABLES: [&str; 110] = [
    // User and directories.
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USER",
    // Language and terminal.
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "NO_COLOR",
    "TERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TZ",
    "TZDIR",
    // The desktop: an agent opens a browser to log in, and stores credentials in the keyring.
    "BROWSER",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_*",
    // Network access.
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Locations of toolchains and libraries.
    "ANDROID_HOME",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_HOME",
    "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    "NODE_PATH",
    "NVM_BIN",
    "NVM_DIR",
    "OPAM_SWITCH_PREFIX",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYTHONHOME",
    "PYTHONPATH",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    // Windows: hardly any program starts without these.
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMPUTERNAME",
    "CommonProgramFiles*",
    "CommonProgramW6432",
    "ComSpec",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_*",
    "ProgramData",
    "ProgramFiles*",
    "ProgramW6432",
    "PSModulePath",
    "PUBLIC",
    "SystemDrive",
    "SystemRoot",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "windir",
];

/// The environment to start a program in: variables passed on from this process at that time, and variables with fixed
/// values.
///
/// By default, only variables that the platform needs are passed on: paths, home, language, terminal, time zone,
/// temporary directory, proxies and certificates, the desktop, and the locations of toolchains. All others are
/// withheld, because environments often contain keys and tokens that are not meant for the program.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    passes_all: bool,
    /// Patterns for variables to pass on in addition to the default ones.
    pass_patterns: Vec<String>,
    overrides: Vec<(OsString, OsString)>,
}

/// Shows only the names of variables, because the values may be secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("all", &self.passes_all)
            .field("passed", &self.pass_patterns)
            .field("set", &variable_names(&self.overrides))
            .finish()
    }
}

/// Returns the names of the variables, without their values.
pub(crate) fn variable_names(variables: &[(OsString, OsString)]) -> Vec<&OsStr> {
    variables.iter().map(|(name, _)| name.as_os_str()).collect()
}

impl Environment {
    /// Creates an environment that passes on the variables that the platform needs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an environment that passes on all of this process's variables.
    #[must_use]
    pub fn inherit() -> Self {
        Self {
            passes_all: true,
            ..Self::default()
        }
    }

    /// Also passes on this variable, if it is set. If the name ends with `*`, passes on all variables whose names start
    /// with the preceding text.
    ///
    /// # Errors
    /// The name is not valid for an environment variable.
    pub fn pass_variable(mut self, name: impl Into<String>) -> Result<Self, InvalidVariableName> {
        let name = name.into();
        let stem = name.strip_suffix('*').unwrap_or(&name);
        if name.is_empty() || stem.contains(['=', '\0', '*']) {
            return Err(InvalidVariableName(name));
        }
        self.pass_patterns.push(name);
        Ok(self)
    }

    /// Sets a variable, overriding the value it has in this process.
    #[must_use]
    pub fn set(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.overrides.push((name.into(), value.into()));
        self
    }

    /// Returns `true` if the program gets this variable, provided that it is set.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        let is_set = self
            .overrides
            .iter()
            .any(|(set, _)| is_same_name(set.as_os_str(), OsStr::new(name)));
        is_set || self.is_passed_on(OsStr::new(name), process_secrets::variable(name).as_deref())
    }

    /// Returns `true` if the program gets this process's value for the variable.
    fn is_passed_on(&self, name: &OsStr, value: Option<&OsStr>) -> bool {
        let Some(name) = name.to_str() else {
            // A name that is not UTF-8 could mean anything.
            return self.passes_all;
        };
        let named = |pattern: &str| matches_pattern(pattern, name);
        let asked_for = self.passes_all || self.pass_patterns.iter().any(|pattern| named(pattern));
        asked_for
            || PASSED_VARIABLES.iter().any(|pattern| named(pattern)) && !is_secret(name, value)
    }

    /// Returns the value that the program gets for a variable, if any.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<OsString> {
        let mut set = self.overrides.iter().rev();
        if let Some((_, value)) = set.find(|(set, _)| is_same_name(set, OsStr::new(name))) {
            return Some(value.clone());
        }
        let value = process_secrets::variable(name)?;
        self.is_passed_on(OsStr::new(name), Some(&value))
            .then_some(value)
    }

    /// Applies the environment to a command that has no variables set yet.
    pub(crate) fn apply_to(&self, command: &mut Command) {
        if self.passes_all {
            // The command inherits the rest.
            command.envs(process_secrets::hidden_variables());
        } else {
            command.env_clear();
            let ours = process_secrets::variables();
            command.envs(ours.filter(|(name, value)| self.is_passed_on(name, Some(value))));
        }
        command.envs(self.overrides.iter().map(|(name, value)| (name, value)));
    }
}

/// Returns `true` if a variable may contain a secret even though its name matches a pattern. This applies to proxy URLs
/// with a password.
fn is_secret(name: &str, value: Option<&OsStr>) -> bool {
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
    is_proxy && value.is_some_and(|value| value.as_encoded_bytes().contains(&b'@'))
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        None => is_same_name(OsStr::new(pattern), OsStr::new(name)),
        Some(stem) => name
            .get(..stem.len())
            .is_some_and(|begin| is_same_name(OsStr::new(stem), OsStr::new(begin))),
    }
}

/// Returns `true` if both names refer to the same environment variable.
fn is_same_name(one: &OsStr, other: &OsStr) -> bool {
    match cfg!(windows) {
        true => one.eq_ignore_ascii_case(other),
        false => one == other,
    }
}

/// An error about an invalid environment variable name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid environment variable name: `{0}`")]
pub struct InvalidVariableName(String);

//! Agents on the network: their URLs and connection settings.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use acp_host::process_secrets;

use super::path_mapping::PathMapping;
use super::remote_url::{PIN_REQUIRES_TLS, RemoteUrl, TokenHeader, parse_pin};
use super::settings::{AgentSettings, home_path};
use super::token_file::read_token_file;
use crate::error::ConfigError;
use crate::quote::quote;

/// The environment variable that contains the token for a remote agent, used if no other token is given.
pub const TOKEN_VARIABLE: &str = "ACP_TOKEN";

/// A URL as typed by the user. It is validated when the agent is chosen. Errors never reveal its token.
#[derive(Clone)]
pub struct TypedUrl(String);

impl fmt::Debug for TypedUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlRequest(…)")
    }
}

impl FromStr for TypedUrl {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// Command-line options for connecting to a remote agent.
#[derive(Debug, Clone, Default)]
pub struct RemoteOptions {
    /// The file that contains the token.
    pub token_file: Option<PathBuf>,
    /// How the token is sent.
    pub token_header: Option<TokenHeader>,
    /// The fingerprint of the server's certificate.
    pub pin: Option<String>,
    /// The directories whose paths differ on the agent's machine.
    pub paths: Vec<PathMapping>,
}

/// A token. `Debug` does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentToken(String);

impl fmt::Debug for AgentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentToken(…)")
    }
}

impl AgentToken {
    /// Returns the token itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// An agent on the network.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoteAgent {
    /// The agent's URL.
    pub url: RemoteUrl,
    /// The token to send to the server.
    pub token: Option<AgentToken>,
    /// How the token is sent.
    pub token_header: TokenHeader,
    /// The SHA-256 fingerprint of the only certificate to trust, prefixed with `sha256:`.
    pub pin: Option<String>,
    /// The directories whose paths differ on the agent's machine.
    pub paths: Vec<PathMapping>,
    /// Command-line arguments that choose the same agent again. They never contain the token.
    args: Vec<String>,
    /// Warnings for the user.
    pub notes: Vec<String>,
}

impl RemoteAgent {
    /// Returns the agent at the URL given on the command line. Uses [`TOKEN_VARIABLE`] if no other token is given.
    ///
    /// # Errors
    /// The URL or an option is invalid, or the token cannot be read.
    pub fn from_url(url: &TypedUrl, options: &RemoteOptions) -> Result<Self, ConfigError> {
        let cwd = std::env::current_dir().ok();
        let url = RemoteUrl::parse(&url.0, cwd.as_deref()).map_err(ConfigError::usage)?;
        let shown = match &url.token {
            // The token is omitted, because this is shown.
            Some(_) if url.as_str().contains('?') => format!("{}&token=...", url.as_str()),
            Some(_) => format!("{}?token=...", url.as_str()),
            None => url.as_str().to_owned(),
        };
        let args = vec!["--url".to_owned(), quote(&shown)];
        let mut agent = Self::new(url, args);
        if agent.token.is_none() && agent.url.takes_token() {
            agent.token = token_from_variable(TOKEN_VARIABLE);
        }
        agent.apply(options)?;
        Ok(agent)
    }

    /// Returns the remote agent with these settings, which have already been checked.
    ///
    /// [`TOKEN_VARIABLE`] is not used: it may be meant for another server.
    pub(super) fn configured(
        url: RemoteUrl,
        settings: &AgentSettings,
        options: &RemoteOptions,
        config_error: impl Fn(String) -> ConfigError,
    ) -> Result<Self, ConfigError> {
        let mut agent = Self::new(url, Vec::new());
        agent.token_header = settings.token_header.unwrap_or_default();
        agent.paths = settings
            .path_mappings()
            .map_err(|e| config_error(format!("paths: {e}")))?;
        if let Some(pin) = &settings.pin {
            agent
                .set_pin(pin)
                .map_err(|e| config_error(format!("pin: {e}")))?;
        }
        // A token from the command line is used instead.
        if options.token_file.is_none() {
            if let Some(name) = &settings.token_env {
                let token = token_from_variable(name);
                let token = token
                    .ok_or_else(|| config_error(format!("token_env: variable {name} not set")))?;
                agent.token = Some(token);
            }
            if let Some(file) = &settings.token_file {
                let file = home_path(file).map_err(|e| config_error(format!("token_file: {e}")))?;
                agent
                    .read_token(&file)
                    .map_err(|e| config_error(format!("token_file: {e}")))?;
            }
        }
        agent.apply(options)?;
        Ok(agent)
    }

    fn new(mut url: RemoteUrl, args: Vec<String>) -> Self {
        Self {
            token: url.token.take().map(AgentToken),
            pin: url.pin.take(),
            url,
            token_header: TokenHeader::default(),
            paths: Vec::new(),
            args,
            notes: Vec::new(),
        }
    }

    fn apply(&mut self, options: &RemoteOptions) -> Result<(), ConfigError> {
        let usage = |option: &str, e: String| ConfigError::usage(format!("{option}: {e}"));
        if let Some(file) = &options.token_file {
            if !self.url.takes_token() {
                let what = format!("no token can be sent to {}", self.url.key());
                return Err(usage("--token-file", what));
            }
            self.read_token(file)
                .map_err(|e| usage("--token-file", e))?;
            let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
            self.add_arg("--token-file", &file.to_string_lossy());
        }
        if let Some(header) = options.token_header {
            self.token_header = header;
            self.add_arg("--token-header", header.as_str());
        }
        for mapping in &options.paths {
            self.add_arg("--map", &mapping.to_string());
            // The command line replaces what is configured for the same directory.
            self.paths.retain(|other| other.local != mapping.local);
            self.paths.push(mapping.clone());
        }
        if let Some(pin) = &options.pin {
            self.set_pin(pin).map_err(|e| usage("--pin", e))?;
        }
        if let (Some(pin), false) = (&self.pin, self.args.is_empty() && options.pin.is_none()) {
            let pin = pin.clone();
            self.add_arg("--pin", &pin);
        }
        Ok(())
    }

    fn add_arg(&mut self, option: &str, value: &str) {
        self.args.extend([option.to_owned(), quote(value)]);
    }

    fn read_token(&mut self, file: &Path) -> Result<(), String> {
        let (token, note) = read_token_file(file)?;
        self.token = Some(AgentToken(token));
        self.notes.extend(note);
        Ok(())
    }

    fn set_pin(&mut self, pin: &str) -> Result<(), String> {
        let pin = parse_pin(pin)?;
        if !self.url.has_tls() {
            return Err(PIN_REQUIRES_TLS.to_owned());
        }
        match &self.pin {
            Some(other) if *other != pin => Err("the URL has a different fingerprint".to_owned()),
            _ => {
                self.pin = Some(pin);
                Ok(())
            }
        }
    }

    /// Returns the arguments that make `acp` relay messages to this agent. They do not include the token, which `acp`
    /// reads from [`TOKEN_VARIABLE`].
    #[must_use]
    pub fn connect_args(&self) -> Vec<String> {
        let mut args = vec!["connect".to_owned()];
        if let Some(pin) = &self.pin {
            args.extend(["--pin".to_owned(), pin.clone()]);
        }
        if self.token_header != TokenHeader::default() {
            let header = self.token_header.as_str().to_owned();
            args.extend(["--token-header".to_owned(), header]);
        }
        for mapping in &self.paths {
            args.extend(["--map".to_owned(), mapping.to_string()]);
        }
        args.push(self.url.as_str().to_owned());
        args
    }

    /// Returns command-line arguments that choose the same agent again, quoted for a shell. They never contain the
    /// token.
    #[must_use]
    pub fn to_args(&self) -> &[String] {
        &self.args
    }
}

fn token_from_variable(name: &str) -> Option<AgentToken> {
    let value = process_secrets::variable(name)?.into_string().ok()?;
    let token = value.trim();
    (!token.is_empty()).then(|| AgentToken(token.to_owned()))
}

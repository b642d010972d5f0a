//! Arguments that choose a remote agent.

use std::path::PathBuf;

use acp_config::{PathMapping, RemoteAgent, RemoteOptions, TokenHeader, TypedUrl};
use clap::{ValueEnum, ValueHint};

use crate::exit::CommandExit;

// How a remote agent is reached. No doc comment: clap would use it as the description of the command.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RemoteArgs {
    /// File that contains the token for a remote agent.
    ///
    /// Only you should be able to read it. The default is the token in the URL, or else the variable ACP_TOKEN;
    /// for an agent in config.toml, what is configured there.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Header in which to send the token.
    ///
    /// The default is `authorization`, with a bearer token. goose expects `x-secret-key`.
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) token_header: Option<TokenHeaderArg>,

    /// SHA-256 fingerprint of the remote agent's certificate: sha256: followed by 64 hexadecimal digits.
    ///
    /// Exactly this certificate is trusted, whoever has signed it. `acp serve --tls-self-signed` prints it as
    /// the end of the URL, where it can also be given: wss://HOST/acp#sha256:...
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) pin: Option<String>,
}

impl RemoteArgs {
    /// Returns the connection options.
    pub(crate) fn options(&self) -> RemoteOptions {
        RemoteOptions {
            token_file: self.token_file.clone(),
            token_header: self.token_header.map(TokenHeader::from),
            pin: self.pin.clone(),
            paths: Vec::new(),
        }
    }
}

// The paths of a remote agent. Not needed by commands that only check a server.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct PathArgs {
    /// Local directory and the corresponding path on the agent's machine.
    ///
    /// For example, `--map .=/srv/project`. Paths below it are replaced in messages in both directions. Paths
    /// in texts and in commands stay as they are. Can be repeated.
    #[arg(long, value_name = "LOCAL=REMOTE")]
    pub(crate) map: Vec<PathMapping>,
}

/// The header in which the token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenHeaderArg {
    Authorization,
    XSecretKey,
}

impl From<TokenHeaderArg> for TokenHeader {
    fn from(header: TokenHeaderArg) -> Self {
        match header {
            TokenHeaderArg::Authorization => Self::Authorization,
            TokenHeaderArg::XSecretKey => Self::XSecretKey,
        }
    }
}

// A remote agent, where a command that starts one is also possible.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct UrlArgs {
    /// URL of a remote agent, instead of a command that starts one.
    ///
    /// `acp serve` prints it. The schemes are ws, wss, http and https, and for agents that listen on a plain
    /// socket, tcp://HOST:PORT and unix:PATH. Other users can see the command line, so pass the token with --token-file
    /// or ACP_TOKEN rather than as part of the URL.
    #[arg(long, value_name = "URL", conflicts_with_all = ["agent", "env"])]
    pub(crate) url: Option<TypedUrl>,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    #[command(flatten)]
    pub(crate) paths: PathArgs,
}

impl UrlArgs {
    /// Returns the connection options.
    pub(crate) fn options(&self) -> RemoteOptions {
        RemoteOptions {
            paths: self.paths.map.clone(),
            ..self.remote.options()
        }
    }

    /// Returns the remote agent given with `--url`, if any.
    ///
    /// # Errors
    /// The URL or an option is invalid, or there are options of a remote agent without a URL.
    pub(crate) fn agent(&self) -> Result<Option<RemoteAgent>, CommandExit> {
        let Some(url) = &self.url else {
            let remote = &self.remote;
            let is_given = remote.token_file.is_some()
                || remote.token_header.is_some()
                || remote.pin.is_some()
                || !self.paths.map.is_empty();
            return match is_given {
                true => Err(CommandExit::usage(
                    "--token-file, --token-header, --pin and --map require --url",
                )),
                false => Ok(None),
            };
        };
        Ok(Some(RemoteAgent::from_url(url, &self.options())?))
    }
}

//! The token and the certificate of a server, and its addresses as they are printed.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_config::paths;
use acp_remote::Token;
use acp_remote::server::{
    AllowedHosts, AllowedOrigins, ServerConfig, ServerLimits, TlsConfig, TlsIdentity,
};
use acp_server::{SecretFileError, self_signed_identity, token_from_file};

use crate::args::serve::{LogFormat, ServeArgs};
use crate::exit::CommandExit;

/// The name of the token file in the state directory.
const TOKEN_FILE: &str = "serve.token";

/// The variable that contains the token, for containers. Its name makes sure that agents do not get it.
const TOKEN_VARIABLE: &str = "ACP_SERVE_TOKEN";

/// The name of the file in the state directory that stores the self-signed certificate and its key.
const CERTIFICATE_FILE: &str = "serve-certificate.pem";

/// The information that clients need to connect: the token and the certificate.
pub(super) struct ServerAccess {
    pub(super) token: Option<Token>,
    /// The file that contains the token, and whether this server has just created it.
    token_file: Option<(PathBuf, bool)>,
    pub(super) tls: Option<Arc<TlsConfig>>,
    /// The fingerprint of the certificate, if it is self-signed.
    pin: Option<String>,
}

impl ServerAccess {
    pub(super) fn prepare(args: &ServeArgs, address: SocketAddr) -> Result<Self, CommandExit> {
        let failed = |e: SecretFileError| CommandExit::usage(e.to_string());
        let variable = acp_host::process_secrets::variable(TOKEN_VARIABLE);
        let (token, token_file) = match (args.no_token, &args.token_file, variable) {
            (true, _, _) => (None, None),
            (false, None, Some(text)) => {
                let token = text.to_str().map(Token::new);
                let token = token.and_then(Result::ok).ok_or_else(|| {
                    CommandExit::usage(format!("the variable {TOKEN_VARIABLE} is not a token"))
                })?;
                (Some(token), None)
            }
            (false, _, _) => {
                let file = match &args.token_file {
                    Some(file) => file.clone(),
                    None => state_file(TOKEN_FILE, "--token-file")?,
                };
                let (token, is_new) = token_from_file(&file).map_err(failed)?;
                (Some(token), Some((file, is_new)))
            }
        };
        let mut pin = None;
        let identity = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let read = |flag: &str, file: &Path| {
                    std::fs::read(file)
                        .map_err(|e| CommandExit::usage(format!("{flag} {}: {e}", file.display())))
                };
                let certificate = read("--tls-cert", certificate)?;
                let key = read("--tls-key", key)?;
                let identity = TlsIdentity::from_pem(&certificate, &key);
                Some(identity.map_err(|e| CommandExit::usage(format!("--tls-cert: {e}")))?)
            }
            _ if args.tls_self_signed => {
                let mut names = vec!["localhost".to_owned(), address.ip().to_string()];
                names.extend(args.host.iter().cloned());
                let file = state_file(CERTIFICATE_FILE, "--tls-cert")?;
                let identity = self_signed_identity(&file, &names).map_err(failed)?;
                pin = Some(identity.fingerprint_text());
                Some(identity)
            }
            _ => None,
        };
        let tls = identity.map(TlsIdentity::server_config).transpose();
        Ok(Self {
            token,
            token_file,
            tls: tls.map_err(|e| CommandExit::usage(e.to_string()))?,
            pin,
        })
    }

    pub(super) fn config(&self, args: &ServeArgs, address: SocketAddr) -> ServerConfig {
        let mut hosts = args.host.clone();
        let ip = address.ip();
        if !ip.is_unspecified() {
            hosts.push(match ip.is_ipv6() {
                true => format!("[{ip}]"),
                false => ip.to_string(),
            });
        }
        let limits = ServerLimits::new()
            .connections(usize::try_from(args.max_connections).unwrap_or(usize::MAX));
        let mut config = ServerConfig::new()
            .hosts(AllowedHosts::Named(hosts))
            .limits(limits);
        if !args.origin.is_empty() {
            config = config.origins(AllowedOrigins::Named(args.origin.clone()));
        }
        config.token = self.token.clone();
        config
    }

    /// Prints the address of the page. Where secrets are printed, it includes a code with which one browser can sign in.
    /// Otherwise, browsers sign in with the token.
    pub(super) fn announce_page(&self, args: &ServeArgs, address: SocketAddr, path: &str) {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let site = format!("{scheme}://{}", authority(args, address));
        if args.log_format == LogFormat::Json {
            tracing::info!(url = format!("{site}/"), "page");
            return;
        }
        match self.shows_secrets() || self.token.is_none() {
            true => {
                let url = format!("{site}{path}");
                eprintln!("acp: in a browser: {url}");
                // A phone cannot reach a loopback address, and of several addresses, the right one is not known.
                let is_one_address = !address.ip().is_loopback() && !address.ip().is_unspecified();
                if (is_one_address || !args.host.is_empty())
                    && std::io::stderr().is_terminal()
                    && let Some(code) = qr_code(&url)
                {
                    eprintln!("{code}");
                }
            }
            false => eprintln!("acp: in a browser: {site}/"),
        }
    }

    /// Returns `true` if secrets are printed: stderr is a terminal, or the token has just been created. Otherwise, stderr
    /// is probably a log.
    fn shows_secrets(&self) -> bool {
        match &self.token_file {
            Some((_, is_new)) => *is_new || std::io::stderr().is_terminal(),
            None => false,
        }
    }

    /// Prints an agent's URL. The token is included where secrets are printed.
    pub(super) fn announce(&self, args: &ServeArgs, address: SocketAddr, path: &str) {
        let scheme = if self.tls.is_some() { "wss" } else { "ws" };
        let mut url = format!("{scheme}://{}{path}", authority(args, address));
        if args.log_format == LogFormat::Json {
            tracing::info!(url, "listening");
            return;
        }
        let is_shown = self.shows_secrets();
        if let (Some(token), true) = (&self.token, is_shown) {
            url = format!("{url}?token={}", token.expose());
        }
        if let Some(pin) = &self.pin {
            url = format!("{url}#{pin}");
        }
        eprintln!("acp: serving {url}");
        match &self.token_file {
            Some((file, _)) if !is_shown => eprintln!(
                "acp: clients need the token in {}",
                paths::display_path(file)
            ),
            None if self.token.is_some() => {
                eprintln!("acp: clients need the token in the variable {TOKEN_VARIABLE}");
            }
            Some(_) => {}
            None => eprintln!(
                "acp: warning: no token: everyone who can reach this address can use the agent"
            ),
        }
        if args.insecure && self.tls.is_none() && !address.ip().is_loopback() {
            eprintln!(
                "acp: warning: no TLS: the token and all messages can be read on the network"
            );
        }
    }
}

/// Returns a QR code of a URL, to be scanned from the terminal by a phone.
fn qr_code(url: &str) -> Option<String> {
    use qrcode::render::unicode::Dense1x2;
    let code = qrcode::QrCode::new(url).ok()?;
    // Scanners expect dark squares on a light ground. Most terminals are dark.
    let image = code
        .render::<Dense1x2>()
        .dark_color(Dense1x2::Light)
        .light_color(Dense1x2::Dark)
        .build();
    Some(image)
}

/// Returns the host and port to show in URLs.
fn authority(args: &ServeArgs, address: SocketAddr) -> String {
    let port = address.port();
    match (args.host.first(), address.ip().is_unspecified()) {
        (Some(host), _) => format!("{host}:{port}"),
        (None, true) => format!("localhost:{port}"),
        (None, false) => address.to_string(),
    }
}

/// Returns the path of a file in the state directory.
fn state_file(name: &str, flag: &str) -> Result<PathBuf, CommandExit> {
    match paths::state_dir() {
        Some(state) => Ok(state.join(name)),
        None => Err(CommandExit::usage(format!(
            "cannot store {name}: there is no home directory; use {flag}"
        ))),
    }
}

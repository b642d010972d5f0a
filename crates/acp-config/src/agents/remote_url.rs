//! Parses the URLs of remote agents and other connection settings, such as certificate fingerprints and token header
//! names.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use url::Url;
use url::form_urlencoded::parse as parse_query;

/// The URL of a remote agent. If the text includes a token or a certificate fingerprint, they are stored separately.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    /// The URL without its token and fragment.
    text: String,
    pub(crate) token: Option<String>,
    pub(crate) pin: Option<String>,
}

/// Omits the token.
impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteUrl").field(&self.text).finish()
    }
}

impl RemoteUrl {
    /// Parses a URL: `ws://`, `wss://`, `http://` or `https://`, `tcp://HOST:PORT`, or `unix:PATH`. A relative path is
    /// resolved against `base`.
    ///
    /// # Errors
    /// The URL is invalid. The error does not contain the token.
    pub(crate) fn parse(written: &str, base: Option<&Path>) -> Result<Self, String> {
        if let Some(path) = written.strip_prefix("unix:") {
            return Self::from_socket_path(path.strip_prefix("//").unwrap_or(path), base);
        }
        let parsed = Url::parse(written);
        let mut url = parsed.map_err(|e| format!("invalid URL: {e}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "invalid URL: user names and passwords are not supported; use a token".to_owned(),
            );
        }
        let pin = url.fragment().map(parse_pin).transpose()?;
        let (mut token, mut others) = (None, Vec::new());
        for pair in url.query().unwrap_or_default().split('&') {
            match parse_query(pair.as_bytes()).next() {
                Some((name, value)) if name == "token" => token = Some(value.into_owned()),
                Some(_) => others.push(pair),
                None => {}
            }
        }
        let others = Some(others.join("&")).filter(|others| !others.is_empty());
        url.set_fragment(None);
        url.set_query(others.as_deref());
        let invalid =
            |reason: &str| Err(format!("invalid URL `{}`: {reason}", without_query(&url)));
        match url.scheme() {
            "ws" | "wss" | "http" | "https" | "tcp" if url.host_str().is_none_or(str::is_empty) => {
                return invalid("the host is missing");
            }
            "ws" | "wss" | "http" | "https" => {}
            "tcp" if url.port().is_none() => return invalid("the port is missing"),
            "tcp" if !url.path().is_empty() || token.is_some() || others.is_some() => {
                return invalid("expected tcp://HOST:PORT, without a path or a token");
            }
            "tcp" => {}
            _ => return invalid("expected ws, wss, http, https, tcp or unix"),
        }
        let url = Self {
            text: url.into(),
            token: token.filter(|token| !token.is_empty()),
            pin,
        };
        match url.pin {
            Some(_) if !url.has_tls() => Err(format!("{}: {PIN_REQUIRES_TLS}", url.key())),
            _ => Ok(url),
        }
    }

    fn from_socket_path(path: &str, base: Option<&Path>) -> Result<Self, String> {
        let path = match (Path::new(path), base) {
            (written, _) if written.as_os_str().is_empty() => {
                return Err("invalid URL `unix:`: the path is missing".to_owned());
            }
            (written, _) if written.is_absolute() => written.to_owned(),
            (written, Some(base)) => base.join(written),
            (_, None) => return Err(format!("unix:{path}: the path must be absolute")),
        };
        let path: std::path::PathBuf = path.components().collect();
        Ok(Self {
            text: format!("unix:{}", path.to_string_lossy()),
            token: None,
            pin: None,
        })
    }

    /// Returns the URL without its token and fragment.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the URL without its query, for display and storage.
    #[must_use]
    pub fn key(&self) -> &str {
        match self.text.starts_with("unix:") {
            true => &self.text,
            false => self.text.split('?').next().unwrap_or(&self.text),
        }
    }

    /// Returns the server's host and port, or the file name of its socket.
    #[must_use]
    pub fn server_name(&self) -> &str {
        let rest = self.key();
        match rest.split_once("://") {
            Some((_, rest)) => rest.split('/').next().unwrap_or(rest),
            None => rest.rsplit('/').next().unwrap_or(rest),
        }
    }

    /// Returns `true` if a token can be sent to the server.
    #[must_use]
    pub fn takes_token(&self) -> bool {
        !self.text.starts_with("tcp:") && !self.text.starts_with("unix:")
    }

    /// Returns `true` if the connection uses TLS, which means that the server has a certificate.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.text.starts_with("wss:") || self.text.starts_with("https:")
    }
}

/// How a token is sent to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TokenHeader {
    /// `Authorization: Bearer TOKEN`.
    #[default]
    Authorization,
    /// `X-Secret-Key: TOKEN`, as expected by goose.
    XSecretKey,
}

impl TokenHeader {
    /// Returns the name of the header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authorization => "authorization",
            Self::XSecretKey => "x-secret-key",
        }
    }
}

/// The error for a URL with a fingerprint but without TLS.
pub(super) const PIN_REQUIRES_TLS: &str = "a fingerprint requires wss:// or https://";

fn without_query(url: &Url) -> &str {
    url.as_str().split(['?', '#']).next().unwrap_or_default()
}

/// Parses the SHA-256 fingerprint of a certificate: `sha256:` followed by 64 hexadecimal digits, optionally separated
/// by colons. Returns it in lower case without colons.
pub(super) fn parse_pin(text: &str) -> Result<String, String> {
    let digits: Option<String> = text
        .strip_prefix("sha256:")
        .map(|digits| digits.replace(':', "").to_ascii_lowercase())
        .filter(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    match digits {
        Some(digits) => Ok(format!("sha256:{digits}")),
        None => Err("invalid fingerprint: expected sha256: and 64 hexadecimal digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RemoteUrl, String> {
        RemoteUrl::parse(text, None)
    }

    #[test]
    fn url_is_stored_without_its_token_and_fingerprint() {
        let pin = format!("sha256:{}", "aB".repeat(32));
        let url = parse(&format!("WSS://Host:7180/acp?a=1&token=t%26k&b=2#{pin}")).unwrap();
        assert_eq!(url.as_str(), "wss://host:7180/acp?a=1&b=2");
        assert_eq!(url.key(), "wss://host:7180/acp");
        assert_eq!(url.token.as_deref(), Some("t&k"));
        assert_eq!(url.pin, Some(format!("sha256:{}", "ab".repeat(32))));
        assert!(!format!("{url:?}").contains("t&k"));
        let url = parse("http://h/?token=").unwrap();
        assert_eq!((url.as_str(), &url.token), ("http://h/", &None));
    }

    #[test]
    fn a_server_has_a_short_name() {
        for (url, name) in [
            ("wss://example.com/acp?x", "example.com"),
            ("http://[::1]:80/acp/goose", "[::1]"),
            ("tcp://127.0.0.1:7180", "127.0.0.1:7180"),
            ("unix:///run/agent.sock", "agent.sock"),
        ] {
            assert_eq!(parse(url).unwrap().server_name(), name);
        }
    }

    #[cfg(unix)]
    #[test]
    fn socket_path_is_absolute() {
        let at = |url, base| RemoteUrl::parse(url, base).map(|url| url.text);
        let base = Some(Path::new("/project"));
        assert_eq!(at("unix:/a?b#c", None).unwrap(), "unix:/a?b#c");
        assert_eq!(at("unix:./a", base).unwrap(), "unix:/project/a");
        assert!(at("unix:a", None).unwrap_err().contains("absolute"));
        assert!(at("unix://", base).unwrap_err().contains("missing"));
    }

    #[test]
    fn errors_do_not_show_the_token() {
        let short = format!("wss://h/?token=hush#sha256:{}", "a".repeat(63));
        let plain = format!("ws://h/?token=hush#sha256:{}", "a".repeat(64));
        for (url, said) in [
            ("localhost:7180", "expected ws, wss"),
            ("ftp://h/?token=hush", "expected ws, wss"),
            ("ws://me:hush@h/", "user names and passwords"),
            ("ws://?token=hush", "host"),
            ("tcp://h?token=hush", "the port is missing"),
            ("tcp://h:1?token=hush", "without a path or a token"),
            ("tcp://h:1/acp", "without a path"),
            ("wss://h/?token=hush#hush", "invalid fingerprint"),
            (&short, "invalid fingerprint"),
            (&plain, "requires wss"),
            ("", "invalid URL"),
        ] {
            let error = parse(url).unwrap_err();
            assert!(error.contains(said), "{url}: {error}");
            assert!(!error.contains("hush"), "{url}: {error}");
        }
    }
}

//! Downloads files over HTTPS, with limits on size, redirects and silence.

use std::io::{self, Write};
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, TRANSFER_ENCODING};
use reqwest::{Client, ClientBuilder, Response, StatusCode, Url, redirect};
use rustls::crypto::ring;
use sha2::{Digest, Sha256};

use crate::error::RegistryError;

/// The timeout for connecting, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a server may send nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// Downloads files. Only `https` URLs are accepted, and `http` URLs of this machine.
#[derive(Debug, Default)]
pub struct Downloader {
    https: OnceLock<Client>,
    loopback: OnceLock<Client>,
}

/// What a server says about a file before it is downloaded.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DownloadPreview {
    /// The size of the file in bytes.
    pub size: Option<u64>,
    /// The host to which redirects lead, if it is not that of the URL.
    pub redirected_to: Option<String>,
}

/// A complete download.
#[derive(Debug)]
pub(crate) struct DownloadedFile {
    /// The SHA-256 hash, in hexadecimal.
    pub(crate) sha256: String,
    /// Whether the server said where the file ends. If not, it may have been cut off.
    pub(crate) is_length_known: bool,
}

/// A response to a request for a file that may be known already.
pub(crate) enum DownloadedText {
    Unchanged,
    New { text: Vec<u8>, etag: Option<String> },
}

impl Downloader {
    /// Creates a downloader. It reads the system's certificates when it first needs them.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks a server for the size of a file. Not all servers answer such a request, so an error need not mean that the
    /// download would fail.
    ///
    /// # Errors
    /// The URL is invalid, the server cannot be reached, or it does not answer.
    pub async fn preview(&self, url: &str) -> Result<DownloadPreview, RegistryError> {
        let parsed = parse_url(url)?;
        let request = self.client(&parsed)?.head(parsed.clone());
        let response = request.header(ACCEPT_ENCODING, "identity").send().await;
        let response = successful(url, response)?;
        let length = response.headers().get("content-length");
        let size = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let host = response.url().host_str();
        let redirected_to = host.filter(|host| Some(*host) != parsed.host_str());
        Ok(DownloadPreview {
            size,
            redirected_to: redirected_to.map(str::to_owned),
        })
    }

    /// Downloads a text of at most `limit` bytes, unless it still has this `etag`.
    pub(crate) async fn text(
        &self,
        url: &str,
        limit: u64,
        etag: Option<&str>,
    ) -> Result<DownloadedText, RegistryError> {
        let parsed = parse_url(url)?;
        let mut request = self.client(&parsed)?.get(parsed);
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let response = request.header(ACCEPT_ENCODING, "identity").send().await;
        let mut response = response.map_err(|e| RegistryError::download(url, error_chain(&e)))?;
        if etag.is_some() && response.status() == StatusCode::NOT_MODIFIED {
            return Ok(DownloadedText::Unchanged);
        }
        response = successful(url, Ok(response))?;
        let etag = response.headers().get(ETAG);
        let etag = etag.and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        let mut text = Vec::new();
        receive(url, &mut response, limit, &mut text).await?;
        Ok(DownloadedText::New { text, etag })
    }

    /// Downloads a file of at most `limit` bytes. Its size must be the one that the server has announced, if it has.
    pub(crate) async fn file(
        &self,
        url: &str,
        limit: u64,
        announced: Option<u64>,
        to: &mut (impl Write + Send),
    ) -> Result<DownloadedFile, RegistryError> {
        let parsed = parse_url(url)?;
        let request = self.client(&parsed)?.get(parsed);
        let response = request.header(ACCEPT_ENCODING, "identity").send().await;
        let mut response = successful(url, response)?;
        let is_chunked = response.headers().contains_key(TRANSFER_ENCODING);
        let is_length_known = response.content_length().is_some()
            || is_chunked
            || response.version() >= reqwest::Version::HTTP_2;
        let mut hashed = HashingWriter {
            to,
            hash: Sha256::new(),
        };
        let size = receive(url, &mut response, limit, &mut hashed).await?;
        if let Some(announced) = announced.filter(|announced| *announced != size) {
            let reason = format!("the server announced {announced} bytes, but sent {size}");
            return Err(RegistryError::download(url, reason));
        }
        Ok(DownloadedFile {
            sha256: to_hex(&hashed.hash.finalize()),
            is_length_known: is_length_known || announced.is_some(),
        })
    }

    fn client(&self, url: &Url) -> Result<&Client, RegistryError> {
        let (cell, is_loopback) = match url.scheme() {
            "https" => (&self.https, false),
            _ => (&self.loopback, true),
        };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let built = build_client(is_loopback);
        let built = built.map_err(|e| RegistryError::download(url.as_str(), error_chain(&e)))?;
        Ok(cell.get_or_init(|| built))
    }
}

/// A writer that hashes what it writes.
struct HashingWriter<'a, W> {
    to: &'a mut W,
    hash: Sha256,
}

impl<W: Write> Write for HashingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write_all(bytes)?;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Parses a URL from which files may be downloaded.
pub(crate) fn parse_url(url: &str) -> Result<Url, RegistryError> {
    let invalid = |reason: &str| RegistryError::InvalidUrl {
        url: url.to_owned(),
        reason: reason.to_owned(),
    };
    let parsed = Url::parse(url).map_err(|e| invalid(&e.to_string()))?;
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(invalid("a user name or password in a URL is not supported"));
    }
    match is_allowed(&parsed, parsed.scheme() == "http") {
        true => Ok(parsed),
        false => Err(invalid("only https is allowed, and http on this machine")),
    }
}

/// Returns `true` if files may be downloaded from this URL. From a URL of this machine, redirects stay on it, and from
/// any other, they never lead to an unencrypted connection.
fn is_allowed(url: &Url, from_loopback: bool) -> bool {
    match url.scheme() {
        "https" => !from_loopback && url.has_host(),
        "http" => from_loopback && is_loopback(url),
        _ => false,
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || number.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn build_client(is_loopback: bool) -> reqwest::Result<Client> {
    let redirects = redirect::Policy::custom(move |attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error(RedirectError::TooMany);
        }
        match is_allowed(attempt.url(), is_loopback) {
            true => attempt.follow(),
            false if is_loopback => attempt.error(RedirectError::LeavesMachine),
            false => attempt.error(RedirectError::NotSecure),
        }
    });
    let client = Client::builder()
        .user_agent(concat!("acp/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(redirects)
        .referer(false)
        // Hashes and limits are for the bytes as they were sent.
        .no_gzip();
    match is_loopback {
        true => without_certificates(client.no_proxy()).build(),
        false => {
            // This fails if a provider is installed already, which is fine too.
            let _ = ring::default_provider().install_default();
            client.build()
        }
    }
}

/// Configures a client that has no use for certificates, which small containers lack.
fn without_certificates(client: ClientBuilder) -> ClientBuilder {
    let config = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions();
    match config {
        Ok(config) => client.tls_backend_preconfigured(
            config
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth(),
        ),
        Err(_) => client,
    }
}

/// The reason why a redirect is not followed.
#[derive(Debug, thiserror::Error)]
enum RedirectError {
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooMany,
    #[error("the server redirects to a URL that is not https")]
    NotSecure,
    #[error("the server redirects away from this machine")]
    LeavesMachine,
}

/// Returns the response if it is a file.
fn successful(url: &str, response: reqwest::Result<Response>) -> Result<Response, RegistryError> {
    let response = response.map_err(|e| RegistryError::download(url, error_chain(&e)))?;
    if response.status() != StatusCode::OK {
        let reason = format!("the server responded with {}", response.status());
        return Err(RegistryError::download(url, reason));
    }
    let encoding = response.headers().get(CONTENT_ENCODING);
    match encoding.is_none_or(|encoding| encoding == "identity") {
        true => Ok(response),
        false => Err(RegistryError::download(
            url,
            "the server compresses the response, which was not requested",
        )),
    }
}

/// Receives a body of at most `limit` bytes. Returns its size.
async fn receive(
    url: &str,
    response: &mut Response,
    limit: u64,
    to: &mut impl Write,
) -> Result<u64, RegistryError> {
    let too_large = || RegistryError::download(url, format!("larger than {limit} bytes"));
    if response
        .content_length()
        .is_some_and(|length| length > limit)
    {
        return Err(too_large());
    }
    let mut size = 0;
    loop {
        let chunk = response.chunk().await;
        let chunk = chunk.map_err(|e| {
            let reason = format!(
                "the download was cut off after {size} bytes: {}",
                error_chain(&e)
            );
            RegistryError::download(url, reason)
        })?;
        let Some(chunk) = chunk else {
            return Ok(size);
        };
        size += chunk.len() as u64;
        if size > limit {
            return Err(too_large());
        }
        to.write_all(&chunk)
            .map_err(|e| RegistryError::download(url, format!("cannot write the file: {e}")))?;
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats an error with its causes. Often only the last one says what went wrong.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let message = error.to_string();
        // Some errors repeat their cause.
        if !text.contains(&message) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&message);
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_from_https_or_this_machine_only() {
        for url in [
            "https://example.org/a",
            "http://127.0.0.1:1/a",
            "http://[::1]/a",
            "http://localhost/a",
        ] {
            parse_url(url).unwrap();
        }
        for url in [
            "http://example.org/a",
            "http://127.0.0.1.example.org/a",
            "http://localhost.example.org/",
            "http://192.168.1.1/",
            "ftp://example.org/a",
            "file:///etc/passwd",
            "https://me:word@example.org/",
            "example.org/a",
            "",
        ] {
            parse_url(url).unwrap_err();
        }
        let url = |url| Url::parse(url).unwrap();
        assert!(
            !is_allowed(&url("http://127.0.0.1/"), false),
            "redirects must not lead to this machine"
        );
    }
}

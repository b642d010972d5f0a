//! Fetching from the web: one document of one address, which the caller has seen before anything is sent.

mod address;
mod page;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url, redirect};

use crate::causes::chain;

pub(crate) use page::readable;

/// The largest document that is taken, in bytes.
const MOST: usize = 4 * 1024 * 1024;

/// How long it may take until a connection stands.
const CONNECTING: Duration = Duration::from_secs(10);

/// Where a document is, and at which addresses.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Url,
    host: String,
    addresses: Vec<IpAddr>,
}

/// What a server answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is elsewhere.
    Elsewhere(Url),
    Document(Document),
}

/// What a server sent.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) status: StatusCode,
    /// Without parameters, in lower case; empty if the server did not say.
    pub(crate) media_type: String,
    /// The charset that the server says it has.
    pub(crate) charset: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Target {
    /// Takes a URL apart and finds out its addresses. Sends nothing, but to those who are asked for them.
    ///
    /// # Errors
    /// It is none that can be fetched, or its host has no address; the text says which.
    pub(crate) async fn of(url: Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "`{url}` begins with `{}:`; only http and https are fetched.",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a URL with a user's name or a password in it is not fetched.".to_owned());
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("`{url}` names no host."));
        };
        let host = host.to_owned();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => {
                let found = tokio::net::lookup_host((bare, port)).await;
                let found = found.map_err(|e| format!("the host `{host}` was not found: {e}"))?;
                let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
                addresses.sort_unstable();
                addresses.dedup();
                addresses
            }
        };
        if addresses.is_empty() {
            return Err(format!("the host `{host}` has no address."));
        }
        Ok(Self {
            url,
            host,
            addresses,
        })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// All of its addresses, if not all are public.
    pub(crate) fn inside(&self) -> Option<String> {
        if self.addresses.iter().all(|ip| address::is_public(*ip)) {
            return None;
        }
        let shown: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        Some(shown.join(", "))
    }

    /// Asks for the document, at these addresses and no others.
    ///
    /// # Errors
    /// What went wrong, for people.
    pub(crate) async fn get(&self) -> Result<Answer, String> {
        // Not the network's name service once more, which may say something else the second time; no proxy,
        // which asks it for us; and no redirect that nobody has seen.
        let pinned: Vec<_> = self
            .addresses
            .iter()
            .map(|ip| SocketAddr::new(*ip, 0))
            .collect();
        // It is one for the whole process, and whoever comes first sets it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("acp-agent/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECTING)
            .resolve_to_addrs(&self.host, &pinned)
            .build()
            .map_err(|e| chain(&e))?;
        let request = client.get(self.url.clone()).header(
            "accept",
            "text/html, text/plain, application/json, text/*, */*;q=0.5",
        );
        let response = request.send().await.map_err(|e| chain(&e))?;
        // What was asked for above holds, or else nothing of the answer is used.
        let peer = response.remote_addr().map(|address| address.ip());
        if !peer.is_some_and(|peer| self.addresses.contains(&peer)) {
            return Err("it was not the address that was looked at that answered.".to_owned());
        }
        if let Some(url) = self.elsewhere(&response)? {
            return Ok(Answer::Elsewhere(url));
        }
        read(response).await.map(Answer::Document)
    }

    fn elsewhere(&self, response: &Response) -> Result<Option<Url>, String> {
        let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = response.headers().get(LOCATION).filter(|_| moved) else {
            return Ok(None);
        };
        let location = location
            .to_str()
            .map_err(|_| "it sends on to what is no URL.")?;
        let url = self.url.join(location);
        url.map(Some)
            .map_err(|e| format!("it sends on to `{location}`, which is no URL: {e}"))
    }
}

async fn read(mut response: Response) -> Result<Document, String> {
    let status = response.status();
    let said = response.headers().get(CONTENT_TYPE);
    let said = said.and_then(|said| said.to_str().ok()).unwrap_or_default();
    let mut parts = said.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_it = name.trim().eq_ignore_ascii_case("charset");
        is_it.then(|| value.trim().trim_matches('"').to_owned())
    });
    let too_large = || format!("it is larger than the {} MiB that are taken.", MOST >> 20);
    if response
        .content_length()
        .is_some_and(|length| length > MOST as u64)
    {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|e| chain(&e))? {
        if body.len() + piece.len() > MOST {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
    Ok(Document {
        status,
        media_type,
        charset,
        body,
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// What is connected to is what was looked at, whatever the name would lead to now.
    #[tokio::test]
    async fn a_name_is_not_resolved_a_second_time() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).await.unwrap();
            let host = format!("host: does-not-exist.invalid:{port}\r\n");
            assert!(String::from_utf8_lossy(&request[..read]).contains(&host));
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let target = Target {
            url: Url::parse(&format!("http://does-not-exist.invalid:{port}/")).unwrap(),
            host: "does-not-exist.invalid".to_owned(),
            addresses: vec![IpAddr::from([127, 0, 0, 1])],
        };
        let Answer::Document(document) = target.get().await.unwrap() else {
            panic!()
        };
        assert_eq!(document.body, b"ok");
    }
}

//! Fetches a document from a URL. The caller can check the addresses before anything is sent.

mod address;
pub(crate) mod document;
pub(crate) mod page;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Response, Url, redirect};

use crate::causes::error_chain;
use crate::web::document::Document;

/// The maximum size of a document, in bytes.
const MAX_DOCUMENT_BYTES: usize = 4 * 1024 * 1024;

/// The time limit for connecting to a server or a proxy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A URL to fetch, with the addresses of its host.
#[derive(Debug, Clone)]
pub(crate) struct FetchTarget {
    pub(crate) url: Url,
    host: String,
    /// The IP addresses of the host. Empty before its name is resolved, and if a proxy resolves it.
    addresses: Vec<IpAddr>,
    proxy: Option<Proxy>,
}

/// The HTTP proxies set in the environment.
pub(crate) struct Proxies(Matcher);

/// An HTTP proxy from the environment.
#[derive(Debug, Clone)]
struct Proxy {
    /// The URL of the proxy, without user name and password.
    address: String,
    /// The `Proxy-Authorization` header, if the proxy needs one.
    authorization: Option<HeaderValue>,
}

/// Explains why a target may be in a private network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrivateAddress {
    /// How the target is reached, for display after its name.
    pub(crate) access: String,
    /// A sentence that explains the reason to the user.
    pub(crate) why: String,
}

/// A web server's response.
#[derive(Debug)]
pub(crate) enum FetchResponse {
    /// The server redirects to this URL.
    Redirect(Url),
    Document(Document),
}

impl FetchTarget {
    /// Creates the target for a URL, and finds the proxy that the environment sets for it. Sends nothing.
    ///
    /// # Errors
    /// The URL cannot be fetched. The error says why.
    pub(crate) fn new(url: Url, proxies: &Proxies) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!(
                "Unsupported scheme `{}:` in `{url}`: only http and https are supported.",
                url.scheme()
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("URLs with a user name or password are not supported.".to_owned());
        }
        let Some(host) = url.host_str() else {
            return Err(format!("`{url}` has no host."));
        };
        let host = host.to_owned();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>();
        let here = host == "localhost" || address.as_ref().is_ok_and(IpAddr::is_loopback);
        // A proxy cannot reach this machine by such a name or address.
        let proxy = if here { None } else { proxies.proxy_for(&url)? };
        Ok(Self {
            url,
            host,
            addresses: address.into_iter().collect(),
            proxy,
        })
    }

    /// Returns whether the host's name need not be resolved here. If a proxy is configured, often only the proxy can
    /// resolve names on the internet.
    fn is_resolved(&self) -> bool {
        !self.addresses.is_empty() || self.proxy.is_some()
    }

    /// Returns whether resolving the host's name may send a query to a name server. Such a query can tell the owner of the
    /// name something, like a request.
    pub(crate) fn needs_query(&self) -> bool {
        !self.is_resolved() && self.host != "localhost"
    }

    /// Resolves the host's name, unless it is an address or a proxy resolves it. Sends nothing except DNS queries.
    ///
    /// # Errors
    /// The host has no address.
    pub(crate) async fn resolve(&mut self) -> Result<(), String> {
        if self.is_resolved() {
            return Ok(());
        }
        let host = &self.host;
        let port = self.url.port_or_known_default().unwrap_or_default();
        let found = tokio::net::lookup_host((host.as_str(), port)).await;
        let found = found.map_err(|e| format!("host not found: `{host}`: {e}"))?;
        self.addresses = found.map(|address| address.ip()).collect();
        self.addresses.sort_unstable();
        self.addresses.dedup();
        if self.addresses.is_empty() {
            return Err(format!("the host `{host}` has no address."));
        }
        Ok(())
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the scheme, host and port of the URL.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Returns why the target may be in a private network, or `None` if it is public.
    pub(crate) fn private_address(&self) -> Option<PrivateAddress> {
        let host = &self.host;
        if let (Some(proxy), true) = (&self.proxy, self.addresses.is_empty()) {
            let proxy = &proxy.address;
            return Some(PrivateAddress {
                access: format!("through the proxy {proxy}"),
                why: format!(
                    "`{host}` is resolved by the proxy `{proxy}`, so it may be on the public internet or in the proxy's own network."
                ),
            });
        }
        // Before a name is resolved, nothing is known about it.
        if self.addresses.iter().all(|ip| address::is_public(*ip)) {
            return None;
        }
        let shown: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        let how = shown.join(", ");
        Some(PrivateAddress {
            why: format!(
                "`{host}` is on this machine or its local network, not on the public internet: {how}."
            ),
            access: how,
        })
    }

    /// Fetches the document, either through the proxy or from exactly the addresses that were resolved.
    ///
    /// # Errors
    /// The document cannot be fetched. The error is a text for the user.
    pub(crate) async fn get(&self) -> Result<FetchResponse, String> {
        // The name is not resolved again, because the result may differ the second time. Only the proxy that was shown
        // is used, and no redirect is followed without the caller.
        let pinned: Vec<_> = self
            .addresses
            .iter()
            .map(|ip| SocketAddr::new(*ip, 0))
            .collect();
        // The provider is set once per process. This fails if it is already set.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .user_agent(concat!("acp-agent/", env!("CARGO_PKG_VERSION")))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT);
        client = match &self.proxy {
            Some(proxy) => client.proxy(proxy.to_reqwest()?),
            None => client.resolve_to_addrs(&self.host, &pinned),
        };
        let client = client.build().map_err(|e| error_chain(&e))?;
        let request = client.get(self.url.clone()).header(
            "accept",
            "text/html, text/plain, application/json, text/*, */*;q=0.5",
        );
        let response = request.send().await.map_err(|e| error_chain(&e))?;
        // Check that the addresses above were used. If they were not, nothing of the response is used.
        let peer = response.remote_addr().map(|address| address.ip());
        if self.proxy.is_none() && !peer.is_some_and(|peer| self.addresses.contains(&peer)) {
            return Err(
                "the response came from a different address than the one that was resolved."
                    .to_owned(),
            );
        }
        if let Some(url) = self.redirect_target(&response)? {
            return Ok(FetchResponse::Redirect(url));
        }
        read_document(response).await.map(FetchResponse::Document)
    }

    fn redirect_target(&self, response: &Response) -> Result<Option<Url>, String> {
        let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = response.headers().get(LOCATION).filter(|_| moved) else {
            return Ok(None);
        };
        let location = location.to_str().map_err(|_| "invalid redirect URL.")?;
        let url = self.url.join(location);
        url.map(Some)
            .map_err(|e| format!("invalid redirect URL `{location}`: {e}"))
    }
}

impl Proxies {
    /// Returns the proxies set in the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or
    /// lower case.
    pub(crate) fn from_environment() -> Self {
        Self(Matcher::from_env())
    }

    /// Returns the proxy for a URL, or `None` for a direct connection.
    ///
    /// # Errors
    /// The proxy is not supported.
    fn proxy_for(&self, url: &Url) -> Result<Option<Proxy>, String> {
        let uri = url.as_str().parse();
        let Some(found) = uri.ok().and_then(|uri| self.0.intercept(&uri)) else {
            return Ok(None);
        };
        let address = found.uri().to_string();
        let address = address.trim_end_matches('/').to_owned();
        match found.uri().scheme_str() {
            Some("http" | "https") => Ok(Some(Proxy {
                address,
                authorization: found.basic_auth().cloned(),
            })),
            _ => Err(format!(
                "unsupported proxy {address}: only http and https proxies are supported."
            )),
        }
    }
}

impl Proxy {
    fn to_reqwest(&self) -> Result<reqwest::Proxy, String> {
        let proxy = reqwest::Proxy::all(&self.address).map_err(|e| error_chain(&e))?;
        Ok(match &self.authorization {
            Some(authorization) => proxy.custom_http_auth(authorization.clone()),
            None => proxy,
        })
    }
}

async fn read_document(mut response: Response) -> Result<Document, String> {
    let status = response.status();
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type
        .and_then(|content_type| content_type.to_str().ok())
        .unwrap_or_default();
    let mut parts = content_type.split(';');
    let media_type = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"').to_owned())
    });
    let too_large = || {
        format!(
            "document too large (limit: {} MiB).",
            MAX_DOCUMENT_BYTES >> 20
        )
    };
    if response
        .content_length()
        .is_some_and(|length| length > MAX_DOCUMENT_BYTES as u64)
    {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|e| error_chain(&e))? {
        if body.len() + piece.len() > MAX_DOCUMENT_BYTES {
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

    /// Checks that the connection uses the addresses resolved earlier, even if the name now resolves to others.
    #[tokio::test]
    async fn host_is_resolved_only_once() {
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
        let target = FetchTarget {
            url: Url::parse(&format!("http://does-not-exist.invalid:{port}/")).unwrap(),
            host: "does-not-exist.invalid".to_owned(),
            addresses: vec![IpAddr::from([127, 0, 0, 1])],
            proxy: None,
        };
        let FetchResponse::Document(document) = target.get().await.unwrap() else {
            panic!()
        };
        assert_eq!(document.body, b"ok");
    }

    /// Fetches each URL through a proxy. Returns the private addresses that were found, and the requests that the proxy
    /// received.
    async fn resolve_through_proxy(
        urls: &[&str],
        no: &str,
    ) -> (Vec<Result<PrivateAddress, String>>, Vec<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (send, mut asked) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                let read = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let answer = match request.starts_with("CONNECT ") {
                    true => "HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n",
                    false => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
                };
                send.send(request).unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let proxies = Matcher::builder()
            .all(format!("http://me:secret@{address}"))
            .no(no)
            .build();
        let proxies = Proxies(proxies);
        let (mut found, mut heard) = (Vec::new(), Vec::new());
        for url in urls {
            let mut target = FetchTarget::new(Url::parse(url).unwrap(), &proxies).unwrap();
            if let Err(why) = target.resolve().await {
                found.push(Err(why));
                continue;
            }
            found.push(target.private_address().ok_or_else(String::new));
            if target.proxy.is_none() {
                heard.push("nobody".to_owned());
                continue;
            }
            let got = target.get().await;
            assert_eq!(got.is_ok(), url.starts_with("http:"), "{got:?}");
            heard.push(asked.recv().await.unwrap());
        }
        (found, heard)
    }

    #[tokio::test]
    async fn proxy_is_used_and_reported() {
        let urls = [
            "http://does-not-exist.invalid/x",
            "https://does-not-exist.invalid/x",
        ];
        let (inside, heard) = resolve_through_proxy(&urls, "").await;
        for inside in inside {
            let inside = inside.unwrap();
            assert!(
                inside
                    .access
                    .starts_with("through the proxy http://127.0.0.1:")
            );
            assert!(inside.why.contains("resolved by the proxy"), "{inside:?}");
            assert!(!format!("{inside:?}").contains("secret"), "{inside:?}");
        }
        assert!(heard[0].starts_with("GET http://does-not-exist.invalid/x HTTP/1.1\r\n"));
        assert!(heard[1].starts_with("CONNECT does-not-exist.invalid:443 HTTP/1.1\r\n"));
        for heard in heard {
            let heard = heard.to_ascii_lowercase();
            assert!(
                heard.contains("proxy-authorization: basic bwu6c2vjcmv0\r\n"),
                "{heard}"
            );
        }
    }

    #[tokio::test]
    async fn private_address_is_recognized_behind_a_proxy() {
        let urls = [
            "http://1.1.1.1/",
            "http://10.1.2.3/",
            "http://127.0.0.1:1/",
            "http://10.9.9.9/",
        ];
        let (inside, heard) = resolve_through_proxy(&urls, "10.9.0.0/16").await;
        assert_eq!(inside[0], Err(String::new()), "1.1.1.1 is a public address");
        for (inside, address) in inside[1..]
            .iter()
            .zip(["10.1.2.3", "127.0.0.1", "10.9.9.9"])
        {
            assert_eq!(inside.as_ref().unwrap().access, address);
        }
        assert!(heard[0].starts_with("GET http://1.1.1.1/ "), "{heard:?}");
        assert!(heard[1].starts_with("GET http://10.1.2.3/ "), "{heard:?}");
        // No proxy is used for the local machine and for hosts excluded from proxying.
        assert_eq!(heard[2..], ["nobody", "nobody"]);
    }

    #[test]
    fn unusable_proxy_is_named_in_the_error() {
        let proxies = Proxies(Matcher::builder().all("socks5://10.0.0.1:1080").build());
        let url = Url::parse("https://example.org/").unwrap();
        let why = FetchTarget::new(url, &proxies).unwrap_err();
        assert!(why.contains("socks5://10.0.0.1:1080"), "{why}");
    }
}

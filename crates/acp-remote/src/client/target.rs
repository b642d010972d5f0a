//! The server that a client connects to: its address, and what all requests to it have in common.

use std::sync::{Mutex, PoisonError};

use cookie_store::{CookieStore, RawCookie};
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderValue, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, Uri};
use url::Url;

use super::options::{ConnectOptions, TokenStyle};
use crate::header;

/// The server that a client connects to, and the connection options.
pub(super) struct Target {
    pub(super) options: ConnectOptions,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_tls: bool,
    /// The URL with the scheme `http` or `https`. Includes the token if it is sent in the URL.
    url: Url,
    cookies: Mutex<CookieStore>,
}

impl Target {
    /// Creates the target from a URL. Fails with the reason if the URL is not supported.
    pub(super) fn new(url: &Url, options: ConnectOptions) -> Result<Self, String> {
        let is_tls = match url.scheme() {
            "http" | "ws" => false,
            "https" | "wss" => true,
            other => return Err(format!("the scheme `{other}` is not supported")),
        };
        let scheme = if is_tls { "https" } else { "http" };
        let rest = url.as_str().split_once(':').map_or("", |(_, rest)| rest);
        let mut url = Url::parse(&format!("{scheme}:{rest}")).map_err(|error| error.to_string())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("user names and passwords are not supported; use a token".to_owned());
        }
        url.set_fragment(None);
        if let (Some(token), TokenStyle::Query) = (&options.token, options.token_style) {
            url.query_pairs_mut().append_pair("token", token.expose());
        }
        let host = url.host_str().ok_or("the host is missing")?.to_owned();
        let port = url.port_or_known_default().ok_or("the port is missing")?;
        Ok(Self {
            options,
            host,
            port,
            is_tls,
            url,
            cookies: Mutex::default(),
        })
    }

    /// Returns the host and port, for use in messages.
    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the full URI, for HTTP/2 and for the connection pool.
    pub(super) fn uri(&self) -> Result<Uri, String> {
        self.url
            .as_str()
            .parse()
            .map_err(|error: http::uri::InvalidUri| error.to_string())
    }

    /// Returns the URL's path and query, for HTTP/1.1.
    pub(super) fn path_uri(&self) -> Result<Uri, String> {
        let path = &self.url[url::Position::BeforePath..];
        path.parse()
            .map_err(|error: http::uri::InvalidUri| error.to_string())
    }

    /// Returns the value for the `Host` header.
    pub(super) fn host_header(&self) -> Result<HeaderValue, String> {
        let host = &self.url[url::Position::BeforeHost..url::Position::AfterPort];
        HeaderValue::from_str(host).map_err(|error| error.to_string())
    }

    /// Adds the headers that all requests have in common, apart from `Host`.
    pub(super) fn add_headers(&self, headers: &mut HeaderMap) {
        let agent = concat!("acp-remote/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in &self.options.headers {
            if name != HOST {
                headers.insert(name.clone(), value.clone());
            }
        }
        if let Some(token) = &self.options.token {
            let (name, text) = match self.options.token_style {
                TokenStyle::Bearer => (AUTHORIZATION, format!("Bearer {}", token.expose())),
                TokenStyle::SecretKey => (header::SECRET_KEY, token.expose().to_owned()),
                TokenStyle::Query => return self.add_cookies(headers),
            };
            // Tokens consist of visible characters, so this does not fail.
            if let Ok(mut value) = HeaderValue::from_str(&text) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        self.add_cookies(headers);
    }

    fn add_cookies(&self, headers: &mut HeaderMap) {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        let pairs: Vec<String> = cookies
            .get_request_values(&self.url)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if let (false, Ok(value)) = (pairs.is_empty(), HeaderValue::from_str(&pairs.join("; "))) {
            headers.insert(COOKIE, value);
        }
    }

    /// Stores the cookies from a response. The draft requires clients to send them back for as long as the connection
    /// lasts.
    pub(super) fn store_cookies(&self, headers: &HeaderMap) {
        let set = headers.get_all(SET_COOKIE).into_iter();
        let parsed = set.filter_map(|value| RawCookie::parse(value.to_str().ok()?.to_owned()).ok());
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.store_response_cookies(parsed, &self.url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;

    fn parse_target(url: &str, options: ConnectOptions) -> Result<Target, String> {
        Target::new(&Url::parse(url).unwrap(), options)
    }

    #[test]
    fn urls_are_parsed_into_addresses() {
        let of = |url: &str| {
            let target = parse_target(url, ConnectOptions::new()).unwrap();
            let path = target.path_uri().unwrap().to_string();
            (
                target.address(),
                target.is_tls,
                path,
                target.host_header().unwrap(),
            )
        };
        let is = |address: &str, tls, path: &str, host| {
            (
                address.to_owned(),
                tls,
                path.to_owned(),
                HeaderValue::from_static(host),
            )
        };
        assert_eq!(
            of("ws://localhost:1/acp"),
            is("localhost:1", false, "/acp", "localhost:1")
        );
        assert_eq!(
            of("wss://a.b/x?y=z#f"),
            is("a.b:443", true, "/x?y=z", "a.b")
        );
        assert_eq!(of("http://[::1]"), is("[::1]:80", false, "/", "[::1]"));
        assert!(parse_target("ftp://a", ConnectOptions::new()).is_err());
        assert!(parse_target("http://me:pass@a", ConnectOptions::new()).is_err());
    }

    #[test]
    fn token_is_sent_in_its_style_and_cookies_are_returned() {
        let token = Token::new("t&k").unwrap();
        let style = |style| {
            ConnectOptions::new()
                .token(token.clone())
                .token_style(style)
        };
        let mut headers = HeaderMap::new();
        let bearer = parse_target("http://a/", style(TokenStyle::Bearer)).unwrap();
        let mut answer = HeaderMap::new();
        answer.append(
            SET_COOKIE,
            HeaderValue::from_static("node=7; Path=/; HttpOnly"),
        );
        answer.append(SET_COOKIE, HeaderValue::from_static("other=1; Domain=b"));
        bearer.store_cookies(&answer);
        bearer.add_headers(&mut headers);
        assert_eq!(headers[AUTHORIZATION], "Bearer t&k");
        assert_eq!(headers[COOKIE], "node=7");
        let mut headers = HeaderMap::new();
        parse_target("http://a/", style(TokenStyle::SecretKey))
            .unwrap()
            .add_headers(&mut headers);
        assert_eq!(headers[header::SECRET_KEY], "t&k");
        let query = parse_target("http://a/?b", style(TokenStyle::Query)).unwrap();
        assert_eq!(query.path_uri().unwrap().to_string(), "/?b&token=t%26k");
    }
}

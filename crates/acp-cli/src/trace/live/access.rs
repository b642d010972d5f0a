//! Who may see the page: token, host and origin.
//!
//! The token is in the fragment of the address, which browsers do not send. The script sends it in a header. There is no
//! cookie, which the browser would also send to other servers on this machine, and for requests of other pages.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use acp_remote::Token;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// How long the code of an address that works once can be used.
const CODE_LIFETIME: Duration = Duration::from_secs(120);

/// Only the page's own script and style, which cannot turn text into markup. Nothing from anywhere else.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The address of the page, and the token that its requests need.
#[derive(Debug)]
pub(super) struct PageAccess {
    socket: SocketAddr,
    token: Token,
    /// The code that can be exchanged for the token once.
    code: Mutex<Option<(Token, Instant)>>,
}

impl PageAccess {
    pub(super) fn new(socket: SocketAddr) -> Self {
        Self {
            socket,
            token: Token::random(),
            code: Mutex::default(),
        }
    }

    /// Returns the address of the page, with the token.
    pub(super) fn address(&self) -> String {
        format!("http://{}/#{}", self.socket, self.token.expose())
    }

    /// Returns an address that works once, for a limited time.
    pub(super) fn one_time_address(&self) -> String {
        let code = Token::random();
        let address = format!("http://{}/#code={}", self.socket, code.expose());
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some((code, Instant::now()));
        address
    }

    /// Returns the token for the code, which can then no longer be used.
    pub(super) fn exchange_code(&self, text: &str) -> Option<&Token> {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        code.take_if(|(code, since)| {
            code.matches(text.as_bytes()) && since.elapsed() < CODE_LIFETIME
        })?;
        Some(&self.token)
    }

    /// Returns the reason to reject a request: another host name, which another page can make to resolve to this server,
    /// or another page as the sender.
    fn rejection(&self, headers: &HeaderMap) -> Option<&'static str> {
        let port = self.socket.port();
        let mut hosts = headers.get_all(HOST).into_iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let Some(host) = host.filter(|host| own.iter().any(|own| own == host)) else {
            return Some("requests to this host name are not allowed\n");
        };
        if hosts.next().is_some() {
            return Some("more than one host name is not allowed\n");
        }
        let origin = format!("http://{host}");
        let is_own = |value: &HeaderValue| value.as_bytes() == origin.as_bytes();
        if !headers.get_all(ORIGIN).iter().all(is_own) || is_embedded_elsewhere(headers) {
            return Some("requests from other pages are not allowed\n");
        }
        None
    }

    fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let token = value.and_then(|value| value.strip_prefix(b"Bearer "));
        token.is_some_and(|token| self.token.matches(token))
    }
}

/// Returns `true` if another page loads this address as a part of itself, such as a script. Browsers send no origin then.
/// Following a link is allowed: without the token, the page shows nothing.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let is = |name: HeaderName, values: &[&str]| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| values.contains(&value))
    };
    is(
        HeaderName::from_static("sec-fetch-site"),
        &["cross-site", "same-site"],
    ) && !is(HeaderName::from_static("sec-fetch-mode"), &["navigate"])
}

/// Rejects requests to other hosts and from other pages. Adds the headers that protect the page.
pub(super) async fn check_page_request(
    State(access): State<Arc<PageAccess>>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(reason) = access.rejection(request.headers()) {
        return (StatusCode::FORBIDDEN, reason).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Rejects requests without the token.
pub(super) async fn require_token(
    State(access): State<Arc<PageAccess>>,
    request: Request,
    next: Next,
) -> Response {
    match access.is_authorized(request.headers()) {
        true => next.run(request).await,
        false => (StatusCode::UNAUTHORIZED, "a valid token is required\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> PageAccess {
        PageAccess::new("127.0.0.1:8000".parse().unwrap())
    }

    #[test]
    fn code_is_exchanged_once() {
        let access = access();
        assert!(access.exchange_code("").is_none());
        let address = access.one_time_address();
        let code = address.split_once("#code=").unwrap().1;
        assert!(!access.address().contains(code));
        assert!(access.exchange_code("wrong").is_none());
        let token = access.exchange_code(code).unwrap().expose();
        assert_eq!(access.address(), format!("http://127.0.0.1:8000/#{token}"));
        assert!(access.exchange_code(code).is_none());
    }

    #[test]
    fn only_own_hosts_and_origins_are_allowed() {
        let rejection = |pairs: &[(&str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, value.parse().unwrap());
            }
            access().rejection(&headers).is_some()
        };
        let host = ("host", "127.0.0.1:8000");
        assert!(!rejection(&[host]));
        assert!(!rejection(&[("host", "localhost:8000")]));
        assert!(!rejection(&[host, ("origin", "http://127.0.0.1:8000")]));
        assert!(!rejection(&[
            host,
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate")
        ]));
        assert!(rejection(&[]));
        for other in [
            "127.0.0.1",
            "127.0.0.1:80",
            "evil.example:8000",
            "127.0.0.1:8000.evil",
        ] {
            assert!(rejection(&[("host", other)]), "{other}");
        }
        assert!(rejection(&[host, host]));
        for other in [
            "http://127.0.0.1:8001",
            "http://localhost:8000",
            "null",
            "https://127.0.0.1:8000",
        ] {
            assert!(rejection(&[host, ("origin", other)]), "{other}");
        }
        assert!(rejection(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(rejection(&[
            host,
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "no-cors")
        ]));
    }
}

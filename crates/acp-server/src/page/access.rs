//! Who may see the page: host, origin, and what was signed in with.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::routes::PageState;

/// The name of the cookie.
pub(super) const COOKIE_NAME: &str = "acp_page";

/// Only the page's own script and style, and nothing from anywhere else. No other page may show it in a frame.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Rejects requests to other host names, which a web page can make to resolve to this server, and requests that another
/// page sends. Adds the headers that protect the page.
pub(super) async fn check_request(
    State(state): State<Arc<PageState>>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(rejection) = state.host_rejection(&request) {
        return rejection;
    }
    if !has_own_origin(request.headers(), state.is_secure()) {
        return (
            StatusCode::FORBIDDEN,
            "requests from other pages are not allowed\n",
        )
            .into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        // Not `no-referrer`: browsers then send `Origin: null` with the form for signing in.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Rejects requests of browsers that are not signed in. The handlers find the [`PageUser`](super::sign_in::PageUser) in
/// the request's extensions.
pub(super) async fn require_sign_in(
    State(state): State<Arc<PageState>>,
    mut request: Request,
    next: Next,
) -> Response {
    match state.user(request.headers()) {
        Some(user) => {
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, Body::from("not signed in\n")).into_response(),
    }
}

/// Returns the values of the page's cookie.
pub(super) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).into_iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    pairs.filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    })
}

/// Returns `true` if a request comes from the page itself, or from no page.
fn has_own_origin(headers: &HeaderMap, is_secure: bool) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return !is_embedded_elsewhere(headers);
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let scheme = if is_secure { "https" } else { "http" };
    // A reverse proxy may provide TLS.
    let own = ["https", scheme].map(|scheme| format!("{scheme}://{}", host.unwrap_or_default()));
    origin
        .to_str()
        .is_ok_and(|origin| own.iter().any(|own| own == origin))
}

/// Returns `true` if another page loads this address as a part of itself, such as an image. Browsers send no origin then.
/// Following a link from another page is allowed.
fn is_embedded_elsewhere(headers: &HeaderMap) -> bool {
    let is = |name: &str, values: &[&str]| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| values.contains(&value))
    };
    is("sec-fetch-site", &["cross-site", "same-site"]) && !is("sec-fetch-mode", &["navigate"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: axum::http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_the_page_itself_may_send_requests() {
        let own = |origin: &str| {
            has_own_origin(
                &headers(&[("host", "localhost:7180"), ("origin", origin)]),
                false,
            )
        };
        assert!(own("http://localhost:7180"));
        assert!(own("https://localhost:7180"));
        for other in ["http://localhost:7181", "http://evil.example", "null", ""] {
            assert!(!own(other), "{other}");
        }
        assert!(has_own_origin(&headers(&[("host", "localhost")]), false));
    }

    #[test]
    fn other_pages_may_link_to_the_page_but_not_embed_it() {
        let from = |site: &str, mode: &str| {
            let map = headers(&[("sec-fetch-site", site), ("sec-fetch-mode", mode)]);
            has_own_origin(&map, false)
        };
        assert!(from("same-origin", "cors"));
        assert!(from("none", "navigate"));
        assert!(from("cross-site", "navigate"));
        assert!(!from("cross-site", "no-cors"));
        assert!(!from("same-site", "cors"));
    }

    #[test]
    fn cookies_are_found_by_name() {
        let map = headers(&[
            ("cookie", "a=1; acp_page=x"),
            ("cookie", "acp_page=y;acp_page_2=z"),
        ]);
        assert_eq!(cookies(&map).collect::<Vec<_>>(), ["x", "y"]);
    }
}

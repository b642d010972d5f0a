//! Checks whether a request may use an endpoint, based on its host, origin and token.

use std::borrow::Cow;

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use url::{Host, Url};

use super::body::ResponseBody;
use super::config::{AllowedHosts, AllowedOrigins, ServerConfig};
use super::user::TokenUser;
use crate::header;

/// The response to a rejected request. The reason is sent as the body, so that users see how to fix the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) reason: Cow<'static, str>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, reason: impl Into<Cow<'static, str>>) -> Self {
        let reason = reason.into();
        Self { status, reason }
    }
}

impl ServerConfig {
    /// Checks the host, the origin and the token of a request to another service of the same server. Returns who has
    /// sent it.
    ///
    /// # Errors
    /// The request is rejected, with this response.
    // A response is large, and passed on as it is.
    #[allow(clippy::result_large_err)]
    pub fn check_access<B>(
        &self,
        request: &Request<B>,
    ) -> Result<TokenUser, Response<ResponseBody>> {
        check_access(self, request.uri(), request.headers()).map_err(|refusal| {
            tracing::debug!(reason = %refusal.reason, "rejecting a request");
            refusal.into()
        })
    }
}

/// Checks that a request has an allowed host, an allowed origin and a valid token. Returns who has sent it.
pub(super) fn check_access(
    config: &ServerConfig,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<TokenUser, Refusal> {
    let forbidden = |reason: &'static str| Refusal::new(StatusCode::FORBIDDEN, reason);
    if !is_host_allowed(&config.hosts, uri, headers) {
        return Err(forbidden(
            "this server does not allow requests to this host name",
        ));
    }
    if !is_origin_allowed(&config.origins, headers) {
        return Err(forbidden(
            "this server does not allow requests from this origin",
        ));
    }
    let user = config.token_user(presented_tokens(uri, headers));
    user.ok_or_else(|| {
        let reason = "a valid token is required: `Authorization: Bearer TOKEN`";
        Refusal::new(StatusCode::UNAUTHORIZED, reason)
    })
}

/// Returns all possible tokens in a request's headers and query.
fn presented_tokens<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> impl Iterator<Item = &'a [u8]> {
    let bearer = headers
        .get_all(AUTHORIZATION)
        .into_iter()
        .filter_map(|value| {
            let (scheme, token) = value.as_bytes().split_at_checked(7)?;
            scheme
                .eq_ignore_ascii_case(b"bearer ")
                .then(|| token.trim_ascii())
        });
    let secret_key = headers
        .get_all(header::SECRET_KEY)
        .into_iter()
        .map(|value| value.as_bytes());
    // Tokens consist of characters that do not need escapes in a URL, or are sent in a header.
    let query = uri.query().unwrap_or_default().split('&');
    let query = query.filter_map(|pair| pair.strip_prefix("token=").map(str::as_bytes));
    bearer.chain(secret_key).chain(query)
}

/// Returns the URI with its tokens removed from the query.
pub(super) fn strip_token(uri: &Uri) -> Uri {
    let Some(query) = uri.query().filter(|query| query.contains("token")) else {
        return uri.clone();
    };
    let kept: Vec<&str> = query
        .split('&')
        .filter(|pair| !pair.starts_with("token"))
        .collect();
    let mut text = uri.path().to_owned();
    if !kept.is_empty() {
        text.push('?');
        text.push_str(&kept.join("&"));
    }
    text.parse().unwrap_or_default()
}

fn is_host_allowed(allowed: &AllowedHosts, uri: &Uri, headers: &HeaderMap) -> bool {
    let names: &[String] = match allowed {
        AllowedHosts::Any => return true,
        AllowedHosts::Loopback => &[],
        AllowedHosts::Named(names) => names,
    };
    // In HTTP/2, the authority is part of the URI. If there is also a `Host` header, both must be allowed.
    let authority = uri.authority().map(|authority| authority.as_str());
    let mut hosts = headers.get_all(HOST).into_iter();
    let host = hosts.next().map(|value| value.to_str().unwrap_or_default());
    if hosts.next().is_some() || authority.is_none() && host.is_none() {
        return false;
    }
    [authority, host].into_iter().flatten().all(|host| {
        let Ok(url) = Url::parse(&format!("http://{host}/")) else {
            return false;
        };
        let is_plain = url.username().is_empty() && url.password().is_none() && url.path() == "/";
        let Some(host) = url.host().filter(|_| is_plain) else {
            return false;
        };
        is_loopback(&host)
            || names
                .iter()
                .any(|name| name.eq_ignore_ascii_case(&host.to_string()))
    })
}

fn is_origin_allowed(allowed: &AllowedOrigins, headers: &HeaderMap) -> bool {
    let names: &[String] = match allowed {
        AllowedOrigins::Any => return true,
        AllowedOrigins::Loopback => &[],
        AllowedOrigins::Named(names) => names,
    };
    headers.get_all(ORIGIN).into_iter().all(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        let is_named = names.iter().any(|name| name.eq_ignore_ascii_case(origin));
        // `null`, the origin of sandboxed pages and files, is not a URL.
        let is_local = Url::parse(origin).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.host().is_some_and(|host| is_loopback(&host))
        });
        is_named || is_local
    })
}

/// Returns `true` for names and addresses that always refer to this machine.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => {
            address.is_loopback()
                || address
                    .to_ipv4_mapped()
                    .is_some_and(|address| address.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Token;

    fn access_status(config: &ServerConfig, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, value.parse().unwrap());
        }
        match check_access(config, &uri.parse().unwrap(), &map) {
            Ok(_) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[test]
    fn only_loopback_hosts_are_allowed_by_default() {
        let config = ServerConfig::new();
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:8080",
            "127.3.2.1",
            "[::1]:1",
            "a.localhost",
        ] {
            assert_eq!(
                access_status(&config, "/acp", &[("host", host)]),
                200,
                "{host}"
            );
        }
        for host in [
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "localhost@example.com",
            "example.com@localhost",
            "192.168.0.1",
            "[::2]",
            "notlocalhost",
            "",
        ] {
            assert_eq!(
                access_status(&config, "/acp", &[("host", host)]),
                403,
                "{host}"
            );
        }
        assert_eq!(access_status(&config, "/acp", &[]), 403);
        assert_eq!(access_status(&config, "http://localhost/acp", &[]), 200);
        assert_eq!(
            access_status(&config, "http://evil.example/acp", &[("host", "localhost")]),
            403
        );
        assert_eq!(
            access_status(&config, "http://localhost/acp", &[("host", "evil.example")]),
            403
        );
        let named = ServerConfig::new().hosts(AllowedHosts::Named(vec!["agents.example".into()]));
        assert_eq!(
            access_status(&named, "/acp", &[("host", "Agents.example:443")]),
            200
        );
        assert_eq!(access_status(&named, "/acp", &[("host", "localhost")]), 200);
        assert_eq!(access_status(&named, "/acp", &[("host", "example")]), 403);
    }

    #[test]
    fn foreign_origins_are_rejected() {
        let config = ServerConfig::new();
        let with =
            |origin| access_status(&config, "/", &[("host", "localhost"), ("origin", origin)]);
        for origin in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:5",
        ] {
            assert_eq!(with(origin), 200, "{origin}");
        }
        for origin in [
            "https://example.com",
            "null",
            "file://",
            "http://localhost.example.com",
            "",
        ] {
            assert_eq!(with(origin), 403, "{origin}");
        }
        let named = ServerConfig::new().origins(AllowedOrigins::Named(vec!["https://a.b".into()]));
        let with =
            |origin| access_status(&named, "/", &[("host", "localhost"), ("origin", origin)]);
        assert_eq!((with("https://a.b"), with("http://a.b")), (200, 403));
    }

    #[test]
    fn token_is_accepted_in_headers_and_query() {
        let config = ServerConfig::new().token(Token::new("s3cret").unwrap());
        let with = |uri: &str, name: &str, value: &str| {
            access_status(&config, uri, &[("host", "localhost"), (name, value)])
        };
        assert_eq!(with("/acp", "authorization", "Bearer s3cret"), 200);
        assert_eq!(with("/acp", "authorization", "bearer  s3cret"), 200);
        assert_eq!(with("/acp", "x-secret-key", "s3cret"), 200);
        assert_eq!(with("/acp?a=b&token=s3cret", "x", "y"), 200);
        for value in [
            "Bearer s3cre",
            "Bearer s3crett",
            "Bearer",
            "s3cret",
            "Basic s3cret",
            "Bearer ",
        ] {
            assert_eq!(with("/acp", "authorization", value), 401, "{value}");
        }
        assert_eq!(with("/acp?token=", "x", "y"), 401);
        let uri = "/acp?a=b&token=s3cret&c".parse().unwrap();
        assert_eq!(strip_token(&uri), "/acp?a=b&c");
    }
}

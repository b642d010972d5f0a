//! Defines the configuration of an endpoint: access control and limits.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

use super::user::UserTokens;
use crate::Token;
use crate::header::{MIN_WINDOW_BYTES, ResumeTerms};

/// The configuration of an endpoint: who may use it, and its limits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The path of the endpoint (`/acp`). Only `router` uses it, because the service itself serves any path.
    pub path: String,
    /// The token that clients must send. Without one, anyone who can reach the endpoint may use it.
    pub token: Option<Token>,
    /// The tokens of users, in addition to `token`. With them, clients must send a token, too.
    pub users: Option<Arc<dyn UserTokens>>,
    /// The hosts that requests may name. By default, only this machine.
    pub hosts: AllowedHosts,
    /// The sites whose pages may send requests. By default, only sites on this machine.
    pub origins: AllowedOrigins,
    /// The limits on connections, requests and buffers.
    pub limits: ServerLimits,
    /// How long the server waits for a client whose connection was cut (60 s). Zero disables the resume extension.
    pub grace: Duration,
    /// The time between probes of an idle connection (15 s). Probes are pings, or comments in streams.
    pub heartbeat: Duration,
    /// The time after which a WebSocket client that does not answer pings is considered dead (45 s).
    pub dead_after: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            path: "/acp".to_owned(),
            token: None,
            users: None,
            hosts: AllowedHosts::Loopback,
            origins: AllowedOrigins::Loopback,
            limits: ServerLimits::default(),
            grace: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            dead_after: Duration::from_secs(45),
        }
    }
}

impl ServerConfig {
    /// Returns the resume terms to send to the client, and the smaller of the two sides' windows. Returns `None` if the
    /// client does not request the extension.
    pub(super) fn resume_terms(&self, headers: &HeaderMap) -> Option<(ResumeTerms, usize)> {
        let theirs = ResumeTerms::from_headers(headers).filter(|_| !self.grace.is_zero())?;
        let window = self.limits.window.max(MIN_WINDOW_BYTES);
        let terms = ResumeTerms {
            window,
            grace: self.grace.max(Duration::from_secs(1)),
        };
        Some((terms, window.min(theirs.window)))
    }
}

/// The hosts that a request may name in `Host` (`:authority` in HTTP/2). This check prevents DNS rebinding, where a web
/// page reaches this machine through a domain name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedHosts {
    /// Only `localhost`, its subdomains, and loopback addresses, with any port.
    Loopback,
    /// This machine and the given host names. Names have no port and are not case-sensitive.
    Named(Vec<String>),
    /// Any host.
    Any,
}

/// The origins that requests may come from. Browsers send an origin with every request that a page makes. Other clients
/// do not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedOrigins {
    /// Only pages from `localhost`, its subdomains, and loopback addresses, with any scheme and port.
    Loopback,
    /// Pages from this machine, and from the given origins, such as `https://example.com`.
    Named(Vec<String>),
    /// Any origin.
    Any,
}

/// The limits of an endpoint, in bytes unless stated otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerLimits {
    /// The maximum number of connections, each with an agent (256). Further connections get status 503.
    pub connections: usize,
    /// The maximum number of sessions per connection that have a stream (256). Further streams get status 429.
    pub sessions: usize,
    /// The maximum number of requests that a client may have in flight over HTTP (1024). Further requests get status 429.
    pub requests: usize,
    /// The maximum length of a message (64 MiB). Longer messages get status 413, or the close code 1009.
    pub message: usize,
    /// The size of the buffer for each direction of a connection (1 MiB).
    pub window: usize,
    /// The maximum total size of bodies that are being received (256 MiB). Further bodies wait.
    pub bodies: usize,
    /// The time limit for receiving a body (60 s). Slower bodies get status 408.
    pub body_time: Duration,
    /// The maximum average number of HTTP requests per second on one connection (10,000). Bursts may contain 10 times
    /// as many. Further requests get status 429.
    pub request_rate: u32,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            sessions: 256,
            requests: 1024,
            message: 64 * 1024 * 1024,
            window: 1024 * 1024,
            bodies: 256 * 1024 * 1024,
            body_time: Duration::from_secs(60),
            request_rate: 10_000,
        }
    }
}

/// Defines a setter for each limit.
macro_rules! setters {
    ($for:ident: $($name:ident: $type:ty),+ $(,)?) => {
        impl $for {
            /// Creates the default limits.
            #[must_use]
            pub fn new() -> Self {
                Self::default()
            }

            $(
                #[doc = concat!("Sets [`", stringify!($name), "`](Self#structfield.", stringify!($name), ").")]
                #[must_use]
                pub fn $name(mut self, $name: impl Into<$type>) -> Self {
                    self.$name = $name.into();
                    self
                }
            )+
        }
    };
}

pub(crate) use setters;

setters! { ServerConfig:
    path: String,
    token: Option<Token>,
    users: Option<Arc<dyn UserTokens>>,
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    limits: ServerLimits,
    grace: Duration,
    heartbeat: Duration,
    dead_after: Duration,
}

setters! { ServerLimits:
    connections: usize,
    sessions: usize,
    requests: usize,
    message: usize,
    window: usize,
    bodies: usize,
    body_time: Duration,
    request_rate: u32,
}

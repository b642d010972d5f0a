//! What a server accepts, and its limits.

use std::time::Duration;

use http::HeaderMap;

use crate::Token;
use crate::header::{MIN_WINDOW_BYTES, ResumeTerms};

/// What an endpoint accepts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The path of the endpoint (`/acp`). Only `router` uses it; the service itself serves any path.
    pub path: String,
    /// The token that clients must send. Without one, everyone who reaches the endpoint may use it.
    pub token: Option<Token>,
    /// The hosts that requests may name. By default, those of this machine.
    pub hosts: AllowedHosts,
    /// The sites whose pages may send requests. By default, those of this machine.
    pub origins: AllowedOrigins,
    /// The limits.
    pub limits: ServerLimits,
    /// How long the server waits for a client whose connection was cut (60 s). Zero turns the extension off.
    pub grace: Duration,
    /// How often an idle connection is probed: with pings, or comments in streams (15 s).
    pub heartbeat: Duration,
    /// How long a WebSocket client may leave a ping unanswered (45 s).
    pub dead_after: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            path: "/acp".to_owned(),
            token: None,
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
    /// Returns what the extension comes to for a client, if it asks for it: what to answer, and the window of this
    /// connection.
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

/// The hosts that a request may name in `Host` (`:authority` in HTTP/2). A page that reaches this machine by DNS
/// rebinding names its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedHosts {
    /// `localhost` and its subdomains, and loopback addresses, with any port.
    Loopback,
    /// Those of this machine, and these names, without port, in any case.
    Named(Vec<String>),
    /// All.
    Any,
}

/// The origins that a request may name. Browsers send one with each request of a page; other clients send none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllowedOrigins {
    /// Pages of `localhost`, its subdomains and loopback addresses, with any scheme and port.
    Loopback,
    /// Those of this machine, and these origins, such as `https://example.com`.
    Named(Vec<String>),
    /// All.
    Any,
}

/// The limits of an endpoint, in bytes unless stated otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerLimits {
    /// How many connections (agents) may exist at once (256). Further ones get 503.
    pub connections: usize,
    /// How many sessions of a connection may have a stream (256). Further ones get 429.
    pub sessions: usize,
    /// How many requests of a client may be in flight over HTTP (1024). Further ones get 429.
    pub requests: usize,
    /// The maximum length of a message (64 MiB). A longer one gets 413, or the close code 1009.
    pub message: usize,
    /// How much of each direction of a connection is buffered (1 MiB).
    pub window: usize,
    /// How much the bodies that are being received may take together (256 MiB). Further ones wait.
    pub bodies: usize,
    /// How long a body may take to arrive (60 s). A slower one gets 408.
    pub body_time: Duration,
    /// How many requests per second a connection may send over HTTP, on average (10,000; 10 times as many at once).
    /// Further ones get 429.
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

/// Defines a setter for each field.
macro_rules! setters {
    ($for:ident: $($name:ident: $type:ty),+ $(,)?) => {
        impl $for {
            /// Creates the default.
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

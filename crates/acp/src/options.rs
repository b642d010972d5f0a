//! Connection options.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use acp_wire::v1::ProtocolVersion;

use crate::connection::{Limits, SpawnFn};

/// The options of either side of a connection. To set only limits, you can pass [`Limits`] instead.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The connection's memory limits.
    pub limits: Limits,
    latest: ProtocolVersion,
    pub(crate) on_noise: Option<NoiseHandler>,
    pub(crate) spawn_fn: Option<SpawnFn>,
}

/// A callback for lines that are not messages.
pub(crate) type NoiseHandler = Arc<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("limits", &self.limits)
            .field("latest", &self.latest)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Limits::default().into()
    }
}

impl From<Limits> for Options {
    fn from(limits: Limits) -> Self {
        Self {
            limits,
            latest: ProtocolVersion::V1,
            on_noise: None,
            spawn_fn: None,
        }
    }
}

impl Options {
    /// Creates options for version 1 with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the connection's memory limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Allows protocol version 2. The connection uses version 2 if the peer supports it, or else version 1. Version 2
    /// is a draft. If it changes, this library changes with it.
    #[cfg(feature = "unstable-v2")]
    #[must_use]
    pub fn draft_version_2(mut self) -> Self {
        self.latest = ProtocolVersion::V2;
        self
    }

    /// Sets a callback for lines from the peer that are not JSON, such as a banner or a log line on stdout. The
    /// callback receives up to 1 KiB of each line, unchanged. A client skips such lines ([`Noise`](crate::Noise) counts
    /// them). Reading stops while `on_noise` runs, so it must not block.
    #[must_use]
    pub fn on_noise(mut self, on_noise: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_noise = Some(Arc::new(on_noise));
        self
    }

    /// Runs turns, other requests and the writer as tasks on your executor. Use this if turns need a lot of CPU time,
    /// or to use several threads. Without it, the task that polls the [`Driver`](crate::Driver) does all the work.
    ///
    /// For requests other than prompts, the driver still runs the work up to the first `await` that is not ready, so
    /// that requests take effect in the order in which they arrive.
    ///
    /// ```
    /// let options = acp::Options::new().spawn_work(|task| {
    ///     tokio::spawn(task);
    /// });
    /// ```
    #[must_use]
    pub fn spawn_work(
        mut self,
        spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static,
    ) -> Self {
        self.spawn_fn = Some(Arc::new(spawn));
        self
    }

    /// Returns the latest protocol version that can be negotiated.
    #[must_use]
    pub fn latest(&self) -> ProtocolVersion {
        self.latest
    }
}

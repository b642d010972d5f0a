//! How a connection is made.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use acp_wire::v1::ProtocolVersion;

use crate::connection::{Limits, SpawnFn};

/// How a connection is made, on either side. [`Limits`] alone will do where only they matter.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// How much is kept.
    pub limits: Limits,
    latest: ProtocolVersion,
    pub(crate) on_noise: Option<NoiseHandler>,
    pub(crate) spawn_fn: Option<SpawnFn>,
}

/// Who is shown what is no message.
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
    /// Version 1, and the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Speaks version 2 with a peer that does, and version 1 with any other. Version 2 is a draft: what
    /// is said in it may change, and with it what this library says.
    #[cfg(feature = "unstable-v2")]
    #[must_use]
    pub fn draft_version_2(mut self) -> Self {
        self.latest = ProtocolVersion::V2;
        self
    }

    /// Shows each line of the peer's that is not JSON, such as a banner or a log line on stdout: its first KiB, as it
    /// came. A client passes such lines over and goes on ([`Noise`](crate::Noise) counts them). `on_noise` holds up
    /// reading while it runs, and must not block.
    #[must_use]
    pub fn on_noise(mut self, on_noise: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_noise = Some(Arc::new(on_noise));
        self
    }

    /// Runs turns, other requests and the writer as tasks of your executor instead of inside the
    /// [`Driver`](crate::Driver). Use it if turns compute for long, or to use several threads. Without it whoever polls the
    /// driver does all of it.
    ///
    /// Of a request that is no prompt, the part up to its first wait is still done by the driver, so that requests take
    /// effect in the order in which they came.
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

    /// The latest version that is spoken.
    #[must_use]
    pub fn latest(&self) -> ProtocolVersion {
        self.latest
    }
}

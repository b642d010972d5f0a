//! Traces: what a client and an agent said to each other, as a file.
//!
//! [`Recorder`] writes one while [`Relay`] passes everything on; [`Reader`] reads it back. A trace is text, one
//! JSON object a line: a [`Header`], then a [`Record`] for each message, for each line of the agent's standard
//! error, and for what happens to the process.

mod format;
mod html;
mod json;
mod lines;
mod lint;
mod log;
mod pipes;
mod read;
mod record;
mod recording;
mod records;
mod redact;
mod relay;
mod replay;
mod show;
mod system;
mod tap;
mod writing;

pub use acp_rules::{REDACTED, Side};
pub use format::{Event, Header, LONGEST_MESSAGE, Record, Secrets, VERSION, What};
pub use html::{Finding, Page, PageError, page};
pub use lint::{About, Lint, Problem};
pub use pipes::{Input, Output, child, stdio};
pub use read::{ReadError, Reader};
pub use record::{CreateError, Notes, Recorder, Settings, WriteError};
pub use recording::Recording;
pub use redact::Redactor;
pub use relay::{Relay, RelayEnd, RelayHandle};
pub use replay::{Change, Difference, Ignore, LoadError, Replay, ReplaySettings, Report};
pub use show::{Entry, Kind, Show};

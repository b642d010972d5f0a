//! Records and processes traces, which are files that contain all messages between a client and an agent.
//!
//! [`TraceRecorder`] writes a trace while [`Relay`] passes the bytes on; [`TraceReader`] reads it back. A trace is text
//! with one JSON object per line: a [`TraceHeader`], then a [`TraceRecord`] for each message, for each line of the
//! agent's standard error, and for each event of the process.

mod entry;
mod format;
mod hand_message;
mod html;
mod inspect;
mod json;
mod line_recorder;
mod line_relay;
mod lint;
mod log;
mod pipes;
mod read;
mod record;
mod record_thread;
mod record_writer;
mod recording;
mod redact;
mod relay;
mod replay;
mod system;
mod tap;

pub use acp_rules::{REDACTED, Side};
pub use entry::{EntryBuilder, TraceEntry, TraceEntryKind};
pub use format::{
    FORMAT_VERSION, MAX_MESSAGE_BYTES, RecordBody, Secrets, TraceEvent, TraceHeader, TraceRecord,
};
pub use hand_message::{HandMessage, HandMessageError};
pub use html::{PageError, PageFinding, PageSummary, write_page};
pub use line_recorder::LineRecorder;
pub use line_relay::{InjectError, MessageInjector};
pub use lint::{LintFinding, MessageSummary, TraceLinter};
pub use pipes::{PipeInput, PipeOutput, child, stdio};
pub use read::{TraceReadError, TraceReader, read_record_at};
pub use record::{
    CreateError, InjectableRelays, RecordSettings, TraceNotes, TraceRecorder, WriteError,
};
pub use recording::RecordingSummary;
pub use redact::Redactor;
pub use relay::{Relay, RelayEnd, RelayHandle};
pub use replay::{
    Difference, IgnoredPath, LoadError, ReplayReport, ReplaySettings, TraceReplay, ValueChange,
};

//! Translates display terminals. Version 1 does not define them, but many clients show terminal output in the `_meta`
//! of a tool call.

use acp_wire::RawObject;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::super::json::{TranslatedUpdate, to_object, to_raw_value};
use super::get_non_null;
use super::message::TextDigest;
use crate::lru_map::LruMap;
use crate::utf8::Utf8Pieces;

/// The maximum number of bytes of output to store until a call shows the terminal. The oldest output is dropped first.
const MAX_PENDING_BYTES: usize = 64 * 1024;

/// A session's display terminals, each with the parts that the client has received.
#[derive(Default)]
pub(super) struct SentTerminals(LruMap<SentTerminal, 128>);

#[derive(Default)]
struct SentTerminal {
    /// The tool call that shows the terminal, if any.
    call: Option<String>,
    command: Option<Box<RawValue>>,
    cwd: Option<Box<RawValue>>,
    /// The output that no call has shown yet.
    pending_output: String,
    /// Decodes the output, keeping the bytes of an incomplete character until the rest arrives.
    partial_char: Utf8Pieces,
    /// A digest of all output so far, used to recognize repeated output.
    digest: TextDigest,
    /// The exit status, if no call has shown it yet.
    exit_status: Option<RawObject>,
}

impl SentTerminals {
    /// Translates an update of a terminal or a chunk of its output.
    pub(super) fn translate_update(&mut self, update: &RawObject) -> Vec<TranslatedUpdate> {
        let Some(id) = update.field::<String>("terminalId") else {
            return Vec::new();
        };
        let terminal = self.0.get_or_insert(&id);
        let mut named = false;
        for (key, field) in [
            ("command", &mut terminal.command),
            ("cwd", &mut terminal.cwd),
        ] {
            if let Some(value) = update.get(key) {
                *field = get_non_null(update, key).map(|_| value.to_owned());
                named = true;
            }
        }
        let text = match update.field::<String>("data") {
            Some(data) => terminal.decode_output(&data, false),
            None => {
                let output: Option<RawObject> = update.field("output");
                let data = output.and_then(|output| output.field::<String>("data"));
                data.map_or_else(String::new, |data| terminal.decode_output(&data, true))
            }
        };
        terminal.buffer_output(&text);
        if let Some(status) = update.field::<RawObject>("exitStatus") {
            if terminal.partial_char.clear() {
                terminal.buffer_output("\u{fffd}");
            }
            let null = RawValue::NULL.to_owned();
            let of = |key| get_non_null(&status, key).map_or(null.clone(), ToOwned::to_owned);
            terminal.exit_status = Some(object! {
                "exit_code": of("exitCode"), "signal": of("signal"),
            });
        }
        terminal.take_update(&id, named).into_iter().collect()
    }

    /// Assigns the terminals in a call's content to that call, whose updates then report the terminals' output.
    pub(super) fn assign_to_call(
        &mut self,
        call: &str,
        items: &[Box<RawValue>],
        emits: &mut Vec<TranslatedUpdate>,
    ) {
        for item in items {
            let item = to_object(Some(item));
            if item.field::<String>("type").as_deref() != Some("terminal") {
                continue;
            }
            let Some(id) = item.field::<String>("terminalId") else {
                continue;
            };
            let terminal = self.0.get_or_insert(&id);
            if terminal.call.as_deref() != Some(call) {
                terminal.call = Some(call.to_owned());
                emits.extend(terminal.take_update(&id, true));
            }
        }
    }
}

impl SentTerminal {
    /// Decodes output and returns the complete characters. If `all` is `true`, `base64` is the full output rather than
    /// a chunk.
    fn decode_output(&mut self, base64: &str, all: bool) -> String {
        let Ok(bytes) = STANDARD.decode(base64) else {
            tracing::warn!("ignoring terminal output that is not valid base64");
            return String::new();
        };
        let new = if all {
            let new = self.digest.strip_prefix(&bytes).map(<[u8]>::to_vec);
            new.unwrap_or_else(|| {
                // Shown output cannot be withdrawn, so the whole output is shown again below it.
                self.digest = TextDigest::default();
                self.partial_char.clear();
                bytes
            })
        } else {
            bytes
        };
        self.digest.add(&new);
        self.partial_char.push(&new)
    }

    fn buffer_output(&mut self, text: &str) {
        self.pending_output.push_str(text);
        // A terminal that a call shows reports its output immediately and in full.
        if self.call.is_none() && self.pending_output.len() > MAX_PENDING_BYTES {
            let mut begin = self.pending_output.len() - MAX_PENDING_BYTES;
            while !self.pending_output.is_char_boundary(begin) {
                begin += 1;
            }
            self.pending_output.drain(..begin);
        }
    }

    /// Returns an update with everything not yet reported. Returns `None` if there is nothing to report, or if no call
    /// shows the terminal.
    fn take_update(&mut self, id: &str, named: bool) -> Option<TranslatedUpdate> {
        let call = self.call.as_ref()?;
        let mut meta = object! {};
        if named {
            let mut info = object! { "terminal_id": id };
            for (key, value) in [("command", &self.command), ("cwd", &self.cwd)] {
                if let Some(value) = value {
                    info.push(key.to_owned(), value.clone());
                }
            }
            meta.push("terminal_info".to_owned(), to_raw_value(&info));
        }
        if !self.pending_output.is_empty() {
            let data = std::mem::take(&mut self.pending_output);
            let output = object! { "terminal_id": id, "data": data };
            meta.push("terminal_output".to_owned(), to_raw_value(&output));
        }
        if let Some(status) = self.exit_status.take() {
            let mut exit = object! { "terminal_id": id };
            for (key, value) in status.iter() {
                exit.push(key.to_owned(), value.to_owned());
            }
            meta.push("terminal_exit".to_owned(), to_raw_value(&exit));
        }
        (!meta.is_empty()).then(|| {
            TranslatedUpdate::Generated(object! {
                "sessionUpdate": "tool_call_update", "toolCallId": call, "_meta": meta,
            })
        })
    }
}

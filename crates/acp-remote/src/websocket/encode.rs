//! Writes WebSocket frames.

use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::mask::{MaskGenerator, apply_mask};
use crate::CloseStatus;

/// The number of bytes to buffer before the start of an incomplete message is sent.
const MAX_FRAGMENT_BYTES: usize = 32 * 1024;

/// An encoder that writes frames into a buffer.
#[derive(Debug)]
pub(super) struct FrameEncoder {
    /// The source of masks. Only clients mask their frames.
    masks: Option<MaskGenerator>,
    /// Whether the start of a message was written, but not its end.
    in_message: bool,
}

impl FrameEncoder {
    pub(super) fn new(is_client: bool) -> Self {
        Self {
            masks: is_client.then(MaskGenerator::new),
            in_message: false,
        }
    }

    /// Writes messages from `first` and `second` as text frames, up to about `most` bytes. If `in_pieces` is set, also
    /// writes the start of a message whose end is missing. Returns the number of bytes consumed, including line feeds.
    pub(super) fn encode_messages(
        &mut self,
        first: &[u8],
        second: &[u8],
        most: usize,
        in_pieces: bool,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut used = 0;
        let total = first.len() + second.len();
        while used < total && out.len() < most {
            let (a, b) = match first.get(used..) {
                Some(rest) => (rest, second),
                None => (
                    second.get(used - first.len()..).unwrap_or_default(),
                    &[][..],
                ),
            };
            let end = memchr::memchr(b'\n', a)
                .or_else(|| memchr::memchr(b'\n', b).map(|end| a.len() + end));
            let (length, is_final) = match end {
                Some(end) => (end, true),
                None if in_pieces || total - used >= MAX_FRAGMENT_BYTES => (total - used, false),
                None => break,
            };
            // A large message is also sent in pieces, so that the buffer stays small.
            let room = MAX_FRAGMENT_BYTES.max(most - out.len());
            let (length, is_final) = if length > room {
                (room, false)
            } else {
                (length, is_final)
            };
            let a = a.get(..length).unwrap_or(a);
            let b = b.get(..length - a.len()).unwrap_or_default();
            let opcode = if self.in_message {
                Data::Continue
            } else {
                Data::Text
            };
            self.encode_frame(OpCode::Data(opcode), is_final, a, b, out);
            self.in_message = !is_final;
            used += length + usize::from(is_final);
        }
        used
    }

    pub(super) fn encode_ping(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.encode_frame(OpCode::Control(Control::Ping), true, payload, &[], out);
    }

    pub(super) fn encode_pong(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.encode_frame(OpCode::Control(Control::Pong), true, payload, &[], out);
    }

    pub(super) fn encode_close(&mut self, status: &CloseStatus, out: &mut Vec<u8>) {
        // Codes 1004 to 1006 and 1015 must not be sent.
        if matches!(status.code, 1004..=1006 | 1015) {
            return self.encode_frame(OpCode::Control(Control::Close), true, &[], &[], out);
        }
        let code = status.code.to_be_bytes();
        let mut length = status.reason.len().min(123);
        while !status.reason.is_char_boundary(length) {
            length -= 1;
        }
        let reason = status.reason.get(..length).unwrap_or_default();
        self.encode_frame(
            OpCode::Control(Control::Close),
            true,
            &code,
            reason.as_bytes(),
            out,
        );
    }

    fn encode_frame(
        &mut self,
        opcode: OpCode,
        is_final: bool,
        a: &[u8],
        b: &[u8],
        out: &mut Vec<u8>,
    ) {
        // If there are no random bytes, use zeros: the frame is valid, and TLS does not need the protection.
        let mask = self
            .masks
            .as_mut()
            .map(|masks| masks.next().unwrap_or_default());
        let header = FrameHeader {
            is_final,
            opcode,
            mask,
            ..FrameHeader::default()
        };
        // Writing to memory cannot fail.
        let _ = header.format((a.len() + b.len()) as u64, out);
        let start = out.len();
        out.extend_from_slice(a);
        out.extend_from_slice(b);
        if let (Some(mask), Some(payload)) = (mask, out.get_mut(start..)) {
            apply_mask(payload, mask, 0);
        }
    }
}

//! Reads WebSocket frames. The payload of a message is passed on as it arrives, so a large message is never buffered as
//! a whole.

use std::io::Cursor;

use bytes::{Buf, BytesMut};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::mask::apply_mask;
use crate::CloseStatus;

/// A part of a message, or a control frame, that the decoder has read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FrameEvent {
    /// The next bytes of a message, which are in the buffer that was passed to [`FrameDecoder::next`]. The caller must
    /// consume them.
    Payload {
        /// The number of bytes at the start of the buffer.
        length: usize,
        /// Whether the message ends after these bytes.
        ends_message: bool,
    },
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(CloseStatus),
}

/// The close status to send to a peer that violates the protocol.
pub(super) type FrameViolation = CloseStatus;

/// A decoder that reads frames from a buffer.
#[derive(Debug)]
pub(super) struct FrameDecoder {
    /// Whether frames must be masked. Frames from clients must be.
    expects_mask: bool,
    /// The maximum length of a message, in bytes.
    max_message: u64,
    frame: Option<FrameInProgress>,
    /// The type of the current message and its length so far, until its last frame has been read.
    message: Option<(Data, u64)>,
}

#[derive(Debug)]
struct FrameInProgress {
    kind: FrameKind,
    is_final: bool,
    mask: Option<[u8; 4]>,
    length: u64,
    read: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Text,
    /// Binary data, which is ignored.
    Binary,
    Control(Control),
}

fn frame_violation(reason: &str) -> FrameViolation {
    CloseStatus::new(CloseStatus::PROTOCOL_ERROR, reason)
}

impl FrameDecoder {
    pub(super) fn new(expects_mask: bool, max_message: usize) -> Self {
        Self {
            expects_mask,
            max_message: max_message as u64,
            frame: None,
            message: None,
        }
    }

    /// Reads the next event from the start of the buffer. Returns `None` if more bytes are needed.
    pub(super) fn next(
        &mut self,
        buf: &mut BytesMut,
    ) -> Result<Option<FrameEvent>, FrameViolation> {
        loop {
            let Some(frame) = &mut self.frame else {
                let mut cursor = Cursor::new(&**buf);
                let Some((header, length)) = FrameHeader::parse(&mut cursor)
                    .map_err(|_| frame_violation("a frame has an invalid header"))?
                else {
                    return Ok(None);
                };
                let used = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
                self.frame = Some(self.begin_frame(&header, length)?);
                buf.advance(used);
                continue;
            };
            let left = frame.length - frame.read;
            let available = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
            match frame.kind {
                FrameKind::Text => {
                    if available == 0 && left > 0 {
                        return Ok(None);
                    }
                    let ends_frame = available as u64 == left;
                    if let (Some(mask), Some(payload)) = (frame.mask, buf.get_mut(..available)) {
                        // Only the offset within the 4-byte mask matters.
                        let offset = usize::try_from(frame.read % 4).unwrap_or_default();
                        apply_mask(payload, mask, offset);
                    }
                    frame.read += available as u64;
                    let ends_message = ends_frame && frame.is_final;
                    if ends_frame {
                        self.end_data_frame();
                    }
                    if available == 0 && !ends_message {
                        continue;
                    }
                    return Ok(Some(FrameEvent::Payload {
                        length: available,
                        ends_message,
                    }));
                }
                FrameKind::Binary => {
                    buf.advance(available);
                    frame.read += available as u64;
                    if frame.read < frame.length {
                        return Ok(None);
                    }
                    self.end_data_frame();
                }
                FrameKind::Control(_) => {
                    if (available as u64) < left {
                        return Ok(None);
                    }
                    let mut payload = buf.split_to(available);
                    if let Some(mask) = frame.mask {
                        apply_mask(&mut payload, mask, 0);
                    }
                    return self.end_control_frame(&payload).map(Some);
                }
            }
        }
    }

    /// Checks the header of a frame, and starts to read the frame.
    fn begin_frame(
        &mut self,
        header: &FrameHeader,
        length: u64,
    ) -> Result<FrameInProgress, FrameViolation> {
        if header.rsv1 || header.rsv2 || header.rsv3 {
            return Err(frame_violation(
                "a frame uses an extension that was not negotiated",
            ));
        }
        if header.mask.is_some() != self.expects_mask {
            return Err(frame_violation(if self.expects_mask {
                "a frame is not masked"
            } else {
                "a frame is masked"
            }));
        }
        let kind = match header.opcode {
            OpCode::Control(control) => {
                if length > 125 || !header.is_final {
                    return Err(frame_violation("a control frame is too long or fragmented"));
                }
                FrameKind::Control(control)
            }
            OpCode::Data(data) => {
                let (data, before) = match (data, self.message) {
                    (Data::Continue, Some(message)) => message,
                    (Data::Text | Data::Binary, None) => (data, 0),
                    _ => {
                        return Err(frame_violation(
                            "the fragments of a message are out of order",
                        ));
                    }
                };
                let total = before.saturating_add(length);
                if total > self.max_message {
                    let reason = format!("a message is longer than {} bytes", self.max_message);
                    return Err(CloseStatus::new(CloseStatus::TOO_LARGE, reason));
                }
                self.message = Some((data, total));
                match data {
                    Data::Text => FrameKind::Text,
                    Data::Binary => FrameKind::Binary,
                    Data::Continue | Data::Reserved(_) => {
                        return Err(frame_violation("a frame has an unknown type"));
                    }
                }
            }
        };
        Ok(FrameInProgress {
            kind,
            is_final: header.is_final,
            mask: header.mask,
            length,
            read: 0,
        })
    }

    fn end_data_frame(&mut self) {
        if self.frame.take().is_some_and(|frame| frame.is_final) {
            self.message = None;
        }
    }

    fn end_control_frame(&mut self, payload: &[u8]) -> Result<FrameEvent, FrameViolation> {
        let frame = self.frame.take();
        match frame.map(|frame| frame.kind) {
            Some(FrameKind::Control(Control::Ping)) => Ok(FrameEvent::Ping(payload.to_vec())),
            Some(FrameKind::Control(Control::Pong)) => Ok(FrameEvent::Pong(payload.to_vec())),
            Some(FrameKind::Control(Control::Close)) => {
                let status = match payload.split_first_chunk::<2>() {
                    None if payload.is_empty() => CloseStatus::new(1005, ""),
                    None => {
                        return Err(frame_violation(
                            "a close frame has an incomplete status code",
                        ));
                    }
                    Some((code, reason)) => {
                        CloseStatus::new(u16::from_be_bytes(*code), String::from_utf8_lossy(reason))
                    }
                };
                Ok(FrameEvent::Close(status))
            }
            _ => Err(frame_violation("a frame has an unknown type")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::encode::FrameEncoder;
    use super::*;

    /// Decodes all events of an input, split into pieces of `size` bytes, and collects the payloads into lines.
    fn decode_frames(
        bytes: &[u8],
        size: usize,
        decoder: &mut FrameDecoder,
    ) -> Result<Vec<String>, FrameViolation> {
        let mut buf = BytesMut::new();
        let (mut out, mut line) = (Vec::new(), String::new());
        for piece in bytes.chunks(size) {
            buf.extend_from_slice(piece);
            while let Some(event) = decoder.next(&mut buf)? {
                match event {
                    FrameEvent::Payload {
                        length,
                        ends_message,
                    } => {
                        line.push_str(std::str::from_utf8(&buf.split_to(length)).unwrap());
                        if ends_message {
                            out.push(std::mem::take(&mut line));
                        }
                    }
                    FrameEvent::Ping(payload) => out.push(format!("ping {payload:?}")),
                    FrameEvent::Pong(payload) => out.push(format!("pong {payload:?}")),
                    FrameEvent::Close(status) => out.push(status.to_string()),
                }
            }
        }
        Ok(out)
    }

    #[test]
    fn encoded_frames_are_decoded_however_they_are_split() {
        for is_client in [false, true] {
            let mut encoder = FrameEncoder::new(is_client);
            let mut out = Vec::new();
            let large = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
            let lines = format!("{{\"a\":1}}\n{{}}\n{large}\n{{\"start");
            for cut in [0, 3, 7, 8, 9, 40_000, lines.len()] {
                out.clear();
                let (first, second) = lines.as_bytes().split_at(cut);
                let used = encoder.encode_messages(first, second, usize::MAX, false, &mut out);
                assert_eq!(used, lines.len() - "{\"start".len());
                encoder.encode_ping(&[1, 2], &mut out);
                encoder.encode_pong(&[3], &mut out);
                encoder.encode_close(&CloseStatus::failed("é".repeat(100)), &mut out);
                for size in [1, 2, 3, 50, 10_000, out.len()] {
                    let mut decoder = FrameDecoder::new(is_client, 1_000_000);
                    let events = decode_frames(&out, size, &mut decoder).unwrap();
                    assert_eq!(events[..3], ["{\"a\":1}", "{}", &large]);
                    assert_eq!(events[3..5], ["ping [1, 2]", "pong [3]"]);
                    let reason = format!("{} (close code 1011)", "é".repeat(61));
                    assert_eq!(events[5..], [reason]);
                }
            }
        }
    }

    #[test]
    fn message_of_unknown_length_is_sent_in_fragments() {
        let mut encoder = FrameEncoder::new(false);
        let mut out = Vec::new();
        assert_eq!(
            encoder.encode_messages(b"{\"a", b"b", 1000, false, &mut out),
            0
        );
        assert_eq!(
            encoder.encode_messages(b"{\"a", b"b", 1000, true, &mut out),
            4
        );
        assert_eq!(
            encoder.encode_messages(b"\":1}\n{}", b"\n", 1000, false, &mut out),
            8
        );
        let mut decoder = FrameDecoder::new(false, 1000);
        assert_eq!(
            decode_frames(&out, 1, &mut decoder).unwrap(),
            ["{\"ab\":1}", "{}"]
        );
    }

    #[test]
    fn violations_are_detected_before_the_payload() {
        let frame = |first: u8, second: u8, more: &[u8]| [&[first, second], more].concat();
        let huge = (1_u64 << 30).to_be_bytes();
        for (bytes, code) in [
            // A message of a gibibyte, text and binary.
            (frame(0x81, 127, &huge), 1009),
            (frame(0x82, 127, &huge), 1009),
            // Compressed; masked by a server; an unknown type; a long ping; a ping in pieces; a piece without a start.
            (frame(0xc1, 1, b"x"), 1002),
            (frame(0x81, 0x81, b"\0\0\0\0x"), 1002),
            (frame(0x83, 1, b"x"), 1002),
            (frame(0x89, 126, &[0, 200]), 1002),
            (frame(0x09, 1, b"x"), 1002),
            (frame(0x80, 1, b"x"), 1002),
            (frame(0x88, 1, b"x"), 1002),
        ] {
            let mut decoder = FrameDecoder::new(false, 1000);
            let refused = decode_frames(&bytes, bytes.len(), &mut decoder).unwrap_err();
            assert_eq!(refused.code, code, "{bytes:?}: {refused}");
        }
        // A fragmented message must not exceed the limit, either.
        let mut pieces = frame(0x01, 126, &600_u16.to_be_bytes());
        pieces.extend([b'x'; 600]);
        pieces.extend(frame(0x80, 126, &600_u16.to_be_bytes()));
        let mut decoder = FrameDecoder::new(false, 1000);
        assert_eq!(
            decode_frames(&pieces, 7, &mut decoder).unwrap_err().code,
            1009
        );
    }

    #[test]
    fn binary_frames_are_ignored_and_control_frames_may_interleave() {
        let mut bytes = vec![0x02, 70];
        bytes.extend([b'x'; 70]);
        bytes.extend([0x89, 1, b'p']);
        bytes.extend([0x80, 1, b'x']);
        bytes.extend([0x01, 1, b'{', 0x89, 0, 0x00, 0, 0x80, 1, b'}']);
        for size in [1, 5, bytes.len()] {
            let mut decoder = FrameDecoder::new(false, 1000);
            let events = decode_frames(&bytes, size, &mut decoder).unwrap();
            assert_eq!(events, ["ping [112]", "ping []", "{}"], "by {size}");
        }
    }
}

//! Writes messages to the page as lines of JSON, grouped into blocks.

use std::borrow::Cow;
use std::io::{self, Write};

/// The size at which a new block is started, in bytes. Browsers support strings that are a hundred times larger. The
/// script parses only the blocks that are viewed.
const MAX_BLOCK_BYTES: usize = 4 * 1024 * 1024;

/// A writer that splits the page's messages into blocks.
pub(super) struct BlockWriter<'a, W> {
    out: &'a mut W,
    /// The size of the open block in bytes, or 0 if no block is open.
    block_len: usize,
    line_count: usize,
    /// The number of the first line of each block.
    starts: Vec<usize>,
}

impl<'a, W: Write> BlockWriter<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        Self {
            out,
            block_len: 0,
            line_count: 0,
            starts: Vec::new(),
        }
    }

    /// Writes one line of JSON to the current block.
    pub(super) fn write_json(&mut self, json: &str) -> io::Result<()> {
        let json = escape_markup(json);
        if self.block_len == 0 {
            self.starts.push(self.line_count);
            self.out
                .write_all(b"<script type=\"application/json\" class=\"block\">\n")?;
        }
        self.out.write_all(json.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.block_len += json.len() + 1;
        self.line_count += 1;
        if self.block_len >= MAX_BLOCK_BYTES {
            self.close()?;
        }
        Ok(())
    }

    /// Writes text as one line of the current block, in the form of a JSON string.
    pub(super) fn write_text(&mut self, text: &str) -> io::Result<()> {
        self.write_json(&serde_json::to_string(text)?)
    }

    fn close(&mut self) -> io::Result<()> {
        if self.block_len > 0 {
            self.block_len = 0;
            self.out.write_all(b"</script>\n")?;
        }
        Ok(())
    }

    /// Ends the last block, and returns the number of the first line of each block.
    pub(super) fn finish(mut self) -> io::Result<Vec<usize>> {
        self.close()?;
        Ok(self.starts)
    }
}

/// Escapes JSON so that it contains no markup and no line breaks. In JSON, `<` occurs only in strings, and line breaks
/// only between tokens.
pub(super) fn escape_markup(json: &str) -> Cow<'_, str> {
    if memchr::memchr3(b'<', b'\r', b'\n', json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    let safe = json.replace('<', "\\u003c").replace(['\r', '\n'], " ");
    Cow::Owned(safe)
}

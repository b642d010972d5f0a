//! The floor for a key's latency: a program that writes what it reads, on a terminal in raw mode.

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut typed = [0; 256];
    output.write_all(b"\x1b[?2026h\x1b[?2026l")?;
    output.flush()?;
    loop {
        let n = match input.read(&mut typed) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            // The terminal is gone.
            Err(_) => return Ok(()),
        };
        let mut shown = b"\x1b[?2026h".to_vec();
        shown.extend_from_slice(typed.get(..n).unwrap_or_default());
        shown.extend_from_slice(b"\x1b[?2026l");
        output.write_all(&shown)?;
        output.flush()?;
    }
}

//! Builds the prompt from its text and attached files.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use acp::v1::{AgentCapabilities, ContentBlock};
use acp_host::{Attachment, AttachmentError};

use crate::exit::CommandExit;
use crate::line_input;

/// The maximum size of a file to embed in the prompt, in bytes. Larger files are included as links.
const MAX_EMBEDDED_BYTES: u64 = 4 * 1024 * 1024;

/// The maximum number of bytes to read from stdin.
const MAX_STDIN_BYTES: u64 = 16 * 1024 * 1024;

/// How long to wait for the first byte on stdin before sending the prompt without it. In scripts, stdin is often a pipe
/// that nothing writes to.
const STDIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns the prompt from the arguments, a file or stdin. Appends any piped input.
pub(crate) fn read_prompt(file: Option<&Path>, words: &[String]) -> Result<String, CommandExit> {
    let mut text = match (file, words) {
        (Some(file), _) if file == Path::new("-") => decode_text(read_stdin(&|| ()))?,
        (Some(file), _) => std::fs::read_to_string(file)
            .map_err(|e| CommandExit::usage(format!("--file {}: {e}", file.display())))?,
        (None, [dash]) if dash == "-" => decode_text(read_stdin(&|| ()))?,
        (None, words) => words.join(" "),
    };
    let is_stdin = file.map_or(words == ["-"], |file| file == Path::new("-"));
    if !is_stdin && let Some(piped) = read_piped()? {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&piped);
    }
    if text.trim().is_empty() {
        let message = "no prompt given: pass PROMPT, --file FILE, or - to read from stdin";
        return Err(CommandExit::usage(message));
    }
    Ok(text)
}

/// Reads all piped input. Returns `None` if there is none.
fn read_piped() -> Result<Option<String>, CommandExit> {
    if !line_input::is_piped() {
        return Ok(None);
    }
    // The first message reports that data or the end has arrived; the second carries all of it.
    let (begun, begins) = mpsc::channel();
    let (read, reads) = mpsc::channel();
    let reading = std::thread::Builder::new().spawn(move || {
        let bytes = read_stdin(&|| {
            let _ = begun.send(());
        });
        let _ = read.send(bytes);
    });
    reading.map_err(|e| CommandExit::failed(format!("cannot read stdin: {e}")))?;
    if begins.recv_timeout(STDIN_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
        let seconds = STDIN_TIMEOUT.as_secs();
        eprintln!(
            "acp: no input on stdin after {seconds} s; sending the prompt without it (use `< /dev/null` to avoid waiting)"
        );
        return Ok(None);
    }
    let stopped = || Err(std::io::Error::other("reading stopped"));
    let text = decode_text(reads.recv().unwrap_or_else(|_| stopped()))?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Reads stdin to the end. Calls `begun` when the first bytes arrive or the input ends.
fn read_stdin(begun: &dyn Fn()) -> std::io::Result<Vec<u8>> {
    let mut stdin = std::io::stdin().lock();
    let waited = stdin.fill_buf().map(drop);
    begun();
    waited?;
    let mut bytes = Vec::new();
    stdin.take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode_text(bytes: std::io::Result<Vec<u8>>) -> Result<String, CommandExit> {
    let bytes = bytes.map_err(|e| CommandExit::usage(format!("stdin: {e}")))?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        let message =
            format!("stdin: too large (limit: {MAX_STDIN_BYTES} bytes); pass a file with --attach");
        return Err(CommandExit::usage(message));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        CommandExit::usage(format!("stdin: invalid UTF-8 at byte {at}"))
    })
}

/// Reads all attached files. Called before the agent is started.
pub(super) fn attachments(files: &[PathBuf]) -> Result<Vec<Attachment>, CommandExit> {
    files.iter().map(|file| read_attachment(file)).collect()
}

fn read_attachment(file: &Path) -> Result<Attachment, CommandExit> {
    if file.is_dir() {
        return Err(CommandExit::usage(format!(
            "--attach {}: not a file",
            file.display()
        )));
    }
    Attachment::read(file, MAX_EMBEDDED_BYTES).map_err(attachment_exit)
}

/// Builds the prompt's content, using only content types that the agent accepts.
pub(super) fn to_content_blocks(
    text: &str,
    attachments: &[Attachment],
    agent: &AgentCapabilities,
) -> Result<Vec<ContentBlock>, CommandExit> {
    let takes = &agent.prompt_capabilities;
    let files = attachments.iter().map(|file| file.content(takes));
    let files: Result<Vec<_>, _> = files.collect();
    let mut content = vec![ContentBlock::text(text)];
    content.extend(files.map_err(attachment_exit)?);
    Ok(content)
}

fn attachment_exit(e: AttachmentError) -> CommandExit {
    CommandExit::usage(format!("--attach {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::v1::PromptCapabilities;

    #[test]
    fn unsupported_content_is_a_usage_error() {
        let directory = tempfile::tempdir().unwrap();
        let picture = directory.path().join("a.png");
        std::fs::write(&picture, b"\x89PNG").unwrap();
        let files = attachments(&[picture]).unwrap();
        let agent = |takes| AgentCapabilities::new().prompt_capabilities(takes);

        let error =
            to_content_blocks("look", &files, &agent(PromptCapabilities::new())).unwrap_err();
        assert_eq!(error.code, 2);
        let message = error.message.unwrap();
        assert!(message.starts_with("--attach "), "{message}");
        assert!(message.contains("does not accept images"), "{message}");
        let agent = agent(PromptCapabilities::new().image(true));
        assert_eq!(to_content_blocks("look", &files, &agent).unwrap().len(), 2);

        let error = attachments(&[directory.path().to_owned()]).unwrap_err();
        assert!(error.message.unwrap().ends_with("not a file"));
    }
}

//! Reads images from the system clipboard by running a desktop program, because terminals paste only text.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The time limit for the clipboard program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of an image, in bytes. An image of this size still fits into a message in base64.
const MAX_IMAGE_BYTES: u64 = 32 * 1024 * 1024;

/// The signature at the start of a PNG file.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A program that writes the clipboard's image to stdout as PNG.
struct ClipboardProgram {
    command: &'static [&'static str],
    /// The package that contains the program.
    package: &'static str,
}

/// Returns the clipboard program for this desktop, or `None` if there is no desktop.
fn clipboard_program(variable: impl Fn(&str) -> bool) -> Option<ClipboardProgram> {
    if cfg!(target_os = "macos") {
        let words = &["pngpaste", "-"];
        return Some(ClipboardProgram {
            command: words,
            package: words[0],
        });
    }
    if variable("WAYLAND_DISPLAY") {
        let words = &["wl-paste", "--type", "image/png"];
        let of = "wl-clipboard";
        return Some(ClipboardProgram {
            command: words,
            package: of,
        });
    }
    variable("DISPLAY").then_some(ClipboardProgram {
        command: &[
            "xclip",
            "-selection",
            "clipboard",
            "-target",
            "image/png",
            "-out",
        ],
        package: "xclip",
    })
}

/// Saves the clipboard's image to a new, uniquely named file in the directory `into`.
///
/// # Errors
/// Fails if there is no image, or no program that can read it. The error is a message for the user.
pub(crate) async fn save_image(into: &Path) -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = clipboard_program(set).ok_or(
        "no desktop clipboard available; drop an image file on the terminal, or attach it",
    )?;
    let name = program.command.first().copied().unwrap_or_default();
    let read = tokio::time::timeout(PROGRAM_TIMEOUT, read_image(&program));
    let image = match read.await {
        Ok(Ok(image)) => image,
        Ok(Err(e)) if e.kind() == io::ErrorKind::NotFound => {
            let of = program.package;
            return Err(format!(
                "pasting images requires `{name}`, which is not installed (package: {of})"
            ));
        }
        Ok(Err(e)) => return Err(format!("cannot read the clipboard: {name}: {e}")),
        Err(_) => {
            return Err(format!("cannot read the clipboard: {name} timed out"));
        }
    };
    if image.len() as u64 > MAX_IMAGE_BYTES {
        let most = MAX_IMAGE_BYTES / 1024 / 1024;
        return Err(format!("clipboard image too large (limit: {most} MiB)"));
    }
    if !image.starts_with(PNG_SIGNATURE) {
        return Err("no image on the clipboard".to_owned());
    }
    let keep = |image: Vec<u8>, into: PathBuf| -> io::Result<PathBuf> {
        let mut file = tempfile::Builder::new();
        let file = file.prefix("clipboard-").suffix(".png").tempfile_in(into)?;
        std::fs::write(file.path(), image)?;
        Ok(file.keep()?.1)
    };
    let into = into.to_owned();
    let kept = tokio::task::spawn_blocking(move || keep(image, into)).await;
    let kept = kept.map_err(io::Error::other).and_then(|kept| kept);
    kept.map_err(|e| format!("cannot save the clipboard image: {e}"))
}

/// Reads the program's output, up to one byte more than the limit, to detect oversized images.
async fn read_image(program: &ClipboardProgram) -> io::Result<Vec<u8>> {
    let mut words = program.command.iter();
    let mut child = Command::new(words.next().copied().unwrap_or_default())
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut image = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout
            .take(MAX_IMAGE_BYTES + 1)
            .read_to_end(&mut image)
            .await?;
    }
    if image.len() as u64 <= MAX_IMAGE_BYTES {
        child.wait().await?;
    }
    Ok(image)
}

#[cfg(all(test, not(target_os = "macos")))]
mod tests {
    use super::*;

    #[test]
    fn clipboard_program_depends_on_the_desktop() {
        let asked =
            |there: &[&str]| clipboard_program(|name| there.contains(&name)).map(|p| p.command[0]);
        assert_eq!(asked(&["WAYLAND_DISPLAY", "DISPLAY"]), Some("wl-paste"));
        assert_eq!(asked(&["DISPLAY"]), Some("xclip"));
        assert_eq!(asked(&[]), None);
    }
}

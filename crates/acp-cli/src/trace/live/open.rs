//! Telling the user the address of the page.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::access::PageAccess;
use crate::args::trace::LivePageArgs;
use crate::exit::CommandExit;

/// Prints the address, writes it to a file and opens it in a browser, as requested.
pub(super) fn announce_page(access: &PageAccess, args: &LivePageArgs) -> Result<(), CommandExit> {
    let address = access.address();
    if let Some(file) = &args.address_file {
        write_private(file, &address)
            .map_err(|e| CommandExit::failed(format!("cannot write {}: {e}", file.display())))?;
    }
    // Never to stdout, which is the agent's. Errors do not matter: an editor may have closed stderr.
    let _ = writeln!(std::io::stderr(), "acp: page of the trace: {address}");
    if args.open
        && let Err(why) = open_in_browser(&access.one_time_address())
    {
        let _ = writeln!(std::io::stderr(), "acp: cannot open the page: {why}");
    }
    Ok(())
}

/// Writes a line to a file that only its owner can read. The file is complete as soon as it exists.
fn write_private(file: &Path, line: &str) -> std::io::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Only the owner can read files of this kind.
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    writeln!(new, "{line}")?;
    new.persist(file)?;
    Ok(())
}

/// Opens an address with the system's default program. No shell is involved. Other users may see the address in the list
/// of processes, so it is one that works only once.
fn open_in_browser(address: &str) -> Result<(), String> {
    #[cfg(target_os = "macos")]
    let (program, args): (&str, &[&str]) = ("open", &[]);
    #[cfg(windows)]
    let (program, args): (&str, &[&str]) = ("rundll32", &["url.dll,FileProtocolHandler"]);
    #[cfg(not(any(target_os = "macos", windows)))]
    let (program, args): (&str, &[&str]) = ("xdg-open", &[]);
    let mut child = Command::new(program)
        .args(args)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{program}: {e}"))?;
    // Some of these programs run as long as the browser does.
    let waiting = std::thread::Builder::new().spawn(move || child.wait());
    waiting.map(drop).map_err(|e| e.to_string())
}

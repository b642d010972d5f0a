//! What recording asks of the operating system beside pipes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// How much less urgent recording is than passing on, as `nice` counts it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const GIVES_WAY: i32 = 10;

/// Makes a file that its user alone can read.
pub(super) fn private(path: &Path, overwrite: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    if overwrite {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    if overwrite && file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        // It may have been there, open to others.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Has this thread give way to the client, the agent and what passes on between them. Not by so much that it would
/// never get to work on a busy machine: both sides wait for it when too much is left to be written.
pub(super) fn give_way() {
    // Elsewhere it would be the whole process, which passes on, too. Where it may not, it stays as it is.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = rustix::process::nice(GIVES_WAY);
}

//! What [`agent`](super::agent) does to get at files that it must not have. The paths are in a file of its
//! working directory, one in each JSON string, and so is afterwards what came of them.

use std::path::Path;

use acp::Result;
use acp::agent::Turn;

/// The paths to try.
pub(crate) const PATHS_FILE: &str = "paths.json";

/// What came of it, in the same order: what was read, and whether something was written.
pub(crate) const REACHED_FILE: &str = "reached.json";

/// Asks the client for each path.
pub(crate) async fn reach_paths(turn: &Turn) -> Result<String> {
    let paths: Vec<String> =
        serde_json::from_str(&std::fs::read_to_string(PATHS_FILE).unwrap()).unwrap();
    let mut reached: Vec<(Option<String>, bool)> = Vec::new();
    for path in &paths {
        let read = turn.read_text_file(path, None, None).await.ok();
        let part = turn.read_text_file(path, Some(1), Some(1)).await.ok();
        let written = turn.write_text_file(path, "written by an attempt").await;
        reached.push((read.or(part), written.is_ok()));
    }
    std::fs::write(REACHED_FILE, serde_json::to_string(&reached).unwrap()).unwrap();
    Ok(format!("tried {} paths", paths.len()))
}

/// Moves the working directory away, and puts a symlink to its new parent in its place.
pub(crate) fn move_root(aside: &Path) {
    let root = std::env::current_dir().unwrap();
    std::fs::rename(&root, aside).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(aside.parent().unwrap(), root).unwrap();
}

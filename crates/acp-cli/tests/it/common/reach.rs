//! Makes [`agent`](super::agent) try to access forbidden files. The agent reads the paths, a JSON array of strings,
//! from a file in its working directory and writes the results to another file.

use std::path::Path;

use acp::Result;
use acp::agent::Turn;

/// The file that lists the paths to try.
pub(crate) const PATHS_FILE: &str = "paths.json";

/// The file that lists the results, in the same order as the paths. Each is the text that was read, if any, and whether
/// writing succeeded.
pub(crate) const REACH_RESULTS_FILE: &str = "reached.json";

/// Tries to read and write each path, using requests to the client.
pub(crate) async fn try_paths(turn: &Turn) -> Result<String> {
    let paths: Vec<String> =
        serde_json::from_str(&std::fs::read_to_string(PATHS_FILE).unwrap()).unwrap();
    let mut reached: Vec<(Option<String>, bool)> = Vec::new();
    for path in &paths {
        let read = turn.read_text_file(path, None, None).await.ok();
        let part = turn.read_text_file(path, Some(1), Some(1)).await.ok();
        let written = turn.write_text_file(path, "written by an attempt").await;
        reached.push((read.or(part), written.is_ok()));
    }
    std::fs::write(REACH_RESULTS_FILE, serde_json::to_string(&reached).unwrap()).unwrap();
    Ok(format!("tried {} paths", paths.len()))
}

/// Moves the working directory to `aside`, and replaces it with a symlink to the parent directory of `aside`.
pub(crate) fn move_root(aside: &Path) {
    let root = std::env::current_dir().unwrap();
    std::fs::rename(&root, aside).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(aside.parent().unwrap(), root).unwrap();
}

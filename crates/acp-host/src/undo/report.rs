//! Formats the report of an undo for the user.

use std::path::{Path, PathBuf};

use crate::terminal_text;

/// The maximum number of paths to list in each part of a report.
const MAX_LISTED_PATHS: usize = 10;

/// The result of an undo: which changes were undone and which were not.
#[derive(Debug, Default)]
pub(super) struct UndoReport {
    /// Paths with changes that were undone.
    pub(super) undone_paths: Vec<PathBuf>,
    /// Changed paths that could not be restored, with the reasons.
    pub(super) failures: Vec<(PathBuf, String)>,
    /// The directory that contains the changed versions of the files.
    pub(super) undone_directory: Option<PathBuf>,
    /// Paths that changed while no watch was running.
    pub(super) changed_between: Vec<PathBuf>,
    /// Whether some entries were not examined.
    pub(super) is_incomplete: bool,
}

impl UndoReport {
    /// Formats the report, or returns `None` if there is nothing to report.
    pub(super) fn to_text(&self) -> Option<String> {
        let mut text = String::new();
        let changes = |count: usize| match count {
            1 => "a change".to_owned(),
            count => format!("{count} changes"),
        };
        let named = |paths: &[String]| {
            let more = paths.len().saturating_sub(MAX_LISTED_PATHS);
            let named = paths
                .get(..paths.len() - more)
                .unwrap_or_default()
                .join(", ");
            match more {
                0 => named,
                more => format!("{named}, and {more} more"),
            }
        };
        if !self.undone_paths.is_empty() {
            let paths: Vec<_> = self
                .undone_paths
                .iter()
                .map(|path| display_path(path))
                .collect();
            text.push_str(&format!(
                "acp reverted {} to files that other programs run or trust: {}",
                changes(paths.len()),
                named(&paths)
            ));
            if let Some(directory) = &self.undone_directory {
                text.push_str(&format!(
                    "; the changed files are saved in {}",
                    display_path(directory)
                ));
            }
            text.push('\n');
        }
        if !self.failures.is_empty() {
            let lost = self.failures.iter();
            let lost: Vec<_> = lost
                .map(|(path, why)| format!("{} ({why})", display_path(path)))
                .collect();
            text.push_str(&format!(
                "acp could not revert {} to files that other programs run or trust: {}\n",
                changes(lost.len()),
                named(&lost)
            ));
        }
        if !self.changed_between.is_empty() {
            let paths: Vec<_> = self
                .changed_between
                .iter()
                .map(|path| display_path(path))
                .collect();
            text.push_str(&format!(
                "files that other programs run or trust were changed after the last sandboxed command ended, by you or by a process it left running; they were not reverted: {}\n",
                named(&paths)
            ));
        }
        if self.is_incomplete {
            text.push_str(
                "acp did not check all files that other programs run or trust, because there are too many\n",
            );
        }
        (!text.is_empty()).then(|| format!("\n{text}"))
    }
}

fn display_path(path: &Path) -> String {
    terminal_text::clean_line(&path.to_string_lossy())
}

//! What is said of what was undone.

use std::path::{Path, PathBuf};

use crate::clean;

/// How many names a report has.
const NAMES: usize = 10;

/// What was undone.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) undone: Vec<PathBuf>,
    /// What was changed and could not be put back, and why.
    pub(super) lost: Vec<(PathBuf, String)>,
    pub(super) kept: Option<PathBuf>,
    /// What was changed when nobody watched.
    pub(super) between: Vec<PathBuf>,
    pub(super) is_cut: bool,
}

impl Report {
    /// What there is to say, if anything.
    pub(super) fn in_words(&self) -> Option<String> {
        let mut text = String::new();
        let changes = |count: usize| match count {
            1 => "a change".to_owned(),
            count => format!("{count} changes"),
        };
        let named = |paths: &[String]| {
            let more = paths.len().saturating_sub(NAMES);
            let named = paths
                .get(..paths.len() - more)
                .unwrap_or_default()
                .join(", ");
            match more {
                0 => named,
                more => format!("{named}, and {more} more"),
            }
        };
        if !self.undone.is_empty() {
            let paths: Vec<_> = self.undone.iter().map(|path| shown(path)).collect();
            text.push_str(&format!(
                "acp undid {} to files that other programs obey: {}",
                changes(paths.len()),
                named(&paths)
            ));
            if let Some(kept) = &self.kept {
                text.push_str(&format!("; what was there is kept in {}", shown(kept)));
            }
            text.push('\n');
        }
        if !self.lost.is_empty() {
            let lost = self.lost.iter();
            let lost: Vec<_> = lost
                .map(|(path, why)| format!("{} ({why})", shown(path)))
                .collect();
            text.push_str(&format!(
                "acp could not undo {} to files that other programs obey: {}\n",
                changes(lost.len()),
                named(&lost)
            ));
        }
        if !self.between.is_empty() {
            let paths: Vec<_> = self.between.iter().map(|path| shown(path)).collect();
            text.push_str(&format!(
                "files that other programs obey were changed since the last command in this sandbox had ended, by you or by what it had left running, and are left as they are: {}\n",
                named(&paths)
            ));
        }
        if self.is_cut {
            text.push_str(
                "acp has not looked at all files for changes to those that other programs obey: there are too many\n",
            );
        }
        (!text.is_empty()).then(|| format!("\n{text}"))
    }
}

fn shown(path: &Path) -> String {
    clean::line(&path.to_string_lossy())
}

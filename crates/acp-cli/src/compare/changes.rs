//! What differs between the user's files and those of an agent.

use std::collections::HashMap;

use serde::Serialize;

use super::git::split_at_nul;

/// A change to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ComparedChange {
    pub(super) path: String,
    /// The path in git's output, which need not be UTF-8.
    #[serde(skip)]
    pub(super) raw_path: Vec<u8>,
    pub(super) kind: ComparedChangeKind,
    /// The added and removed lines, or `None` for a binary file.
    pub(super) added: Option<u64>,
    pub(super) removed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ComparedChangeKind {
    Added,
    Deleted,
    Modified,
    /// A file has become a symlink, or the other way round.
    Type,
}

impl ComparedChange {
    /// Returns how the file has changed, such as `M +1 -2`. The letters are those of git.
    pub(super) fn summary(&self) -> String {
        let letter = match self.kind {
            ComparedChangeKind::Added => 'A',
            ComparedChangeKind::Deleted => 'D',
            ComparedChangeKind::Modified => 'M',
            ComparedChangeKind::Type => 'T',
        };
        match (self.added, self.removed) {
            (Some(added), Some(removed)) => format!("{letter} +{added} -{removed}"),
            _ => format!("{letter} (binary)"),
        }
    }
}

/// Parses the output of `git diff-tree -z` with `--raw` and with `--numstat`.
pub(super) fn parse_changes(raw: &[u8], counts: &[u8]) -> Vec<ComparedChange> {
    let mut lines: HashMap<&[u8], (Option<u64>, Option<u64>)> = HashMap::new();
    for entry in split_at_nul(counts) {
        let mut fields = entry.splitn(3, |byte| *byte == b'\t');
        let mut number = || str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
        let (added, removed) = (number(), number());
        if let Some(path) = fields.next() {
            lines.insert(path, (added, removed));
        }
    }
    let mut changes = Vec::new();
    let mut parts = split_at_nul(raw);
    while let (Some(entry), Some(path)) = (parts.next(), parts.next()) {
        let kind = match entry.last() {
            Some(b'A') => ComparedChangeKind::Added,
            Some(b'D') => ComparedChangeKind::Deleted,
            Some(b'T') => ComparedChangeKind::Type,
            _ => ComparedChangeKind::Modified,
        };
        let (added, removed) = lines.get(path).copied().unwrap_or_default();
        changes.push(ComparedChange {
            path: String::from_utf8_lossy(path).into_owned(),
            raw_path: path.to_owned(),
            kind,
            added,
            removed,
        });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed() {
        let raw =
            b":100644 000000 1 0 D\0old\0:000000 120000 0 1 A\0a b\0:100644 100644 1 2 M\0x\0";
        let counts = [b"0\t3\told\0" as &[u8], b"1\t0\ta b\0-\t-\tx\0"].concat();
        let changes = parse_changes(raw, &counts);
        let shown = changes
            .iter()
            .map(|change| format!("{} {}", change.path, change.summary()));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            ["old D +0 -3", "a b A +1 -0", "x M (binary)"]
        );
    }
}

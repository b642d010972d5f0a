//! What is known of each agent when it has ended, and of the whole comparison.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::changes::ComparedChange;

/// The maximum size of the file with the result of `acp run`, in bytes.
const MAX_RESULT_BYTES: u64 = 64 * 1024 * 1024;

/// How the run of an agent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ComparedState {
    Ended,
    /// The turn has ended, but all actions were denied.
    Denied,
    Refused,
    LimitReached,
    TimedOut,
    Cancelled,
    Failed,
}

impl ComparedState {
    /// Returns the state for an exit code of `acp run`.
    pub(super) fn from_exit_code(code: u8) -> Self {
        match code {
            0 => Self::Ended,
            4 => Self::Refused,
            5 => Self::LimitReached,
            6 => Self::TimedOut,
            8 => Self::Denied,
            130 => Self::Cancelled,
            _ => Self::Failed,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::LimitReached => "limit reached",
            Self::TimedOut => "timed out",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// What an agent did, and what came of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentOutcome {
    pub(super) label: String,
    pub(super) agent: String,
    pub(super) model: Option<String>,
    pub(super) state: ComparedState,
    /// The exit code of `acp run`.
    pub(super) exit_code: u8,
    pub(super) error: Option<String>,
    pub(super) duration_ms: u64,
    /// The tokens in the context window.
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<ReportedCost>,
    pub(super) answer: String,
    pub(super) denials: Vec<ReportedDenial>,
    /// The changed files, or `None` if they are not known.
    pub(super) files: Option<Vec<ComparedChange>>,
    pub(super) test: Option<TestOutcome>,
    pub(super) score: Option<f64>,
    /// With `--diff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<DiffText>,
    /// With `--keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) directory: Option<PathBuf>,
    /// The files as the agent has left them.
    #[serde(skip)]
    pub(super) tree: Option<String>,
}

impl AgentOutcome {
    /// Returns the changed files, which are none if they are not known.
    pub(super) fn changes(&self) -> &[ComparedChange] {
        self.files.as_deref().unwrap_or_default()
    }

    /// Returns the tree, if the agent has changed anything.
    pub(super) fn changed_tree(&self) -> Option<&str> {
        let tree = self.tree.as_deref();
        tree.filter(|_| !self.changes().is_empty())
    }
}

/// The changes of an agent as text.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiffText {
    pub(super) text: String,
    pub(super) is_truncated: bool,
}

impl DiffText {
    /// Reads at most `max` bytes of a file.
    pub(super) fn read(file: &Path, max: u64) -> std::io::Result<Self> {
        let (mut bytes, is_truncated) = read_bounded(file, max)?;
        if is_truncated {
            // No part of a line.
            let end = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(end.map_or(0, |end| end + 1));
        }
        Ok(Self {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            is_truncated,
        })
    }
}

/// How the `--test` command has ended.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TestOutcome {
    /// The exit code, or `None` if the command was ended early.
    pub(super) exit_code: Option<i32>,
    pub(super) is_timeout: bool,
    pub(super) duration_ms: u64,
    /// The end of the output.
    pub(super) output: String,
    /// Why the command could not run.
    pub(super) error: Option<String>,
}

impl TestOutcome {
    pub(super) fn text(&self) -> String {
        match (self.exit_code, &self.error) {
            (_, Some(_)) => "error".to_owned(),
            (Some(0), None) => "passed".to_owned(),
            (Some(code), None) => format!("failed ({code})"),
            (None, None) if self.is_timeout => "timed out".to_owned(),
            (None, None) => "failed".to_owned(),
        }
    }
}

/// The parts of the result of `acp run` that are compared.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportedRun {
    pub(super) exit_code: u8,
    pub(super) error: Option<String>,
    pub(super) answer: String,
    pub(super) context: Option<ReportedContext>,
    pub(super) cost: Option<ReportedCost>,
    pub(super) denials: Vec<ReportedDenial>,
    pub(super) duration_ms: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ReportedContext {
    pub(super) used: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReportedCost {
    pub(super) amount: f64,
    pub(super) currency: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReportedDenial {
    pub(super) action: String,
    pub(super) by: String,
}

impl ReportedRun {
    /// Reads the file of `acp run --output`.
    ///
    /// # Errors
    /// The file does not exist, because the run was ended, or is not valid.
    pub(super) fn read(file: &Path) -> std::io::Result<Self> {
        let (bytes, is_truncated) = read_bounded(file, MAX_RESULT_BYTES)?;
        if is_truncated {
            let message = format!("the result is too large (limit: {MAX_RESULT_BYTES} bytes)");
            return Err(std::io::Error::other(message));
        }
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// Reads at most `max` bytes of a file. Also returns whether there is more.
fn read_bounded(file: &Path, max: u64) -> std::io::Result<(Vec<u8>, bool)> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(file)?;
    file.take(max + 1).read_to_end(&mut bytes)?;
    let is_truncated = bytes.len() as u64 > max;
    bytes.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    Ok((bytes, is_truncated))
}

/// The outcome of a comparison, as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ComparisonOutcome {
    pub(super) agents: Vec<AgentOutcome>,
    /// With `--judge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) judge: Option<JudgeOutcome>,
    /// The agent whose changes were taken over.
    pub(super) applied: Option<String>,
    pub(super) apply_error: Option<String>,
    /// The file with the changes, if they could not be taken over.
    pub(super) patch: Option<PathBuf>,
}

/// What the judge said.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(super) struct JudgeOutcome {
    pub(super) reason: Option<String>,
    /// Why there are no scores, or what is wrong with them.
    pub(super) error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_diff_ends_with_a_whole_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "one\ntwo\nthree\n").unwrap();
        let diff = DiffText::read(file.path(), 9).unwrap();
        assert_eq!(diff.text, "one\ntwo\n");
        assert!(diff.is_truncated);
        let diff = DiffText::read(file.path(), 14).unwrap();
        assert_eq!(diff.text, "one\ntwo\nthree\n");
        assert!(!diff.is_truncated);
    }
}

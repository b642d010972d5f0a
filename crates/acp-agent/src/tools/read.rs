//! Reading a file.

use acp::v1::ToolKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{About, Doing, Output, fenced, head, location, text};
use crate::workspace::{Fault, Workspace};

/// How many lines are read where the call does not say.
const LINES: u32 = 2000;

/// The most that is given back, in bytes.
const MOST: usize = 256 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// The file; a relative path begins at the working directory.
    path: String,
    /// The first line to read, counted from 1.
    line: Option<u32>,
    /// How many lines to read; 2000 if absent.
    limit: Option<u32>,
}

impl Read {
    pub(super) fn about(&self, workspace: &Workspace) -> About {
        let path = workspace.absolute(&self.path);
        let mut title = format!("Read `{}`", workspace.shown(&path));
        match (self.line, self.limit) {
            (line, Some(limit)) if limit > 1 => {
                let first = line.unwrap_or(1);
                title.push_str(&format!(
                    ", lines {first}–{}",
                    first.saturating_add(limit - 1)
                ));
            }
            (Some(line), Some(_)) => title.push_str(&format!(", line {line}")),
            (Some(line), None) => title.push_str(&format!(", from line {line}")),
            (None, _) => {}
        }
        About::new(title, ToolKind::Read, vec![location(&path, self.line)])
    }

    pub(super) async fn run(&self, doing: &mut Doing<'_>) -> Result<Output, Fault> {
        let path = doing.workspace.absolute(&self.path);
        let limit = self.limit.unwrap_or(LINES);
        // One more, to see whether there is more.
        let read = doing
            .workspace
            .read(&path, self.line, Some(limit.saturating_add(1)))
            .await;
        let read = read.map_err(|fault| match fault {
            Fault::Missing(why) => {
                Fault::Failed(format!("There is no file `{}`: {why}", self.path))
            }
            other => other,
        })?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let all = read.split_inclusive('\n').count();
        let lines: String = read.split_inclusive('\n').take(limit).collect();
        let kept = head(&lines, MOST);
        let truncated = all > limit || kept.len() < lines.len();
        let count = kept.split_inclusive('\n').count();
        let mut shown = vec![text(fenced(kept))];
        if truncated && self.limit.is_none_or(|limit| limit as usize != count) {
            shown.push(text("There is more of it than is shown."));
        }
        let data = json!({ "lines": count, "truncated": truncated });
        Ok(Output::done(kept, shown, data))
    }
}

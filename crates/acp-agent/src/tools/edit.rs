//! Replacing a text in a file.

use acp::v1::ToolKind;
use acp_host::TextForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{About, Change, Doing, Output, location};
use crate::workspace::{Fault, Workspace};

/// How many line numbers an error names.
const NAMED: usize = 10;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The file; a relative path begins at the working directory.
    path: String,
    /// The text to replace, exactly as it is in the file, white space included. It must be in the
    /// file once and no more: give as many lines around it as that takes.
    search: String,
    /// What to put in its place.
    replacement: String,
}

impl Edit {
    pub(super) fn about(&self, workspace: &Workspace) -> About {
        let path = workspace.absolute(&self.path);
        About::new(
            format!("Edit `{}`", workspace.shown(&path)),
            ToolKind::Edit,
            vec![location(&path, None)],
        )
    }

    /// What it would change as the file is now.
    pub(super) async fn change(&self, workspace: &Workspace) -> Result<Change, Fault> {
        let path = workspace.absolute(&self.path);
        let Some(old) = workspace.read_if_there(&path).await? else {
            return Err(Fault::failed(format!("There is no file `{}`.", self.path)));
        };
        let at = find(&old, &self.search)
            .map_err(|why| Fault::failed(format!("`{}`: {why}", self.path)))?;
        let (before, rest) = old.split_at(at);
        let after = rest.get(self.search.len()..).unwrap_or_default();
        let replacement = TextForm::of(&old).apply_line_ends(&self.replacement);
        let new = format!("{before}{replacement}{after}");
        if new == old {
            return Err(Fault::failed("The replacement is the same as the text."));
        }
        let line = line_of(&old, at);
        Ok(Change {
            path,
            old: Some(old),
            new,
            line: Some(line),
        })
    }

    pub(super) async fn run(&self, doing: &mut Doing<'_>) -> Result<Output, Fault> {
        // The file as it is now counts, not as it was when permission was asked for: what changed
        // elsewhere in it stays, and if the text is not there any more, this is an error.
        let change = self.change(doing.workspace).await?;
        doing.workspace.write(&change.path, &change.new).await?;
        let line = change.line.unwrap_or(1);
        let said = format!("Edited `{}` at line {line}.", self.path);
        let data = json!({ "path": change.path, "line": line });
        let mut output = Output::done(said, vec![change.content()], data);
        output.locations = Some(vec![change.location()]);
        Ok(output)
    }
}

/// Where the text is, if it is there once.
fn find(file: &str, search: &str) -> Result<usize, String> {
    if search.is_empty() {
        return Err("the text to replace is empty.".to_owned());
    }
    let mut places = places(file, search);
    match (places.next(), places.next()) {
        (Some(at), None) => Ok(at),
        (Some(first), Some(second)) => {
            let lines: Vec<u32> = [first, second]
                .into_iter()
                .chain(places)
                .map(|at| line_of(file, at))
                .collect();
            Err(format!(
                "the text is there {} times, beginning on lines {}; it must be there once. Add lines \
                 around it until it is.",
                lines.len(),
                named(&lines)
            ))
        }
        (None, _) => Err(not_found(file, search)),
    }
}

/// Where the text is, also where it overlaps itself.
fn places<'a>(file: &'a str, search: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = search.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + file.get(from..)?.find(search)?;
        from = at + step;
        Some(at)
    })
}

/// Says that the text is not there, and where something like it is.
fn not_found(file: &str, search: &str) -> String {
    if file.contains("\r\n") && places(file, &search.replace('\n', "\r\n")).next().is_some() {
        return "the text is there with the line ends CR LF, which are part of it.".to_owned();
    }
    let Some(first) = search.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "the text, which is only white space, is not there.".to_owned();
    };
    let like: Vec<u32> = (1..)
        .zip(file.lines())
        .filter(|(_, line)| line.trim() == first)
        .map(|l| l.0)
        .collect();
    if !like.is_empty() {
        return format!(
            "the text is not there as it was given. Its first line is, apart from white space, on \
             line {}; look there for the difference.",
            named(&like)
        );
    }
    let like: Vec<u32> = (1..)
        .zip(file.lines())
        .filter(|(_, line)| line.contains(first))
        .map(|l| l.0)
        .collect();
    if !like.is_empty() {
        return format!(
            "the text is not there. What its first line says is part of line {}.",
            named(&like)
        );
    }
    let lines = file.lines().count();
    format!(
        "the text is not there, nor is its first line, in any of the {lines} lines of the file."
    )
}

fn named(lines: &[u32]) -> String {
    let mut named: Vec<String> = lines.iter().take(NAMED).map(ToString::to_string).collect();
    if lines.len() > NAMED {
        named.push("…".to_owned());
    }
    named.join(", ")
}

fn line_of(file: &str, at: usize) -> u32 {
    let before = file.get(..at).unwrap_or_default();
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_is_found() {
        assert_eq!(find("one\ntwo\nthree\n", "two\nth"), Ok(4));
        assert_eq!(find("é€é", "€"), Ok(2));
    }

    #[test]
    fn otherwise_the_error_names_lines() {
        let error = |file: &str, search: &str| find(file, search).unwrap_err();
        assert!(error("a\nb\na\n", "a").contains("2 times, beginning on lines 1, 3;"));
        assert!(error("aaa", "aa").contains("2 times"));
        assert!(error("x\n  fn a() {\n", "fn a() {\n  b").contains("on line 2;"));
        assert!(error("x\nlet ab = 1;\n", "ab = 1\nc").contains("part of line 2"));
        assert!(error("x\r\ny\r\n", "x\ny").contains("CR LF"));
        assert!(error("x\ny\n", "z").contains("2 lines"));
        assert!(error("x", "").contains("empty"));
    }
}

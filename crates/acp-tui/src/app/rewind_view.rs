//! The popup that shows what undoing or redoing turns would change, before it is done.

use acp_host::literal;
use acp_rewind::{ChangeKind, LeftOutPath, SnapshotChange};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::TabKey;
use super::pager::Pager;
use super::turn_history::TurnNumber;
use crate::draw_context::DrawContext;
use crate::file_history::RestorePreview;
use crate::text::columns::pluralize;
use crate::theme::Theme;

/// What a rewind goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RewindTarget {
    /// The time before this turn.
    Turn(TurnNumber),
    /// The time before the last undo.
    Redo,
}

/// What a rewind takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RewindScope {
    pub(crate) files: bool,
    pub(crate) conversation: bool,
}

/// What the popup says about the rewind, beside the changes.
pub(super) struct RewindDescription {
    pub(super) tab: TabKey,
    pub(super) target: RewindTarget,
    /// The popup's title.
    pub(super) title: String,
    /// The lines before the changes.
    pub(super) intro: Vec<String>,
    /// Whether the conversation can be taken back, or why not.
    pub(super) conversation: Result<(), String>,
}

/// A popup with what would change, and the keys to do it.
pub(super) struct RewindView {
    pub(super) description: RewindDescription,
    /// What would change, or the reason why no files can be restored.
    preview: Result<Box<RestorePreview>, String>,
    pager: Pager,
    /// The differences of the files, if they are shown.
    diff: Option<Pager>,
    theme: Theme,
}

/// The effect of a key on the popup.
pub(super) enum RewindOutcome {
    KeepOpen,
    Close,
    Rewind(RewindScope),
}

impl RewindView {
    pub(super) fn new(
        description: RewindDescription,
        preview: Result<Box<RestorePreview>, String>,
        theme: &Theme,
    ) -> Self {
        let mut lines: Vec<Line<'static>> = Vec::new();
        let text = |text: String| Line::styled(text, theme.text);
        lines.extend(description.intro.iter().cloned().map(text));
        lines.push(Line::default());
        match &preview {
            Ok(preview) => lines.extend(change_lines(preview, description.target, theme)),
            Err(reason) => lines.push(Line::styled(
                format!("Files cannot be restored: {reason}"),
                theme.warn,
            )),
        }
        if let Err(reason) = &description.conversation {
            lines.push(Line::default());
            lines.push(Line::styled(reason.clone(), theme.dim));
        }
        let mut view = Self {
            pager: Pager::new(description.title.clone(), lines),
            description,
            preview,
            diff: None,
            theme: theme.clone(),
        };
        view.pager.set_keys(view.key_hints());
        view
    }

    /// Takes what was shown out of the popup.
    pub(super) fn into_parts(self) -> (RewindDescription, Option<Box<RestorePreview>>) {
        (self.description, self.preview.ok())
    }

    /// Returns the scopes that the user can choose, with their keys and names.
    fn choices(&self) -> Vec<(char, &'static str, RewindScope)> {
        let scope = |files, conversation| RewindScope {
            files,
            conversation,
        };
        let files = self.preview.is_ok();
        let conversation = self.description.conversation.is_ok();
        if self.description.target == RewindTarget::Redo {
            // What was undone together is redone together.
            return vec![('r', "redo", scope(files, conversation))];
        }
        let mut choices = Vec::new();
        if files {
            choices.push(('f', "files", scope(true, false)));
        }
        if conversation {
            choices.push(('c', "conversation", scope(false, true)));
        }
        if files && conversation {
            choices.push(('b', "both", scope(true, true)));
        }
        choices
    }

    fn key_hints(&self) -> String {
        let mut hints: Vec<String> = self
            .choices()
            .into_iter()
            .map(|(key, name, _)| format!("{key}: {name}"))
            .collect();
        if self.has_diff() {
            hints.push("d: diff".to_owned());
        }
        hints.push("Esc: close".to_owned());
        hints.join("  ")
    }

    fn has_diff(&self) -> bool {
        self.preview
            .as_ref()
            .is_ok_and(|preview| !preview.diff.is_empty())
    }

    pub(super) fn handle_key(&mut self, key: KeyEvent) -> RewindOutcome {
        if let Some(diff) = &mut self.diff {
            if !diff.handle_key(key) {
                self.diff = None;
            }
            return RewindOutcome::KeepOpen;
        }
        self.pager.set_keys(self.key_hints());
        if self.pager.handle_key(key) {
            return RewindOutcome::KeepOpen;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => RewindOutcome::Close,
            KeyCode::Char('d') if key.modifiers.is_empty() && self.has_diff() => {
                if let Ok(preview) = &self.preview {
                    self.diff = Some(diff_pager(preview, &self.theme));
                }
                RewindOutcome::KeepOpen
            }
            KeyCode::Char(pressed) if key.modifiers == KeyModifiers::NONE => {
                let choice = self.choices().into_iter().find(|(key, ..)| *key == pressed);
                match choice {
                    // Files are restored only if the user has seen all that changes.
                    Some((.., scope)) if scope.files && !self.pager.was_read() => {
                        self.pager
                            .set_keys("read to the end first: PgDn or End".to_owned());
                        RewindOutcome::KeepOpen
                    }
                    Some((.., scope)) => RewindOutcome::Rewind(scope),
                    None => RewindOutcome::KeepOpen,
                }
            }
            _ => RewindOutcome::KeepOpen,
        }
    }

    pub(super) fn scroll(&mut self, by: isize) {
        self.diff.as_mut().unwrap_or(&mut self.pager).scroll(by);
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, look: &DrawContext<'_>) {
        self.diff
            .as_mut()
            .unwrap_or(&mut self.pager)
            .draw(area, buf, look);
    }
}

/// Lists everything that restoring the files would change.
fn change_lines(
    preview: &RestorePreview,
    target: RewindTarget,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let changes = &preview.plan.changes;
    let mut lines = vec![Line::styled(
        match changes.len() {
            0 => "No files would change.".to_owned(),
            count => format!("Files that would change: {count}"),
        },
        theme.heading,
    )];
    lines.extend(changes.iter().map(|change| change_line(change, theme)));
    lines.push(Line::default());
    let inverse = match target {
        RewindTarget::Turn(_) => "/redo",
        RewindTarget::Redo => "/undo",
    };
    lines.push(Line::styled(
        format!(
            "Files that git ignores stay as they are. `{inverse}` brings back what is replaced."
        ),
        theme.dim,
    ));
    for LeftOutPath { path, reason, .. } in &preview.left_out {
        let path = literal::escape_line(&path.to_string_lossy());
        lines.push(Line::styled(
            format!("Not kept, stays as it is: {path} ({reason})"),
            theme.warn,
        ));
    }
    lines
}

fn change_line(change: &SnapshotChange, theme: &Theme) -> Line<'static> {
    let (verb, style) = match change.kind {
        ChangeKind::Created => ("create", theme.good),
        ChangeKind::Deleted => ("delete", theme.bad),
        ChangeKind::Modified => ("change", theme.accent),
        ChangeKind::Permissions => ("set permissions of", theme.accent),
        ChangeKind::DirectoryCreated => ("create directory", theme.good),
        ChangeKind::DirectoryDeleted => ("delete directory", theme.bad),
        _ => ("change", theme.accent),
    };
    let path = literal::escape_line(&change.path.to_string_lossy());
    let mut spans = vec![
        Span::styled(format!("  {verb} "), style),
        Span::styled(path, theme.text),
    ];
    if let Some((added, removed)) = change.lines {
        spans.push(Span::styled(format!("  +{added} -{removed}"), theme.dim));
    }
    Line::from(spans)
}

/// Shows the differences of the files.
fn diff_pager(preview: &RestorePreview, theme: &Theme) -> Pager {
    let mut lines: Vec<Line<'static>> = literal::escape_lines(&preview.diff)
        .into_iter()
        .map(|line| {
            let style = match line.as_bytes() {
                [b'+', ..] => theme.good,
                [b'-', ..] => theme.bad,
                [b'@', ..] => theme.accent,
                [b'd', b'i', b'f', b'f', ..] => theme.heading,
                _ => theme.text,
            };
            Line::styled(line, style)
        })
        .collect();
    if preview.is_diff_cut {
        lines.push(Line::styled(
            "The differences are too long to be shown in full.",
            theme.warn,
        ));
    }
    Pager::new("What would change", lines)
}

/// Describes how many turns a rewind takes back.
pub(super) fn describe_turns(count: usize) -> String {
    pluralize(count, "turn")
}

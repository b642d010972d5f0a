//! Takes the changes of one agent over into the user's files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use acp_host::literal;

use super::git::io_exit;
use super::outcome::{AgentOutcome, ComparedState, DiffText};
use super::run::ComparisonSetup;
use crate::exit::CommandExit;
use crate::screen::TerminalScreen;
use crate::terminal_user::TerminalUser;

/// The maximum number of files to name in a message.
const MAX_NAMED_FILES: usize = 5;

/// The maximum size of a diff to show before a decision, in bytes.
const MAX_SHOWN_BYTES: u64 = 256 * 1024;

/// Why changes were not taken over.
#[derive(Debug)]
pub(super) struct ApplyRefusal {
    pub(super) reason: String,
    /// The file with the changes.
    pub(super) patch: Option<PathBuf>,
}

impl ApplyRefusal {
    /// Returns the message for the user.
    pub(super) fn message(&self, label: &str) -> String {
        let patch = self.patch.as_ref();
        let patch = patch.map(|patch| format!("; the changes are in {}", patch.display()));
        let patch = patch.unwrap_or_default();
        format!(
            "the changes of {label} were not taken over: {}{patch}",
            self.reason
        )
    }
}

/// Takes the changes of an agent over that the user has chosen with `--apply`.
pub(super) async fn apply_by_option(
    setup: &ComparisonSetup,
    agent: &AgentOutcome,
) -> Result<(), ApplyRefusal> {
    if agent.state != ComparedState::Ended {
        let patch = match agent.changed_tree() {
            Some(tree) => keep_patch(setup, &agent.label, tree).await.ok(),
            None => None,
        };
        let reason = format!("its turn has not ended well ({})", agent.state.text());
        return Err(ApplyRefusal { reason, patch });
    }
    apply(setup, agent).await
}

/// Takes the changes of an agent over. Nothing is changed if a file that they touch is not what it was.
async fn apply(setup: &ComparisonSetup, agent: &AgentOutcome) -> Result<(), ApplyRefusal> {
    let Some(tree) = agent.changed_tree() else {
        return Ok(());
    };
    let no_patch = |exit: CommandExit| ApplyRefusal {
        reason: exit.message.unwrap_or_default(),
        patch: None,
    };
    let patch = keep_patch(setup, &agent.label, tree)
        .await
        .map_err(no_patch)?;
    match apply_patch(setup, agent, &patch).await {
        Ok(()) => {
            // It is no longer needed.
            let _ = std::fs::remove_file(&patch);
            Ok(())
        }
        Err(exit) => Err(ApplyRefusal {
            reason: exit.message.unwrap_or_default(),
            patch: Some(patch),
        }),
    }
}

async fn apply_patch(
    setup: &ComparisonSetup,
    agent: &AgentOutcome,
    patch: &Path,
) -> Result<(), CommandExit> {
    let repository = &setup.repository;
    let index = setup.directory.join("now.index");
    std::fs::copy(&repository.index, &index).map_err(|e| io_exit("copy", &index, &e))?;
    let now = repository.record_tree(&repository.root, &index).await?;
    let since = repository.changes(&now).await?;
    let since: HashSet<&[u8]> = since.iter().map(|change| &*change.raw_path).collect();
    let touched = agent.changes().iter();
    let touched = touched.filter(|change| since.contains(&*change.raw_path));
    let names: Vec<String> = touched
        .map(|change| literal::escape_line(&change.path))
        .collect();
    if !names.is_empty() {
        let shown = names.iter().take(MAX_NAMED_FILES).cloned();
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = match names.len().saturating_sub(MAX_NAMED_FILES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return Err(CommandExit::failed(format!(
            "changed since the comparison began: {shown}{more}"
        )));
    }
    // Without --index, only files are changed, and only if all of the patch can be applied.
    let args = ["apply", "-p1", "--binary", "--whitespace=nowarn"];
    let call = repository.call(&repository.root, &index, &args);
    call.arg(patch).output().await.map(drop)
}

/// Writes the changes of an agent to a file that is not deleted with the copies.
async fn keep_patch(
    setup: &ComparisonSetup,
    label: &str,
    tree: &str,
) -> Result<PathBuf, CommandExit> {
    let safe: String = label
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(50)
        .collect();
    let failed = |e: std::io::Error| io_exit("write to", &std::env::temp_dir(), &e);
    let file = tempfile::Builder::new()
        .prefix(&format!("acp-compare-{safe}-"))
        .suffix(".patch")
        .tempfile()
        .map_err(failed)?;
    setup.repository.write_patch(tree, file.path()).await?;
    let (_, path) = file.keep().map_err(|e| failed(e.error))?;
    Ok(path)
}

/// How the user has decided.
pub(super) enum ApplyChoice {
    /// No changes are taken over.
    None,
    /// The changes of the agent with this number were taken over, or could not be.
    Chosen(usize, Result<(), ApplyRefusal>),
}

/// Asks the user whose changes to take over, shows them, and takes them over if the user confirms.
pub(super) async fn ask_and_apply(
    setup: &ComparisonSetup,
    agents: &[AgentOutcome],
    screen: TerminalScreen,
) -> ApplyChoice {
    let user = TerminalUser::new(screen);
    let cancel = async {
        setup.stop.requested().await;
        user.cancel_questions();
        std::future::pending().await
    };
    tokio::select! {
        choice = ask_user(setup, agents, &user) => choice,
        choice = cancel => choice,
    }
}

async fn ask_user(
    setup: &ComparisonSetup,
    agents: &[AgentOutcome],
    user: &TerminalUser,
) -> ApplyChoice {
    let with_changes: Vec<usize> = (0..agents.len())
        .filter(|number| {
            let agent = agents.get(*number);
            agent.is_some_and(|agent| agent.changed_tree().is_some())
        })
        .collect();
    if with_changes.is_empty() {
        return ApplyChoice::None;
    }
    let dialog = user.ask(|out| {
        out.push_text("Take over the changes of one agent?\n");
        for (shown, number) in with_changes.iter().enumerate() {
            if let Some(agent) = agents.get(*number) {
                let label = literal::escape_line(&agent.label);
                let state = agent.state.text();
                let files = agent.changes().len();
                let noun = if files == 1 { "file" } else { "files" };
                out.push_text(&format!(
                    "  {}) {label} ({state}, {files} {noun})\n",
                    shown + 1
                ));
            }
        }
    });
    let Some(mut dialog) = dialog.await else {
        return ApplyChoice::None;
    };
    let count = with_changes.len();
    let number = loop {
        let Some(answer) = dialog
            .answer(&format!("number [1-{count}], or Enter for none: "))
            .await
        else {
            return ApplyChoice::None;
        };
        if answer.is_empty() {
            return ApplyChoice::None;
        }
        let chosen = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        if let Some(number) = chosen.and_then(|chosen| with_changes.get(chosen)) {
            break *number;
        }
    };
    let Some(agent) = agents.get(number) else {
        return ApplyChoice::None;
    };
    match preview(setup, agent).await {
        Ok((text, true)) => dialog.print_question_text(&text),
        // What cannot be shown in full cannot be confirmed.
        Ok((_, false)) => {
            let patch = match agent.changed_tree() {
                Some(tree) => keep_patch(setup, &agent.label, tree).await.ok(),
                None => None,
            };
            let limit = MAX_SHOWN_BYTES / 1024;
            let reason = format!("the diff is too long to be shown in full (limit: {limit} KiB)");
            return ApplyChoice::Chosen(number, Err(ApplyRefusal { reason, patch }));
        }
        Err(exit) => {
            let reason = exit.message.unwrap_or_default();
            let refusal = ApplyRefusal {
                reason,
                patch: None,
            };
            return ApplyChoice::Chosen(number, Err(refusal));
        }
    }
    let answer = dialog
        .answer("apply these changes to your files? [y/N] ")
        .await;
    let answer = answer.unwrap_or_default().to_lowercase();
    if answer != "y" && answer != "yes" {
        return ApplyChoice::None;
    }
    drop(dialog);
    ApplyChoice::Chosen(number, apply(setup, agent).await)
}

/// Returns the changes of an agent in a form in which nothing is hidden, and whether they are complete.
async fn preview(
    setup: &ComparisonSetup,
    agent: &AgentOutcome,
) -> Result<(String, bool), CommandExit> {
    let Some(tree) = agent.changed_tree() else {
        return Ok((String::new(), true));
    };
    let file = setup.directory.join("preview.diff");
    setup.repository.write_diff(tree, &file).await?;
    let diff = DiffText::read(&file, MAX_SHOWN_BYTES).map_err(|e| io_exit("read", &file, &e))?;
    let mut text = String::from("\n");
    for change in agent.changes() {
        let path = literal::escape_line(&change.path);
        text.push_str(&format!("  {} {path}\n", change.summary()));
    }
    text.push('\n');
    for line in literal::escape_lines(&diff.text) {
        text.push_str(&format!("  | {line}\n"));
    }
    Ok((text, !diff.is_truncated))
}

//! Commands that the user runs from the prompt with `!`.

use tokio::sync::oneshot;

use super::tab::Tab;
use super::{App, ChatEffect, TabKey};
use crate::editor::{EditorOutcome, PromptDraft};
use crate::shell::{ShellOutput, ShellTask};
use crate::text::columns::pluralize;

/// A command as typed in the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellInput {
    command: String,
    /// Whether its output is put into the prompt, for the agent.
    has_agent_output: bool,
}

/// The command that is running in a tab. It is killed when this is dropped.
pub(super) struct RunningShell {
    has_agent_output: bool,
    /// `None` if the user has stopped the command.
    stop: Option<oneshot::Sender<()>>,
}

/// Returns the command if a prompt is one: it begins with `!`. With `!!`, its output stays out of the prompt.
pub(super) fn find_shell_command(draft: &PromptDraft) -> Option<ShellInput> {
    if !draft.attachments().is_empty() {
        return None;
    }
    let text = draft.text();
    let command = text.strip_prefix('!')?;
    let (command, has_agent_output) = match command.strip_prefix('!') {
        Some(command) => (command, false),
        None => (command, true),
    };
    Some(ShellInput {
        command: command.trim().to_owned(),
        has_agent_output,
    })
}

/// The maximum length of a command in the label of its output, in characters.
const MAX_LABEL_CHARS: usize = 40;

impl Tab {
    /// Puts the output of a command into the prompt, as a label that stands for it. Returns what to tell the user.
    fn insert_output(&mut self, output: &ShellOutput) -> String {
        let command = acp_host::terminal_text::clean_line(&output.command);
        let mut short: String = command.chars().take(MAX_LABEL_CHARS).collect();
        if short.len() < command.len() {
            short.push('…');
        }
        let lines = pluralize(output.output.lines().count(), "line");
        let label = format!("[output of {short}: {lines}]");
        match self.editor.insert_first(&label, output.to_prompt_text()) {
            EditorOutcome::Note(why) => why,
            _ => {
                "the output goes with the next prompt; delete it there if it should not".to_owned()
            }
        }
    }

    /// Returns whether Enter runs a command.
    pub(super) fn is_shell_prompt(&self) -> bool {
        self.editor.text().starts_with('!')
    }

    /// Kills the command of the tab. Returns `false` if there is none.
    pub(super) fn stop_shell(&mut self) -> bool {
        let shell = self.shell.as_mut();
        shell.is_some_and(|shell| shell.stop.take().is_some())
    }
}

impl App {
    /// Runs a command in the active tab. Puts the prompt back if that is not possible.
    pub(super) fn run_shell(&mut self, input: ShellInput, draft: PromptDraft) -> Vec<ChatEffect> {
        let number = self.shell_count + 1;
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        let obstacle = if input.command.is_empty() {
            Some("no command; type one after `!`")
        } else if tab.session.is_none() {
            Some("the session is not open yet")
        } else if tab.shell.is_some() {
            Some("a command is still running; Esc stops it")
        } else {
            None
        };
        if let Some(obstacle) = obstacle {
            tab.editor.set(draft);
            self.show_note(obstacle);
            return Vec::new();
        }
        let (stop, stopped) = oneshot::channel();
        tab.shell = Some(RunningShell {
            has_agent_output: input.has_agent_output,
            stop: Some(stop),
        });
        tab.view.go_to_end();
        let effect = ChatEffect::RunShell {
            tab: tab.key,
            task: ShellTask {
                command: input.command,
                id: format!("acp-shell-{number}"),
                thread: tab.thread.clone(),
                stop: stopped,
            },
        };
        self.shell_count = number;
        vec![effect]
    }

    /// Puts the output of a command into the prompt, unless it was not wanted there.
    pub(super) fn on_shell_ended(&mut self, key: TabKey, result: Result<ShellOutput, String>) {
        let Some(tab) = self.tab_mut(key) else {
            return;
        };
        let shell = tab.shell.take();
        let is_wanted = shell.is_some_and(|shell| shell.has_agent_output);
        let note = match result {
            Ok(output) if is_wanted => tab.insert_output(&output),
            Ok(_) => return,
            Err(why) => why,
        };
        self.show_note(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exclamation_mark_at_the_start_begins_a_command() {
        let find = |text: &str| {
            let input = find_shell_command(&PromptDraft::from(text));
            input.map(|input| (input.command, input.has_agent_output))
        };
        assert_eq!(find("!ls -l"), Some(("ls -l".to_owned(), true)));
        assert_eq!(find("!! git log\n"), Some(("git log".to_owned(), false)));
        assert_eq!(find("!"), Some((String::new(), true)));
        // A space before it makes it a prompt.
        assert_eq!(find(" !ls"), None);
        assert_eq!(find("Hello!"), None);
    }
}

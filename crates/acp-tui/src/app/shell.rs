//! Commands that the user runs from the prompt with `!`.

use tokio::sync::oneshot;

use super::tab::Tab;
use super::{App, ChatEffect, TabKey};
use crate::editor::{EditorOutcome, MarkedText};
use crate::shell::{ShellOutput, ShellTask};
use crate::text::columns::pluralize;

/// A command as typed in the prompt.
#[derive(Debug, PartialEq, Eq)]
struct ShellInput {
    command: String,
    /// Whether its output is put into the prompt, for the agent.
    has_agent_output: bool,
    /// Whether a part of the command is behind a label, so that the user may not have seen it.
    is_partly_hidden: bool,
}

/// The command that is running in a tab. It is killed when this is dropped.
pub(super) struct RunningShell {
    has_agent_output: bool,
    /// `None` if the user has stopped the command.
    stop: Option<oneshot::Sender<()>>,
}

/// Returns the command if a prompt is one: it begins with `!`, possibly after outputs of earlier commands. With `!!`, its
/// output stays out of the prompt.
fn find_shell_command(prompt: &MarkedText) -> Option<ShellInput> {
    let start = prompt.outputs_end();
    let command = prompt.text().get(start..)?.strip_prefix('!')?;
    let (command, has_agent_output) = match command.strip_prefix('!') {
        Some(command) => (command, false),
        None => (command, true),
    };
    let mut marks = prompt.marks().iter();
    Some(ShellInput {
        command: command.trim().to_owned(),
        has_agent_output,
        is_partly_hidden: marks
            .any(|mark| mark.range.start >= start && mark.content.hidden_text().is_some()),
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
        match self.editor.insert_output(&label, output.to_prompt_text()) {
            EditorOutcome::Note(why) => why,
            _ => {
                "the output goes with the next prompt; delete it there if it should not".to_owned()
            }
        }
    }

    fn shell_input(&self) -> Option<ShellInput> {
        find_shell_command(self.editor.text_only()?)
    }

    /// Returns whether Enter runs a command.
    pub(super) fn is_shell_prompt(&self) -> bool {
        self.shell_input().is_some()
    }

    /// Kills the command of the tab. Returns `false` if there is none.
    pub(super) fn stop_shell(&mut self) -> bool {
        let shell = self.shell.as_mut();
        shell.is_some_and(|shell| shell.stop.take().is_some())
    }
}

impl App {
    /// Runs the command in the prompt of the active tab, unless there is an obstacle. Then, the prompt stays.
    pub(super) fn run_shell(&mut self) -> Vec<ChatEffect> {
        let number = self.shell_count + 1;
        let Some(tab) = self.active_tab_mut() else {
            return Vec::new();
        };
        let Some(input) = tab.shell_input() else {
            return Vec::new();
        };
        let obstacle = if input.command.is_empty() {
            Some("no command; type one after `!`")
        } else if input.is_partly_hidden {
            Some(
                "not run: a label hides a part of the command; press Tab behind the label to expand it",
            )
        } else if tab.session.is_none() {
            Some("the session is not open yet")
        } else if tab.shell.is_some() {
            Some("a command is still running; Esc stops it")
        } else {
            None
        };
        if let Some(obstacle) = obstacle {
            self.show_note(obstacle);
            return Vec::new();
        }
        tab.editor.clear_after_outputs();
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
    use crate::editor::MarkContent;

    fn find(prompt: &MarkedText) -> Option<(String, bool)> {
        let input = find_shell_command(prompt)?;
        Some((input.command, input.has_agent_output))
    }

    #[test]
    fn only_an_exclamation_mark_at_the_start_begins_a_command() {
        let find = |text: &str| find(&MarkedText::from(text));
        assert_eq!(find("!ls -l"), Some(("ls -l".to_owned(), true)));
        assert_eq!(find("!! git log\n"), Some(("git log".to_owned(), false)));
        assert_eq!(find("!"), Some((String::new(), true)));
        // A space before it makes it a prompt.
        assert_eq!(find(" !ls"), None);
        assert_eq!(find("Hello!"), None);
    }

    #[test]
    fn outputs_before_a_command_are_not_a_part_of_it() {
        let output = MarkContent::CommandOutput("!rm -r .".into());
        let mut prompt = MarkedText::from_mark("[output of ls: 2 lines]", output);
        assert_eq!(find(&prompt), None);
        prompt.push(&MarkedText::from(" !git log"));
        assert_eq!(find(&prompt), Some(("git log".to_owned(), true)));
    }

    #[test]
    fn pasted_text_that_is_not_shown_does_not_begin_a_command_or_run() {
        let pasted = MarkContent::Paste("!rm -r .".into());
        let pasted = MarkedText::from_mark("[pasted 20 lines]", pasted);
        assert_eq!(find(&pasted), None);
        let mut prompt = MarkedText::from("!echo ");
        assert!(!find_shell_command(&prompt).unwrap().is_partly_hidden);
        prompt.push(&pasted);
        assert!(find_shell_command(&prompt).unwrap().is_partly_hidden);
    }
}

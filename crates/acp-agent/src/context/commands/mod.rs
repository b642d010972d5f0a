//! Slash commands for models that follow instructions. See "Slash Commands" in the specification. Most commands expand
//! to a prompt: the client shows what the user typed, and the model also receives the expansion. The agent itself
//! handles `/help` and `/compact`.

pub(crate) mod custom;
mod reserved;

use std::collections::HashSet;

use acp::v1::{AvailableCommand, UnstructuredCommandInput};

use crate::context::commands::reserved::{COMPACT_COMMAND, HELP_COMMAND};
use custom::{CustomCommand, CustomCommands};

/// A slash command that is built into the agent.
struct BuiltInCommand {
    name: &'static str,
    description: &'static str,
    hint: Option<&'static str>,
    /// The prompt for the model. `None` if the agent handles the command itself.
    prompt: Option<&'static str>,
}

const BUILT_IN_COMMANDS: [BuiltInCommand; 6] = [
    BuiltInCommand {
        name: "plan",
        description: "Plan how to reach a goal, without changing anything",
        hint: Some("GOAL"),
        prompt: Some(
            "Make a plan for this goal: $ARGUMENTS\n\n\
             Do not change anything yet, and do not run anything that changes something. Read the relevant \
             code first. Report the plan with the `plan` tool, as steps that can be verified one by one, \
             including tests. Then summarize in a few sentences what you found, what you decided and why, \
             what could go wrong, and what the user needs to decide. If no goal is given, infer it from \
             the conversation.",
        ),
    },
    BuiltInCommand {
        name: "test",
        description: "Run the project's tests and report the results",
        hint: Some("[WHAT]"),
        prompt: Some(
            "Find out how this project is tested, and run its tests: $ARGUMENTS\n\n\
             If no tests are specified, run all of them. Do not change anything. Then report which tests passed \
             and which failed. For each failure, explain the cause as far as the code shows it, and suggest a \
             fix.",
        ),
    },
    BuiltInCommand {
        name: COMPACT_COMMAND,
        description: "Summarize the conversation to free up context",
        hint: Some("[WHAT TO KEEP]"),
        prompt: None,
    },
    BuiltInCommand {
        name: "init",
        description: "Write an AGENTS.md file for this project",
        hint: None,
        prompt: Some(
            "Create `AGENTS.md` in the working directory, or improve it if it exists. It tells a coding agent \
             that is new to the project what it needs to know. $ARGUMENTS\n\n\
             First read the README, the manifests, the tool and CI configuration, the layout of the code, and \
             some of the code itself. Then write down what is not obvious: how to build, how to run all tests \
             and a single test, how to format and lint; how the code is organized and where new code goes; \
             its conventions; its pitfalls. Verify commands where that is cheap. Do not include general \
             advice or guesses. Keep it to one page.",
        ),
    },
    BuiltInCommand {
        name: "review",
        description: "Review changes for bugs, missing tests and readability",
        hint: Some("[WHAT]"),
        prompt: Some(
            "Review these changes as an experienced colleague would: $ARGUMENTS\n\n\
             If no changes are specified, review the uncommitted changes (`git status`, `git diff HEAD`); if there \
             are none, review the last commit. Read the surrounding code, not only the diff. Do not change \
             anything. Report what is wrong or risky, most severe first, each with `path:line`, why it is \
             wrong, and how to fix it. Then list what is not tested. Do not list what is fine. If you find no \
             problems, say so.",
        ),
    },
    BuiltInCommand {
        name: HELP_COMMAND,
        description: "List the available commands",
        hint: None,
        prompt: None,
    },
];

/// The slash commands that are available in a session.
#[derive(Debug, Default)]
pub(crate) struct SlashCommands {
    custom: Vec<CustomCommand>,
    /// The commands most recently announced to the client.
    pub(crate) announced: Option<Vec<AvailableCommand>>,
    /// Problems with the user's command files.
    problems: Vec<String>,
    /// The problems already shown to the user.
    reported_problems: HashSet<String>,
}

/// The text of a prompt, parsed as a possible slash command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptInput {
    Help,
    /// `/compact`, with a description of what to keep in the summary.
    Compact(String),
    /// A command that expands to this prompt for the model.
    Prompt(String),
    /// Text that is not a slash command.
    Text,
}

impl SlashCommands {
    /// Replaces the custom commands with those found in the session's directories.
    pub(crate) fn set_custom_commands(&mut self, found: CustomCommands) {
        (self.custom, self.problems) = (found.commands, found.problems);
    }

    /// Returns the command file problems that have not been shown to the user yet, and marks them as shown.
    pub(crate) fn take_new_problems(&mut self) -> Vec<String> {
        let Self {
            problems: wrong,
            reported_problems: reported,
            ..
        } = self;
        // This also bounds the set by the number of files read.
        reported.retain(|reported| wrong.contains(reported));
        let new = wrong.iter().filter(|&wrong| reported.insert(wrong.clone()));
        new.cloned().collect()
    }

    fn built_in_commands(&self) -> impl Iterator<Item = &'static BuiltInCommand> {
        let replaced = |own: &BuiltInCommand| {
            own.prompt.is_some() && self.custom.iter().any(|custom| custom.name == own.name)
        };
        BUILT_IN_COMMANDS.iter().filter(move |own| !replaced(own))
    }

    pub(crate) fn available(&self) -> Vec<AvailableCommand> {
        let command = |name: &str, description: &str, hint: Option<&str>| {
            let command = AvailableCommand::new(name, description);
            match hint {
                Some(hint) => command.input(UnstructuredCommandInput::new(hint)),
                None => command,
            }
        };
        let own = self
            .built_in_commands()
            .map(|own| command(own.name, own.description, own.hint));
        let custom = self.custom.iter();
        let custom = custom.map(|c| command(&c.name, &c.description, c.hint.as_deref()));
        own.chain(custom).collect()
    }

    /// Formats the list of commands as Markdown.
    pub(crate) fn help(&self) -> String {
        let mut text = String::from("Type what you want done, or one of these commands:\n\n");
        for command in self.announced.clone().unwrap_or_else(|| self.available()) {
            let hint = command.input.map(|input| format!(" {}", input.hint));
            text.push_str(&format!(
                "- `/{}{}`: {}\n",
                command.name,
                hint.unwrap_or_default(),
                command.description
            ));
        }
        text.push_str(
            "\nAdd your own commands as `.acp/commands/NAME.md` files that contain a prompt.\n",
        );
        text
    }

    /// Parses the text of a prompt.
    ///
    /// # Errors
    /// The expanded prompt would be too long. The message is for the user.
    pub(crate) fn parse(&self, typed: &str) -> Result<PromptInput, String> {
        let Some((name, arguments)) = split_command(typed) else {
            return Ok(PromptInput::Text);
        };
        let prompt = |template: &str| {
            let prompt = custom::expand(template, arguments)
                .ok_or_else(|| format!("`/{name}`: the prompt is too long with these arguments"))?;
            Ok(PromptInput::Prompt(format!(
                "I typed `/{name}`, which expands to:\n\n{prompt}"
            )))
        };
        match name {
            HELP_COMMAND => return Ok(PromptInput::Help),
            COMPACT_COMMAND => return Ok(PromptInput::Compact(arguments.to_owned())),
            _ => {}
        }
        if let Some(custom) = self.custom.iter().find(|custom| custom.name == name) {
            return prompt(&custom.prompt);
        }
        let own = BUILT_IN_COMMANDS.iter().find(|own| own.name == name);
        match own.and_then(|own| own.prompt) {
            Some(template) => prompt(template),
            // The text may be a path, or a command of another program.
            None => Ok(PromptInput::Text),
        }
    }
}

/// Splits text into a command name and its arguments.
fn split_command(typed: &str) -> Option<(&str, &str)> {
    let rest = typed.trim().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    custom::is_valid_name(name).then(|| (name, arguments.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_expand_to_prompts_and_plain_text_is_unchanged() {
        let commands = SlashCommands::default();
        let read = |typed| commands.parse(typed).unwrap();
        for text in ["hello", "", "/", "/etc/hosts is odd", "/frob it", "a /test"] {
            assert_eq!(read(text), PromptInput::Text, "{text}");
        }
        assert_eq!(read(" /help"), PromptInput::Help);
        assert_eq!(
            read("/compact the names\n"),
            PromptInput::Compact("the names".to_owned())
        );
        let PromptInput::Prompt(prompt) = read("/plan a $1 house") else {
            panic!("a prompt");
        };
        assert!(
            prompt.contains("`/plan`") && prompt.contains("goal: a $1 house\n"),
            "{prompt}"
        );
    }

    #[test]
    fn problems_are_reported_once() {
        let mut commands = SlashCommands::default();
        let mut untold = |wrong: &[&str]| {
            commands.set_custom_commands(CustomCommands {
                commands: Vec::new(),
                problems: wrong.iter().map(|&wrong| wrong.to_owned()).collect(),
            });
            commands.take_new_problems()
        };
        assert_eq!(untold(&["a"]), ["a"]);
        assert_eq!(untold(&["a", "b"]), ["b"]);
        assert!(untold(&[]).is_empty());
        assert_eq!(untold(&["a"]), ["a"]);
    }
}

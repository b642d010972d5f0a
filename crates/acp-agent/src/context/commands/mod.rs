//! Slash commands for a model that understands words: the specification's page of that name. Most are prompts:
//! what was typed stays the person's words, and the model is told what they mean. `/help` and `/compact` are the
//! agent's own.

pub(crate) mod custom;
mod reserved;

use std::collections::HashSet;

use acp::v1::{AvailableCommand, UnstructuredCommandInput};

use crate::context::commands::reserved::{COMPACT, HELP};
use custom::{CustomCommand, CustomCommands};

/// A command that is always there.
struct BuiltInCommand {
    name: &'static str,
    description: &'static str,
    hint: Option<&'static str>,
    /// What the model is told. Absent if it is not asked.
    prompt: Option<&'static str>,
}

const BUILT_IN: [BuiltInCommand; 6] = [
    BuiltInCommand {
        name: "plan",
        description: "Find out what a goal takes and lay out a plan, without changing anything",
        hint: Some("GOAL"),
        prompt: Some(
            "Make a plan for this goal, and change nothing and run nothing that changes anything yet: $ARGUMENTS\n\n\
             Look at the code that it concerns first. Report the plan with the tool `plan`, in steps that can be \
             checked one by one, tests among them. Then say in a few sentences what you found, what you decided \
             and why, what could go wrong, and what you need the person to decide. If the goal is empty, plan \
             for what the conversation is about.",
        ),
    },
    BuiltInCommand {
        name: "test",
        description: "Run the project's tests and say what came of it",
        hint: Some("[WHAT]"),
        prompt: Some(
            "Find out how this project is tested, and run its tests: $ARGUMENTS\n\n\
             If nothing is named, run all of them. Change nothing. Then say which passed and which failed; for \
             each failure its cause, as far as it can be seen from the code, and what would mend it.",
        ),
    },
    BuiltInCommand {
        name: COMPACT,
        description: "Summarise the conversation so far, to make room for more",
        hint: Some("[WHAT TO KEEP]"),
        prompt: None,
    },
    BuiltInCommand {
        name: "init",
        description: "Write an AGENTS.md: what an agent has to know of this project",
        hint: None,
        prompt: Some(
            "Write the file `AGENTS.md` in the working directory, or make it better if it is there: what a coding \
             agent that is new here has to know. $ARGUMENTS\n\n\
             Look first: at the README, the manifests, the settings of tools and of continuous integration, the \
             layout of the code and some of it. Then write what cannot be seen at a glance: how to build, how to \
             run all tests and a single one, how to format and lint; how the code is divided and where things go; \
             the rules that the code follows; traps. Check the commands where that is cheap. Nothing general, \
             nothing guessed, a page at most.",
        ),
    },
    BuiltInCommand {
        name: "review",
        description: "Review changes: bugs, gaps in the tests, what is hard to read",
        hint: Some("[WHAT]"),
        prompt: Some(
            "Review these changes, as an experienced colleague would: $ARGUMENTS\n\n\
             If nothing is named, review what is not committed (`git status`, `git diff HEAD`), and if there is \
             nothing, the last commit. Read around the changes, not only the diff. Change nothing. Report what is \
             wrong or risky, the worst first, each with `path:line`, why it is wrong, and what to do instead; \
             then what is not tested. Do not list what is fine. If you find nothing, say so.",
        ),
    },
    BuiltInCommand {
        name: HELP,
        description: "Show what can be typed",
        hint: None,
        prompt: None,
    },
];

/// The commands of a session.
#[derive(Debug, Default)]
pub(crate) struct SlashCommands {
    custom: Vec<CustomCommand>,
    /// What the client was told of.
    pub(crate) announced: Option<Vec<AvailableCommand>>,
    /// What is wrong with files of the user's.
    problems: Vec<String>,
    /// What of that was told.
    reported_problems: HashSet<String>,
}

/// What a person typed means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptInput {
    Help,
    /// What is to be kept above all.
    Compact(String),
    /// A command that is this prompt.
    Prompt(String),
    /// No command.
    Text,
}

impl SlashCommands {
    /// Takes what was found in the session's directories.
    pub(crate) fn set_custom_commands(&mut self, found: CustomCommands) {
        (self.custom, self.problems) = (found.commands, found.problems);
    }

    /// What is wrong with files of the user's and was not told before.
    pub(crate) fn take_new_problems(&mut self) -> Vec<String> {
        let Self {
            problems: wrong,
            reported_problems: told,
            ..
        } = self;
        // There are no more of them than files are looked at.
        told.retain(|told| wrong.contains(told));
        let new = wrong.iter().filter(|&wrong| told.insert(wrong.clone()));
        new.cloned().collect()
    }

    fn built_in(&self) -> impl Iterator<Item = &'static BuiltInCommand> {
        let replaced = |own: &BuiltInCommand| {
            own.prompt.is_some() && self.custom.iter().any(|custom| custom.name == own.name)
        };
        BUILT_IN.iter().filter(move |own| !replaced(own))
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
            .built_in()
            .map(|own| command(own.name, own.description, own.hint));
        let custom = self.custom.iter();
        let custom = custom.map(|c| command(&c.name, &c.description, c.hint.as_deref()));
        own.chain(custom).collect()
    }

    /// The commands, as Markdown.
    pub(crate) fn help(&self) -> String {
        let mut text = String::from("Type what you want done, or one of these:\n\n");
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
            "\nCommands of your own are files `.acp/commands/NAME.md` with a prompt in it.\n",
        );
        text
    }

    /// Takes apart what a person typed.
    ///
    /// # Errors
    /// It would become too long a prompt. The text is for the person.
    pub(crate) fn read(&self, typed: &str) -> Result<PromptInput, String> {
        let Some((name, arguments)) = split_command(typed) else {
            return Ok(PromptInput::Text);
        };
        let prompt = |template: &str| {
            let prompt = custom::expand(template, arguments).ok_or_else(|| {
                format!("`/{name}` becomes too long a prompt with what it was given")
            })?;
            Ok(PromptInput::Prompt(format!(
                "I typed `/{name}`, which stands for this:\n\n{prompt}"
            )))
        };
        match name {
            HELP => return Ok(PromptInput::Help),
            COMPACT => return Ok(PromptInput::Compact(arguments.to_owned())),
            _ => {}
        }
        if let Some(custom) = self.custom.iter().find(|custom| custom.name == name) {
            return prompt(&custom.prompt);
        }
        let own = BUILT_IN.iter().find(|own| own.name == name);
        match own.and_then(|own| own.prompt) {
            Some(template) => prompt(template),
            // It may well be a path, or a command of somebody else's.
            None => Ok(PromptInput::Text),
        }
    }
}

/// The name of a command and what follows it.
fn split_command(typed: &str) -> Option<(&str, &str)> {
    let rest = typed.trim().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    custom::is_name(name).then(|| (name, arguments.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_prompts_and_text_stays_text() {
        let commands = SlashCommands::default();
        let read = |typed| commands.read(typed).unwrap();
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
            prompt.contains("`/plan`") && prompt.contains("yet: a $1 house\n"),
            "{prompt}"
        );
    }

    #[test]
    fn what_is_wrong_is_told_once() {
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

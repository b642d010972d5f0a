//! The chat's own slash commands. The agent does not get them.

use acp::v1::AvailableCommand;

use crate::keys::KeyAction;

/// The prefix that distinguishes a command of the chat from one of the agent with the same name.
const PREFIX: &str = "acp:";

/// The names of the commands, and what they do.
const COMMANDS: &[(&str, KeyAction)] = &[
    ("help", KeyAction::Help),
    ("new", KeyAction::NewTab),
    ("clear", KeyAction::Clear),
    ("resume", KeyAction::Sessions),
    ("fork", KeyAction::Fork),
    ("rename", KeyAction::Rename),
    ("agents", KeyAction::Agents),
    ("model", KeyAction::Models),
    ("mode", KeyAction::Modes),
    ("options", KeyAction::Options),
    ("theme", KeyAction::Theme),
    ("open", KeyAction::Open),
    ("undo", KeyAction::Undo),
    ("redo", KeyAction::Redo),
    ("rewind", KeyAction::Rewind),
    ("usage", KeyAction::Usage),
    ("attach", KeyAction::Attach),
    ("export", KeyAction::Export),
    ("login", KeyAction::Login),
    ("logout", KeyAction::Logout),
    ("restart", KeyAction::Restart),
    ("log", KeyAction::AgentOutput),
    ("quit", KeyAction::Quit),
];

/// Names of the same commands in other programs. They work, but are not suggested.
const ALIASES: &[(&str, KeyAction)] = &[
    ("continue", KeyAction::Sessions),
    ("cost", KeyAction::Usage),
    ("editor", KeyAction::Editor),
    ("exit", KeyAction::Quit),
    ("models", KeyAction::Models),
    ("sessions", KeyAction::Sessions),
    ("share", KeyAction::Export),
    ("stats", KeyAction::Usage),
    ("themes", KeyAction::Theme),
];

/// Commands of other programs that the chat does not have, and what to use instead.
const TIPS: &[(&[&str], &str)] = &[
    (&["add-dir"], "start the chat with --add-dir DIR"),
    (
        &["allowed-tools", "approvals", "permissions"],
        "`acp permissions` shows rules and remembered answers",
    ),
    (&["config", "settings"], "settings are in config.toml"),
    (
        &["context", "doctor", "status"],
        "/usage shows tokens and cost, and `acp inspect` what the agent can do",
    ),
    (&["diff"], "!git diff shows all changes"),
    (&["mcp"], "MCP servers are in config.toml"),
    (
        &["memory"],
        "edit AGENTS.md or the file that your agent reads",
    ),
    (
        &["vim"],
        "set `editing = \"vim\"` under [chat] in config.toml",
    ),
];

/// Returns all commands to complete: those of the agent, and then those of the chat. A command of the chat has a prefix
/// if the agent has one of the same name.
pub(super) fn all_commands(agent: &[AvailableCommand]) -> Vec<AvailableCommand> {
    let own = COMMANDS.iter().map(|(name, action)| {
        let is_taken = agent.iter().any(|command| command.name == *name);
        let name = if is_taken {
            format!("{PREFIX}{name}")
        } else {
            (*name).to_owned()
        };
        AvailableCommand::new(name, action.about())
    });
    agent.iter().cloned().chain(own).collect()
}

/// A command of the chat, as the user has typed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChatCommand {
    /// The command without an argument.
    Action(KeyAction),
    /// The command with what it is about, such as a session's new name.
    WithArgument(KeyAction, String),
    /// A command, by its name, with an argument that it does not take.
    NoArguments(String),
}

/// Returns the command that a prompt consists of, or `None` if the prompt is for the agent.
pub(super) fn find_command(prompt: &str, agent: &[AvailableCommand]) -> Option<ChatCommand> {
    let text = prompt.trim().strip_prefix('/')?;
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let own = name.strip_prefix(PREFIX);
    if own.is_none() && agent.iter().any(|command| command.name == name) {
        return None;
    }
    let name = own.unwrap_or(name);
    let mut commands = COMMANDS.iter().chain(ALIASES);
    let (_, action) = commands.find(|(known, _)| *known == name)?;
    let argument = argument.trim();
    Some(if argument.is_empty() {
        ChatCommand::Action(*action)
    } else if takes_argument(*action) {
        ChatCommand::WithArgument(*action, argument.to_owned())
    } else {
        ChatCommand::NoArguments(name.to_owned())
    })
}

/// Returns whether an action can be told what it is about instead of asking for it. See
/// [`App::perform_with_argument`](super::App::perform_with_argument).
fn takes_argument(action: KeyAction) -> bool {
    matches!(
        action,
        KeyAction::Attach
            | KeyAction::Export
            | KeyAction::Models
            | KeyAction::Modes
            | KeyAction::Rename
            | KeyAction::Sessions
            | KeyAction::Theme
    )
}

/// Returns a note if a prompt begins with a command that neither the chat nor the agent has. The agent may know it
/// anyway, but a model would take a misspelled command for a task. An agent that has reported no commands may have some.
pub(super) fn unknown_command_note(prompt: &str, agent: &[AvailableCommand]) -> Option<String> {
    let rest = prompt.strip_prefix('/')?;
    let name = rest.split(char::is_whitespace).next()?;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_:.".contains(c));
    if !is_name || agent.iter().any(|command| command.name == name) {
        return None;
    }
    let tip = TIPS.iter().find(|(names, _)| names.contains(&name));
    match tip {
        None if agent.is_empty() => None,
        None => Some(format!(
            "unknown command /{name}; Enter again sends it to the agent"
        )),
        Some((_, tip)) => Some(format!(
            "no command /{name} here: {tip}; Enter again sends it to the agent"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_agent_comes_first() {
        let agent = [
            AvailableCommand::new("undo", "Undoes in its own way"),
            AvailableCommand::new("test", "Runs tests"),
        ];
        let names = |commands: &[AvailableCommand]| {
            let names = commands.iter().map(|command| command.name.clone());
            names.collect::<Vec<_>>()
        };
        let all = names(&all_commands(&agent));
        assert_eq!(&all[..4], ["undo", "test", "help", "new"]);
        assert!(all.contains(&"acp:undo".to_owned()), "{all:?}");
        assert!(all.contains(&"redo".to_owned()), "{all:?}");
        let undo = || Some(ChatCommand::Action(KeyAction::Undo));
        assert_eq!(find_command("/undo", &agent), None);
        assert_eq!(find_command("/undo that", &agent), None);
        assert_eq!(find_command(" /acp:undo\n", &agent), undo());
        assert_eq!(find_command("/undo", &[]), undo());
        assert_eq!(
            find_command("/acp:redo", &[]),
            Some(ChatCommand::Action(KeyAction::Redo))
        );
        assert_eq!(find_command("undo", &[]), None);
        assert_eq!(find_command("/unknown", &[]), None);
    }

    #[test]
    fn an_argument_is_for_the_chat_too() {
        let find = |prompt| find_command(prompt, &[]);
        assert_eq!(
            find("/rename  my session "),
            Some(ChatCommand::WithArgument(
                KeyAction::Rename,
                "my session".to_owned()
            ))
        );
        assert_eq!(
            find("/acp:export foo.md"),
            Some(ChatCommand::WithArgument(
                KeyAction::Export,
                "foo.md".to_owned()
            ))
        );
        assert_eq!(
            find("/help me"),
            Some(ChatCommand::NoArguments("help".to_owned()))
        );
        assert_eq!(
            find("/rename\n"),
            Some(ChatCommand::Action(KeyAction::Rename))
        );
    }

    #[test]
    fn unknown_commands_are_noticed() {
        let agent = [AvailableCommand::new("test", "Runs tests")];
        let note = |prompt| unknown_command_note(prompt, &agent);
        let unknown = note("/tset the parser").unwrap();
        assert!(unknown.starts_with("unknown command /tset;"), "{unknown}");
        assert!(note("/config").unwrap().contains("config.toml"));
        for prompt in [
            "/test",
            "/test the parser",
            "/usr/bin/env is missing",
            "/",
            "/ what is this?",
            "/* a comment */",
            "tset",
            "see /tset",
        ] {
            assert_eq!(note(prompt), None, "{prompt}");
        }
        // Such an agent can have commands that it does not report, but these are known to be of other programs.
        assert_eq!(unknown_command_note("/tset", &[]), None);
        assert!(unknown_command_note("/config", &[]).is_some());
    }

    #[test]
    fn names_are_unique() {
        let named = COMMANDS.iter().chain(ALIASES).map(|(name, _)| *name);
        let others = TIPS.iter().flat_map(|(names, _)| names.iter().copied());
        let mut seen = std::collections::BTreeSet::new();
        for name in named.chain(others) {
            assert!(seen.insert(name), "{name}");
        }
    }
}

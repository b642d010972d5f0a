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

/// Returns the action of the command that a prompt consists of, or `None` if the prompt is for the agent.
pub(super) fn find_command(prompt: &str, agent: &[AvailableCommand]) -> Option<KeyAction> {
    let name = prompt.trim().strip_prefix('/')?;
    let own = name.strip_prefix(PREFIX);
    if own.is_none() && agent.iter().any(|command| command.name == name) {
        return None;
    }
    let name = own.unwrap_or(name);
    let command = COMMANDS.iter().find(|(known, _)| *known == name);
    command.map(|(_, action)| *action)
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
        assert_eq!(find_command("/undo", &agent), None);
        assert_eq!(find_command(" /acp:undo\n", &agent), Some(KeyAction::Undo));
        assert_eq!(find_command("/undo", &[]), Some(KeyAction::Undo));
        assert_eq!(find_command("/acp:redo", &[]), Some(KeyAction::Redo));
        // Text after the name is not for the chat.
        assert_eq!(find_command("/help me", &[]), None);
        assert_eq!(find_command("undo", &[]), None);
        assert_eq!(find_command("/unknown", &[]), None);
    }

    #[test]
    fn names_are_unique() {
        for (name, _) in COMMANDS {
            let same = COMMANDS.iter().filter(|(other, _)| other == name);
            assert_eq!(same.count(), 1, "{name}");
        }
    }
}

//! Slash commands: the specification's page of that name.

record! {
    /// The commands of a session, all of them.
    pub struct AvailableCommandsUpdate {
        /// The commands.
        required_list available_commands: AvailableCommand,
    }
}

tagged! {
    /// What a person can type as `/name`.
    pub enum AvailableCommand by "type" {
        /// A command. In the draft of August 2026 it has no `type`.
        Command(Command) = "command",
    }
    untagged = Command;
}

record! {
    /// A command that a person can type as `/name`.
    pub struct Command {
        /// Its name, without the slash.
        required name: String,
        /// What it does.
        tolerant description: String,
        /// What may follow the name.
        optional input: AvailableCommandInput,
    }
}

tagged! {
    /// What may follow a command's name.
    pub enum AvailableCommandInput by "type" {
        /// Any text.
        Text(TextCommandInput) = "text",
    }
    untagged = Text;
}

record! {
    /// Free text after a command's name.
    pub struct TextCommandInput {
        /// What to show while nothing is typed.
        required hint: String,
    }
}

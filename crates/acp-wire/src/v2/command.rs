//! Slash commands, which the user can enter in a prompt. See the specification's page "Slash Commands".

record! {
    /// An update with the full list of a session's slash commands.
    pub struct AvailableCommandsUpdate {
        /// The full list of commands, which replaces the previous list.
        required_list available_commands: AvailableCommand,
    }
}

tagged! {
    /// A command that the user can enter as `/name`.
    pub enum AvailableCommand by "type" {
        /// A slash command. In the draft of August 2026, it has no `type`.
        Command(Command) = "command",
    }
    untagged = Command;
}

record! {
    /// The name and description of a command that the user can enter as `/name`.
    pub struct Command {
        /// The command's name, without the slash.
        required name: String,
        /// A description to show to the user.
        tolerant description: String,
        /// The input that the user may type after the name.
        optional input: AvailableCommandInput,
    }
}

tagged! {
    /// The input that the user may type after a command's name.
    pub enum AvailableCommandInput by "type" {
        /// Free-form input.
        Text(TextCommandInput) = "text",
    }
    untagged = Text;
}

record! {
    /// Free-form text typed after a command's name.
    pub struct TextCommandInput {
        /// The hint to show while the input is empty.
        required hint: String,
    }
}

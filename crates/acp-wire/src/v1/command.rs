//! Slash commands: the specification's page "Slash Commands".

record! {
    /// All commands of a session.
    pub struct AvailableCommandsUpdate {
        /// The commands.
        required_list available_commands: AvailableCommand,
    }
}

record! {
    /// A command that the user can enter as `/name`.
    pub struct AvailableCommand {
        /// The name, without the slash.
        required name: String,
        /// A description.
        tolerant description: String,
        /// The input that may follow the name.
        optional input: UnstructuredCommandInput,
    }
}

record! {
    /// Any text after a command's name.
    pub struct UnstructuredCommandInput {
        /// The hint to show while there is no input.
        required hint: String,
    }
}

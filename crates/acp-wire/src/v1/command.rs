//! Slash commands: the specification's page of that name.

record! {
    /// The commands of a session, all of them.
    pub struct AvailableCommandsUpdate {
        /// The commands.
        required_list available_commands: AvailableCommand,
    }
}

record! {
    /// A command that a person can type as `/name`.
    pub struct AvailableCommand {
        /// Its name, without the slash.
        required name: String,
        /// What it does.
        tolerant description: String,
        /// What may follow the name.
        optional input: UnstructuredCommandInput,
    }
}

record! {
    /// Free text after a command's name.
    pub struct UnstructuredCommandInput {
        /// What to show while nothing is typed.
        required hint: String,
    }
}

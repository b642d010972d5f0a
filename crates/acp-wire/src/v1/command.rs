//! Slash commands, which the user can enter in a prompt. See the specification's page "Slash Commands".

record! {
    /// An update that lists all slash commands of a session.
    pub struct AvailableCommandsUpdate {
        /// The complete list of commands, which replaces the previous list.
        required_list available_commands: AvailableCommand,
    }
}

record! {
    /// A command that the user can enter as `/name`.
    pub struct AvailableCommand {
        /// The command's name, without the slash.
        required name: String,
        /// A description to show to the user.
        tolerant description: String,
        /// The input that may follow the name.
        optional input: UnstructuredCommandInput,
    }
}

record! {
    /// Input of any form after a command's name.
    pub struct UnstructuredCommandInput {
        /// The hint to show while there is no input.
        required hint: String,
    }
}

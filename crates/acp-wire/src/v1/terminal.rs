//! Client terminals. All methods require the client's capability `terminal`. See the specification's page "Terminals".

use super::SessionId;

string_id! {
    /// The id of a terminal, unique in its session.
    pub struct TerminalId;
}

record! {
    /// The `terminal/create` request: starts a command.
    pub struct CreateTerminalRequest {
        /// The session for which the agent runs the command.
        required session_id: SessionId,
        /// The program to start.
        required command: String,
        /// The arguments to pass to the program.
        list args: String,
        /// The environment variables to set, in addition to the client's own.
        list env: EnvVariable,
        /// The working directory, as an absolute path.
        optional cwd: String,
        /// The maximum number of bytes of output to store. The oldest output is dropped first.
        optional output_byte_limit: u64,
    }
}

record! {
    /// An environment variable to set for a program.
    pub secret EnvVariable {
        /// The variable's name, such as `PATH`.
        required name: String,
        /// The variable's value, which may be secret.
        required value: String,
    }
}

/// Formats the variable without its value, which may be secret.
impl std::fmt::Debug for EnvVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvVariable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

record! {
    /// The response to `terminal/create`, with the terminal's id.
    pub struct CreateTerminalResponse {
        /// The new terminal's id, chosen by the client.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The `terminal/output` request: returns the output so far.
    pub struct TerminalOutputRequest {
        /// The session that the terminal belongs to.
        required session_id: SessionId,
        /// The terminal to read from.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The response to `terminal/output`, with the output and the exit status.
    pub struct TerminalOutputResponse {
        /// The stored output, without any older output that was dropped.
        required output: String,
        /// Whether older output was dropped.
        tolerant truncated: bool,
        /// The exit status of the command. Absent while the command is running.
        optional exit_status: TerminalExitStatus,
    }
}

record! {
    /// How a command ended: its exit code, or the signal that terminated it.
    pub struct TerminalExitStatus {
        /// The exit code. Absent if a signal terminated the command.
        optional exit_code: u32,
        /// The signal that terminated the command, such as `SIGKILL`.
        optional signal: String,
    }
}

record! {
    /// The `terminal/release` request: kills the command if it is running, and frees the terminal.
    pub struct ReleaseTerminalRequest {
        /// The session that the terminal belongs to.
        required session_id: SessionId,
        /// The terminal to free.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The response to `terminal/release`, sent once the terminal is freed.
    pub struct ReleaseTerminalResponse {}
}

record! {
    /// The `terminal/kill` request: kills the command, but keeps the terminal.
    pub struct KillTerminalRequest {
        /// The session that the terminal belongs to.
        required session_id: SessionId,
        /// The terminal whose command to kill.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The response to `terminal/kill`, sent once the command is killed.
    pub struct KillTerminalResponse {}
}

record! {
    /// The `terminal/wait_for_exit` request: waits until the command exits.
    pub struct WaitForTerminalExitRequest {
        /// The session that the terminal belongs to.
        required session_id: SessionId,
        /// The terminal whose command to wait for.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The response to `terminal/wait_for_exit`, with the exit status of the command.
    pub struct WaitForTerminalExitResponse {
        /// The exit code. Absent if a signal terminated the command.
        optional exit_code: u32,
        /// The signal that terminated the command.
        optional signal: String,
    }
}

//! Terminals: the specification's page of that name. All need the client's `terminal`.

use super::SessionId;

string_id! {
    /// Names a terminal.
    pub struct TerminalId;
}

record! {
    /// `terminal/create`: starts a command.
    pub struct CreateTerminalRequest {
        /// The session.
        required session_id: SessionId,
        /// The program.
        required command: String,
        /// Its arguments.
        list args: String,
        /// Environment to add to the client's own.
        list env: EnvVariable,
        /// Where to run it, an absolute path.
        optional cwd: String,
        /// How many bytes of output to keep at most; the beginning goes first.
        optional output_byte_limit: u64,
    }
}

record! {
    /// An environment variable.
    pub secret EnvVariable {
        /// Its name.
        required name: String,
        /// Its value.
        required value: String,
    }
}

/// Without the value, which may be secret.
impl std::fmt::Debug for EnvVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvVariable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

record! {
    /// The answer to `terminal/create`.
    pub struct CreateTerminalResponse {
        /// The new terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// `terminal/output`.
    pub struct TerminalOutputRequest {
        /// The session.
        required session_id: SessionId,
        /// The terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The answer to `terminal/output`.
    pub struct TerminalOutputResponse {
        /// What is kept of the output.
        required output: String,
        /// Whether more was printed than is kept.
        tolerant truncated: bool,
        /// How the command ended; absent while it runs.
        optional exit_status: TerminalExitStatus,
    }
}

record! {
    /// How a command ended.
    pub struct TerminalExitStatus {
        /// Its exit code; absent when a signal ended it.
        optional exit_code: u32,
        /// The signal that ended it, such as `SIGKILL`.
        optional signal: String,
    }
}

record! {
    /// `terminal/release`: ends the command if it runs, and frees the terminal.
    pub struct ReleaseTerminalRequest {
        /// The session.
        required session_id: SessionId,
        /// The terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The answer to `terminal/release`.
    pub struct ReleaseTerminalResponse {}
}

record! {
    /// `terminal/kill`: ends the command; the terminal stays.
    pub struct KillTerminalRequest {
        /// The session.
        required session_id: SessionId,
        /// The terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The answer to `terminal/kill`.
    pub struct KillTerminalResponse {}
}

record! {
    /// `terminal/wait_for_exit`.
    pub struct WaitForTerminalExitRequest {
        /// The session.
        required session_id: SessionId,
        /// The terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// The answer to `terminal/wait_for_exit`: how the command ended.
    pub struct WaitForTerminalExitResponse {
        /// Its exit code; absent when a signal ended it.
        optional exit_code: u32,
        /// The signal that ended it.
        optional signal: String,
    }
}

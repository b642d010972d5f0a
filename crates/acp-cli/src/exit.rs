//! Exit codes and final messages. Each command's long help lists its exit codes.

use std::process::ExitCode;

use acp::v1::StopReason;
use acp_config::ConfigError;
use acp_host::terminal_text;

use crate::screen;

/// How a command ends: with an exit code and a message for stderr.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandExit {
    pub(crate) code: u8,
    pub(crate) message: Option<String>,
}

impl From<ConfigError> for CommandExit {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Usage(message) => Self::usage(message),
            error => Self::failed(error.to_string()),
        }
    }
}

impl CommandExit {
    pub(crate) const SUCCESS: Self = Self {
        code: 0,
        message: None,
    };
    pub(crate) const CANCELLED: Self = Self {
        code: 130,
        message: None,
    };

    /// The exit of a command that has printed findings or differences.
    pub(crate) const FINDINGS: Self = Self {
        code: 1,
        message: None,
    };

    /// The exit of a command whose stdout was closed by its reader. The code is the same as for a process killed by
    /// `SIGPIPE`.
    pub(crate) const STDOUT_CLOSED: Self = Self {
        code: 141,
        message: None,
    };

    /// The exit code for any failure that has no code of its own.
    pub(crate) const FAILED: u8 = 1;

    /// The exit code for an agent that disconnected or could not be started.
    pub(crate) const AGENT_FAILED: u8 = 3;

    /// The exit code for invalid usage or configuration.
    pub(crate) const USAGE: u8 = 2;

    fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: Some(message.into()),
        }
    }

    /// Creates an exit for any other failure.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Self::FAILED, message)
    }

    /// Creates an exit for invalid usage or configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Self::USAGE, message)
    }

    /// Creates an exit for an agent that disconnected or could not be started.
    pub(crate) fn agent_failed(message: impl Into<String>) -> Self {
        Self::new(Self::AGENT_FAILED, message)
    }

    /// Creates an exit for a turn that reached `--timeout`.
    pub(crate) fn timeout(seconds: u64) -> Self {
        Self::new(6, format!("timed out after {seconds} s (--timeout)"))
    }

    /// Creates the exit for a turn that cost more than `--max-cost`.
    pub(crate) fn cost_limit(limit: f64) -> Self {
        Self::new(
            5,
            format!("the run has cost more than {limit} (--max-cost)"),
        )
    }

    /// Creates the exit for an answer that does not match `--output-schema`.
    pub(crate) fn invalid_answer(why: &str) -> Self {
        Self::new(
            7,
            format!("the answer does not match --output-schema: {why}"),
        )
    }

    /// Creates the exit for a turn in which actions were denied.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(8, message)
    }

    /// Creates the exit for a turn's stop reason.
    pub(crate) fn from_stop_reason(reason: &StopReason) -> Self {
        match reason {
            StopReason::EndTurn => Self::SUCCESS,
            StopReason::Refusal => Self::new(4, "the agent refused to continue"),
            StopReason::MaxTokens => {
                Self::new(5, "the agent stopped: the model reached its token limit")
            }
            StopReason::MaxTurnRequests => Self::new(
                5,
                "the agent stopped: maximum number of model requests per turn reached",
            ),
            StopReason::Cancelled => Self {
                message: Some("cancelled".to_owned()),
                ..Self::CANCELLED
            },
            other => Self::failed(format!("the agent stopped: {other}")),
        }
    }

    /// Turns this exit into a failure if output could not be written, for example because the disk is full. Even
    /// [`STDOUT_CLOSED`](Self::STDOUT_CLOSED) becomes a failure, since in that case stdout was closed by the error, not
    /// by its reader.
    fn check_write_error(self, why: Option<&str>) -> Self {
        let Some(why) = why else {
            return self;
        };
        if let Some(message) = &self.message {
            eprintln!("acp: {}", terminal_text::clean_text(message));
        }
        let code = match self.code {
            0 | 141 => 1,
            code => code,
        };
        Self::new(code, format!("cannot write to stdout: {why}"))
    }

    /// Prints the message and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        self.check_write_error(screen::write_error()).print()
    }

    fn print(self) -> ExitCode {
        if let Some(message) = self.message {
            // Parts of the message may be the agent's text.
            let message = terminal_text::clean_text(&message);
            eprintln!(
                "acp: {}",
                terminal_text::truncate_middle(&message, terminal_text::MAX_MESSAGE_CHARS)
            );
        }
        ExitCode::from(self.code)
    }
}

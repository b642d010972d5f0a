//! Provides the services that an [Agent Client Protocol](https://agentclientprotocol.com) client offers to agents, and
//! manages the agent's process.
//!
//! | item              | purpose                                           | specification page |
//! |-------------------|---------------------------------------------------|--------------------|
//! | [`Files`]         | reads and writes text under a session's roots     | File System        |
//! | [`Buffers`]       | an editor's open buffers, with unsaved changes    | File System        |
//! | [`Roots`]         | the directories that all file access is confined to | –                |
//! | [`HostTerminals`] | commands, their output and their exit             | Terminals          |
//! | [`Permissions`]   | what an agent may do, by policy, rules and answers | Tool Calls        |
//! | [`Host`]          | all of these, for a client of the library         | –                  |
//! | [`Environment`]   | the variables that agents and commands get        | –                  |
//! | [`elicitation`]   | the fields of forms, and the answers to them      | Elicitation        |
//! | [`AgentProcess`]  | an agent as a child process                       | –                  |
//! | [`Attachment`]    | a file attached to a prompt                       | Content            |
//! | [`Sandbox`]       | limits where agents and commands may write        | –                  |
//! | [`StateFile`]     | what is stored for the user between runs          | –                  |
//! | [`terminal_text`] | cleans an agent's text for the terminal           | –                  |
//! | [`question`]      | everything a permission request is about          | Tool Calls         |
//! | [`literal`]       | shows text that the user decides about, omitting nothing | –           |
//!
//! [`Host`] combines the other items. Those take requests of the protocol, return its results or errors, and do not
//! depend on a connection. Everything needs a tokio runtime with I/O and time enabled.
//!
//! Three things always hold. File access is confined by the operating system, not by a comparison of paths. Data from a
//! peer or a child process is stored in bounded memory. No process that this crate starts keeps running longer than it
//! should, and neither do the processes that it starts in turn, even if this program is killed. To ensure that on Unix,
//! a small helper process runs from the first start of a command until this program exits.

mod agent_process;
mod attachment;
mod buffered_files;
mod buffers;
pub mod elicitation;
mod environment;
mod files;
mod host;
mod in_terminal;
pub mod literal;
mod output;
mod permissions;
mod process;
pub mod process_secrets;
mod program;
pub mod question;
mod read_lines;
mod replace;
mod roots;
mod sandbox;
pub mod session_options;
mod state_file;
mod sys;
pub mod terminal_text;
mod terminals;
mod text_form;
mod trusted_files;
mod undo;

pub use agent_process::{
    AgentCommand, AgentProcess, ParseLineError, SpawnError, split_command_line,
};
pub use attachment::{Attachment, AttachmentError, AttachmentKind};
pub use buffers::{
    BufferChange, BufferFreshness, BufferWrite, BufferWriteError, Buffers, MemoryBuffers,
};
pub use environment::{Environment, InvalidVariableName};
pub use files::Files;
pub use host::{Host, HostSession, show_terminal_event};
pub use permissions::{
    Action, ActionDecision, AlwaysEffect, DecisionSource, Denier, ParsePolicyError,
    PermissionDecision, PermissionNote, PermissionRule, PermissionRules, Permissions, Policy,
    PolicyDecision, Project, ProjectFile, Prompter, RememberedAnswer, RememberedAnswers,
    RememberedAnswersError, RememberedSubject, RuleEffect, RulesError,
};
pub use process::ProcessExit;
pub use roots::{PathError, RootedPath, Roots, open_file};
pub use sandbox::{Sandbox, SandboxError, SandboxRules};
pub use state_file::{StateFile, StateFileError};
pub use terminals::{HostTerminals, SessionTerminals, TerminalEvent, TerminalEventKind};
pub use text_form::TextForm;
pub use trusted_files::{
    INSTRUCTION_PATHS, TRUSTED_PATHS, is_in_bare_repository, is_ordinary, is_trusted_by_programs,
};

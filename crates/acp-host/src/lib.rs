//! What a client of the [Agent Client Protocol](https://agentclientprotocol.com) lends an agent, and
//! how it starts and ends one.
//!
//! | type              | what it is                                        | specification page |
//! |-------------------|---------------------------------------------------|--------------------|
//! | [`Files`]         | reading and writing text under a session's roots  | File System        |
//! | [`Buffers`]       | what an editor lays over them: unsaved changes    | File System        |
//! | [`Roots`]         | the directories that all access is confined to    | –                  |
//! | [`HostTerminals`]     | commands, their output and their end              | Terminals          |
//! | [`Permissions`]   | what an agent may do, by policy, rules and answers | Tool Calls        |
//! | [`Host`]          | all of these, as a client of the library lends them | –                |
//! | [`Environment`]   | which variables agents and commands get           | –                  |
//! | [`elicitation`]   | the fields of forms, and what is answered to them | Elicitation        |
//! | [`AgentProcess`]  | an agent as a child process                       | –                  |
//! | [`Attachment`]    | a file that goes with a prompt                    | Content            |
//! | [`Sandbox`]       | where agents and commands may write               | –                  |
//! | [`StateFile`]      | what is kept for the user from run to run         | –                  |
//! | [`terminal_text`](mod@terminal_text) | text of an agent's made fit to be shown        | –                  |
//! | [`question`]      | what a permission request is about, all of it     | Tool Calls         |
//! | [`literal`]       | text that a person decides about, with nothing left out | –            |
//!
//! Everything but [`Host`], which joins them, takes the wire's requests and gives the wire's answers or
//! errors, and knows nothing of connections. All of it runs on tokio and needs a runtime with I/O and time enabled.
//!
//! Three things hold throughout. The operating system confines file access, not a comparison of
//! paths. Whatever a peer or a child process sends is kept in bounded memory. No process outlives
//! what it was started for, nor do those that it started, also if this program is killed: for that a
//! small process runs beside this one on Unix, from the first start of a command until this program ends.

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
mod state_file;
mod sys;
pub mod terminal_text;
mod terminals;
mod text_form;
mod trusted_files;
mod undo;

pub use agent_process::{AgentCommand, AgentProcess, ParseLineError, SpawnError, words_of_line};
pub use attachment::{Attachment, AttachmentError, AttachmentKind};
pub use buffers::{
    BufferChange, BufferFreshness, BufferRefusal, BufferWrite, Buffers, MemoryBuffers,
};
pub use environment::{Environment, InvalidVariableName};
pub use files::Files;
pub use host::{Host, HostSession};
pub use permissions::{
    Action, AlwaysEffect, DecisionSource, ParsePolicyError, PermissionDecision, PermissionNote,
    PermissionRule, PermissionRules, Permissions, Policy, PolicyDecision, Project, ProjectFile,
    Prompter, RememberedAnswer, RememberedAnswers, RememberedAnswersError, RememberedSubject,
    RuleEffect, RulesError,
};
pub use process::ProcessExit;
pub use roots::{PathError, RootedPath, Roots, open_file};
pub use sandbox::{Sandbox, SandboxError, SandboxRules};
pub use state_file::{StateFile, StateFileError};
pub use terminals::{HostTerminals, SessionTerminals, TerminalEvent, TerminalEventKind};
pub use text_form::TextForm;
pub use trusted_files::{
    INSTRUCTIONS, OBEYED, is_in_bare_repository, is_ordinary, is_trusted_by_programs,
};

//! What a client of the [Agent Client Protocol](https://agentclientprotocol.com) lends an agent, and
//! how it starts and ends one.
//!
//! | type              | what it is                                        | specification page |
//! |-------------------|---------------------------------------------------|--------------------|
//! | [`Files`]         | reading and writing text under a session's roots  | File System        |
//! | [`Buffers`]       | what an editor lays over them: unsaved changes    | File System        |
//! | [`Roots`]         | the directories that all access is confined to    | –                  |
//! | [`Terminals`]     | commands, their output and their end              | Terminals          |
//! | [`Permissions`]   | what an agent may do, by policy, rules and answers | Tool Calls        |
//! | [`Host`]          | all of these, as a client of the library lends them | –                |
//! | [`Environment`]   | which variables agents and commands get           | –                  |
//! | [`elicitation`]   | the fields of forms, and what is answered to them | Elicitation        |
//! | [`AgentProcess`]  | an agent as a child process                       | –                  |
//! | [`Attachment`]    | a file that goes with a prompt                    | Content            |
//! | [`Sandbox`]       | where agents and commands may write               | –                  |
//! | [`KeptFile`]      | what is kept for the user from run to run         | –                  |
//! | [`clean`](mod@clean) | text of an agent's made fit to be shown        | –                  |
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
pub mod clean;
pub mod elicitation;
mod environment;
mod files;
mod form;
mod host;
mod in_terminal;
mod kept;
mod laid;
mod lines;
pub mod literal;
mod obeyed;
mod output;
mod overlay;
pub mod own_process;
mod permissions;
mod process;
mod program;
pub mod question;
mod replace;
mod roots;
mod sandbox;
mod sys;
mod terminals;
mod undo;

pub use agent_process::{AgentCommand, AgentProcess, ParseLineError, SpawnError, words_of_line};
pub use attachment::{Attachment, AttachmentError, AttachmentKind};
pub use environment::{Environment, NoVariable};
pub use files::Files;
pub use form::TextForm;
pub use host::{Host, HostSession};
pub use kept::{KeptError, KeptFile};
pub use obeyed::{INSTRUCTIONS, OBEYED, is_in_bare_repository, is_obeyed, is_ordinary};
pub use overlay::{Basis, BufferChange, BufferRefusal, BufferWrite, Buffers, Overlay};
pub use permissions::{
    Action, Always, Answer, By, Decision, Effect, Note, ParsePolicyError, Permissions, Policy,
    Project, ProjectFile, Prompter, Remembered, RememberedError, Rule, Rules, RulesError, Subject,
    Verdict,
};
pub use process::Exit;
pub use roots::{Place, Refusal, Roots, open_file};
pub use sandbox::{Sandbox, SandboxError, SandboxRules};
pub use terminals::{SessionTerminals, TerminalEvent, TerminalEventKind, Terminals};

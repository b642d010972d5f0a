//! Defines an agent's session capabilities in both versions. Each field stands for a method or parameter that not every
//! agent supports.

/// The session capabilities of version 1.
pub(crate) mod v1 {
    use crate::v1::SessionSystemPromptCapabilities;

    record! {
        /// The optional `session/*` methods and parameters that an agent supports.
        pub struct SessionCapabilities {
            /// Support for `session/list`.
            optional list: SessionListCapabilities,
            /// Support for `session/delete`.
            optional delete: SessionDeleteCapabilities,
            /// Support for `additionalDirectories` in session setup.
            optional additional_directories: SessionAdditionalDirectoriesCapabilities,
            /// Support for `session/resume`.
            optional resume: SessionResumeCapabilities,
            /// Support for `session/close`.
            optional close: SessionCloseCapabilities,
            /// Support for `session/fork`. Unstable.
            optional fork: SessionForkCapabilities,
            /// Support for `session/set_title`. Unstable.
            optional title: SessionTitleCapabilities,
            /// Support for `session/archive` and `session/unarchive`. Unstable.
            optional archive: SessionArchiveCapabilities,
            /// Support for `session/status`. Unstable.
            optional status: SessionStatusCapabilities,
            /// Support for `systemPrompt` in session setup. Unstable.
            optional system_prompt: SessionSystemPromptCapabilities,
        }
    }

    record! {
        /// An empty object that marks support for `session/archive`, `session/unarchive` and the filter of
        /// `session/list`. An agent with this capability also reports, for each listed session, whether it is archived.
        pub struct SessionArchiveCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/status`.
        pub struct SessionStatusCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/list`.
        pub struct SessionListCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/delete`.
        pub struct SessionDeleteCapabilities {}
    }

    record! {
        /// An empty object that marks support for `additionalDirectories`.
        pub struct SessionAdditionalDirectoriesCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/resume`.
        pub struct SessionResumeCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/set_title`.
        pub struct SessionTitleCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/close`.
        pub struct SessionCloseCapabilities {}
    }

    record! {
        /// An empty object that marks support for `session/fork`.
        pub struct SessionForkCapabilities {}
    }
}

/// The session capabilities of version 2.
pub(crate) mod v2 {
    pub use super::v1::{
        SessionAdditionalDirectoriesCapabilities, SessionArchiveCapabilities,
        SessionDeleteCapabilities, SessionForkCapabilities, SessionStatusCapabilities,
        SessionTitleCapabilities,
    };
    pub use crate::v1::{
        SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
        SessionSystemPromptOverrideCapabilities,
    };
    #[allow(clippy::wildcard_imports)]
    use crate::v2::*;

    record! {
        /// The optional methods and parameters that an agent supports. Every agent with sessions supports new, list,
        /// resume, close, prompt, cancel and update.
        pub struct SessionCapabilities {
            /// The content that the agent accepts in prompts, besides text and resource links.
            optional prompt: PromptCapabilities,
            /// The MCP transports that the agent supports.
            optional mcp: McpCapabilities,
            /// Support for `session/delete`.
            optional delete: SessionDeleteCapabilities,
            /// Support for `additionalDirectories` in session setup.
            optional additional_directories: SessionAdditionalDirectoriesCapabilities,
            /// Support for `session/fork`. Unstable.
            optional fork: SessionForkCapabilities,
            /// Support for `session/set_title`. Unstable.
            optional title: SessionTitleCapabilities,
            /// Support for `session/archive` and `session/unarchive`. Unstable.
            optional archive: SessionArchiveCapabilities,
            /// Support for `session/status`. Unstable.
            optional status: SessionStatusCapabilities,
            /// Support for `systemPrompt` in session setup. Unstable.
            optional system_prompt: SessionSystemPromptCapabilities,
        }
    }
}

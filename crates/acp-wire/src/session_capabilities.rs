//! What an agent's sessions can do, in both versions: a field a method or a parameter that not every agent has.

/// Version 1.
pub(crate) mod v1 {
    use crate::v1::SessionSystemPromptCapabilities;

    record! {
        /// Which further `session/*` methods an agent has.
        pub struct SessionCapabilities {
            /// `session/list`.
            optional list: SessionListCapabilities,
            /// `session/delete`.
            optional delete: SessionDeleteCapabilities,
            /// `additionalDirectories` in session setup.
            optional additional_directories: SessionAdditionalDirectoriesCapabilities,
            /// `session/resume`.
            optional resume: SessionResumeCapabilities,
            /// `session/close`.
            optional close: SessionCloseCapabilities,
            /// `session/fork`. Unstable.
            optional fork: SessionForkCapabilities,
            /// `session/set_title`. Unstable.
            optional title: SessionTitleCapabilities,
            /// `session/archive` and `session/unarchive`. Unstable.
            optional archive: SessionArchiveCapabilities,
            /// `session/status`. Unstable.
            optional status: SessionStatusCapabilities,
            /// `systemPrompt` in session setup. Unstable.
            optional system_prompt: SessionSystemPromptCapabilities,
        }
    }

    record! {
        /// Present when the agent has `session/archive`, `session/unarchive`, the filter of `session/list`, and says of each
        /// listed session whether it is archived.
        pub struct SessionArchiveCapabilities {}
    }

    record! {
        /// Present when the agent has `session/status`.
        pub struct SessionStatusCapabilities {}
    }

    record! {
        /// Present when the agent has `session/list`.
        pub struct SessionListCapabilities {}
    }

    record! {
        /// Present when the agent has `session/delete`.
        pub struct SessionDeleteCapabilities {}
    }

    record! {
        /// Present when the agent takes `additionalDirectories`.
        pub struct SessionAdditionalDirectoriesCapabilities {}
    }

    record! {
        /// Present when the agent has `session/resume`.
        pub struct SessionResumeCapabilities {}
    }

    record! {
        /// Present when the agent has `session/set_title`.
        pub struct SessionTitleCapabilities {}
    }

    record! {
        /// Present when the agent has `session/close`.
        pub struct SessionCloseCapabilities {}
    }

    record! {
        /// Present when the agent has `session/fork`.
        pub struct SessionForkCapabilities {}
    }
}

/// Version 2.
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
        /// What an agent's sessions have beyond new, list, resume, close, prompt, cancel and update.
        pub struct SessionCapabilities {
            /// Which content it takes in prompts, beside text and resource links.
            optional prompt: PromptCapabilities,
            /// Which MCP servers it connects to.
            optional mcp: McpCapabilities,
            /// `session/delete`.
            optional delete: SessionDeleteCapabilities,
            /// `additionalDirectories` in session setup.
            optional additional_directories: SessionAdditionalDirectoriesCapabilities,
            /// `session/fork`. Unstable.
            optional fork: SessionForkCapabilities,
            /// `session/set_title`. Unstable.
            optional title: SessionTitleCapabilities,
            /// `session/archive` and `session/unarchive`. Unstable.
            optional archive: SessionArchiveCapabilities,
            /// `session/status`. Unstable.
            optional status: SessionStatusCapabilities,
            /// `systemPrompt` in session setup. Unstable.
            optional system_prompt: SessionSystemPromptCapabilities,
        }
    }
}

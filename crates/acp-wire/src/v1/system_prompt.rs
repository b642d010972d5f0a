//! A client's own instructions for the model. Unstable; the agent must support `sessionCapabilities.systemPrompt`, or
//! `session.systemPrompt` in version 2.

use super::ContentBlock;

record! {
    /// A client's own instructions for the model in one session.
    pub struct SystemPrompt {
        /// How to combine them with the agent's instructions.
        required mode: SystemPromptMode,
        /// The instructions: blocks of text, at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required content: Vec<ContentBlock>,
    }
}

open_enum! {
    /// How to combine a client's instructions with the agent's. An agent rejects an unknown mode.
    pub enum SystemPromptMode {
        /// They are appended to the agent's instructions.
        Append = "append",
        /// They replace the agent's instructions. The agent must support `systemPrompt.mode.override`.
        Override = "override",
    }
}

record! {
    /// Support for a client's own instructions.
    pub struct SessionSystemPromptCapabilities {
        /// Support for modes besides [`SystemPromptMode::Append`].
        optional mode: SessionSystemPromptModeCapabilities,
    }
}

record! {
    /// Support for modes besides [`SystemPromptMode::Append`].
    pub struct SessionSystemPromptModeCapabilities {
        /// Support for [`SystemPromptMode::Override`].
        #[serde(rename = "override")]
        optional overriding: SessionSystemPromptOverrideCapabilities,
    }
}

record! {
    /// An empty object that marks support for [`SystemPromptMode::Override`].
    pub struct SessionSystemPromptOverrideCapabilities {}
}

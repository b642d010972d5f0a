//! The client's instructions for the model. Unstable: requires the agent's capability
//! `sessionCapabilities.systemPrompt`, or `session.systemPrompt` in version 2.

use super::ContentBlock;

record! {
    /// A client's instructions for the model in one session.
    pub struct SystemPrompt {
        /// How the agent combines the instructions with its own.
        required mode: SystemPromptMode,
        /// The instructions, at least one block of text.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required content: Vec<ContentBlock>,
    }
}

open_enum! {
    /// How an agent combines a client's instructions with its own. Agents reject unknown modes.
    pub enum SystemPromptMode {
        /// The client's instructions are appended to the agent's.
        Append = "append",
        /// The client's instructions replace the agent's. Requires the agent's capability `systemPrompt.mode.override`.
        Override = "override",
    }
}

record! {
    /// An agent's support for instructions from the client.
    pub struct SessionSystemPromptCapabilities {
        /// Support for modes other than [`SystemPromptMode::Append`].
        optional mode: SessionSystemPromptModeCapabilities,
    }
}

record! {
    /// The modes that an agent supports in addition to [`SystemPromptMode::Append`].
    pub struct SessionSystemPromptModeCapabilities {
        /// Support for [`SystemPromptMode::Override`].
        #[serde(rename = "override")]
        optional overriding: SessionSystemPromptOverrideCapabilities,
    }
}

record! {
    /// An empty object that declares support for [`SystemPromptMode::Override`].
    pub struct SessionSystemPromptOverrideCapabilities {}
}

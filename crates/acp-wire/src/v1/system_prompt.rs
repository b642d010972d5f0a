//! A client's own instructions for the model. Unstable: for agents that have `sessionCapabilities.systemPrompt`, in
//! version 2 `session.systemPrompt`.

use super::ContentBlock;

record! {
    /// A client's own instructions for the model, for a session.
    pub struct SystemPrompt {
        /// How they go with those of the agent.
        required mode: SystemPromptMode,
        /// What they say: blocks of text, at least one.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::non_empty_list))]
        required content: Vec<ContentBlock>,
    }
}

open_enum! {
    /// How a client's instructions go with those of the agent. An agent refuses what it does not know.
    pub enum SystemPromptMode {
        /// Both are said.
        Append = "append",
        /// They replace the agent's own. For agents that have `systemPrompt.mode.override`.
        Override = "override",
    }
}

record! {
    /// Present when the agent takes a client's own instructions.
    pub struct SessionSystemPromptCapabilities {
        /// Ways beside [`SystemPromptMode::Append`].
        optional mode: SessionSystemPromptModeCapabilities,
    }
}

record! {
    /// Ways beside [`SystemPromptMode::Append`].
    pub struct SessionSystemPromptModeCapabilities {
        /// [`SystemPromptMode::Override`].
        #[serde(rename = "override")]
        optional overriding: SessionSystemPromptOverrideCapabilities,
    }
}

record! {
    /// Present when an agent takes [`SystemPromptMode::Override`].
    pub struct SessionSystemPromptOverrideCapabilities {}
}

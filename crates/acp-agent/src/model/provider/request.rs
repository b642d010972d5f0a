//! What a model is asked, before it is written in a wire format.

use super::convert::ProviderTurn;
use crate::model::interface::ToolSpec;
use crate::model::thought::ThoughtLevel;

/// What a model is asked, before it is written in a format.
pub(super) struct ModelRequest<'a> {
    /// The model's name.
    pub(super) model: &'a str,
    pub(super) instructions: &'a str,
    pub(super) turns: Vec<ProviderTurn<'a>>,
    pub(super) tools: &'a [ToolSpec],
    pub(super) thought: Option<ThoughtLevel>,
    pub(super) max_output: Option<u32>,
    /// It was in the middle of calling tools, and what it thought before is lost.
    pub(super) lacks_thoughts: bool,
    /// What the server has said it does not take.
    pub(super) unsupported: UnsupportedParameters,
}

/// What not every server and account takes of a request. It is left out once that was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsupportedParameters {
    /// Summaries of thoughts.
    pub(super) summary: bool,
    /// Thoughts that are encrypted.
    pub(super) encrypted: bool,
}

impl UnsupportedParameters {
    /// Takes up what the server says about a request. Gives whether there is something to leave out now.
    pub(super) fn learn(&mut self, parameter: &str) -> bool {
        let refused = match parameter {
            "reasoning.summary" => &mut self.summary,
            "include" => &mut self.encrypted,
            _ => return false,
        };
        !std::mem::replace(refused, true)
    }
}

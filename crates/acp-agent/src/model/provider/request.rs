//! A request to a model, before it is written in a wire format.

use super::convert::ProviderTurn;
use crate::model::interface::ToolSpec;
use crate::model::thought::ThoughtLevel;

/// A request to a model, before it is written in a wire format.
pub(super) struct ModelRequest<'a> {
    /// The model's name.
    pub(super) model: &'a str,
    pub(super) instructions: &'a str,
    pub(super) turns: Vec<ProviderTurn<'a>>,
    pub(super) tools: &'a [ToolSpec],
    pub(super) thought: Option<ThoughtLevel>,
    pub(super) max_output: Option<u32>,
    /// Whether the current turn has tool calls whose thoughts are not available.
    pub(super) lacks_thoughts: bool,
    /// The parameters that the server has rejected.
    pub(super) unsupported: UnsupportedParameters,
}

/// The parameters that not every server and account supports. Each is omitted once a request with it was rejected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsupportedParameters {
    /// Summaries of thoughts are not supported.
    pub(super) summary: bool,
    /// Encrypted thoughts are not supported.
    pub(super) encrypted: bool,
}

impl UnsupportedParameters {
    /// Records a parameter that the server rejected. Returns `true` if the next request can omit it.
    pub(super) fn learn(&mut self, parameter: &str) -> bool {
        let refused = match parameter {
            "reasoning.summary" => &mut self.summary,
            "include" => &mut self.encrypted,
            _ => return false,
        };
        !std::mem::replace(refused, true)
    }
}

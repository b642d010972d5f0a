//! Defines a request to a model, independent of the wire format.

use super::convert::ProviderTurn;
use crate::model::interface::ToolSpec;
use crate::model::thought::ThoughtLevel;

/// A model request for one round, before it is written in a wire format.
pub(super) struct ModelRequest<'a> {
    /// The provider's name for the model.
    pub(super) model: &'a str,
    pub(super) instructions: &'a str,
    pub(super) turns: Vec<ProviderTurn<'a>>,
    pub(super) tools: &'a [ToolSpec],
    pub(super) thought: Option<ThoughtLevel>,
    pub(super) max_output: Option<u32>,
    /// Whether the current turn contains tool calls whose thoughts are missing.
    pub(super) lacks_thoughts: bool,
    /// The parameters that the server has already rejected.
    pub(super) unsupported: UnsupportedParameters,
}

/// The parameters that a server or an account does not support. Once a request has been rejected because of a
/// parameter, later requests omit it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnsupportedParameters {
    /// Whether the server rejects summaries of thoughts.
    pub(super) summary: bool,
    /// Whether the server rejects encrypted thoughts.
    pub(super) encrypted: bool,
}

impl UnsupportedParameters {
    /// Records that the server rejected a parameter. Returns `true` if a retry without the parameter may succeed.
    pub(super) fn record_rejected(&mut self, parameter: &str) -> bool {
        let refused = match parameter {
            "reasoning.summary" => &mut self.summary,
            "include" => &mut self.encrypted,
            _ => return false,
        };
        !std::mem::replace(refused, true)
    }
}

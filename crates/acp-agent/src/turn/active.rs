//! A turn that runs: what all that happens in it has at hand.

use std::path::Path;

use acp::v1::{Cost, UsageUpdate};

use crate::model::interface::{Model, ToolSpec};
use crate::model::step::TokenUsage;
use crate::models::RoundModel;
use crate::permission::rules::RuleFiles;
use crate::session::SessionState;
use crate::workspace::Workspace;

/// A turn that runs.
#[derive(Clone, Copy)]
pub(crate) struct ActiveTurn<'a> {
    /// The model, until the next round.
    pub(crate) round_model: &'a RoundModel,
    pub(crate) tools: &'a [ToolSpec],
    /// How often the model is asked at most.
    pub(crate) max_requests: usize,
    /// The user's own instructions, if there may be any.
    pub(crate) user_instructions: Option<&'a Path>,
    pub(crate) rules: &'a RuleFiles,
    pub(crate) workspace: &'a Workspace,
    pub(crate) state: &'a SessionState,
}

impl<'a> ActiveTurn<'a> {
    pub(crate) fn model(&self) -> &'a dyn Model {
        &*self.round_model.model
    }

    /// Adds what this cost to what the session has cost, where that is known.
    pub(crate) async fn add_cost(&self, usage: TokenUsage) -> acp::Result<()> {
        if let Some(price) = self.model().price() {
            let cost = price.of(&usage);
            self.state.add_cost(cost).await?;
        }
        Ok(())
    }

    /// Reports that so much of the model's window is filled, in tokens, and what the session has cost so far.
    pub(crate) async fn show_usage(&self, filled: u64, window: u64) -> acp::Result<()> {
        let spent = self.state.cost();
        let mut usage = UsageUpdate::new(filled, window);
        usage.cost = (spent > 0).then(|| Cost::new(spent as f64 / 1e9, "USD"));
        self.workspace.turn.usage(usage).await
    }

    /// Tells the person something that is nobody's answer. It is no message, since the model has not said it; a
    /// thought is what every client shows and none takes for an answer.
    pub(super) async fn send_notice(&self, text: &str) -> acp::Result<()> {
        // A thought of the model's may follow, which clients show as the same one.
        self.workspace.turn.thought(format!("{text}\n\n")).await
    }
}

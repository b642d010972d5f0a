//! The running turn and its context.

use std::path::Path;

use acp::v1::{Cost, UsageUpdate};

use crate::model::interface::{Model, ToolSpec};
use crate::model::step::TokenUsage;
use crate::models::RoundModel;
use crate::permission::rules::RuleFiles;
use crate::session::SessionState;
use crate::workspace::Workspace;

/// A running turn, with everything it needs.
#[derive(Clone, Copy)]
pub(crate) struct ActiveTurn<'a> {
    /// The model that the current round uses.
    pub(crate) round_model: &'a RoundModel,
    pub(crate) tools: &'a [ToolSpec],
    /// The maximum number of rounds in a turn.
    pub(crate) max_requests: usize,
    /// The path of the user's instruction file, if there is one.
    pub(crate) user_instructions: Option<&'a Path>,
    pub(crate) rules: &'a RuleFiles,
    pub(crate) workspace: &'a Workspace,
    pub(crate) state: &'a SessionState,
}

impl<'a> ActiveTurn<'a> {
    pub(crate) fn model(&self) -> &'a dyn Model {
        &*self.round_model.model
    }

    /// Adds the cost of this usage to the session's total, if the model's price is known.
    pub(crate) async fn add_cost(&self, usage: TokenUsage) -> acp::Result<()> {
        if let Some(price) = self.model().price() {
            let cost = price.cost(&usage);
            self.state.add_cost(cost).await?;
        }
        Ok(())
    }

    /// Reports the context usage in tokens, and the cost of the session so far.
    pub(crate) async fn show_usage(&self, filled: u64, window: u64) -> acp::Result<()> {
        let spent = self.state.cost();
        let mut usage = UsageUpdate::new(filled, window);
        usage.cost = (spent > 0).then(|| Cost::new(spent as f64 / 1e9, "USD"));
        self.workspace.turn.report_usage(usage).await
    }

    /// Shows a notice to the user. It is sent as a thought, because every client shows thoughts and it must not look
    /// like a response from the model.
    pub(super) async fn send_notice(&self, text: &str) -> acp::Result<()> {
        // Clients append later thoughts of the model to this one.
        self.workspace
            .turn
            .send_thought(format!("{text}\n\n"))
            .await
    }
}

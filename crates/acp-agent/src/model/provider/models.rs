//! Creates models hosted by providers.

use std::sync::Arc;

use super::catalogue::{self, Price};
use super::config::ProviderModel;
use super::http::HttpClients;
use super::served_model::ServedModel;
use super::stream::ModelRound;
use crate::model::error::ModelError;
use crate::model::interface::{Model, RoundRequest};
use crate::model::step::Steps;
use crate::model::thought::ThoughtLevel;

/// Creates models that share their connections. A session can use a different model in each round.
#[derive(Clone, Default)]
pub struct ModelFactory {
    pub(super) http: Arc<HttpClients>,
}

impl std::fmt::Debug for ModelFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models").finish_non_exhaustive()
    }
}

impl ModelFactory {
    /// Creates a factory without any connections.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a model. Sends nothing until its first round. If a required key is missing, that round fails with
    /// [`Unauthorized`](crate::ModelErrorKind::Unauthorized).
    ///
    /// # Errors
    /// The name, the URL or the key is not valid.
    pub fn build_model(&self, model: ProviderModel) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(ServedModel::new(Arc::clone(&self.http), model)?))
    }
}

impl Model for ServedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn accepts_images(&self) -> bool {
        self.takes_images
    }

    fn thought_levels(&self) -> &[ThoughtLevel] {
        let known = catalogue::thought_levels(self.model.provider, &self.model.name);
        match self.model.thought {
            // A user who sets a thought level for an unknown model knows that it can think.
            Some(_) if known.is_empty() => &catalogue::COMMON_THOUGHT_LEVELS,
            _ => known,
        }
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn respond<'a>(&'a self, request: RoundRequest<'a>) -> Steps<'a> {
        ModelRound::steps(self, request)
    }
}

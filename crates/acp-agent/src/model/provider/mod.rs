//! Language models of providers, and of all who speak as one of them.
//!
//! How the providers want to be talked to is in a file for each wire format. The rest is what a person notices: what
//! each failure means, which are worth another try, what a round cost, and that a session can go on with another model.

mod anthropic_messages;
mod backoff;
mod calls;
mod catalogue;
mod config;
mod convert;
mod error_report;
mod exchange;
mod failure;
mod gemini;
mod http;
mod listed;
mod openai_chat;
mod openai_responses;
mod prompt;
mod stream;
mod wire_format;

use std::sync::Arc;

use reqwest::Url;

use super::{Model, ModelError, Request, Steps, ThoughtLevel};
pub use catalogue::Price;
pub(crate) use catalogue::offered;
pub use config::{ParseProviderError, Provider, ProviderModel, Retries, Secret};
use http::Http;
use stream::Round;
pub use wire_format::WireFormat;

/// Makes models. Those that one makes share their connections; a session can have another of them for each round.
#[derive(Clone, Default)]
pub struct Models {
    http: Arc<Http>,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models").finish_non_exhaustive()
    }
}

impl Models {
    /// Makes models.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A model. Nothing is asked and nothing is set up before its first round; without a key where one is wanted,
    /// that round fails with [`Unauthorized`](super::ModelErrorKind::Unauthorized).
    ///
    /// # Errors
    /// Its name, its address or its key is none.
    pub fn model(&self, model: ProviderModel) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Served::new(Arc::clone(&self.http), model)?))
    }
}

/// A model of a provider.
struct Served {
    http: Arc<Http>,
    model: ProviderModel,
    address: Url,
    /// The address for people.
    shown: String,
    /// What it calls itself, where it wants to see something again.
    by: String,
    /// What it calls itself to people.
    name: String,
    window: Option<u64>,
    images: bool,
    price: Option<Price>,
}

impl Served {
    fn new(http: Arc<Http>, model: ProviderModel) -> Result<Self, ModelError> {
        let address = model.address()?;
        let mut shown = address.clone();
        shown.set_query(None);
        let shown = shown.as_str().trim_end_matches('/').to_owned();
        let known = catalogue::find(model.provider, &model.name);
        // Elsewhere the same name may be another model's, and the price another.
        let own = model.base_url.is_none();
        let images = known.map_or(own, |known| known.images);
        Ok(Self {
            by: format!("{model} {shown}"),
            name: model.to_string(),
            window: model.context_window.or(known.map(|known| known.window)),
            images: model.images.unwrap_or(images),
            price: known.filter(|_| own).and_then(|known| known.price),
            http,
            model,
            address,
            shown,
        })
    }
}

impl Model for Served {
    fn name(&self) -> &str {
        &self.name
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn takes_images(&self) -> bool {
        self.images
    }

    fn thought_levels(&self) -> &[ThoughtLevel] {
        let known = catalogue::thought_levels(self.model.provider, &self.model.name);
        match self.model.thought {
            // Whoever says how much an unknown one is to think knows that it can.
            Some(_) if known.is_empty() => &catalogue::USUAL,
            _ => known,
        }
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn respond<'a>(&'a self, request: Request<'a>) -> Steps<'a> {
        Round::steps(self, request)
    }
}

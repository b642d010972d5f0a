//! Defines a provider's model, and builds the HTTP requests to it.

use std::sync::Arc;

use reqwest::Url;

use super::catalogue::{self, Price};
use super::config::ProviderModel;
use super::convert;
use super::exchange::HttpRequest;
use super::failure::{FailedModel, ModelFailure, RetryAdvice};
use super::http::{HttpClients, is_loopback};
use super::prompt::TargetModel;
use super::request::ModelRequest;
use crate::model::error::ModelError;
use crate::model::interface::RoundRequest;

/// A provider's model that the agent can call.
pub(super) struct ServedModel {
    pub(super) http: Arc<HttpClients>,
    pub(super) model: ProviderModel,
    pub(super) address: Url,
    /// The URL of the API for display, without its query.
    pub(super) display_url: String,
    /// The name of the model, as in [`OpaqueParts::by`](crate::OpaqueParts::by).
    pub(super) by: String,
    /// The name of the model for display.
    pub(super) name: String,
    pub(super) window: Option<u64>,
    pub(super) takes_images: bool,
    pub(super) price: Option<Price>,
}

impl ServedModel {
    pub(super) fn new(http: Arc<HttpClients>, model: ProviderModel) -> Result<Self, ModelError> {
        let address = model.parsed_url()?;
        let mut shown = address.clone();
        shown.set_query(None);
        let shown = shown.as_str().trim_end_matches('/').to_owned();
        let known = catalogue::find_entry(model.provider, &model.name);
        // On another server, the same name may be another model with another price.
        let own = model.base_url.is_none();
        let images = known.map_or(own, |known| known.takes_images);
        Ok(Self {
            by: format!("{model} {shown}"),
            name: model.to_string(),
            window: model.context_window.or(known.map(|known| known.window)),
            takes_images: model.images.unwrap_or(images),
            price: known.filter(|_| own).and_then(|known| known.price),
            http,
            model,
            address,
            display_url: shown,
        })
    }
}

impl ServedModel {
    /// Builds the HTTP request of a round.
    pub(super) async fn http_request(
        &self,
        request: RoundRequest<'_>,
    ) -> Result<HttpRequest, ModelFailure> {
        let model = &self.model;
        let impossible = |why: String| {
            let what = format!("cannot connect: {why}");
            self.failed_model()
                .failure(Default::default(), RetryAdvice::Never, &what, "")
        };
        let client = self.http.client(&self.address).await;
        let format = model.wire_format();
        let target = self.target();
        let model_request = ModelRequest {
            model: &model.name,
            instructions: request.instructions,
            turns: convert::to_turns(target, request.conversation),
            tools: request.tools,
            thought: request.thought.or(model.thought),
            max_output: model.max_output,
            lacks_thoughts: convert::lacks_thoughts(target, request.conversation),
            unsupported: self.http.unsupported_parameters(&self.by),
        };
        let headers = format.headers(model.key.as_ref());
        Ok(HttpRequest {
            client: client.map_err(impossible)?.clone(),
            url: format.url(&self.address, &model.name),
            headers: headers.map_err(|e| impossible(e.to_string()))?,
            body: format.request_body(&model_request).to_string().into_bytes(),
            idle_timeout: model.idle_timeout,
            max_bytes: model.max_response_bytes,
        })
    }

    fn target(&self) -> TargetModel<'_> {
        TargetModel {
            format: self.model.wire_format(),
            by: &self.by,
            takes_images: self.takes_images,
        }
    }

    pub(super) fn failed_model(&self) -> FailedModel<'_> {
        FailedModel {
            model: &self.model,
            address: self.display_url.as_str(),
            is_local: is_loopback(&self.address),
        }
    }
}

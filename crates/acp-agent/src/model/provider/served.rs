//! A model of a provider: what is known of it, and what it is asked with.

use std::sync::Arc;

use reqwest::Url;

use super::catalogue::{self, Price};
use super::config::ProviderModel;
use super::convert;
use super::exchange::HttpRequest;
use super::failure::{About, Again, Failure};
use super::http::{Http, is_here};
use super::prompt::TargetModel;
use super::request::ModelRequest;
use crate::model::error::ModelError;
use crate::model::interface::Request;

/// A model of a provider.
pub(super) struct Served {
    pub(super) http: Arc<Http>,
    pub(super) model: ProviderModel,
    pub(super) address: Url,
    /// The address for people.
    pub(super) shown: String,
    /// What it calls itself, where it wants to see something again.
    pub(super) by: String,
    /// What it calls itself to people.
    pub(super) name: String,
    pub(super) window: Option<u64>,
    pub(super) images: bool,
    pub(super) price: Option<Price>,
}

impl Served {
    pub(super) fn new(http: Arc<Http>, model: ProviderModel) -> Result<Self, ModelError> {
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

impl Served {
    /// What the provider is asked.
    pub(super) async fn question(&self, request: Request<'_>) -> Result<HttpRequest, Failure> {
        let model = &self.model;
        let impossible = |why: String| {
            let what = format!("no connection can be made: {why}");
            self.about()
                .failure(Default::default(), Again::No, &what, "")
        };
        let client = self.http.client(&self.address).await;
        let format = model.wire_format();
        let target = self.target();
        let asked = ModelRequest {
            model: &model.name,
            instructions: request.instructions,
            turns: convert::turns(target, request.conversation),
            tools: request.tools,
            thought: request.thought.or(model.thought),
            max_output: model.max_output,
            lacks_thoughts: convert::lacks_thoughts(target, request.conversation),
            refused: self.http.refused(&self.by),
        };
        let headers = format.headers(model.key.as_ref());
        Ok(HttpRequest {
            client: client.map_err(impossible)?.clone(),
            url: format.url(&self.address, &model.name),
            headers: headers.map_err(|e| impossible(e.to_string()))?,
            body: format.body(&asked).to_string().into_bytes(),
            silence: model.silence,
            longest: model.longest_answer,
        })
    }

    fn target(&self) -> TargetModel<'_> {
        TargetModel {
            format: self.model.wire_format(),
            by: &self.by,
            images: self.images,
        }
    }

    pub(super) fn about(&self) -> About<'_> {
        About {
            model: &self.model,
            address: self.shown.as_str(),
            here: is_here(&self.address),
        }
    }
}

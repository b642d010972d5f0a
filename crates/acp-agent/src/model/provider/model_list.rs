//! Lists a server's models with a `GET` request for `models` under its base URL. The APIs of OpenAI, Anthropic and
//! Gemini all serve the list there.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::config::ProviderModel;
use super::models::ModelFactory;
use crate::causes::error_chain;

/// The time limit for requesting a list of models, including the time to connect.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum size of the response, in bytes. The largest known list, OpenRouter's, is almost 1 MiB long.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of models to offer from one server. Finding a model in a longer list would be difficult.
const MAX_MODELS: usize = 500;

/// The maximum length of a model's name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// A server's list of models, under one of two keys. llama.cpp uses both keys.
#[derive(Deserialize)]
struct ModelList {
    data: Option<Vec<Value>>,
    models: Option<Vec<Value>>,
}

/// A model in a server's list.
#[derive(Deserialize)]
struct ModelListEntry {
    id: Option<String>,
    /// Gemini's name for the model. Other servers use this key for a display name.
    name: Option<String>,
    /// The context window in tokens, in vLLM's responses.
    max_model_len: Option<u64>,
    /// The context window in tokens, in OpenRouter's responses.
    context_length: Option<u64>,
    /// The maximum number of input tokens, in Gemini's responses.
    #[serde(rename = "inputTokenLimit")]
    input: Option<u64>,
    /// The methods that the model supports, in Gemini's responses.
    #[serde(rename = "supportedGenerationMethods")]
    methods: Option<Vec<String>>,
}

impl ModelFactory {
    /// Lists the models of the server that hosts `at`. They inherit the settings of `at` that concern the server, but
    /// not those of the model itself.
    ///
    /// # Errors
    /// The list is not available. The error is the reason.
    pub(crate) async fn list_models(
        &self,
        at: &ProviderModel,
    ) -> Result<Vec<ProviderModel>, String> {
        let body = tokio::time::timeout(LIST_TIMEOUT, self.fetch_list(at)).await;
        let body = body.map_err(|_| format!("timed out after {} s", LIST_TIMEOUT.as_secs()))??;
        let list: ModelList = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
        let entries = list.data.or(list.models).unwrap_or_default();
        let models = entries.into_iter().filter_map(|entry| {
            let entry: ModelListEntry = serde_json::from_value(entry).ok()?;
            let answers = |methods: &Vec<String>| methods.iter().any(|m| m == "generateContent");
            let name = entry.id.or(entry.name)?;
            let name = name.strip_prefix("models/").unwrap_or(&name);
            if name.len() > MAX_NAME_BYTES || !entry.methods.as_ref().is_none_or(answers) {
                return None;
            }
            let model = ProviderModel {
                name: name.to_owned(),
                context_window: entry.max_model_len.or(entry.context_length).or(entry.input),
                thought: None,
                max_output: None,
                images: None,
                ..at.clone()
            };
            model.check().is_ok().then_some(model)
        });
        Ok(models.take(MAX_MODELS).collect())
    }

    async fn fetch_list(&self, at: &ProviderModel) -> Result<Vec<u8>, String> {
        let mut url = at.parsed_url().map_err(|e| e.to_string())?;
        let client = self.http.client(&url).await?;
        url.set_path(&format!("{}models", url.path()));
        let headers = at.wire_format().headers(at.key.as_ref());
        let request = client.get(url).headers(headers.map_err(|e| e.to_string())?);
        let mut response = request
            .send()
            .await
            .map_err(|e| error_chain(&e.without_url()))?;
        if !response.status().is_success() {
            return Err(format!("HTTP status {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|e| error_chain(&e.without_url()))?
        {
            if body.len() + piece.len() > MAX_RESPONSE_BYTES {
                return Err(format!("response larger than {MAX_RESPONSE_BYTES} bytes"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

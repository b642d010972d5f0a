//! Lists the models of a server: a `GET` of `models` under its URL, which is where OpenAI's, Anthropic's and Gemini's
//! APIs have the list.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::config::ProviderModel;
use super::models::ModelFactory;
use crate::causes::chain;

/// The limit on the time to get the list, including connecting.
const PATIENCE: Duration = Duration::from_secs(5);

/// The limit on the response, in bytes. The longest known, OpenRouter's, is near 1 MiB.
const LONGEST: usize = 4 * 1024 * 1024;

/// The limit on the models of one server that are offered. In a longer list nobody finds one.
const MOST: usize = 500;

/// The limit on the name of a model, in bytes.
const NAME: usize = 200;

/// A list of models, in either of the two members that servers use. llama.cpp sends both.
#[derive(Deserialize)]
struct ModelList {
    data: Option<Vec<Value>>,
    models: Option<Vec<Value>>,
}

/// A model in the list.
#[derive(Deserialize)]
struct ModelListEntry {
    id: Option<String>,
    /// Gemini's only name for the model. Other servers have a display name here.
    name: Option<String>,
    /// The context window in tokens, as vLLM names it.
    max_model_len: Option<u64>,
    /// The context window in tokens, as OpenRouter names it.
    context_length: Option<u64>,
    /// The limit on input tokens, as Gemini names it.
    #[serde(rename = "inputTokenLimit")]
    input: Option<u64>,
    /// The methods that a model of Gemini's supports.
    #[serde(rename = "supportedGenerationMethods")]
    methods: Option<Vec<String>>,
}

impl ModelFactory {
    /// Lists the models of the server that serves `at`. They get the settings of `at` that concern the server, but
    /// not those of the model itself.
    ///
    /// # Errors
    /// The reason why the list is not available.
    pub(crate) async fn list_models(
        &self,
        at: &ProviderModel,
    ) -> Result<Vec<ProviderModel>, String> {
        let body = tokio::time::timeout(PATIENCE, self.fetch_list(at)).await;
        let body = body.map_err(|_| format!("timed out after {} s", PATIENCE.as_secs()))??;
        let list: ModelList = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
        let entries = list.data.or(list.models).unwrap_or_default();
        let models = entries.into_iter().filter_map(|entry| {
            let entry: ModelListEntry = serde_json::from_value(entry).ok()?;
            let answers = |methods: &Vec<String>| methods.iter().any(|m| m == "generateContent");
            let name = entry.id.or(entry.name)?;
            let name = name.strip_prefix("models/").unwrap_or(&name);
            if name.len() > NAME || !entry.methods.as_ref().is_none_or(answers) {
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
        Ok(models.take(MOST).collect())
    }

    async fn fetch_list(&self, at: &ProviderModel) -> Result<Vec<u8>, String> {
        let mut url = at.address().map_err(|e| e.to_string())?;
        let client = self.http.client(&url).await?;
        url.set_path(&format!("{}models", url.path()));
        let headers = at.wire_format().headers(at.key.as_ref());
        let request = client.get(url).headers(headers.map_err(|e| e.to_string())?);
        let mut response = request.send().await.map_err(|e| chain(&e.without_url()))?;
        if !response.status().is_success() {
            return Err(format!("HTTP status {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|e| chain(&e.without_url()))?
        {
            if body.len() + piece.len() > LONGEST {
                return Err(format!("response larger than {LONGEST} bytes"));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

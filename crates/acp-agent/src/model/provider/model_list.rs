//! Which models a server says it has: `models` at its address, where OpenAI's interface has the list, and
//! Anthropic's and Gemini's as well.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::config::ProviderModel;
use super::models::ModelFactory;
use crate::causes::chain;

/// How long a server may take to say it, connecting included.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer, in bytes. OpenRouter's, the longest that is known, is near one MiB.
const LONGEST: usize = 4 * 1024 * 1024;

/// How many models of a server are offered. Nobody finds one among more.
const MOST: usize = 500;

/// The longest name of a model, in bytes.
const NAME: usize = 200;

/// A list, wherever it is in the answer; llama.cpp's has it twice.
#[derive(Deserialize)]
struct ModelList {
    data: Option<Vec<Value>>,
    models: Option<Vec<Value>>,
}

/// What is said of a model.
#[derive(Deserialize)]
struct ModelListEntry {
    id: Option<String>,
    /// Gemini's has no other; elsewhere it is for people.
    name: Option<String>,
    /// How many tokens it has room for, as vLLM says it.
    max_model_len: Option<u64>,
    /// The same, as OpenRouter.
    context_length: Option<u64>,
    /// The same, as Gemini.
    #[serde(rename = "inputTokenLimit")]
    input: Option<u64>,
    /// What Gemini's can be asked for.
    #[serde(rename = "supportedGenerationMethods")]
    methods: Option<Vec<String>>,
}

impl ModelFactory {
    /// The models that a server has, this one of them. What holds for all who are asked there is taken from it; what
    /// is this model's own is not.
    ///
    /// # Errors
    /// Why that is not known.
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

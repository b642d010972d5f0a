//! Starts opencode with a scripted model.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::prepared_model::PreparedModel;

/// Returns the command line of the agent, with a home of its own, this model and these permissions
/// for itself and for its subagents.
pub(crate) fn opencode_command(
    program: &Path,
    home: &Path,
    model: &PreparedModel,
    permission: &Value,
    subagents_permission: &Value,
) -> String {
    let config = json!({
        "provider": {"prepared": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Prepared",
            "options": {"baseURL": model.url(), "apiKey": "none"},
            "models": {"m": {"name": "M"}},
        }},
        "model": "prepared/m",
        "small_model": "prepared/m",
        "agent": {
            // It would ask the model for a title, at any time.
            "title": {"disable": true},
            "general": {"permission": subagents_permission},
        },
        "permission": permission,
        "autoupdate": false,
        "share": "disabled",
    });
    let file = home.join("opencode.json");
    fs::write(&file, config.to_string()).unwrap();
    let settings = [
        "MODELS_FETCH",
        "AUTOUPDATE",
        "LSP_DOWNLOAD",
        "DEFAULT_PLUGINS",
    ];
    let settings = settings.map(|setting| format!("OPENCODE_DISABLE_{setting}=1"));
    format!(
        "env HOME={home} XDG_CONFIG_HOME={home}/c XDG_DATA_HOME={home}/d XDG_STATE_HOME={home}/s XDG_CACHE_HOME={home}/k \
         OPENCODE_CONFIG={} {} {} acp",
        file.display(),
        settings.join(" "),
        program.display(),
        home = home.display(),
    )
}

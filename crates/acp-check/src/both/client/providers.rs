//! Checks how a client configures model providers. Unstable.

use serde_json::json;

use super::steps::{capability_mut, require_never_called, serve_one_turn};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require};

checks! { V1 V2 Client "providers";
    101 Must "`providers/*` requests are sent only if the agent supports them." => uses_providers_only_if_supported;
    102 Must "A required provider is not disabled." => keeps_required_provider;
}

const DISABLE_METHOD: &str = "providers/disable";

async fn uses_providers_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    serve_one_turn(harness).await?;
    let methods = ["providers/list", "providers/set", DISABLE_METHOD];
    require_never_called(harness, &methods, "providers")
}

async fn keeps_required_provider(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    *capability_mut(harness, "providers") = json!({});
    let current = json!({"apiType": "_acp-check/morse", "baseUrl": "https://example.org"});
    let required = json!({
        "providerId": "main", "supported": ["_acp-check/morse"], "required": true, "current": current,
    });
    let listed = json!({"providers": [required]});
    harness.results.insert("providers/list", listed);
    harness.results.insert("providers/set", json!({}));
    serve_one_turn(harness).await?;
    let disabled = harness.messages.iter().any(|message| {
        message.method() == DISABLE_METHOD && message.params()["providerId"] == "main"
    });
    require(!disabled, || {
        "the client called `providers/disable` for a required provider".to_owned()
    })
}

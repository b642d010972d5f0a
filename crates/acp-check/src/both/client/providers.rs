//! Model providers that a client can configure. Unstable.

use serde_json::json;

use super::steps::{never_called, offer, used};
use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require};

checks! { V1 V2 Client "providers";
    101 Must "`providers/*` is sent only if the agent supports it." => uses_providers_only_if_supported;
    102 Must "A required provider is not disabled." => keeps_required_provider;
}

const DISABLE: &str = "providers/disable";

async fn uses_providers_only_if_supported(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    used(harness).await?;
    let methods = ["providers/list", "providers/set", DISABLE];
    never_called(harness, &methods, "providers")
}

async fn keeps_required_provider(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    *offer(harness, "providers") = json!({});
    let current = json!({"apiType": "_acp-check/morse", "baseUrl": "https://example.org"});
    let required = json!({
        "providerId": "main", "supported": ["_acp-check/morse"], "required": true, "current": current,
    });
    let listed = json!({"providers": [required]});
    harness.answers.insert("providers/list", listed);
    harness.answers.insert("providers/set", json!({}));
    used(harness).await?;
    let disabled = harness
        .messages
        .iter()
        .any(|message| message.method() == DISABLE && message.params()["providerId"] == "main");
    require(!disabled, || {
        "the client called `providers/disable` for a required provider".to_owned()
    })
}

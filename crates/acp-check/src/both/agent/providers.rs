//! Checks for an agent's configurable model providers. Unstable.
//!
//! The checks revert their changes as far as the list shows the previous settings. An agent keeps changes as long as
//! its process runs.

use serde_json::{Value, json};

use super::steps::require_shape;
use crate::agent_harness::AgentHarness;
use crate::check::checks;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

checks! { V1 V2 Agent "providers"
    fresh "changes the settings of the whole agent" requires "providers";
    1 Must "The response to `providers/list` contains providers." => lists_providers;
    2 Must "Provider ids are unique." => has_unique_ids;
    3 Must "After `providers/set`, the provider is listed with its new settings." => sets_provider;
    4 Must "`providers/set` replaces all previous settings of the provider." => replaces_settings;
    5 Must "`providers/list` does not return a provider's headers, which may be secret." => hides_headers;
    6 Must "A disabled provider is listed without a configuration." => disables_provider;
    7 Must "Disabling a required provider fails with an invalid-params error." => rejects_disabling_required_provider;
    8 Should "Setting an unknown provider fails with an invalid-params error." => rejects_setting_unknown_provider;
    9 Should "Setting an unsupported protocol for a provider fails with an invalid-params error." => rejects_unknown_protocol;
    10 Should "Disabling an unknown provider succeeds." => disables_unknown_provider;
}

const SET_METHOD: &str = "providers/set";
const DISABLE_METHOD: &str = "providers/disable";

/// A name that no provider or protocol has.
const UNKNOWN_PROVIDER: &str = "_acp-check/none";

/// A base URL that nothing listens on. No check makes a request to a model.
const UNREACHABLE_URL: &str = "http://127.0.0.1:9/acp-check";

/// A secret in the headers, which the agent must not return.
const SECRET_HEADER_VALUE: &str = "acp-check-secret";

async fn list_providers(harness: &mut AgentHarness) -> Result<Vec<Value>, CheckStop> {
    let mut response = harness.request_result("providers/list", json!({})).await?;
    require_shape(harness, "ListProvidersResponse", &response)?;
    match response["providers"].take() {
        Value::Array(providers) => Ok(providers),
        _ => fail("`providers` is not a list"),
    }
}

/// Returns a provider that supports at least one protocol.
async fn find_settable_provider(harness: &mut AgentHarness) -> Result<Value, CheckStop> {
    let mut providers = list_providers(harness).await?.into_iter();
    match providers.find(|provider| provider["supported"][0].is_string()) {
        Some(provider) => Ok(provider),
        None => skip("no listed provider supports a protocol"),
    }
}

/// Sets a provider's base URL, with a secret header.
async fn set_provider(
    harness: &mut AgentHarness,
    provider: &Value,
    url: &str,
) -> Result<(), CheckStop> {
    let params = json!({
        "providerId": provider["providerId"],
        "apiType": provider["supported"][0],
        "baseUrl": url,
        "headers": {"Authorization": format!("Bearer {SECRET_HEADER_VALUE}")},
    });
    harness.request_result(SET_METHOD, params).await.map(drop)
}

/// Returns a provider's current entry from the response to `providers/list`.
async fn current_provider(
    harness: &mut AgentHarness,
    provider: &Value,
) -> Result<Value, CheckStop> {
    let id = &provider["providerId"];
    let mut listed = list_providers(harness).await?.into_iter();
    match listed.find(|listed| listed["providerId"] == *id) {
        Some(listed) => Ok(listed),
        None => fail(format!("provider {id} is no longer listed")),
    }
}

/// Restores a provider to the settings in its list entry. Ignores error responses.
async fn restore_provider(harness: &mut AgentHarness, provider: &Value) -> Result<(), CheckStop> {
    let mut params = provider["current"].clone();
    if params.is_object() {
        params["providerId"] = provider["providerId"].clone();
        harness.request(SET_METHOD, params).await?;
    } else if provider["required"] != true {
        let params = json!({"providerId": provider["providerId"]});
        harness.request(DISABLE_METHOD, params).await?;
    }
    Ok(())
}

async fn lists_providers(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    list_providers(harness).await.map(drop)
}

async fn has_unique_ids(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let providers = list_providers(harness).await?;
    let mut ids: Vec<&Value> = providers.iter().map(|p| &p["providerId"]).collect();
    while let Some(id) = ids.pop() {
        require(!ids.contains(&id), || format!("duplicate provider id {id}"))?;
    }
    Ok(())
}

/// Requires that a provider is listed with this URL and with its first supported protocol.
fn require_url(listed: &Value, provider: &Value, url: &str) -> Result<(), CheckStop> {
    let current = &listed["current"];
    let right = current["baseUrl"] == url && current["apiType"] == provider["supported"][0];
    require(right, || {
        format!(
            "the provider was set to {} at {url:?}, but is listed as {current}",
            provider["supported"][0]
        )
    })
}

async fn sets_provider(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let provider = find_settable_provider(harness).await?;
    set_provider(harness, &provider, UNREACHABLE_URL).await?;
    let listed = current_provider(harness, &provider).await?;
    restore_provider(harness, &provider).await?;
    require_url(&listed, &provider, UNREACHABLE_URL)
}

async fn replaces_settings(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let provider = find_settable_provider(harness).await?;
    let other = format!("{UNREACHABLE_URL}/other");
    set_provider(harness, &provider, UNREACHABLE_URL).await?;
    set_provider(harness, &provider, &other).await?;
    let listed = current_provider(harness, &provider).await?;
    restore_provider(harness, &provider).await?;
    require_url(&listed, &provider, &other)
}

async fn hides_headers(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let provider = find_settable_provider(harness).await?;
    set_provider(harness, &provider, UNREACHABLE_URL).await?;
    let listed = harness.request_result("providers/list", json!({})).await?;
    restore_provider(harness, &provider).await?;
    require(!listed.to_string().contains(SECRET_HEADER_VALUE), || {
        "the list contains the value of a header".to_owned()
    })
}

async fn disables_provider(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut providers = list_providers(harness).await?.into_iter();
    let found = providers.find(|p| p["required"] == false && p["supported"][0].is_string());
    let Some(provider) = found else {
        return skip(
            "no provider can be set, because each is either required or supports no protocol",
        );
    };
    set_provider(harness, &provider, UNREACHABLE_URL).await?;
    let params = json!({"providerId": provider["providerId"]});
    harness.request_result(DISABLE_METHOD, params).await?;
    let listed = current_provider(harness, &provider).await?;
    restore_provider(harness, &provider).await?;
    require(listed["current"].is_null(), || {
        format!(
            "the provider was disabled, but is listed as {}",
            listed["current"]
        )
    })
}

async fn rejects_disabling_required_provider(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let mut providers = list_providers(harness).await?.into_iter();
    let Some(provider) = providers.find(|provider| provider["required"] == true) else {
        return skip("no provider is required");
    };
    let params = json!({"providerId": provider["providerId"]});
    match harness.request(DISABLE_METHOD, params).await? {
        ReceivedResponse::Error { code: -32602, .. } => Ok(()),
        ReceivedResponse::Error { code, message, .. } => fail(format!(
            "`{DISABLE_METHOD}` failed with error {code} ({message}); expected -32602"
        )),
        ReceivedResponse::Result(_) => {
            restore_provider(harness, &provider).await?;
            fail(format!(
                "required provider {} was disabled",
                provider["providerId"]
            ))
        }
    }
}

async fn rejects_setting_unknown_provider(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    list_providers(harness).await?;
    let params =
        json!({"providerId": UNKNOWN_PROVIDER, "apiType": "openai", "baseUrl": UNREACHABLE_URL});
    harness.request_error(SET_METHOD, params, -32602).await
}

async fn rejects_unknown_protocol(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    let provider = find_settable_provider(harness).await?;
    let id = &provider["providerId"];
    let params = json!({"providerId": id, "apiType": UNKNOWN_PROVIDER, "baseUrl": UNREACHABLE_URL});
    let refused = harness.request_error(SET_METHOD, params, -32602).await;
    if matches!(refused, Err(CheckStop::Fail(_))) {
        restore_provider(harness, &provider).await?;
    }
    refused
}

async fn disables_unknown_provider(harness: &mut AgentHarness) -> Result<(), CheckStop> {
    list_providers(harness).await?;
    let params = json!({"providerId": UNKNOWN_PROVIDER});
    harness
        .request_result(DISABLE_METHOD, params)
        .await
        .map(drop)
}

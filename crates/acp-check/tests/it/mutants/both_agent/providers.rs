//! Mutants that handle provider configuration incorrectly.

use serde_json::json;

use crate::mutants::changes::{duplicate_first, reject_if, set_field, succeed_without_effect_if};
use crate::mutants::layer::{Mutant, change_result, mutant, reject_request};

/// Returns `true` if a request is about a provider that does not exist.
fn is_unknown_provider(params: &serde_json::Value) -> bool {
    params["providerId"] == "_acp-check/none"
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "providers/1",
            "required` is missing",
            "the agent does not say which providers are required",
            change_result("providers/list", |result| {
                set_field(&mut result["providers"][0], "required", None)
            }),
        ),
        mutant(
            "providers/2",
            "duplicate provider id \"main\"",
            "the agent lists one provider twice",
            change_result("providers/list", |result| {
                duplicate_first(&mut result["providers"])
            }),
        ),
        mutant(
            "providers/3",
            "but is listed as",
            "the agent accepts a configuration, but does not set it",
            succeed_without_effect_if("providers/set", |_| true),
        ),
        mutant(
            "providers/4",
            "but is listed as",
            "the agent never replaces the first configuration",
            ignore_later_changes,
        ),
        mutant(
            "providers/5",
            "the list contains the value of a header",
            "the agent returns secrets",
            change_result("providers/list", |result| {
                result["providers"][0]["_meta"] =
                    json!({"headers": {"Authorization": "Bearer acp-check-secret"}});
            }),
        ),
        mutant(
            "providers/6",
            "the provider was disabled, but is listed as",
            "the agent accepts a request to disable a provider, but does not disable it",
            succeed_without_effect_if("providers/disable", |_| true),
        ),
        mutant(
            "providers/6",
            "provider \"second\" is no longer listed",
            "the agent removes a disabled provider from the list",
            change_result("providers/list", |result| {
                let providers = result["providers"].as_array_mut().unwrap();
                providers.retain(|provider| {
                    provider.get("current").is_none() || !provider["current"].is_null()
                });
            }),
        ),
        mutant(
            "providers/7",
            " was disabled",
            "the agent disables required providers",
            succeed_without_effect_if("providers/disable", |_| true),
        ),
        mutant(
            "providers/7",
            "`providers/disable` failed with error -32603 (no); expected -32602",
            "the agent uses one error code for everything",
            reject_request("providers/disable", -32603),
        ),
        mutant(
            "providers/8",
            "succeeded; expected an error",
            "the agent sets unknown providers",
            succeed_without_effect_if("providers/set", is_unknown_provider),
        ),
        mutant(
            "providers/9",
            "succeeded; expected an error",
            "the agent accepts unsupported protocols",
            succeed_without_effect_if("providers/set", |params| {
                params["apiType"] == "_acp-check/none"
            }),
        ),
        mutant(
            "providers/10",
            "`providers/disable` failed with error -32602",
            "the agent rejects disabling an unknown provider",
            reject_if("providers/disable", -32602, is_unknown_provider),
        ),
    ]
}

/// Responds to every configuration request after the first as if it had been applied, without applying it.
fn ignore_later_changes() -> crate::mutants::layer::Mutation {
    let mut pretend = succeed_without_effect_if("providers/set", |_| true)();
    let mut sets = 0;
    Box::new(move |passing| {
        sets += usize::from(passing.is_incoming("providers/set"));
        if sets > 1 {
            pretend(passing);
        }
    })
}

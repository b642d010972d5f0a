//! Wrong in configuring providers.

use serde_json::json;

use crate::mutants::changes::{first_twice, pretend_if, refuse_if, set};
use crate::mutants::layer::{Mutant, answer, mutant, refuse};

/// Whether a request is about a provider that there is not.
fn of_none(params: &serde_json::Value) -> bool {
    params["providerId"] == "_acp-check/none"
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "providers/1",
            "required` is missing",
            "the agent does not say which are required",
            answer("providers/list", |result| {
                set(&mut result["providers"][0], "required", None)
            }),
        ),
        mutant(
            "providers/2",
            "duplicate provider id \"main\"",
            "the agent lists one provider twice",
            answer("providers/list", |result| {
                first_twice(&mut result["providers"])
            }),
        ),
        mutant(
            "providers/3",
            "but is listed as",
            "the agent sets in words only",
            pretend_if("providers/set", |_| true),
        ),
        mutant(
            "providers/4",
            "but is listed as",
            "what was set once stays",
            pretends_later,
        ),
        mutant(
            "providers/5",
            "the list contains the value of a header",
            "the agent keeps no secrets",
            answer("providers/list", |result| {
                result["providers"][0]["_meta"] =
                    json!({"headers": {"Authorization": "Bearer acp-check-secret"}});
            }),
        ),
        mutant(
            "providers/6",
            "the provider was disabled, but is listed as",
            "the agent disables in words only",
            pretend_if("providers/disable", |_| true),
        ),
        mutant(
            "providers/6",
            "provider \"second\" is no longer listed",
            "what it has disabled is gone",
            answer("providers/list", |result| {
                let providers = result["providers"].as_array_mut().unwrap();
                providers.retain(|provider| {
                    provider.get("current").is_none() || !provider["current"].is_null()
                });
            }),
        ),
        mutant(
            "providers/7",
            " was disabled",
            "the agent can do without any",
            pretend_if("providers/disable", |_| true),
        ),
        mutant(
            "providers/7",
            "`providers/disable` failed with error -32603 (no); expected -32602",
            "the agent has one error for all",
            refuse("providers/disable", -32603),
        ),
        mutant(
            "providers/8",
            "succeeded; expected an error",
            "the agent sets anything",
            pretend_if("providers/set", of_none),
        ),
        mutant(
            "providers/9",
            "succeeded; expected an error",
            "the agent speaks any protocol",
            pretend_if("providers/set", |params| {
                params["apiType"] == "_acp-check/none"
            }),
        ),
        mutant(
            "providers/10",
            "`providers/disable` failed with error -32602",
            "the agent wants to know what it disables",
            refuse_if("providers/disable", -32602, of_none),
        ),
    ]
}

/// Says that it has set what it has set once already.
fn pretends_later() -> crate::mutants::layer::Mutation {
    let mut pretend = pretend_if("providers/set", |_| true)();
    let mut sets = 0;
    Box::new(move |passing| {
        sets += usize::from(passing.hears("providers/set"));
        if sets > 1 {
            pretend(passing);
        }
    })
}

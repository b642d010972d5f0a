//! Compares the shapes with the schema that the official crate generates from its types. Both must accept and reject
//! the same values.

use acp_rules::schema::{Schema, SchemaFaultKind, SchemaVersion};
use acp_wire::{v1, v2};
use agent_client_protocol_schema::{v1 as official1, v2 as official2};
use arbitrary::{Arbitrary, Unstructured};
use jsonschema::Validator;
use proptest::prelude::*;
use schemars::schema_for;
use serde::Serialize;
use serde_json::{Value, json};

/// A comparison of our shape for a type with the official schema.
struct ShapeComparison {
    version: SchemaVersion,
    name: &'static str,
    official: Validator,
}

impl ShapeComparison {
    /// Returns the faults that our shape finds. Omits unknown fields and string formats, which the official schema does
    /// not check.
    fn fault_texts(&self, value: &Value) -> Vec<String> {
        let faults = Schema::for_version(self.version).check_value(self.name, value, "");
        let faults = faults.iter().filter(|fault| {
            !matches!(
                fault.kind,
                SchemaFaultKind::UnknownField
                    | SchemaFaultKind::RelativePath { .. }
                    | SchemaFaultKind::Format { .. }
            )
        });
        faults.map(ToString::to_string).collect()
    }

    fn check_agreement(&self, value: &Value, changed: &str) -> Result<(), TestCaseError> {
        let ours = self.fault_texts(value);
        let valid = self.official.is_valid(value);
        // What only the unstable schema has is not judged.
        let kinds = Schema::for_version(self.version).variants("SessionUpdate");
        let kind = value
            .pointer("/update/sessionUpdate")
            .and_then(Value::as_str);
        let unstable = kind.is_some_and(|kind| !kinds.contains(&kind))
            || UNSTABLE_SHAPES.iter().any(|name| changed.contains(name));
        if !valid && ours.is_empty() && unstable {
            return Ok(());
        }
        // Extensibility: it is everywhere, and an object, also where the schema is silent.
        if valid && changed.ends_with("/_meta") {
            return Ok(());
        }
        prop_assert_eq!(
            valid,
            ours.is_empty(),
            "{} {}, changed at {}: {:?}\n{}",
            self.version,
            self.name,
            changed,
            ours,
            value
        );
        Ok(())
    }

    fn check_known_fields(&self, value: &Value) -> Result<(), TestCaseError> {
        let faults = Schema::for_version(self.version).check_value(self.name, value, "");
        let unknown = faults
            .iter()
            .find(|fault| fault.kind == SchemaFaultKind::UnknownField);
        prop_assert!(
            unknown.is_none(),
            "{} {}: {}",
            self.version,
            self.name,
            unknown.unwrap()
        );
        Ok(())
    }
}

/// Path fragments of values on which the two schemas may disagree. The stable schemas lack these values, or the
/// official crate defines them differently because it is newer than our copy of the draft.
const UNSTABLE_SHAPES: &[&str] = &[
    "/usage",
    "/name",
    "/providers",
    "/nes",
    "/positionEncoding",
    "/plan",
    "/subagents",
    "/notices",
    "/compaction",
    "/fork",
    "/sessionCapabilities/title",
    "/session/title",
    "/sessionCapabilities/archive",
    "/session/archive",
    "/archived",
    "/sessionCapabilities/status",
    "/session/status",
    "/auth/status",
    "/systemPrompt",
    "/icons",
    "/requestedSchema/type",
];

/// Uses `choice` to pick a value inside `value`, and removes or replaces it. Returns the path of the picked value.
fn change_value(value: &mut Value, choice: u64, with: &Value) -> String {
    let mut places = Vec::new();
    collect_paths(value, String::new(), &mut places);
    let at = places.swap_remove(usize::try_from(choice).unwrap_or(0) % places.len());
    match (at.rsplit_once('/'), choice % 3) {
        (Some((parent, name)), 0) => {
            if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
                fields.remove(&name.replace("~1", "/").replace("~0", "~"));
            }
        }
        _ => *value.pointer_mut(&at).unwrap() = with.clone(),
    }
    at
}

fn collect_paths(value: &Value, at: String, places: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(i, item)| (i.to_string(), item))
            .collect(),
        _ => Vec::new(),
    };
    for (name, value) in inner {
        collect_paths(value, format!("{at}/{name}"), places);
    }
    places.push(at);
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!("")),
        Just(json!("text")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null])),
    ]
}

fn arbitrary_value_as_json<T: for<'a> Arbitrary<'a> + Serialize>(bytes: &[u8]) -> Value {
    let made = T::arbitrary(&mut Unstructured::new(bytes)).unwrap();
    serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap()
}

macro_rules! compare_shapes {
    ($test:ident $version:ident $ours:ident $official:ident $changes:literal; $($name:ident)+) => {
        mod $test {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let schema = schema_for!($official::$name).to_value();
                    let both = ShapeComparison {
                        version: SchemaVersion::$version,
                        name: stringify!($name),
                        official: jsonschema::validator_for(&schema).unwrap(),
                    };
                    proptest!(|(
                        bytes in proptest::collection::vec(any::<u8>(), 0..1500),
                        choices in proptest::collection::vec((any::<u64>(), arbitrary_json()), $changes),
                    )| {
                        let right = arbitrary_value_as_json::<$ours::$name>(&bytes);
                        both.check_agreement(&right, "nowhere")?;
                        both.check_known_fields(&right)?;
                        for (choice, with) in choices {
                            let mut changed = right.clone();
                            let at = change_value(&mut changed, choice, &with);
                            both.check_agreement(&changed, &at)?;
                        }
                    });
                }
            )+
        }
    };
}

compare_shapes! { version_1 V1 v1 official1 8;
    InitializeRequest InitializeResponse
    AuthenticateRequest AuthenticateResponse
    LogoutRequest LogoutResponse
    NewSessionRequest NewSessionResponse
    LoadSessionRequest LoadSessionResponse
    ListSessionsRequest ListSessionsResponse
    DeleteSessionRequest DeleteSessionResponse
    ResumeSessionRequest ResumeSessionResponse
    CloseSessionRequest CloseSessionResponse
    SetSessionModeRequest SetSessionModeResponse
    SetSessionConfigOptionRequest SetSessionConfigOptionResponse
    PromptRequest PromptResponse
    RequestPermissionRequest RequestPermissionResponse
    WriteTextFileRequest WriteTextFileResponse
    ReadTextFileRequest ReadTextFileResponse
    CreateTerminalRequest CreateTerminalResponse
    TerminalOutputRequest TerminalOutputResponse
    ReleaseTerminalRequest ReleaseTerminalResponse
    WaitForTerminalExitRequest WaitForTerminalExitResponse
    KillTerminalRequest KillTerminalResponse
    CreateElicitationRequest CreateElicitationResponse
    CancelNotification
    SessionNotification
    CompleteElicitationNotification
}

compare_shapes! { version_2 V2 v2 official2 8;
    InitializeRequest
    LoginAuthRequest LoginAuthResponse
    LogoutAuthRequest LogoutAuthResponse
    NewSessionRequest
    ResumeSessionRequest
    ListSessionsRequest ListSessionsResponse
    DeleteSessionRequest DeleteSessionResponse
    CloseSessionRequest CloseSessionResponse
    SetSessionConfigOptionRequest
    RequestPermissionResponse
    CompleteElicitationNotification
}

// The official crate is newer than the draft that the shapes are of, and judges these otherwise: they are compared in what
// is right alone.
compare_shapes! { newer_version_2 V2 v2 official2 0;
    InitializeResponse
    NewSessionResponse
    ResumeSessionResponse
    SetSessionConfigOptionResponse
    PromptRequest PromptResponse
    RequestPermissionRequest
    CreateElicitationRequest CreateElicitationResponse
    UpdateSessionNotification
}

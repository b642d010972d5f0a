//! Sends random messages over a bridge, and checks that the other side can read them in its own version, with both our
//! types and the official ones.

use crate::bridge_peers::start_bridge;
use acp::wire::{v1, v2};
use agent_client_protocol_schema as official;
use arbitrary::{Arbitrary, Unstructured};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Sends updates and permission requests over a bridge to the given version, and returns what the other side receives.
fn translate_lines(to: u8, said: Vec<Value>) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        let mut b = start_bridge(to);
        let info = json!({"name": "x", "version": "1"});
        b.client
            .send_request(
                0,
                "initialize",
                json!({"protocolVersion": to, "info": info}),
            )
            .await;
        b.agent.next().await;
        b.agent
            .send_response(0, json!({"protocolVersion": 3 - to, "info": info}))
            .await;
        b.client.next().await;
        let mut carried = Vec::new();
        for said in said {
            if said.get("options").is_some() {
                b.agent
                    .send_request(2, "session/request_permission", said)
                    .await;
            } else {
                b.agent.send_update(said).await;
            }
            b.agent.send_request(1, "_x/sync", json!({})).await;
            loop {
                // `next` checks that our types can read it.
                let message = b.client.next().await;
                if message["method"] == "_x/sync" {
                    b.client.send_response(1, json!({})).await;
                    b.agent.next().await;
                    break;
                }
                if message["id"] == 2 {
                    let outcome = json!({"outcome": "cancelled"});
                    b.client.send_response(2, json!({"outcome": outcome})).await;
                    b.agent.next().await;
                }
                carried.push(message["params"].clone());
            }
        }
        carried
    })
}

/// Generates an agent's random updates (`T`) and occasional requests (`P`).
fn generate_messages<T, P>(bytes: &[u8]) -> Vec<Value>
where
    T: for<'a> Arbitrary<'a> + serde::Serialize,
    P: for<'a> Arbitrary<'a> + serde::Serialize,
{
    let mut u = Unstructured::new(bytes);
    let mut all = Vec::new();
    while !u.is_empty() && all.len() < 20 {
        let mut said = if u.ratio(1, 5).unwrap() {
            let mut asked = serde_json::to_value(P::arbitrary(&mut u).unwrap()).unwrap();
            asked["sessionId"] = json!("s");
            asked
        } else {
            serde_json::to_value(T::arbitrary(&mut u).unwrap()).unwrap()
        };
        replace_ids_with_few(&mut said);
        all.push(said);
    }
    all
}

/// Replaces all ids with a small set of ids, so that updates refer to the same objects. Also makes paths absolute.
fn replace_ids_with_few(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match (&**key, value) {
                    ("messageId" | "toolCallId" | "terminalId" | "planId", Value::String(id)) => {
                        *id = format!("{key}{}", id.len() % 3);
                    }
                    ("path" | "oldPath" | "cwd", Value::String(path)) => path.insert(0, '/'),
                    (_, value) => replace_ids_with_few(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(replace_ids_with_few),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_version_1_messages_are_translated_to_valid_version_2(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        for params in translate_lines(2, generate_messages::<v1::SessionUpdate, v1::RequestPermissionRequest>(&bytes)) {
            if params.get("options").is_some() {
                let read = serde_json::from_value::<official::v2::RequestPermissionRequest>(params.clone());
                prop_assert!(read.is_ok(), "{}: {params}", read.unwrap_err());
                continue;
            }
            let read = serde_json::from_value::<official::v2::UpdateSessionNotification>(params.clone());
            let update = read.map_err(|e| TestCaseError::fail(format!("{e}: {params}")))?.update;
            let unpublished = matches!(
                params["update"]["sessionUpdate"].as_str(),
                Some("plan_removed" | "subagent_update" | "session_message" | "session_message_chunk")
            );
            prop_assert!(unpublished || !matches!(update, official::v2::SessionUpdate::Other(_)), "{params}");
        }
    }

    #[test]
    fn random_version_2_messages_are_translated_to_valid_version_1(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        for params in translate_lines(1, generate_messages::<v2::SessionUpdate, v2::RequestPermissionRequest>(&bytes)) {
            if params.get("options").is_some() {
                let read = serde_json::from_value::<official::v1::RequestPermissionRequest>(params.clone());
                prop_assert!(read.is_ok(), "{}: {params}", read.unwrap_err());
                continue;
            }
            let read = serde_json::from_value::<official::v1::SessionNotification>(params.clone());
            prop_assert!(read.is_ok(), "{}: {params}", read.unwrap_err());
        }
    }
}

//! Tests of the JSON-RPC envelope and of errors, which are the same in both versions.

use acp_wire::jsonrpc::{self, Error, Incoming, RequestId};
use agent_client_protocol_schema as official;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check::{from_json, to_json};

/// Generates an id as both our type and the official type.
fn arbitrary_id() -> impl Strategy<Value = (RequestId, official::v1::RequestId)> {
    prop_oneof![
        Just((RequestId::Null, official::v1::RequestId::Null)),
        any::<i64>().prop_map(|n| (RequestId::Number(n), official::v1::RequestId::Number(n))),
        any::<String>().prop_map(|s| (
            RequestId::String(s.clone()),
            official::v1::RequestId::Str(s)
        )),
    ]
}

pub(crate) fn arbitrary_error() -> impl Strategy<Value = Error> {
    let data = prop_oneof![
        Just(None),
        any::<String>().prop_map(|s| Some(json!(s))),
        any::<i64>().prop_map(|n| Some(json!({"details": n, "more": [null, true]}))),
    ];
    let code = prop_oneof![any::<i32>(), -32803..-32000_i32];
    (code, any::<String>(), data).prop_map(|(code, message, data)| {
        let error = Error::new(code, message);
        match data {
            Some(data) => error.data(data),
            None => error,
        }
    })
}

proptest! {
    #[test]
    fn errors_survive_conversion(error in arbitrary_error()) {
        let theirs: official::v1::Error = from_json(&to_json(&error), "the official crate cannot read our error");
        prop_assert_eq!(to_json(&theirs), to_json(&error));
        prop_assert_eq!(from_json::<Error>(&to_json(&theirs), "we cannot read the official error"), error);
    }

    #[test]
    fn envelopes_survive_conversion((ours, theirs) in arbitrary_id(), method in any::<String>(), error in arbitrary_error()) {
        use official::rpc::JsonRpcMessage;
        use official::v1::{Notification, Request, Response};

        let params = json!({"line": "\u{2028}\n"});
        let mut out = Vec::new();
        jsonrpc::write_request(&mut out, &ours, &method, &params).unwrap();
        let request: JsonRpcMessage<Request<Value>> = serde_json::from_slice(&out).unwrap();
        let request = request.into_inner();
        prop_assert_eq!(&request.id, &theirs);
        prop_assert_eq!(&*request.method, &method);
        prop_assert_eq!(request.params.as_ref(), Some(&params));
        let line = serde_json::to_vec(&JsonRpcMessage::wrap(request)).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Request { id, method: m, params: Some(p) } => {
                prop_assert_eq!(id, ours.clone());
                prop_assert_eq!(m.as_ref(), &method);
                prop_assert_eq!(serde_json::from_str::<Value>(p.get()).unwrap(), params.clone());
            }
            other => panic!("{other:?}"),
        }

        out.clear();
        jsonrpc::write_notification(&mut out, &method, &params).unwrap();
        let notification: JsonRpcMessage<Notification<Value>> = serde_json::from_slice(&out).unwrap();
        let line = serde_json::to_vec(&notification).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Notification { method: m, params: Some(p) } => {
                prop_assert_eq!(m.as_ref(), &method);
                prop_assert_eq!(serde_json::from_str::<Value>(p.get()).unwrap(), params.clone());
            }
            other => panic!("{other:?}"),
        }

        out.clear();
        jsonrpc::write_result(&mut out, &ours, &params).unwrap();
        let response: JsonRpcMessage<Response<Value>> = serde_json::from_slice(&out).unwrap();
        let line = serde_json::to_vec(&response).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Response { id, result: Ok(raw) } => {
                prop_assert_eq!(id, ours.clone());
                prop_assert_eq!(serde_json::from_str::<Value>(raw.get()).unwrap(), params);
            }
            other => panic!("{other:?}"),
        }

        out.clear();
        jsonrpc::write_error(&mut out, &ours, &error).unwrap();
        let response: JsonRpcMessage<Response<Value>> = serde_json::from_slice(&out).unwrap();
        let line = serde_json::to_vec(&response).unwrap();
        match jsonrpc::parse(&line).unwrap() {
            Incoming::Response { id, result: Err(e) } => {
                prop_assert_eq!(id, ours);
                prop_assert_eq!(e, error);
            }
            other => panic!("{other:?}"),
        }
    }
}

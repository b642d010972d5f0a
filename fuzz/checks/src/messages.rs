//! Checks that reading messages never panics, and that a message does not change when it is written and read again.

use std::fmt::Debug;

use acp::jsonrpc::{self, CancelRequestNotification, Incoming, RequestId};
use acp::wire::ReadError;
use acp::{v1, v2};
use serde::Serialize;
use serde_json::value::RawValue;

/// An enum from a method table.
trait FuzzMessage: Serialize + Debug + Sized {
    fn read(method: &str, raw: &RawValue) -> Result<Self, ReadError>;
}

macro_rules! messages {
    ($version:ident: $($params:ident),+; $($result:ident),+) => {
        $(
            impl FuzzMessage for $version::$params {
                fn read(method: &str, raw: &RawValue) -> Result<Self, ReadError> {
                    Self::read(method, Some(raw))
                }
            }
        )+
        $(
            impl FuzzMessage for $version::$result {
                fn read(method: &str, raw: &RawValue) -> Result<Self, ReadError> {
                    Self::read(method, raw)
                }
            }
        )+
    };
}

messages! { v1:
    ClientRequest, AgentRequest, ClientNotification, AgentNotification, ProtocolNotification;
    AgentResponse, ClientResponse
}
messages! { v2:
    ClientRequest, AgentRequest, ClientNotification, AgentNotification, ProtocolNotification;
    AgentResponse, ClientResponse
}

/// Defines a check that reads a line as a message of one version: its envelope, and its content as the params of every
/// method and as the result of every request, in both directions.
macro_rules! line {
    ($name:ident, $version:ident) => {
        pub fn $name(line: &[u8]) {
            check_envelope(line);
            match jsonrpc::parse(line) {
                Ok(
                    Incoming::Request { method, params, .. }
                    | Incoming::Notification { method, params },
                ) => {
                    let params = params.unwrap_or(RawValue::NULL);
                    let known = $version::METHODS.iter().map(|row| row.name);
                    for method in known.chain([&*method]) {
                        check_round_trip::<$version::ClientRequest>(method, params);
                        check_round_trip::<$version::AgentRequest>(method, params);
                        check_round_trip::<$version::ClientNotification>(method, params);
                        check_round_trip::<$version::AgentNotification>(method, params);
                        check_round_trip::<$version::ProtocolNotification>(method, params);
                    }
                }
                Ok(Incoming::Response {
                    result: Ok(result), ..
                }) => {
                    let known = $version::METHODS.iter().map(|row| row.name);
                    for method in known.chain(["_extension"]) {
                        check_round_trip::<$version::AgentResponse>(method, result);
                        check_round_trip::<$version::ClientResponse>(method, result);
                    }
                }
                Ok(Incoming::Response { .. }) | Err(_) => {}
            }
        }
    };
}

line!(check_messages_v1, v1);
line!(check_messages_v2, v2);

/// Reads a value, and checks that it does not change when it is written and read again.
fn check_round_trip<M: FuzzMessage>(method: &str, raw: &RawValue) {
    let first = match M::read(method, raw) {
        Ok(first) => first,
        Err(error) => {
            // Format the error for the user, and convert it for the peer.
            let answer = jsonrpc::Error::from(error);
            assert!(!answer.to_string().is_empty());
            return;
        }
    };
    let written =
        serde_json::value::to_raw_value(&first).expect("a message that was read can be written");
    let second = match M::read(method, &written) {
        Ok(second) => second,
        Err(error) => panic!("{method}: {error}: {first:?} was written as {written}"),
    };
    assert_eq!(
        format!("{first:?}"),
        format!("{second:?}"),
        "{method}: {written}"
    );
    let rewritten =
        serde_json::value::to_raw_value(&second).expect("the message can be written again");
    assert_eq!(written.get(), rewritten.get(), "{method}");
}

/// Checks that the envelope of a message is written as one line, and does not change.
fn check_envelope(line: &[u8]) {
    let mut out = Vec::new();
    match jsonrpc::parse(line) {
        Ok(Incoming::Request { id, method, params }) => {
            jsonrpc::write_request(&mut out, &id, &method, params.unwrap_or(RawValue::NULL))
                .expect("a request is written");
            match parse_written(&out) {
                Incoming::Request {
                    id: again,
                    method: name,
                    ..
                } => assert_eq!((again, name), (id, method)),
                other => panic!("a request was written as {other:?}"),
            }
        }
        Ok(Incoming::Notification { method, params }) => {
            jsonrpc::write_notification(&mut out, &method, params.unwrap_or(RawValue::NULL))
                .expect("a notification is written");
            match parse_written(&out) {
                Incoming::Notification { method: name, .. } => assert_eq!(name, method),
                other => panic!("a notification was written as {other:?}"),
            }
        }
        Ok(Incoming::Response {
            id,
            result: Ok(result),
        }) => {
            jsonrpc::write_result(&mut out, &id, result).expect("a result is written");
            match parse_written(&out) {
                Incoming::Response {
                    id: again,
                    result: Ok(_),
                } => assert_eq!(again, id),
                other => panic!("a result was written as {other:?}"),
            }
        }
        Ok(Incoming::Response {
            id,
            result: Err(error),
        }) => check_error_response(&id, &error),
        Err(error) => {
            let (id, error) = error.to_response();
            check_error_response(&id, &error);
        }
    }
    // A cancellation is the one message that contains the id of another message.
    if let Ok(cancel) = serde_json::from_slice::<CancelRequestNotification>(line) {
        let written = serde_json::to_vec(&cancel).expect("a cancel is written");
        let again = serde_json::from_slice::<CancelRequestNotification>(&written);
        assert_eq!(again.ok(), Some(cancel));
    }
}

fn check_error_response(id: &RequestId, error: &jsonrpc::Error) {
    let mut out = Vec::new();
    jsonrpc::write_error(&mut out, id, error).expect("an error is written");
    match parse_written(&out) {
        Incoming::Response {
            id: again,
            result: Err(read),
        } => assert_eq!((&again, &read), (id, error)),
        other => panic!("an error was written as {other:?}"),
    }
}

/// Checks that the output is one line, and parses it as a message.
fn parse_written(written: &[u8]) -> Incoming<'_> {
    let [line @ .., b'\n'] = written else {
        panic!(
            "the output has no line end: {}",
            String::from_utf8_lossy(written)
        );
    };
    assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
    match jsonrpc::parse(line) {
        Ok(incoming) => incoming,
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(line)),
    }
}

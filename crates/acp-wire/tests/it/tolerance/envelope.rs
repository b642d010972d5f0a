//! Tests that irregular JSON-RPC envelopes are tolerated.

use acp_wire::jsonrpc::{self, Error, Incoming, ParseError, RequestId};
use acp_wire::v1::*;
use serde_json::json;

use crate::tolerance::{FORTY_DIGITS, assert_round_trips, raw_value};

fn parse_request_id(id: &str) -> Result<RequestId, ParseError> {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
    match jsonrpc::parse(line.as_bytes())? {
        Incoming::Request {
            id,
            method,
            params: None,
        } if method == "m" => Ok(id),
        other => panic!("{other:?}"),
    }
}

/// Returns the id and error code of the response to an invalid line.
fn error_response(line: &[u8]) -> (RequestId, i32) {
    let (id, error) = jsonrpc::parse(line).unwrap_err().to_response();
    (id, error.code)
}

#[test]
fn ids_are_parsed_or_rejected() {
    assert_eq!(parse_request_id("0").unwrap(), RequestId::Number(0));
    assert_eq!(parse_request_id("-5").unwrap(), RequestId::Number(-5));
    assert_eq!(
        parse_request_id("9223372036854775807").unwrap(),
        RequestId::Number(i64::MAX)
    );
    assert_eq!(parse_request_id("7.0").unwrap(), RequestId::Number(7));
    assert_eq!(parse_request_id("1e3").unwrap(), RequestId::Number(1000));
    assert_eq!(parse_request_id("null").unwrap(), RequestId::Null);
    assert_eq!(
        parse_request_id(r#""""#).unwrap(),
        RequestId::String(String::new())
    );
    assert_eq!(
        parse_request_id(r#""a\"\u00e9\n""#).unwrap(),
        RequestId::String("a\"é\n".to_owned())
    );
    assert_ne!(
        parse_request_id(r#""1""#).unwrap(),
        parse_request_id("1").unwrap()
    );
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for bad in [
        "1.5",
        "true",
        "[]",
        "{}",
        "[1]",
        r#"{"a":[1]}"#,
        "9223372036854775808",
        "1e17",
        "1e999",
        FORTY_DIGITS,
        r#""\ud800""#,
        &deep,
    ] {
        match parse_request_id(bad) {
            Err(ParseError::NotAMessage {
                id: RequestId::Null,
                reason,
            }) => {
                assert!(reason.contains("id"), "{reason}");
            }
            other => panic!("{bad}: {other:?}"),
        }
    }
}

#[test]
fn methods_are_parsed_or_rejected() {
    let method = |json: &str| {
        let line = format!(r#"{{"method":{json}}}"#);
        match jsonrpc::parse(line.as_bytes()).unwrap() {
            Incoming::Notification {
                method,
                params: None,
            } => method.into_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(method(r#""session/prompt""#), "session/prompt");
    assert_eq!(method(r#""session\/prompt""#), "session/prompt");
    assert_eq!(method(r#""\u0073ession/\u00fc\"\\""#), "session/ü\"\\");
    assert_eq!(method(r#""""#), "");
    for bad in ["5", "null", "[]", r#"{"a":1}"#, r#""\ud800""#] {
        let line = format!(r#"{{"id":4,"method":{bad}}}"#);
        assert_eq!(
            error_response(line.as_bytes()),
            (RequestId::Number(4), Error::INVALID_REQUEST),
            "{bad}"
        );
    }
}

#[test]
fn members_may_come_in_any_order() {
    let line = br#" {"params" : {"a":[1, 2]} ,"x":[{}],"method":"m","jsonrpc":"1.0","id":1} "#;
    match jsonrpc::parse(line).unwrap() {
        Incoming::Request {
            id: RequestId::Number(1),
            method,
            params: Some(params),
        } => {
            assert_eq!((method.as_ref(), params.get()), ("m", r#"{"a":[1, 2]}"#));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn results_and_errors_are_parsed() {
    let parse = |line: &str| match jsonrpc::parse(line.as_bytes()).unwrap() {
        Incoming::Response { id, result } => (id, result.map(|raw| raw.get().to_owned())),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        parse(r#"{"id":1,"result":null}"#),
        (1.into(), Ok("null".to_owned()))
    );
    assert_eq!(
        parse(r#"{"id":1,"result":{"a": 1},"error":null}"#),
        (1.into(), Ok(r#"{"a": 1}"#.to_owned()))
    );
    assert_eq!(
        parse(
            r#"{"id":1,"result":null,"error":{"code":-32002,"message":"gone","data":{"uri":"u"}}}"#
        ),
        (
            1.into(),
            Err(Error::new(Error::RESOURCE_NOT_FOUND, "gone").data(json!({"uri": "u"})))
        )
    );
    // The response to a message that could not be read.
    assert_eq!(
        parse(r#"{"id":null,"error":{"code":-32700,"message":"Parse error"}}"#),
        (
            RequestId::Null,
            Err(Error::new(Error::PARSE_ERROR, "Parse error"))
        )
    );
    // A malformed error must not be lost.
    let (_, error) = parse(r#"{"id":1,"error":"boom"}"#);
    assert!(error.unwrap_err().message.contains("boom"));
    let (_, error) = parse(r#"{"id":1,"error":{"code":"E1","message":5}}"#);
    assert_eq!(error.unwrap_err().code, Error::INTERNAL_ERROR);
    let (_, error) = parse(r#"{"id":1,"error":{"code":5000000000,"message":"far"}}"#);
    assert_eq!(error.unwrap_err(), Error::new(Error::INTERNAL_ERROR, "far"));
    let (_, error) = parse(r#"{"id":1,"error":{}}"#);
    assert_eq!(error.unwrap_err().code, Error::INTERNAL_ERROR);
}

#[test]
fn json_that_is_not_a_message_is_rejected() {
    for line in [
        "5",
        "true",
        "null",
        r#""text""#,
        "{}",
        r#"{"jsonrpc":"2.0"}"#,
        "[]",
        r#"[{"method":"m"}]"#,
        " [1]",
    ] {
        assert_eq!(
            error_response(line.as_bytes()),
            (RequestId::Null, Error::INVALID_REQUEST),
            "{line}"
        );
    }
    assert_eq!(
        error_response(br#"{"id":"x"}"#),
        (RequestId::String("x".to_owned()), Error::INVALID_REQUEST)
    );
    assert_eq!(
        error_response(br#"{"id":3,"error":null}"#),
        (3.into(), Error::INVALID_REQUEST)
    );
    let error = jsonrpc::parse(br#"[{"method":"m"}]"#).unwrap_err();
    assert!(error.to_string().contains("batch"), "{error}");
}

#[test]
fn invalid_json_is_rejected() {
    let lines: [&[u8]; 12] = [
        b"",
        b"  ",
        b"{",
        b"hello",
        br#"{"id":1"#,
        br#"{"id":1}}"#,
        br#"{"id":1,}"#,
        b"[1,2",
        b"{\"method\":\"a\xff\"}",
        b"\xfe\xff",
        b"{'id':1}",
        br#"{"method":"m"} {"method":"n"}"#,
    ];
    for line in lines {
        let error = jsonrpc::parse(line).unwrap_err();
        assert!(
            matches!(error, ParseError::NotJson(_)),
            "{:?}: {error}",
            String::from_utf8_lossy(line)
        );
        assert_eq!(error.to_response().0, RequestId::Null);
    }
}

#[test]
fn deep_nesting_does_not_crash() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let deep = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));

        // The params of unknown methods are not checked.
        let line = format!(r#"{{"id":1,"method":"_deep","params":{deep}}}"#);
        let Incoming::Request { method, params, .. } = jsonrpc::parse(line.as_bytes()).unwrap()
        else {
            panic!()
        };
        let ClientRequest::Extension(extension) = ClientRequest::read(&method, params).unwrap()
        else {
            panic!()
        };
        assert_eq!(extension.params.unwrap().get(), deep);

        // Neither are results, unknown updates and unknown fields.
        let line = format!(r#"{{"id":1,"result":{deep}}}"#);
        let Incoming::Response { result, .. } = jsonrpc::parse(line.as_bytes()).unwrap() else {
            panic!()
        };
        assert_eq!(result.unwrap().get(), deep);
        assert_round_trips::<SessionNotification>(&format!(
            r#"{{"sessionId":"s","update":{{"x":{deep},"sessionUpdate":"_deep"}}}}"#
        ));
        let update =
            format!(r#"{{"x":{deep},"sessionUpdate":"plan","entries":[{deep}],"y":{deep}}}"#);
        let update: SessionUpdate = serde_json::from_str(&update).unwrap();
        assert_eq!(update, SessionUpdate::Plan(Plan::new([])));

        // In place of a message, it is an error like any other.
        let error = ClientRequest::read("session/prompt", Some(&raw_value(&deep))).unwrap_err();
        assert_eq!(Error::from(error).code, Error::INVALID_PARAMS);

        // Not even a line that contains nothing else.
        assert_eq!(
            error_response(deep.as_bytes()),
            (RequestId::Null, Error::INVALID_REQUEST)
        );
        let unclosed = open.repeat(10_000);
        assert_eq!(
            error_response(unclosed.as_bytes()),
            (RequestId::Null, Error::PARSE_ERROR)
        );
    }
}

#[test]
fn huge_numbers_are_parsed() {
    for number in [FORTY_DIGITS, "1e999", "-1e999", &"9".repeat(10_000)] {
        let line = format!(r#"{{"id":1,"method":"_huge","params":{{"n":{number}}},"n":{number}}}"#);
        let Incoming::Request { params, .. } = jsonrpc::parse(line.as_bytes()).unwrap() else {
            panic!()
        };
        assert_eq!(params.unwrap().get(), format!(r#"{{"n":{number}}}"#));
    }
}

#[test]
fn messages_are_written_on_one_line() {
    let params = raw_value("{\r\n \"text\": \"a\\nb\",\n\"n\": 1}");
    let mut out = b"before\n".to_vec();
    jsonrpc::write_notification(&mut out, "m", &params).unwrap();
    jsonrpc::write_request(
        &mut out,
        &RequestId::String("\n".to_owned()),
        "a\"b",
        &params,
    )
    .unwrap();
    jsonrpc::write_result(&mut out, &7.into(), &params).unwrap();
    jsonrpc::write_error(&mut out, &RequestId::Null, &Error::internal("x\ny").data(1)).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.split_terminator('\n').collect();
    assert_eq!(
        lines,
        [
            "before",
            r#"{"jsonrpc":"2.0","method":"m","params":{   "text": "a\nb", "n": 1}}"#,
            r#"{"jsonrpc":"2.0","id":"\n","method":"a\"b","params":{   "text": "a\nb", "n": 1}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{   "text": "a\nb", "n": 1}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x\ny","data":1}}"#,
        ]
    );
}

#[test]
fn failed_writes_leave_no_output() {
    // A map whose keys are not strings is not JSON.
    let bad = std::collections::BTreeMap::from([(vec![1_u8], 1)]);
    let mut out = b"before\n".to_vec();
    assert!(jsonrpc::write_request(&mut out, &1.into(), "m", &bad).is_err());
    assert!(jsonrpc::write_notification(&mut out, "m", &bad).is_err());
    assert!(jsonrpc::write_result(&mut out, &1.into(), &bad).is_err());
    assert_eq!(out, b"before\n");
}

#[test]
fn error_text_includes_string_details() {
    let error = Error::new(-32000, "Failed");
    assert_eq!(error.to_string(), "Failed");
    assert_eq!(error.clone().data("no key").to_string(), "Failed: no key");
    for key in ["details", "message", "error"] {
        assert_eq!(
            error.clone().data(json!({key: "no key"})).to_string(),
            "Failed: no key"
        );
    }
    assert_eq!(
        error.clone().data(json!({"details": "Failed"})).to_string(),
        "Failed"
    );
    assert_eq!(error.data(json!({"other": 1})).to_string(), "Failed");
    assert_eq!(Error::new(-32000, " ").to_string(), "error -32000");
}

#[test]
fn plain_notifications_are_recognized() {
    for line in [
        r#"{"jsonrpc":"2.0","method":"a/b","params":{"c":1}}"#,
        r#"{ "jsonrpc" : "2.0" , "method" : "a/b" , "params" : {"c":1}}"#,
    ] {
        let plain = jsonrpc::parse_plain_notification(line.as_bytes());
        assert_eq!(plain, Some(("a/b", r#"{"c":1}"#)), "{line}");
    }
    for other in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{}}"#,
        r#"{"method":"a/b","jsonrpc":"2.0","params":{}}"#,
        r#"{"jsonrpc":"1.0","method":"a/b","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"a\u002fb","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"a/b"}"#,
        r#"{"jsonrpc":"2.0","method":7,"params":{}}"#,
        r#"[{"jsonrpc":"2.0","method":"a/b","params":{}}]"#,
        r#"{"jsonrpc":"2.0","method":"a/b","params":{}"#,
        "",
    ] {
        let plain = jsonrpc::parse_plain_notification(other.as_bytes());
        // For example, a truncated line has params that are not JSON.
        assert!(
            plain.is_none_or(|(_, params)| is_invalid_json(params)),
            "{other}"
        );
    }
}

fn is_invalid_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
}

proptest::proptest! {
    /// Compares the two parsers on lines assembled at random from message fragments.
    #[test]
    fn plain_notifications_agree_with_parse(
        parts in proptest::collection::vec(proptest::sample::select(MESSAGE_PARTS), 0..16),
        regular: bool,
    ) {
        let begin = if regular { r#"{"jsonrpc":"2.0","method":"m","params":"# } else { "" };
        let line = format!("{begin}{}", parts.concat());
        if let Some((name, text)) = jsonrpc::parse_plain_notification(line.as_bytes())
            && !is_invalid_json(text)
        {
            match jsonrpc::parse(line.as_bytes()) {
                Ok(Incoming::Notification { method, params: Some(params) }) => {
                    proptest::prop_assert_eq!(method, name);
                    proptest::prop_assert_eq!(params.get(), text.trim());
                }
                other => proptest::prop_assert!(false, "{:?}: {:?}", line, other),
            }
        }
    }
}

const MESSAGE_PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "1",
    "null",
    "\"a\"",
    "\"}\"",
    "\"id\":1",
    "\"result\":{}",
    "{}",
    "{\"a\":{}}",
    "\"jsonrpc\":\"2.0\"",
    "\"method\":\"m\"",
    "\"params\":",
    "\\",
    "\"",
    "\u{e9}",
];

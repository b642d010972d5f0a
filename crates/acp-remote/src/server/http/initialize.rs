//! Handles `initialize` over HTTP, which creates a connection.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::{HttpConnection, run_connection};
use crate::header::{self, ResumeTerms};
use crate::server::body::ResponseBody;
use crate::server::config::ServerConfig;
use crate::server::handler::{ConnectionHandler, ConnectionInfo};
use crate::server::registry::{Registry, ServedConnection};
use crate::server::responses::text_response;

/// Responds to a POST that contains an `initialize` request with the JSON-RPC id `id`.
pub(super) async fn initialize<H: ConnectionHandler>(
    config: &ServerConfig,
    registry: &Arc<Registry>,
    handler: &Arc<H>,
    info: ConnectionInfo,
    headers: &HeaderMap,
    body: &[u8],
    id: &str,
) -> Response<ResponseBody> {
    let terms = config.resume_terms(headers);
    let window = terms.map(|(_, window)| window);
    let connection = Arc::new(HttpConnection::new(config, window));
    let Ok(response) = connection.streams.register_initialize(id) else {
        return text_response(StatusCode::TOO_MANY_REQUESTS, "too many requests in flight");
    };
    let added = registry.add(
        info.clone(),
        ServedConnection::Http(Arc::clone(&connection)),
        config.limits.connections,
    );
    if !added {
        return text_response(StatusCode::SERVICE_UNAVAILABLE, "too many connections");
    }
    let _post = connection.begin_post();
    let connection_id = info.id.clone();
    registry.tasks.spawn(run_connection(
        Arc::clone(handler),
        Arc::clone(registry),
        info,
        Arc::clone(&connection),
        config.grace,
    ));
    // Positions start after this message.
    connection.incoming.push_message(body, true);
    let Ok(line) = response.await else {
        return text_response(
            StatusCode::BAD_GATEWAY,
            "the agent closed the connection without responding to initialize",
        );
    };
    let terms = terms.map(|(terms, _)| terms);
    let announced = add_connection_id(&line, &connection_id, terms);
    let mut response = Response::new(ResponseBody::from(Bytes::from(announced)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(&connection_id) {
        headers.insert(header::CONNECTION_ID, id);
    }
    if let Some(terms) = terms {
        headers.insert(header::RESUME, terms.header_value());
    }
    response
}

/// Adds the connection id and the terms of the extension to the response. Leaves responses of an unexpected form alone.
fn add_connection_id(line: &[u8], id: &str, terms: Option<ResumeTerms>) -> Vec<u8> {
    let line = line.trim_ascii_end();
    try_add_connection_id(line, id, terms).unwrap_or_else(|| line.to_owned())
}

fn try_add_connection_id(line: &[u8], id: &str, terms: Option<ResumeTerms>) -> Option<Vec<u8>> {
    type JsonMembers<'a> = serde_json::Map<String, serde_json::Value>;
    let mut response: JsonMembers<'_> = serde_json::from_slice(line).ok()?;
    let result = response.get_mut("result")?.as_object_mut()?;
    let resume = terms.map(|terms| {
        serde_json::json!({
            "window": terms.window,
            "grace": terms.grace.as_secs(),
        })
    });
    let mut about = JsonMembers::new();
    about.insert("connectionId".to_owned(), id.into());
    about.extend(resume.map(|resume| ("resume".to_owned(), resume)));
    let meta = result
        .entry("_meta")
        .or_insert_with(|| JsonMembers::new().into());
    if meta.is_null() {
        *meta = JsonMembers::new().into();
    }
    meta.as_object_mut()?
        .insert(header::META_KEY.to_owned(), about.into());
    result.entry("connectionId").or_insert_with(|| id.into());
    serde_json::to_vec(&response).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_response_contains_the_connection_id() {
        let terms = ResumeTerms {
            window: 1_048_576,
            grace: std::time::Duration::from_secs(60),
        };
        let line = br#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":{"a":1}}}"#;
        let announced = add_connection_id(line, "c1", Some(terms));
        let announced: serde_json::Value = serde_json::from_slice(&announced).unwrap();
        let result = serde_json::json!({
            "protocolVersion": 1,
            "connectionId": "c1",
            "_meta": {
                "a": 1,
                "acp-sdk/remote": {"connectionId": "c1", "resume": {"window": 1_048_576, "grace": 60}},
            },
        });
        assert_eq!(
            announced,
            serde_json::json!({"jsonrpc": "2.0", "id": 0, "result": result})
        );
        let without = add_connection_id(line, "c1", None);
        assert!(!String::from_utf8(without).unwrap().contains("resume"));
        for odd in [
            "{\"id\":0,\"error\":{}}\n",
            "{\"id\":0,\"result\":3}",
            "{\"id\":0,\"result\":{\"_meta\":3}}",
        ] {
            assert_eq!(
                add_connection_id(odd.as_bytes(), "c1", None),
                odd.trim_end().as_bytes()
            );
        }
    }
}

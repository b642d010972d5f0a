//! Responses used throughout the endpoint.

use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_VERSION, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};

use super::access::Refusal;
use super::body::ResponseBody;

/// Creates a response with human-readable text, or with an empty body.
pub(super) fn text_response(status: StatusCode, text: &str) -> Response<ResponseBody> {
    let body = if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    };
    let mut response = Response::new(ResponseBody::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !text.is_empty() {
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
    }
    if status == StatusCode::UPGRADE_REQUIRED {
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

impl From<Refusal> for Response<ResponseBody> {
    fn from(refusal: Refusal) -> Self {
        text_response(refusal.status, &refusal.reason)
    }
}

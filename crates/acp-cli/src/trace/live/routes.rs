//! The handlers of the paths.

use std::sync::Arc;

use acp_html::THREAD_STYLE;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::json;

use super::access::{check_page_request, require_token};
use super::events::page_events;
use super::filter::{FilterQuery, RowFilter};
use super::hand::{SendCommand, SendOutcome};
use super::list::{SharedList, lock_list, read_opened, read_rows};
use super::state::{TracePage, json_response};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    "'use strict';\n(() => {\n",
    include_str!("page/server.js"),
    include_str!("page/rows.js"),
    include_str!("page/table.js"),
    include_str!("page/message.js"),
    include_str!("page/send.js"),
    include_str!("page/page.js"),
    "})();\n",
);

/// The maximum size of what a page sends, in bytes.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Returns the routes of the page.
pub(super) fn trace_page_router(page: Arc<TracePage>) -> Router {
    let access = Arc::clone(page.access());
    let with_token = Router::new()
        .route("/events", get(events))
        .route("/rows", get(rows))
        .route("/find", get(find))
        .route("/message", get(message))
        .route("/send", post(send))
        .route_layer(middleware::from_fn_with_state(
            Arc::clone(&access),
            require_token,
        ));
    let asset = |kind: &'static str, text: String| {
        let text = Bytes::from(text);
        get(async move || ([(CONTENT_TYPE, kind)], text))
    };
    let style = format!("{THREAD_STYLE}\n{STYLE}");
    Router::new()
        .route("/", asset("text/html; charset=utf-8", PAGE.to_owned()))
        .route("/page.css", asset("text/css; charset=utf-8", style))
        .route(
            "/page.js",
            asset("text/javascript; charset=utf-8", SCRIPT.to_owned()),
        )
        .route("/sign-in", post(sign_in))
        .merge(with_token)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(access, check_page_request))
        .with_state(page)
}

async fn sign_in(State(page): State<Arc<TracePage>>, code: String) -> Response {
    match page.access().exchange_code(&code) {
        Some(token) => token.expose().to_owned().into_response(),
        None => (
            StatusCode::FORBIDDEN,
            "This address has been used already, or is too old.",
        )
            .into_response(),
    }
}

async fn events(State(page): State<Arc<TracePage>>, Query(query): Query<FilterQuery>) -> Response {
    let filter = match RowFilter::parse(&query) {
        Ok(filter) => filter,
        Err(why) => return (StatusCode::BAD_REQUEST, why).into_response(),
    };
    let Some(open) = page.open() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many open pages").into_response();
    };
    Sse::new(page_events(open, filter))
        .keep_alive(KeepAlive::default())
        .into_response()
}

/// Returns the list of an open page, or the response to a page that is not open.
fn open_list(page: &TracePage, number: u64) -> Result<SharedList, (StatusCode, &'static str)> {
    let gone = "the page is no longer connected: reload it";
    page.list(number).ok_or((StatusCode::NOT_FOUND, gone))
}

#[derive(Debug, Deserialize)]
struct RowsQuery {
    list: u64,
    from: u64,
    count: usize,
}

async fn rows(State(page): State<Arc<TracePage>>, Query(query): Query<RowsQuery>) -> Response {
    match open_list(&page, query.list) {
        Ok(list) => {
            let RowsQuery { from, count, .. } = query;
            page.read(move |trace| read_rows(trace, &list, from, count))
                .await
        }
        Err(gone) => gone.into_response(),
    }
}

#[derive(Debug, Deserialize)]
struct FindQuery {
    list: u64,
    line: u64,
}

async fn find(State(page): State<Arc<TracePage>>, Query(query): Query<FindQuery>) -> Response {
    match open_list(&page, query.list) {
        Ok(list) => {
            let (number, is_listed) = lock_list(&list).find_line(query.line);
            let found = json!({ "number": number, "is_listed": is_listed });
            json_response(StatusCode::OK, found.to_string())
        }
        Err(gone) => gone.into_response(),
    }
}

#[derive(Debug, Deserialize)]
struct MessageQuery {
    list: u64,
    at: u64,
}

async fn message(
    State(page): State<Arc<TracePage>>,
    Query(query): Query<MessageQuery>,
) -> Response {
    match open_list(&page, query.list) {
        Ok(list) => {
            page.read(move |trace| read_opened(trace, &list, query.at))
                .await
        }
        Err(gone) => gone.into_response(),
    }
}

async fn send(State(page): State<Arc<TracePage>>, body: Bytes) -> Response {
    let Some(sender) = &page.sender else {
        let why = "nothing can be sent: the page shows a file";
        return (StatusCode::CONFLICT, why).into_response();
    };
    let command: SendCommand = match serde_json::from_slice(&body) {
        Ok(command) => command,
        Err(e) => return (StatusCode::BAD_REQUEST, e.to_string()).into_response(),
    };
    match sender.send(&command).await {
        SendOutcome::Sent(id) => json_response(StatusCode::OK, json!({ "id": id }).to_string()),
        SendOutcome::Waiting => {
            json_response(StatusCode::ACCEPTED, json!({ "waiting": true }).to_string())
        }
        SendOutcome::Rejected(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

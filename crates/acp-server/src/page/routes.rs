//! The handlers of the paths.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use acp::client::SessionSetup;
use acp_html::{Markup, THREAD_STYLE, text};
use acp_remote::Token;
use acp_remote::server::{AllowedOrigins, ServerConfig};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use futures_util::stream::{self, Stream};
use maud::{DOCTYPE, html};
use serde::Deserialize;

use super::access::{COOKIE_NAME, check_request, cookies, require_sign_in};
use super::actions::{PageAction, perform};
use super::fragments::SentFragments;
use super::list::{render_list, session_path};
use super::sign_in::{COOKIE_LIFETIME, PageUser, SignIn};
use super::view::SessionView;
use crate::served_agent::AgentRunner;
use crate::users::Scope;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The minimum time between two updates of a view.
const UPDATE_INTERVAL: Duration = Duration::from_millis(40);

/// The maximum size of what a browser sends, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// The maximum number of views.
const MAX_VIEWS: usize = 1000;

/// The agents that the page shows, and who may see it.
pub(crate) struct PageState {
    agents: Vec<Arc<AgentRunner>>,
    pub(crate) sign_in: SignIn,
    /// For checking host names only.
    config: ServerConfig,
    is_secure: bool,
    views: Mutex<HashMap<String, Weak<SessionView>>>,
}

impl PageState {
    pub(crate) fn new(
        config: &ServerConfig,
        is_secure: bool,
        agents: Vec<Arc<AgentRunner>>,
    ) -> Self {
        let users = agents.iter().find_map(|runner| runner.agent.users.clone());
        let sign_in = SignIn::new(config.token.clone(), users);
        let mut config = config.clone().origins(AllowedOrigins::Any);
        config.token = None;
        config.users = None;
        Self {
            agents,
            sign_in,
            config,
            is_secure,
            views: Mutex::default(),
        }
    }

    pub(super) fn host_rejection(&self, request: &Request) -> Option<Response> {
        let rejection = self.config.check_access(request).err()?;
        Some(rejection.map(axum::body::Body::new))
    }

    pub(super) fn is_secure(&self) -> bool {
        self.is_secure
    }

    pub(super) fn user(&self, headers: &HeaderMap) -> Option<PageUser> {
        self.sign_in.user(cookies(headers))
    }

    fn agent(&self, name: &str) -> Option<&Arc<AgentRunner>> {
        self.agents.iter().find(|runner| runner.agent.name == name)
    }

    fn views(&self) -> MutexGuard<'_, HashMap<String, Weak<SessionView>>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a view, and returns its id. Only its browser knows the id.
    fn add_view(&self, view: &Arc<SessionView>) -> Option<String> {
        let mut views = self.views();
        views.retain(|_, view| view.strong_count() > 0);
        if views.len() >= MAX_VIEWS {
            return None;
        }
        let id = Token::random().expose().to_owned();
        views.insert(id.clone(), Arc::downgrade(view));
        Some(id)
    }
}

/// Returns the routes of the page.
pub(crate) fn page_router(state: Arc<PageState>) -> Router {
    let signed_in = Router::new()
        .route("/sessions", get(sessions))
        .route("/new", post(new_session))
        .route("/session", get(session_page))
        .route("/events", get(events))
        .route("/views/{view}", post(act))
        .route_layer(middleware::from_fn_with_state(
            Arc::clone(&state),
            require_sign_in,
        ));
    let asset = |kind: &'static str, text: String| {
        let text = Bytes::from(text);
        get(async move || ([(CONTENT_TYPE, kind)], text))
    };
    Router::new()
        .route("/", get(front_page))
        .route("/sign-in", get(sign_in_with_code).post(sign_in_with_token))
        .route(
            "/page.css",
            asset(
                "text/css; charset=utf-8",
                format!("{THREAD_STYLE}\n{STYLE}"),
            ),
        )
        .route(
            "/page.js",
            asset("text/javascript; charset=utf-8", SCRIPT.to_owned()),
        )
        .merge(signed_in)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&state),
            check_request,
        ))
        .with_state(state)
}

/// The text that says which session is meant.
#[derive(Debug, Deserialize)]
struct SessionQuery {
    agent: String,
    id: String,
    cwd: String,
}

#[derive(Debug, Deserialize)]
struct CodeQuery {
    #[serde(default)]
    code: String,
}

#[derive(Debug, Deserialize)]
struct NewSession {
    agent: String,
    cwd: String,
}

fn page(title: &str, class: &str, body: &Markup) -> Html<String> {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
            }
            body.(class) { (body) }
        }
    };
    Html(markup.into_string())
}

async fn front_page(State(state): State<Arc<PageState>>, headers: HeaderMap) -> Html<String> {
    let Some(user) = state.user(&headers) else {
        return sign_in_page(None);
    };
    let may_prompt = user.named().is_none_or(|user| user.can(Scope::Prompt));
    let roots: Vec<(String, Vec<String>)> = state
        .agents
        .iter()
        .map(|runner| (runner.agent.name.clone(), runner.roots().names()))
        .collect();
    let body = html! {
        header { h1 { "Sessions" } }
        main #list aria-live="polite" { p.soft { "Loading…" } }
        @if may_prompt { form #new {
            @if state.agents.len() > 1 {
                label { span { "Agent" } select name="agent" { @for (name, _) in &roots { option { (name) } } } }
            } @else {
                @for (name, _) in &roots { input type="hidden" name="agent" value=(name); }
            }
            label {
                span { "Directory" }
                input name="cwd" required list="directories" autocomplete="off" spellcheck="false"
                    value=[roots.first().and_then(|(_, roots)| roots.first())];
                datalist id="directories" {
                    @for (_, directories) in &roots { @for directory in directories { option value=(directory) {} } }
                }
            }
            button { "New session" }
            output #failure role="alert" {}
        } }
    };
    page("Sessions", "front", &body)
}

fn sign_in_page(failure: Option<&str>) -> Html<String> {
    let body = html! {
        main.sign-in {
            h1 { "Sign in" }
            p { "Open the link that " code { "acp serve" } " has printed, or enter your token." }
            form method="post" action="/sign-in" {
                label { span { "Token" } input type="password" name="token" required autocomplete="current-password"; }
                button { "Sign in" }
            }
            @if let Some(failure) = failure { p.failed role="alert" { (failure) } }
        }
    };
    page("Sign in", "plain", &body)
}

async fn sign_in_with_code(
    State(state): State<Arc<PageState>>,
    Query(query): Query<CodeQuery>,
) -> Response {
    match state.sign_in.use_code(&query.code) {
        Some(cookie) => signed_in(&state, &cookie),
        None => {
            let failure = "The code is invalid, or has been used already.";
            (StatusCode::FORBIDDEN, sign_in_page(Some(failure))).into_response()
        }
    }
}

async fn sign_in_with_token(State(state): State<Arc<PageState>>, body: String) -> Response {
    // Tokens consist of characters that a form does not change, apart from escapes.
    let token = body.strip_prefix("token=").unwrap_or_default();
    let token = percent_encoding::percent_decode_str(token).decode_utf8_lossy();
    match state.sign_in.use_token(&token) {
        Some(cookie) => signed_in(&state, &cookie),
        None => {
            let page = sign_in_page(Some("This token is not valid."));
            (StatusCode::FORBIDDEN, page).into_response()
        }
    }
}

fn signed_in(state: &PageState, cookie: &str) -> Response {
    let secure = if state.is_secure { "; Secure" } else { "" };
    let age = COOKIE_LIFETIME.as_secs();
    let cookie =
        format!("{COOKIE_NAME}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
    // A link from elsewhere does not send a strict cookie along when it is followed, not even after a redirect. So the
    // browser goes on by itself.
    let body = html! {
        main.sign-in { p { "You are signed in. " a href="/" #forward { "Continue" } } }
    };
    ([(SET_COOKIE, cookie)], page("Signed in", "plain", &body)).into_response()
}

async fn sessions(
    State(state): State<Arc<PageState>>,
    Extension(user): Extension<PageUser>,
) -> Html<String> {
    Html(render_list(&state.agents, &user).await.into_string())
}

async fn new_session(
    State(state): State<Arc<PageState>>,
    Extension(user): Extension<PageUser>,
    body: Bytes,
) -> Response {
    let failed = |status: StatusCode, reason: String| (status, reason).into_response();
    let Ok(new) = serde_json::from_slice::<NewSession>(&body) else {
        return failed(StatusCode::BAD_REQUEST, "invalid request".to_owned());
    };
    let Some(runner) = state.agent(&new.agent) else {
        return failed(StatusCode::NOT_FOUND, "agent not found".to_owned());
    };
    let opened = async {
        let (agent, _state) = SessionView::connect(runner, &user).await?;
        let session = agent.new_session(SessionSetup::new(new.cwd.as_str())).await;
        // The session stays when this client leaves.
        agent.close();
        session
    };
    match opened.await {
        Ok(session) => session_path(&new.agent, session.id().as_str(), &new.cwd).into_response(),
        Err(error) => failed(StatusCode::BAD_REQUEST, error.to_string()),
    }
}

async fn session_page(
    Extension(user): Extension<PageUser>,
    Query(query): Query<SessionQuery>,
) -> Html<String> {
    let can = |scope| user.named().is_none_or(|user| user.can(scope));
    let (may_prompt, may_answer) = (can(Scope::Prompt), can(Scope::Answer));
    let body = html! {
        header {
            nav { a href="/" { "Sessions" } }
            h1 #title { (text::sanitize_line(&query.id)) }
            p #state role="status" aria-live="polite" { span.state { "connecting" } }
        }
        main {
            div #earlier {}
            div #thread role="log" aria-label="Conversation" {}
            div #plans {}
        }
        div.dock {
            div #questions role="region" aria-label="Questions of the agent" aria-live="assertive" {}
            div #queue {}
            div #notes role="status" aria-live="polite" {}
            @if !may_answer { p.soft { "You may not answer questions with this token." } }
            @if !may_prompt { p.soft { "You may not send prompts with this token." } }
            form #prompt hidden[!may_prompt] {
                textarea name="text" rows="2" aria-label="Prompt" placeholder="Write a prompt. Enter sends it, Shift+Enter starts a new line." {}
                div.buttons {
                    div #settings hidden[!may_answer] {}
                    button type="button" data-action="cancel" { "Cancel turn" }
                    button { "Send" }
                }
            }
        }
    };
    page(&text::sanitize_line(&query.id), "session", &body)
}

async fn events(
    State(state): State<Arc<PageState>>,
    Extension(user): Extension<PageUser>,
    Query(query): Query<SessionQuery>,
) -> Response {
    let Some(runner) = state.agent(&query.agent) else {
        return (StatusCode::NOT_FOUND, "agent not found").into_response();
    };
    let failure = match SessionView::open(runner, &user, &query.id, &query.cwd).await {
        Ok(view) => {
            let view = Arc::new(view);
            match state.add_view(&view) {
                Some(id) => {
                    let events = Sse::new(view_events(view, id));
                    return events.keep_alive(KeepAlive::default()).into_response();
                }
                None => "too many open pages".to_owned(),
            }
        }
        Err(error) => error.to_string(),
    };
    // The browser does not try again after this event.
    let failed = Event::default()
        .event("failed")
        .data(text::sanitize_line(&failure));
    Sse::new(stream::iter([Ok::<_, Infallible>(failed)])).into_response()
}

/// What a stream of events has sent so far.
struct ViewEvents {
    view: Arc<SessionView>,
    id: Option<String>,
    sent: SentFragments,
    seen: u64,
    is_closed: bool,
}

/// Returns the events of a view: its id, and then each change. An update is made only when the browser can take it, so a
/// slow browser gets fewer of them.
fn view_events(
    view: Arc<SessionView>,
    id: String,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let events = ViewEvents {
        view,
        id: Some(id),
        sent: SentFragments::default(),
        seen: 0,
        is_closed: false,
    };
    stream::unfold(events, |mut events| async move {
        if let Some(id) = events.id.take() {
            return Some((Ok(Event::default().event("view").data(id)), events));
        }
        loop {
            if events.is_closed {
                return None;
            }
            let mut changes = events.view.state.changes();
            let fragments = events.sent.changes(&events.view);
            if !fragments.is_empty() {
                let event = Event::default().event("fragments").json_data(&fragments);
                tokio::time::sleep(UPDATE_INTERVAL).await;
                return Some((Ok(event.unwrap_or_default()), events));
            }
            let session = &events.view.session;
            tokio::select! {
                revision = session.thread().changed(events.seen) => events.seen = revision,
                _ = changes.changed() => {}
                reason = session.agent().closed() => {
                    events.is_closed = true;
                    let reason = text::sanitize_line(&reason.to_string());
                    return Some((Ok(Event::default().event("failed").data(reason)), events));
                }
            }
        }
    })
}

async fn act(
    State(state): State<Arc<PageState>>,
    Path(view): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // Other pages cannot send this content type without asking first.
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if kind != Some("application/json") {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected JSON").into_response();
    }
    let Ok(action) = serde_json::from_slice::<PageAction>(&body) else {
        return (StatusCode::BAD_REQUEST, "invalid action").into_response();
    };
    let view = state.views().get(&view).and_then(Weak::upgrade);
    let Some(view) = view else {
        return (StatusCode::GONE, "this page is no longer connected").into_response();
    };
    perform(&view, action).await;
    StatusCode::NO_CONTENT.into_response()
}

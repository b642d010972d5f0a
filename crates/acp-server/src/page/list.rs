//! The list of sessions.

use std::collections::HashSet;
use std::sync::Arc;

use acp::client::AgentConnection;
use acp::v1::{ListSessionsRequest, SessionInfo};
use acp_html::text;
use jiff::{Timestamp, Unit};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::sign_in::PageUser;
use super::view::{LiveSessionState, SessionView, live_status};
use crate::served_agent::AgentRunner;

/// The maximum number of stored sessions to list. The agent lists the latest first.
const MAX_STORED: usize = 50;

/// The maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// Renders the sessions of all agents: live ones first.
pub(super) async fn render_list(agents: &[Arc<AgentRunner>], user: &PageUser) -> Markup {
    let mut parts = Vec::new();
    for runner in agents {
        let name = &runner.agent.name;
        let part = match agent_sessions(runner, user).await {
            Ok((live, stored)) => html! {
                @for session in &live { (live_row(name, session)) }
                @for session in &stored { (stored_row(name, session)) }
                @if live.is_empty() && stored.is_empty() { li.soft { "No sessions yet." } }
            },
            Err(error) => html! { li.failed { (text::sanitize_line(&error.to_string())) } },
        };
        parts.push(html! {
            section {
                @if agents.len() > 1 { h2 { (text::sanitize_line(name)) } }
                ul.sessions { (part) }
            }
        });
    }
    html! { @for part in parts { (part) } }
}

/// Returns an agent's live sessions, and the others that it stores.
async fn agent_sessions(
    runner: &Arc<AgentRunner>,
    user: &PageUser,
) -> acp::Result<(Vec<LiveSessionState>, Vec<SessionInfo>)> {
    let (agent, _state) = SessionView::connect(runner, user).await?;
    let sessions = read_sessions(&agent).await;
    agent.close();
    sessions
}

async fn read_sessions(
    agent: &AgentConnection,
) -> acp::Result<(Vec<LiveSessionState>, Vec<SessionInfo>)> {
    let mut live = live_status(agent, None).await?.sessions;
    let listed = agent
        .list_sessions(&ListSessionsRequest::new())
        .await?
        .sessions;
    // The agent may know a title that its live session does not have yet.
    for session in &mut live {
        let same = |info: &&SessionInfo| info.session_id.as_str() == session.session_id;
        if session.title.is_none() {
            session.title = listed.iter().find(same).and_then(|info| info.title.clone());
        }
    }
    live.sort_by_key(|session| (session.open_questions == 0, session.turn.is_none()));
    let ids: HashSet<&str> = live
        .iter()
        .map(|session| session.session_id.as_str())
        .collect();
    let others = listed
        .into_iter()
        .filter(|info| !ids.contains(info.session_id.as_str()))
        .take(MAX_STORED)
        .collect();
    Ok((live, others))
}

fn live_row(agent: &str, session: &LiveSessionState) -> Markup {
    let cwd = session.cwd.as_deref().unwrap_or_default();
    let state = match (&session.turn, session.open_questions) {
        (_, 1..) => html! { span.state.waits { "waits for an answer" } },
        (Some(_), _) => html! { span.state.runs { "working" } },
        (None, _) => html! { span.state { "ready" } },
    };
    row(
        agent,
        &session.session_id,
        cwd,
        session.title.as_deref(),
        &state,
    )
}

fn stored_row(agent: &str, session: &SessionInfo) -> Markup {
    let changed = session.updated_at.as_deref().and_then(time_ago);
    let state = html! { @if let Some(changed) = changed { span.state { (changed) } } };
    let id = session.session_id.as_str();
    row(agent, id, &session.cwd, session.title.as_deref(), &state)
}

fn row(agent: &str, id: &str, cwd: &str, title: Option<&str>, state: &Markup) -> Markup {
    let title = text::sanitize_line(title.unwrap_or(id));
    html! {
        li {
            a href=(session_path(agent, id, cwd)) {
                b { (text::truncate_text(&title, MAX_TITLE_CHARS)) }
                (state)
                span.soft.directory { (text::sanitize_line(cwd)) }
            }
        }
    }
}

/// Returns the path of the page of a session.
pub(super) fn session_path(agent: &str, id: &str, cwd: &str) -> String {
    let [agent, id, cwd] = [agent, id, cwd].map(|text| utf8_percent_encode(text, NON_ALPHANUMERIC));
    format!("/session?agent={agent}&id={id}&cwd={cwd}")
}

/// Returns how long ago something was, as people say it.
fn time_ago(time: &str) -> Option<String> {
    let time: Timestamp = time.parse().ok()?;
    let seconds = (Timestamp::now() - time).total(Unit::Second).ok()?;
    Some(seconds_ago(seconds))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "whole units are what people say"
)]
fn seconds_ago(seconds: f64) -> String {
    let (count, unit) = match seconds {
        ..60.0 => return "just now".to_owned(),
        ..3600.0 => (seconds / 60.0, "minute"),
        ..86_400.0 => (seconds / 3600.0, "hour"),
        _ => (seconds / 86_400.0, "day"),
    };
    match count as i64 {
        1 => format!("1 {unit} ago"),
        count => format!("{count} {unit}s ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_people_say_them() {
        for (seconds, said) in [
            (-5.0, "just now"),
            (59.0, "just now"),
            (60.0, "1 minute ago"),
            (7199.0, "1 hour ago"),
            (86_400.0 * 2.5, "2 days ago"),
        ] {
            assert_eq!(seconds_ago(seconds), said);
        }
        assert_eq!(time_ago("not a time"), None);
        assert!(
            time_ago("2020-01-01T00:00:00Z")
                .unwrap()
                .ends_with("days ago")
        );
    }

    #[test]
    fn paths_of_sessions_have_no_special_characters() {
        let path = session_path("agent", "a&b=\"c", "/a b");
        assert_eq!(path, "/session?agent=agent&id=a%26b%3D%22c&cwd=%2Fa%20b");
    }
}

//! Formats a list of sessions.

use acp::v1::SessionInfo;
use acp_config::NamedSession;
use acp_host::terminal_text;
use jiff::Zoned;
use serde_json::Value;

use super::when::describe_time;
use crate::args::shared::ListFormat;
use crate::exit::CommandExit;

/// Formats sessions, with the names that the user has given them. In text, times are as people say them.
pub(super) fn render_sessions(
    sessions: &[SessionInfo],
    names: &[NamedSession],
    format: ListFormat,
) -> Result<String, CommandExit> {
    let name_of = |session: &SessionInfo| {
        let named = names
            .iter()
            .find(|named| named.id == session.session_id.as_str());
        named.map(|named| named.name.as_str())
    };
    let mut text = String::new();
    if format == ListFormat::Json {
        for session in sessions {
            let line = render_json(session, name_of(session))
                .map_err(|e| CommandExit::failed(format!("cannot print a session: {e}")))?;
            text.push_str(&line);
            text.push('\n');
        }
        return Ok(text);
    }
    let now = Zoned::now();
    let rows: Vec<[String; 5]> = sessions
        .iter()
        .map(|session| {
            let name = name_of(session).unwrap_or("-");
            let updated = session.updated_at.as_deref();
            let updated = updated.map_or_else(|| "-".to_owned(), |time| describe_time(time, &now));
            let title = session.title.as_deref().unwrap_or("(untitled)");
            let archived = match session.archived {
                Some(true) => "(archived) ",
                _ => "",
            };
            [
                name,
                session.session_id.as_str(),
                &updated,
                &session.cwd,
                &format!("{archived}{title}"),
            ]
            .map(terminal_text::clean_value)
        })
        .collect();
    let width = |column: fn(&[String; 5]) -> &String| {
        let widths = rows.iter().map(|row| column(row).chars().count());
        widths.max().unwrap_or_default()
    };
    let called = width(|r| &r[0]);
    let (ids, dates, directories) = (width(|r| &r[1]), width(|r| &r[2]), width(|r| &r[3]));
    for [name, id, updated, cwd, title] in &rows {
        if !names.is_empty() {
            text.push_str(&format!("{name:called$}  "));
        }
        text.push_str(&format!(
            "{id:ids$}  {updated:dates$}  {cwd:directories$}  {title}\n"
        ));
    }
    Ok(text)
}

/// Renders a session as JSON, in the protocol's format plus the user's name for the session.
fn render_json(session: &SessionInfo, name: Option<&str>) -> serde_json::Result<String> {
    let Some(name) = name else {
        return serde_json::to_string(session);
    };
    let mut value = serde_json::to_value(session)?;
    if let Value::Object(fields) = &mut value {
        let meta = fields
            .entry("_meta")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Value::Object(meta) = meta {
            meta.insert("acp/name".to_owned(), name.into());
        }
    }
    serde_json::to_string(&value)
}

//! Converts between sessions and rows of the database.

use rusqlite::Row;
use serde::{Deserialize, Serialize};

use crate::store::error::StoreError;
use crate::store::list_cursor::to_time;
use crate::store::sqlite::error::store_error;
use crate::store::stored_session::{
    ClientInstructions, SessionProperties, SessionRevision, StoredSession,
};

/// The columns of a session, in the order expected by [`stored_session`].
pub(super) const SESSION_COLUMNS: &str = "id, cwd, directories, title, mode, calls, always, created, updated, version, next, folded, more";

pub(super) fn stored_session(row: &Row<'_>) -> Result<StoredSession, StoreError> {
    let json =
        |column: usize| -> Result<String, StoreError> { row.get(column).map_err(store_error) };
    fn parse_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|e| StoreError::Corrupt(e.to_string()))
    }
    let more: ExtraProperties = parse_json(&json(12)?)?;
    let properties = SessionProperties {
        cwd: row.get(1).map_err(store_error)?,
        additional_directories: parse_json(&json(2)?)?,
        title: row.get(3).map_err(store_error)?,
        mode: row.get(4).map_err(store_error)?,
        calls: row.get(5).map_err(store_error)?,
        always: parse_json(&json(6)?)?,
        spent: more.spent,
        model: more.model,
        thought_level: more.thought_level,
        archived: more.archived,
        client_prompt: more.client_prompt,
    };
    Ok(StoredSession {
        id: row.get::<_, String>(0).map_err(store_error)?.into(),
        properties,
        created_at: to_time(row.get(7).map_err(store_error)?),
        updated_at: to_time(row.get(8).map_err(store_error)?),
        revision: SessionRevision(row.get(9).map_err(store_error)?),
        next_entry: row.get(10).map_err(store_error)?,
        folded_until: row.get(11).map_err(store_error)?,
    })
}

/// The properties that no query uses. They are stored as a JSON object in one column, so that a new property does not
/// change the format.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ExtraProperties {
    spent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_level: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    archived: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_prompt: Option<ClientInstructions>,
}

/// Returns the properties stored as JSON: the directories, the answers, and those that have no column of their own.
pub(super) fn json_columns(
    properties: &SessionProperties,
) -> Result<(String, String, String), StoreError> {
    let write = |e: serde_json::Error| StoreError::Failed(format!("cannot serialize: {e}"));
    let directories = serde_json::to_string(&properties.additional_directories).map_err(write)?;
    let always = serde_json::to_string(&properties.always).map_err(write)?;
    let more = ExtraProperties {
        spent: properties.spent,
        model: properties.model.clone(),
        thought_level: properties.thought_level.clone(),
        archived: properties.archived,
        client_prompt: properties.client_prompt.clone(),
    };
    let more = serde_json::to_string(&more).map_err(write)?;
    Ok((directories, always, more))
}

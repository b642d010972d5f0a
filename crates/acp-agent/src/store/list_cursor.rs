//! The times and cursors of a list that a database sorts.

use std::time::{Duration, SystemTime};

use super::error::StoreError;
use super::stored_session::StoredSession;

/// The latest time in a cursor: the end of the year 9999, in milliseconds since 1970. Databases cannot represent times
/// that are much later.
const MAX_TIME: i64 = 253_402_300_799_999;

/// Returns a time in milliseconds since 1970.
pub(super) fn to_millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn to_time(millis: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis.try_into().unwrap_or_default())
}

/// Returns the cursor of the page that starts after this session.
pub(super) fn list_cursor(last: &StoredSession) -> String {
    format!("{}-{}", to_millis(last.updated_at), last.id)
}

/// Returns the time in milliseconds and the id of a cursor's session.
pub(super) fn parse_list_cursor(cursor: &str) -> Result<(i64, String), StoreError> {
    let place = || {
        let (updated, id) = cursor.split_once('-')?;
        let updated = updated.parse().ok()?;
        (0..=MAX_TIME)
            .contains(&updated)
            .then(|| (updated, id.to_owned()))
    };
    place().ok_or_else(|| StoreError::Cursor(cursor.to_owned()))
}

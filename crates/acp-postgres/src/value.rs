//! Values that PostgreSQL represents in another way than Rust.

use crate::{DriverError, Row};

/// Converts a number to PostgreSQL's signed type. Larger numbers become the largest one.
#[must_use]
pub fn to_bigint(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Reads a number that is never negative.
///
/// # Errors
/// The column has another type.
pub fn read_unsigned(row: &Row, column: usize) -> Result<u64, DriverError> {
    let number: i64 = row.try_get(column)?;
    Ok(u64::try_from(number).unwrap_or_default())
}

/// Replaces NUL characters, which PostgreSQL cannot store in text. JSON text does not contain them.
#[must_use]
pub fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

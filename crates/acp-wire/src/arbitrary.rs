//! Generates field values for which `Arbitrary` cannot be derived.

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::Value;

/// Returns a random JSON value that survives a round trip through every reader. Its numbers are all whole, and it
/// contains no `null`, because readers treat `null` as a missing value.
fn value(u: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    let kinds = if depth == 0 { 2 } else { 4 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => Value::Bool(bool::arbitrary(u)?),
        1 => Value::from(i64::arbitrary(u)?),
        2 => Value::String(String::arbitrary(u)?),
        3 => {
            let len = u.int_in_range(0..=3)?;
            Value::Array(
                (0..len)
                    .map(|_| value(u, depth - 1))
                    .collect::<Result<_>>()?,
            )
        }
        _ => Value::Object(object(u, depth - 1)?),
    })
}

fn object(u: &mut Unstructured<'_>, depth: u8) -> Result<crate::Meta> {
    let len = u.int_in_range(0..=3)?;
    (0..len)
        .map(|_| Ok((String::arbitrary(u)?, value(u, depth)?)))
        .collect()
}

pub(crate) fn option_value(u: &mut Unstructured<'_>) -> Result<Option<Value>> {
    option(u, |u| value(u, 2))
}

pub(crate) fn meta(u: &mut Unstructured<'_>) -> Result<Option<crate::Meta>> {
    Ok(if u.ratio(1, 4)? {
        Some(object(u, 2)?)
    } else {
        None
    })
}

pub(crate) fn clearable_meta(u: &mut Unstructured<'_>) -> Result<Option<Option<crate::Meta>>> {
    Ok(if u.ratio(1, 8)? {
        Some(None)
    } else {
        meta(u)?.map(Some)
    })
}

/// Returns a random JSON value, `null` or `None`, for fields where `null` has a meaning.
pub(crate) fn clearable_value(u: &mut Unstructured<'_>) -> Result<Option<Value>> {
    Ok(if u.ratio(1, 8)? {
        Some(Value::Null)
    } else {
        option_value(u)?
    })
}

pub(crate) fn positive(u: &mut Unstructured<'_>) -> Result<u16> {
    u.int_in_range(1..=u16::MAX)
}

pub(crate) fn option_positive(u: &mut Unstructured<'_>) -> Result<Option<u32>> {
    option(u, |u| u.int_in_range(1..=u32::MAX))
}

pub(crate) fn option_non_negative(u: &mut Unstructured<'_>) -> Result<Option<i64>> {
    option(u, |u| u.int_in_range(0..=i64::MAX))
}

/// Returns a list of at least one random item.
pub(crate) fn non_empty_list<'a, T: Arbitrary<'a>>(u: &mut Unstructured<'a>) -> Result<Vec<T>> {
    let mut items: Vec<T> = u.arbitrary()?;
    if items.is_empty() {
        items.push(u.arbitrary()?);
    }
    Ok(items)
}

pub(crate) fn option_non_empty_list<'a, T: Arbitrary<'a>>(
    u: &mut Unstructured<'a>,
) -> Result<Option<Vec<T>>> {
    option(u, non_empty_list)
}

/// Returns a random string that is not empty.
pub(crate) fn non_empty_string(u: &mut Unstructured<'_>) -> Result<String> {
    let text = String::arbitrary(u)?;
    Ok(if text.is_empty() {
        "-".to_owned()
    } else {
        text
    })
}

/// Returns a random finite number. JSON has no infinity and no NaN.
pub(crate) fn finite(u: &mut Unstructured<'_>) -> Result<f64> {
    // Quarters are exact in binary, so all readers agree on the last digit.
    Ok(f64::from(i32::arbitrary(u)?) / 4.0)
}

pub(crate) fn option_finite(u: &mut Unstructured<'_>) -> Result<Option<f64>> {
    option(u, finite)
}

/// Returns a random number from 0 to 1, or `None`.
pub(crate) fn option_fraction(u: &mut Unstructured<'_>) -> Result<Option<f64>> {
    option(u, |u| Ok(f64::from(u8::arbitrary(u)? / 4) / 64.0))
}

fn option<'a, T>(
    u: &mut Unstructured<'a>,
    make: impl FnOnce(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Option<T>> {
    Ok(if bool::arbitrary(u)? {
        Some(make(u)?)
    } else {
        None
    })
}

//! Values that `arbitrary` cannot derive.

use arbitrary::{Arbitrary, Result, Unstructured};
use serde_json::Value;

/// Any JSON value but one that a reader may change: numbers are whole, `null` stands for absent.
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
    Ok(if bool::arbitrary(u)? {
        Some(value(u, 2)?)
    } else {
        None
    })
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

pub(crate) fn positive(u: &mut Unstructured<'_>) -> Result<u16> {
    u.int_in_range(1..=u16::MAX)
}

/// A finite number: JSON has no other.
pub(crate) fn finite(u: &mut Unstructured<'_>) -> Result<f64> {
    // Quarters are exact in binary, so that every reader agrees on the last digit.
    Ok(f64::from(i32::arbitrary(u)?) / 4.0)
}

pub(crate) fn option_finite(u: &mut Unstructured<'_>) -> Result<Option<f64>> {
    Ok(if bool::arbitrary(u)? {
        Some(finite(u)?)
    } else {
        None
    })
}

//! Compares recorded and live messages.

use std::collections::HashMap;
use std::convert::Infallible;
use std::str::FromStr;

use serde_json::Value;

use acp_rules::REDACTED;

/// The names of fields that contain ids, which differ in each run.
const ID_FIELDS: &[&str] = &[
    "sessionId",
    "toolCallId",
    "terminalId",
    "messageId",
    "elicitationId",
];

/// A path in messages that is excluded from the comparison, along with everything below it. It consists of field names
/// and item numbers separated by dots. `*` matches any name or number: `result.sessions.*.updatedAt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredPath(Vec<String>);

impl FromStr for IgnoredPath {
    type Err = Infallible;

    fn from_str(path: &str) -> Result<Self, Infallible> {
        Ok(Self(path.split('.').map(str::to_owned).collect()))
    }
}

impl IgnoredPath {
    fn covers(&self, path: &[String]) -> bool {
        let matches = |(asked, part): (&String, &String)| asked == "*" || asked == part;
        self.0.len() <= path.len() && self.0.iter().zip(path).all(matches)
    }
}

/// A difference between a recorded value and a live value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ValueChange {
    /// The path of the value, in the form of an [`IgnoredPath`].
    pub path: String,
    /// The recorded value, or `None` if the field is only in the live message.
    pub recorded: Option<Value>,
    /// The live value, or `None` if the field is only in the recorded message.
    pub live: Option<Value>,
}

/// A map from recorded ids to the live ids that replace them.
#[derive(Debug, Default)]
pub(super) struct LiveIds(HashMap<String, String>);

impl LiveIds {
    /// Returns `true` if a recorded id and a live id may refer to the same object.
    pub(super) fn may_match(&self, recorded: &str, live: &str) -> bool {
        self.0.get(recorded).is_none_or(|known| known == live)
    }

    /// Replaces recorded ids in a value with live ids. Returns `true` if anything changed.
    pub(super) fn replace(&self, value: &mut Value) -> bool {
        let mut changed = false;
        match value {
            Value::Array(items) => {
                for item in items {
                    changed |= self.replace(item);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let live = match member.as_str() {
                        Some(id) if ID_FIELDS.contains(&name.as_str()) => self.0.get(id),
                        _ => None,
                    };
                    match live {
                        Some(live) if member != live => {
                            *member = live.as_str().into();
                            changed = true;
                        }
                        _ => changed |= self.replace(member),
                    }
                }
            }
            _ => {}
        }
        changed
    }
}

/// Compares a recorded message with a live one, and returns the differences. Ids may differ, and the live ids are added
/// to `ids`. Redacted and ignored values are not compared.
pub(super) fn compare(
    recorded: &Value,
    live: &Value,
    ids: &mut LiveIds,
    ignore: &[IgnoredPath],
) -> Vec<ValueChange> {
    let mut comparison = Comparison {
        ids,
        ignore,
        path: Vec::new(),
        changes: Vec::new(),
    };
    comparison.compare_members(recorded, live, &["id"]);
    comparison.changes
}

struct Comparison<'a> {
    ids: &'a mut LiveIds,
    ignore: &'a [IgnoredPath],
    path: Vec<String>,
    changes: Vec<ValueChange>,
}

impl Comparison<'_> {
    fn compare_members(&mut self, recorded: &Value, live: &Value, but: &[&str]) {
        let (Some(was), Some(is)) = (recorded.as_object(), live.as_object()) else {
            return;
        };
        let added = is.keys().filter(|name| !was.contains_key(*name));
        for name in was
            .keys()
            .chain(added)
            .filter(|name| !but.contains(&name.as_str()))
        {
            self.compare_at(name.clone(), was.get(name), is.get(name));
        }
    }

    fn compare_at(&mut self, part: String, recorded: Option<&Value>, live: Option<&Value>) {
        self.path.push(part);
        if !self.ignore.iter().any(|ignore| ignore.covers(&self.path)) {
            self.compare_values(recorded, live);
        }
        self.path.pop();
    }

    fn compare_values(&mut self, recorded: Option<&Value>, live: Option<&Value>) {
        let same = match (recorded, live) {
            (Some(was @ Value::Object(_)), Some(is @ Value::Object(_))) => {
                self.compare_members(was, is, &[]);
                return;
            }
            (Some(Value::Array(was)), Some(Value::Array(is))) => {
                for n in 0..was.len().max(is.len()) {
                    self.compare_at(n.to_string(), was.get(n), is.get(n));
                }
                return;
            }
            (Some(Value::String(was)), Some(Value::String(is))) if self.is_id() => {
                // The first live id that appears in place of a recorded id is its counterpart.
                self.ids.0.entry(was.clone()).or_insert_with(|| is.clone()) == is
            }
            // The recorded value is unknown.
            (Some(Value::String(was)), Some(_)) if was.contains(REDACTED) => true,
            (Some(Value::Number(was)), Some(Value::Number(is))) => {
                was == is || was.as_f64() == is.as_f64()
            }
            (was, is) => was == is,
        };
        if !same {
            self.changes.push(ValueChange {
                path: self.path.join("."),
                recorded: recorded.cloned(),
                live: live.cloned(),
            });
        }
    }

    fn is_id(&self) -> bool {
        self.path
            .last()
            .is_some_and(|name| ID_FIELDS.contains(&name.as_str()))
    }
}

//! Which messages a page shows.

use acp_trace::{Side, TraceEntry};
use globset::GlobMatcher;
use serde::Deserialize;

use crate::args::trace::parse_glob;

/// The maximum length of each text of a filter, in bytes.
const MAX_FILTER_LEN: usize = 4096;

/// The filter as the page sends it. Empty texts select everything.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FilterQuery {
    #[serde(default)]
    from: String,
    #[serde(default)]
    method: String,
    #[serde(default)]
    session: String,
    #[serde(default)]
    errors: bool,
    #[serde(default)]
    text: String,
}

/// A filter for the messages of a page.
#[derive(Debug, Default)]
pub(super) struct RowFilter {
    from: Option<Side>,
    methods: Vec<GlobMatcher>,
    session: Option<String>,
    errors: bool,
    text: Option<TextSearch>,
}

/// A text to find in messages, in any case.
#[derive(Debug)]
struct TextSearch {
    /// The text in lower case: as it is, and in the forms in which JSON can contain it.
    needles: Vec<String>,
}

impl RowFilter {
    /// Checks a filter. The methods are globs, separated by spaces or commas.
    ///
    /// # Errors
    /// A part of the filter is not valid. The error is a text for the user.
    pub(super) fn parse(query: &FilterQuery) -> Result<Self, String> {
        let texts = [&query.method, &query.session, &query.text];
        if texts.iter().any(|text| text.len() > MAX_FILTER_LEN) {
            return Err("the filter is too long".to_owned());
        }
        let from = match query.from.as_str() {
            "" => None,
            "client" => Some(Side::Client),
            "agent" => Some(Side::Agent),
            other => return Err(format!("unknown side: {other}")),
        };
        let globs = query
            .method
            .split([' ', ','])
            .filter(|glob| !glob.is_empty());
        let methods = globs
            .map(parse_glob)
            .collect::<Result<_, _>>()
            .map_err(|e| format!("not a method glob: {e}"))?;
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(Self {
            from,
            methods,
            session: given(&query.session),
            errors: query.errors,
            text: given(&query.text).map(|text| TextSearch::new(&text)),
        })
    }

    pub(super) fn matches(&self, entry: &TraceEntry) -> bool {
        let names = [Some(entry.method.as_str()), entry.update.as_deref()];
        let has_method =
            |glob: &GlobMatcher| names.into_iter().flatten().any(|name| glob.is_match(name));
        self.from.is_none_or(|from| entry.from == Some(from))
            && (self.methods.is_empty() || self.methods.iter().any(has_method))
            && (self.session.is_none() || self.session == entry.session)
            && (entry.is_error || !self.errors)
            && self.text.as_ref().is_none_or(|text| text.is_in(entry))
    }
}

impl TextSearch {
    fn new(text: &str) -> Self {
        let plain = text.to_lowercase();
        let escaped = serde_json::Value::from(plain.as_str()).to_string();
        let escaped = escaped.trim_matches('"').to_owned();
        let mut ascii = String::new();
        for c in escaped.chars() {
            if c.is_ascii() {
                ascii.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
        let mut needles = vec![plain, escaped, ascii];
        needles.dedup();
        Self { needles }
    }

    fn is_in(&self, entry: &TraceEntry) -> bool {
        let has = |text: &str| {
            let text = text.to_lowercase();
            self.needles.iter().any(|needle| text.contains(needle))
        };
        has(entry.name())
            || entry
                .message
                .as_ref()
                .map_or_else(|| has(&entry.summary), |message| has(message.get()))
    }
}

#[cfg(test)]
mod tests {
    use acp_trace::{EntryBuilder, TraceReader};

    use super::*;

    const RECORDS: &str = r#"{"acp_trace":1,"started":"2026-01-01T00:00:00Z","command":["a"],"by":"acp","secrets":"redacted"}
{"t":1,"from":"client","len":1,"msg":{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"one","prompt":[{"type":"text","text":"Caf\u00E9 \"now\""}]}}}
{"t":2,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"two","update":{"sessionUpdate":"plan","entries":[]}}}}
{"t":3,"from":"agent","len":1,"msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}}}
{"t":4,"stderr":"Warning: slow"}
{"t":5,"event":"end"}
"#;

    /// Returns the times of the records that a filter selects.
    fn selected(query: &str) -> Vec<u64> {
        let query: FilterQuery = serde_json::from_str(query).unwrap();
        let filter = RowFilter::parse(&query).unwrap();
        let mut entries = EntryBuilder::new();
        TraceReader::new(RECORDS.as_bytes())
            .unwrap()
            .filter_map(|record| entries.build_entry(record.unwrap()))
            .filter(|entry| filter.matches(entry))
            .map(|entry| entry.time_us)
            .collect()
    }

    #[test]
    fn filter_selects_by_side_method_session_and_errors() {
        for (query, expected) in [
            ("{}", &[1, 2, 3, 4, 5][..]),
            (r#"{"from":"client"}"#, &[1]),
            (r#"{"from":"agent"}"#, &[2, 3, 4]),
            // The response to a request has its method.
            (r#"{"method":"session/p*"}"#, &[1, 3]),
            (r#"{"method":"plan, session/prompt"}"#, &[1, 2, 3]),
            (r#"{"session":"two"}"#, &[2]),
            (r#"{"errors":true}"#, &[3]),
            (r#"{"errors":true,"from":"client"}"#, &[]),
        ] {
            assert_eq!(selected(query), expected, "{query}");
        }
    }

    #[test]
    fn text_is_found_in_any_case_and_form() {
        for (text, expected) in [
            ("CAFÉ", &[1][..]),
            ("é \"NOW", &[1]),
            ("warning: SLOW", &[4]),
            ("broken", &[3]),
            ("plan", &[2]),
            ("nowhere", &[]),
        ] {
            let query = serde_json::json!({ "text": text });
            assert_eq!(selected(&query.to_string()), expected, "{text}");
        }
    }

    #[test]
    fn invalid_filters_are_reported() {
        let error =
            |query: &str| RowFilter::parse(&serde_json::from_str(query).unwrap()).unwrap_err();
        assert!(error(r#"{"method":"a{"}"#).starts_with("not a method glob: "));
        assert_eq!(error(r#"{"from":"x"}"#), "unknown side: x");
    }
}

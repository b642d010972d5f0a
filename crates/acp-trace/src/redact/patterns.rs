//! Defines patterns for text that looks like a secret wherever it occurs.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex::Regex;

/// Keys with well-known prefixes, and other text of a recognizable form.
const KEY_PATTERNS: &[&str] = &[
    r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
    // Not after a letter: `task-list` is not a key. Only ASCII letters count, since other scripts use no spaces.
    r"(?-u:\b)(sk-|sk_|rk_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|AKIA|ASIA|AIza|hf_|npm_|pypi-|xai-|gsk_|ya29\.)[A-Za-z0-9_-]{8,}",
    r"(?-u:\b)(eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    r"(?i)((?-u:\b)bearer\s+)[A-Za-z0-9._~+/=-]{6,}",
    // Credentials and secret parameters in URLs.
    r#"(:\\?/\\?/)[^/\s"'<>\\]*:[^/\s"'<>\\]*(@)"#,
    r"(:\\?/\\?/)[A-Za-z0-9._~%-]{16,}(@)",
    // A URL that is truncated before the host. The text after the colon is not a port.
    r#"(:\\?/\\?/[^/\s"'<>:@\\]*:)[^/\s"'<>@\\]*[^/\s"'<>@\\0-9][^/\s"'<>@\\]*\z"#,
    r#"(?i)([?&#](?:[\w.-]*(?:key|token|secret|passw(?:or)?d|signature|auth)|sig)=)[^&\s"'#<>\\]+"#,
    // Headers, in the form in which they are passed to programs.
    r#"(?i)((?:proxy-)?authorization\\*["']?\s*[:=]\s*\\*["']?(?:(?:basic|bearer|digest|token)\s+)?)[^\s"',;\\]+"#,
    r#"(?i)((?:set-)?cookie\s*:\s*)[^\r\n"'\\]+"#,
    // Arguments of programs.
    r#"(?i)(--?[\w-]*(?:api-?key|token|passw(?:or)?d|secret|passphrase)[= ]\s*)(?:"[^"]*"|'[^']*'|[^\s"']+)"#,
];

/// Patterns for assignments in messages. Most text in messages has nothing to do with secrets.
const MESSAGE_PATTERNS: &[&str] = &[
    r#"(?-u:\b)((?:[A-Z][A-Z0-9_]*KEY|[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)|(?:[A-Z0-9_]*_)?PASS)\s?=\s?)(?:"[^"]*"|'[^']*'|[^\s"'`=;&|]+)"#,
    r#"(?i)("[\w .-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|cookie|credential|private[_-]?key|access[_-]?key)[\w .-]*"\s*:\s*")(?:[^"\\]|\\.)+"#,
    r"(?i)('[\w .-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|cookie|credential|private[_-]?key|access[_-]?key)[\w .-]*'\s*:\s*')(?:[^'\\]|\\.)+",
    r#"(?i)(\\+"[\w .-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|cookie|credential|private[_-]?key|access[_-]?key)[\w .-]*\\+"\s*:\s*\\+")[^"\\]+"#,
];

/// Patterns for assignments in program output, outside messages.
const OUTPUT_PATTERNS: &[&str] = &[
    r#"(?i)([\w.-]*(?:api[_ -]?key|token|secret|passw(?:or)?d|passwd|passphrase|credentials?|private[_-]?key|access[_-]?key)\\*["']?\s*[:=]\s*\\*["']?)[^\s"',;&\\]+"#,
];

/// The compiled patterns. In each, the first group matches text before the secret, and the second group, if any,
/// matches text after it. Both are kept.
///
/// The patterns are compiled on first use, which takes some milliseconds. Many traces need none of them.
#[derive(Debug, Default)]
pub(super) struct SecretPatterns {
    in_strings: OnceLock<Vec<Regex>>,
    in_plain: OnceLock<Vec<Regex>>,
}

fn compile(patterns: &[&[&str]]) -> Vec<Regex> {
    let patterns = patterns.concat().into_iter();
    // The patterns are constants, and a test compiles all of them.
    patterns
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
}

impl SecretPatterns {
    /// Redacts secrets in a string from a message. Returns `None` if there are no secrets.
    pub(super) fn redact_string(&self, text: &str) -> Option<String> {
        let strict = self
            .in_strings
            .get_or_init(|| compile(&[KEY_PATTERNS, MESSAGE_PATTERNS]));
        replace(strict, text)
    }

    /// Redacts secrets in a line of program output. Returns `None` if there are no secrets.
    pub(super) fn redact_plain(&self, text: &str) -> Option<String> {
        let loose = self
            .in_plain
            .get_or_init(|| compile(&[KEY_PATTERNS, MESSAGE_PATTERNS, OUTPUT_PATTERNS]));
        replace(loose, text)
    }
}

fn replace(patterns: &[Regex], text: &str) -> Option<String> {
    let mut replaced = Cow::Borrowed(text);
    for pattern in patterns {
        if let Cow::Owned(text) = pattern.replace_all(&replaced, "${1}[redacted]${2}") {
            replaced = Cow::Owned(text);
        }
    }
    match replaced {
        Cow::Owned(replaced) if replaced != text => Some(replaced),
        _ => None,
    }
}

/// Returns `true` if the line starts a private key that continues on the next lines.
pub(super) fn starts_private_key(line: &str) -> bool {
    line.contains("-----BEGIN ") && line.contains("PRIVATE KEY-----")
}

/// Returns `true` if the line ends a private key.
pub(super) fn ends_private_key(line: &str) -> bool {
    line.contains("-----END ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        for pattern in [KEY_PATTERNS, MESSAGE_PATTERNS, OUTPUT_PATTERNS].concat() {
            let compiled = Regex::new(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert!(matches!(compiled.captures_len(), 2..=3), "{pattern}");
        }
    }

    #[test]
    fn secret_patterns_are_redacted_anywhere() {
        let patterns = SecretPatterns::default();
        for (text, expected) in [
            ("use sk-ant-api03-abcdefgh now", "use sk-[redacted] now"),
            ("密钥sk-abcdefgh12345678。", "密钥sk-[redacted]。"),
            ("ghp_abcdefghijklmnop", "ghp_[redacted]"),
            ("Bearer abc.def-ghi", "Bearer [redacted]"),
            ("https://me:pa:ss@host/x", "https://[redacted]@host/x"),
            ("see https://me:pa55", "see https://me:[redacted]"),
            (
                "https://h/x?a=1&api_key=abc&b=2",
                "https://h/x?a=1&api_key=[redacted]&b=2",
            ),
            (
                "curl -H 'Authorization: Basic dXNlcg=='",
                "curl -H 'Authorization: Basic [redacted]'",
            ),
            ("tool --api-key abc --x", "tool --api-key [redacted] --x"),
            ("TOKEN=x run", "TOKEN=[redacted] run"),
            ("Run `PASSWORD=x make`", "Run `PASSWORD=[redacted] make`"),
            ("export DB_PASS=x", "export DB_PASS=[redacted]"),
            ("DB_PASSWORD=\"a b\" run", "DB_PASSWORD=[redacted] run"),
            (
                r#"{"apiKey": "a\"b", "x": 1}"#,
                r#"{"apiKey": "[redacted]", "x": 1}"#,
            ),
            (
                r#"{\"token\":\"abc\",\"x\":1}"#,
                r#"{\"token\":\"[redacted]\",\"x\":1}"#,
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nab\n-----END RSA PRIVATE KEY-----",
                "-----BEGIN RSA PRIVATE KEY-----[redacted]",
            ),
        ] {
            assert_eq!(
                patterns.redact_string(text).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in [
            "the task-list of risk-averse people",
            "a token is a part of a word",
            "https://host/path?page=2",
            "https://host:8080",
            "git@host:path ssh://git@host/path",
            "Basic functionality",
        ] {
            assert_eq!(patterns.redact_string(text), None, "{text}");
        }
        let said = patterns.redact_plain("config: password=hunter2, token: abc");
        let expected = "config: password=[redacted], token: [redacted]";
        assert_eq!(said.as_deref(), Some(expected));
    }
}

//! Recognizes names that hint at secrets.

/// The kind of value that the name of a field or variable suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// The name suggests nothing about the value.
    Plain,
    /// The value is a secret.
    Secret,
    /// The value is a secret if it is a string. If it is a number, it is a count of tokens.
    Token,
    /// The value contains environment variables or HTTP headers.
    Variables,
    /// The value contains the schemas of a form's fields, or of a tool's arguments, by name.
    Properties,
}

/// Single words in a name that hint at a secret.
const SECRET_WORDS: &[&str] = &[
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "cookie",
    "credential",
    "authorization",
];

/// Hints that consist of several words. Names may separate the words in various ways.
const COMPOUND_WORDS: &[&str] = &[
    "apikey",
    "accesskey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "authkey",
    "masterkey",
    "sharedkey",
    "accountkey",
];

/// Returns the kind of value that the name of a field or variable suggests.
pub(super) fn name_kind(name: &str) -> NameKind {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "env" | "headers" | "httpheaders" | "http_headers" => return NameKind::Variables,
        "properties" => return NameKind::Properties,
        // Words that say whose value it is: `auth/status`.
        "accounts" => return NameKind::Token,
        _ => {}
    }
    if SECRET_WORDS.iter().any(|word| lower.contains(word)) {
        return NameKind::Secret;
    }
    let squeezed: String = lower
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .collect();
    if COMPOUND_WORDS.iter().any(|word| squeezed.contains(word)) {
        return NameKind::Secret;
    }
    if lower.contains("token") {
        return NameKind::Token;
    }
    NameKind::Plain
}

/// Returns `true` if the name of a field or variable hints at a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    matches!(name_kind(name), NameKind::Secret | NameKind::Token)
}

/// Returns `true` if the argument after `arg` is a secret: after `--api-key`, but not after `--api-key=…`.
pub(super) fn is_secret_flag(arg: &str) -> bool {
    let is_flag = arg.starts_with('-') && !arg.contains(['=', ' ']);
    is_flag && is_secret_name(arg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_recognized_in_every_notation() {
        for name in [
            "apiKey",
            "API_KEY",
            "x-api-key",
            "OPENAI_API_KEY",
            "password",
            "dbPasswd",
            "clientSecret",
            "Authorization",
            "Set-Cookie",
            "private_key",
            "aws.access.key.id",
        ] {
            assert_eq!(name_kind(name), NameKind::Secret, "{name}");
        }
        for name in ["token", "accessToken", "GITHUB_TOKEN", "accounts"] {
            assert_eq!(name_kind(name), NameKind::Token, "{name}");
        }
        for name in ["key", "keyboard", "authMethods", "text", "sessionId"] {
            assert_eq!(name_kind(name), NameKind::Plain, "{name}");
        }
        assert!(is_secret_flag("--api-key") && !is_secret_flag("--api-key=x"));
    }
}

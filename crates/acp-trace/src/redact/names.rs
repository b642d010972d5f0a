//! Names that tell of a secret.

/// What stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// Anything.
    Plain,
    /// Secrets.
    Secret,
    /// Secrets, if it is text. Numbers of tokens are counts.
    Token,
    /// Environment variables or HTTP headers.
    Variables,
    /// Names of a form's fields, or of a tool's arguments, with what they may be.
    Properties,
}

/// Words that tell of a secret.
const WORDS: &[&str] = &[
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "cookie",
    "credential",
    "authorization",
];

/// The same, of several words that are written in many ways.
const COMPOUND: &[&str] = &[
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

/// What stands under this name.
pub(super) fn kind_of_name(name: &str) -> NameKind {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "env" | "headers" | "httpheaders" | "http_headers" => return NameKind::Variables,
        "properties" => return NameKind::Properties,
        // Whose they are: `auth/status`.
        "accounts" => return NameKind::Token,
        _ => {}
    }
    if WORDS.iter().any(|word| lower.contains(word)) {
        return NameKind::Secret;
    }
    let squeezed: String = lower
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | '.' | ' '))
        .collect();
    if COMPOUND.iter().any(|word| squeezed.contains(word)) {
        return NameKind::Secret;
    }
    if lower.contains("token") {
        return NameKind::Token;
    }
    NameKind::Plain
}

/// Whether a name tells of a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    matches!(kind_of_name(name), NameKind::Secret | NameKind::Token)
}

/// Whether what follows this argument is secret: `--api-key`, and not `--api-key=…`.
pub(super) fn is_secret_flag(arg: &str) -> bool {
    let is_flag = arg.starts_with('-') && !arg.contains(['=', ' ']);
    is_flag && is_secret_name(arg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_of_secrets_in_any_spelling() {
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
            assert_eq!(kind_of_name(name), NameKind::Secret, "{name}");
        }
        for name in ["token", "accessToken", "GITHUB_TOKEN", "accounts"] {
            assert_eq!(kind_of_name(name), NameKind::Token, "{name}");
        }
        for name in ["key", "keyboard", "authMethods", "text", "sessionId"] {
            assert_eq!(kind_of_name(name), NameKind::Plain, "{name}");
        }
        assert!(is_secret_flag("--api-key") && !is_secret_flag("--api-key=x"));
    }
}

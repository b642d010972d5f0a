//! Checks that a secret in a message is not recorded, and that everything else is recorded unchanged.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use acp_trace::Redactor;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The secret that must not be recorded. It contains no needle that would give it away.
const PLANTED_SECRET: &str = "hush7Qz0hush";

/// Returns the redactor that all tested messages share, as all messages of a trace do.
fn lock_redactor() -> MutexGuard<'static, Redactor> {
    static REDACTOR: LazyLock<Mutex<Redactor>> = LazyLock::new(|| Mutex::new(Redactor::new()));
    REDACTOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Generates text that is not secret but contains sequences that make JSON hard to parse.
fn arbitrary_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,12}",
        "\\PC{0,8}",
        Just("\"quoted\\\" and\n\tmore \u{1}".to_owned()),
        Just("a key of the environment, a token".to_owned()),
        Just("https://example.com/a?b=c".to_owned()),
        Just("{\"a\":[1]}".to_owned()),
        Just("docker run -p 80:80 -u me:staff login".to_owned()),
        Just("curl -u me https://host:80/ -o \"a:b\" | zip -r a:b".to_owned()),
        Just("make -j4 A=b PATH=$PATH:/x".to_owned()),
    ]
}

/// Generates names that do not hint at a secret.
fn arbitrary_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-m]{1,6}",
        Just("sessionId".to_owned()),
        Just("a\"b\\".to_owned())
    ]
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        arbitrary_text().prop_map(Value::String),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((arbitrary_name(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// Generates a field that contains the secret, to be added to an object.
fn secret_member() -> impl Strategy<Value = (String, Value)> {
    let named = prop::sample::select(vec![
        "apiKey",
        "API_KEY",
        "x-api-key",
        "password",
        "dbPasswd",
        "clientSecret",
        "token",
        "GITHUB_TOKEN",
        "Authorization",
        "cookie",
        "Set-Cookie",
        "credentials",
        "private_key",
        "awsAccessKey",
    ]);
    let under_a_name = (named, 0..3).prop_map(|(name, shape)| {
        let secret = match shape {
            0 => json!(PLANTED_SECRET),
            1 => json!([PLANTED_SECRET, {"x": PLANTED_SECRET}]),
            _ => json!({"some": {"thing": [[PLANTED_SECRET]]}}),
        };
        (name.to_owned(), secret)
    });
    let variables = prop::sample::select(vec![
        ("env", json!([{"name": "WHO", "value": PLANTED_SECRET}])),
        ("env", json!({"WHO": PLANTED_SECRET})),
        ("env", json!([format!("WHO={PLANTED_SECRET}")])),
        (
            "headers",
            json!([{"value": PLANTED_SECRET, "name": "X-Who"}]),
        ),
        ("headers", json!({"X-Who": PLANTED_SECRET})),
        (
            "pair",
            json!({"name": "SOME_TOKEN", "value": PLANTED_SECRET}),
        ),
        ("args", json!(["run", "--api-key", PLANTED_SECRET, "now"])),
        (
            "run",
            json!({"command": "curl", "args": ["-u", format!("me:{PLANTED_SECRET}"), "x"]}),
        ),
        (
            "run",
            json!({"command": "mysql", "args": ["-u", "me", format!("-p{PLANTED_SECRET}")]}),
        ),
        (
            "run",
            json!({"command": "docker", "args": ["login", "-p", PLANTED_SECRET]}),
        ),
        (
            "run",
            json!({"command": "make", "args": [format!("token={PLANTED_SECRET}")]}),
        ),
        (
            "run",
            json!({"command": ["bash", "-lc", format!("curl -u me:{PLANTED_SECRET} x")]}),
        ),
        (
            "run",
            json!({"command": ["curl", "-H", format!("X-Api-Key: {PLANTED_SECRET}")]}),
        ),
        (
            "run",
            json!({"command": format!("token={PLANTED_SECRET} make")}),
        ),
        (
            "run",
            json!({"command": format!("tool --token={PLANTED_SECRET}")}),
        ),
        (
            "title",
            json!(format!("Run `password={PLANTED_SECRET} make`")),
        ),
        ("text", json!(format!("$ mysql -p{PLANTED_SECRET} db"))),
    ])
    .prop_map(|(name, value)| (name.to_owned(), value));
    let forms = prop::sample::select(vec![
        format!("sk-{PLANTED_SECRET}"),
        format!("ghp_{PLANTED_SECRET}"),
        format!("github_pat_{PLANTED_SECRET}"),
        format!("Bearer {PLANTED_SECRET}"),
        format!("https://me:{PLANTED_SECRET}@host/path"),
        format!("https://host/path?access_token={PLANTED_SECRET}&x=1"),
        format!("curl -H 'Authorization: Basic {PLANTED_SECRET}' x"),
        format!("Cookie: a={PLANTED_SECRET}"),
        format!("OPENAI_API_KEY={PLANTED_SECRET}"),
        format!("TOKEN={PLANTED_SECRET} make"),
        format!("export DB_PASS={PLANTED_SECRET}"),
        format!("curl -u me:{PLANTED_SECRET} https://host"),
        format!("Run `curl -sSu me:{PLANTED_SECRET} host`"),
        format!("sh -c 'curl --user \"me:{PLANTED_SECRET}\" host'"),
        format!("curl -H 'X-Api-Key: {PLANTED_SECRET}' host"),
        format!("sshpass -p {PLANTED_SECRET} ssh host"),
        format!("{{\"token\": \"{PLANTED_SECRET}\"}}"),
        format!("-----BEGIN PRIVATE KEY-----\n{PLANTED_SECRET}\n-----END PRIVATE KEY-----"),
    ]);
    let in_text = (arbitrary_name(), arbitrary_text(), forms, arbitrary_text()).prop_map(
        |(name, before, form, after)| (name, Value::String(format!("{before} {form} {after}"))),
    );
    prop_oneof![under_a_name, variables, in_text]
}

/// Returns the number of objects in a value.
fn count_objects(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_objects).sum(),
        Value::Object(members) => 1 + members.values().map(count_objects).sum::<usize>(),
        _ => 0,
    }
}

/// Adds a field to the object that is preceded by `n` other objects.
fn plant_secret(value: &mut Value, member: &(String, Value), n: &mut usize) {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| plant_secret(item, member, n)),
        Value::Object(members) => {
            members
                .values_mut()
                .for_each(|item| plant_secret(item, member, n));
            if *n == 0 {
                members.insert(member.0.clone(), member.1.clone());
            }
            *n = n.wrapping_sub(1);
        }
        _ => {}
    }
}

/// Escapes every character of the message that can be escaped.
fn escape_json(json: &str) -> String {
    let mut written = String::new();
    let mut in_string = false;
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                in_string = !in_string;
                written.push(c);
            }
            '\\' => {
                let escape = chars.next();
                written.push(c);
                written.extend(escape);
                let digits = if escape == Some('u') { 4 } else { 0 };
                written.extend(chars.by_ref().take(digits));
            }
            c if in_string && c.is_ascii_alphanumeric() => {
                written.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => written.push(c),
        }
    }
    written
}

proptest! {
    #[test]
    fn message_without_secrets_is_unchanged(value in arbitrary_json()) {
        let redactor = lock_redactor();
        prop_assert_eq!(redactor.redact_message(&value.to_string()), None);
        prop_assert_eq!(redactor.redact_message(&format!("{value:#}")), None);
    }

    #[test]
    fn planted_secret_is_always_redacted(
        value in arbitrary_json(), member in secret_member(), at in any::<prop::sample::Index>(), by_escapes in any::<bool>()
    ) {
        let mut message = json!({"jsonrpc": "2.0", "params": value});
        let mut n = at.index(count_objects(&message));
        plant_secret(&mut message, &member, &mut n);
        let mut sent = message.to_string();
        prop_assert!(sent.contains(PLANTED_SECRET));
        if by_escapes {
            sent = escape_json(&sent);
            prop_assert_eq!(&serde_json::from_str::<Value>(&sent).unwrap(), &message);
        }
        let redactor = lock_redactor();
        prop_assert!(redactor.may_have_secret(sent.as_bytes()), "{}", sent);
        let (redacted, count) = redactor.redact_message(&sent).unwrap_or_else(|| panic!("{sent}"));
        prop_assert!(count > 0);
        let read: Value = serde_json::from_str(&redacted).unwrap_or_else(|e| panic!("{redacted}: {e}"));
        prop_assert!(!read.to_string().contains(PLANTED_SECRET), "{}", redacted);
        // Everything that was not replaced is the same as in the original.
        prop_assert_eq!(count_objects(&read), count_objects(&message));
    }

    #[test]
    fn planted_secret_in_noise_is_redacted(before in "[a-z ]{0,12}", member in secret_member(), cut in 0_usize..40) {
        let (name, secret) = &member;
        let mut line = format!("{before}{{\"x\":1,{}:{secret}}}", json!(name));
        for _ in 0..cut {
            // A truncated message is incomplete and not JSON.
            line.pop();
        }
        let redactor = lock_redactor();
        if line.contains(PLANTED_SECRET) {
            prop_assert!(redactor.may_have_secret(line.as_bytes()), "{}", line);
            let redacted = redactor.redact_text(&line).unwrap_or_else(|| panic!("{line}"));
            prop_assert!(!redacted.contains(PLANTED_SECRET), "{}", redacted);
        }
    }
}

#[test]
fn private_key_on_stderr_is_redacted_line_by_line() {
    let mut redactor = Redactor::new();
    let key = [
        "-----BEGIN PRIVATE KEY-----",
        PLANTED_SECRET,
        "-----END PRIVATE KEY-----",
    ];
    for line in key {
        let shown = redactor.redact_stderr(line);
        assert!(!shown.unwrap_or_default().contains(PLANTED_SECRET));
    }
    assert_eq!(redactor.redact_stderr("reading 3 files"), None);
    let said = redactor.redact_stderr("token: hush, and so on");
    assert_eq!(said.as_deref(), Some("token: [redacted], and so on"));
}

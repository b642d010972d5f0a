//! Generates `docs/protocol.md` from the method tables, and checks that the file is up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use acp_wire::{Method, MethodKind, Sender, extensions, v1, v2};

/// A method or kind of update, with the library's support for it as an agent and as a client. The lists are maintained
/// by hand, because this crate does not depend on the library.
type MethodStatus = (&'static str, &'static str, &'static str);

const YES: &str = "yes";

const METHOD_STATUSES: &[MethodStatus] = &[
    ("initialize", YES, YES),
    ("authenticate", YES, YES),
    ("logout", YES, YES),
    ("auth/login", YES, YES),
    ("auth/logout", YES, YES),
    ("session/new", YES, YES),
    ("session/load", YES, YES),
    ("session/resume", YES, YES),
    ("session/fork", YES, YES),
    ("session/list", YES, YES),
    ("session/set_title", YES, YES),
    ("session/archive", YES, YES),
    ("session/unarchive", YES, YES),
    ("session/status", YES, YES),
    ("auth/status", YES, YES),
    ("auth/status_update", YES, YES),
    ("providers/list", YES, YES),
    ("providers/set", YES, YES),
    ("providers/disable", YES, YES),
    ("session/delete", YES, YES),
    ("session/close", YES, YES),
    ("session/set_mode", YES, YES),
    ("session/set_config_option", YES, YES),
    ("session/set_model", YES, YES),
    ("session/prompt", YES, YES),
    ("session/cancel", YES, YES),
    ("tool_call/cancel", YES, YES),
    ("terminal/cancel", YES, YES),
    ("session/update", YES, YES),
    ("session/request_permission", YES, YES),
    ("fs/read_text_file", YES, YES),
    ("fs/write_text_file", YES, YES),
    ("terminal/create", YES, YES),
    ("terminal/output", YES, YES),
    ("terminal/wait_for_exit", YES, YES),
    ("terminal/kill", YES, YES),
    ("terminal/release", YES, YES),
    ("elicitation/create", YES, YES),
    ("elicitation/complete", YES, YES),
    ("$/cancel_request", YES, YES),
];

const UPDATE_STATUSES: &[MethodStatus] = &[
    ("user_message_chunk", YES, YES),
    ("user_message", YES, YES),
    ("agent_message_chunk", YES, YES),
    ("agent_message", YES, YES),
    ("agent_thought_chunk", YES, YES),
    ("agent_thought", YES, YES),
    ("state_update", YES, YES),
    ("tool_call", YES, YES),
    ("tool_call_update", YES, YES),
    ("tool_call_content_chunk", YES, YES),
    ("terminal_update", YES, YES),
    ("terminal_output_chunk", YES, YES),
    ("plan", YES, YES),
    ("plan_update", YES, YES),
    ("plan_removed", YES, YES),
    ("available_commands_update", YES, YES),
    ("current_mode_update", YES, YES),
    ("config_option_update", YES, YES),
    ("session_info_update", YES, YES),
    ("usage_update", YES, YES),
    ("notice", YES, YES),
    ("compaction_update", YES, YES),
    ("compaction_summary_chunk", YES, YES),
    ("subagent_update", YES, YES),
    ("session_message", YES, YES),
    ("session_message_chunk", YES, YES),
];

const CONTENT_STATUSES: &[MethodStatus] = &[
    ("text", YES, YES),
    ("image", YES, YES),
    ("audio", YES, YES),
    ("resource_link", YES, YES),
    ("resource", YES, YES),
];

/// Kinds of updates that are not in the stable version 1 schema.
const UNSTABLE_UPDATES_V1: &[&str] = &[
    "plan_update",
    "plan_removed",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
    "subagent_update",
    "session_message",
    "session_message_chunk",
];
const UNSTABLE_UPDATES_V2: &[&str] = &[
    "plan_removed",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
    "subagent_update",
    "session_message",
    "session_message_chunk",
];

const DOCUMENT_HEAD: &str = "\
# Protocol coverage

This page lists every method, every kind of `session/update` and every kind of content, in version 1 and in the draft of
version 2, with the types in `acp-wire`. The last two columns say whether the library (`acp-sdk`) supports it on the
agent's side and on the client's side. *Unstable* means that the stable schema of that version does not contain it. The
list below the table gives the reason for supporting it anyway.

This file is generated from the method tables (`crates/acp-wire/src/methods.rs`) by
`crates/acp-wire/tests/it/protocol_table.rs`, which fails if the file is out of date. To update it, run
`UPDATE_DOCS=1 cargo test -p acp-sdk-wire --test it protocol_table`. Only the last two columns are maintained by hand, in
that test. `crates/acp/tests/it/protocol.rs` sends every message to both sides, and fails if a side does not recognize one.
";

const EXTENSION_STATUSES: &[MethodStatus] = &[("_session/steering", YES, YES)];

const NOT_OFFERED_TEXT: &str = "
## Not supported

The unstable schemas contain more methods. The library treats these like any unknown method, and a proxy passes them on
unchanged.

| methods | purpose |
|---|---|
| `mcp/message` | MCP servers over the agent's connection |
| `proxy/initialize`, `proxy/successor` | proxies between a client and an agent |
";

#[test]
fn the_document_matches_the_method_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol.md");
    let document = render_document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, document).unwrap();
        return;
    }
    let file = fs::read_to_string(&path).unwrap_or_default();
    // Git checks it out with these line endings on Windows.
    let file = file.replace("\r\n", "\n");
    let differs = document
        .lines()
        .chain([""])
        .zip(file.lines().chain(["(the end)"]))
        .position(|(made, found)| made != found);
    assert!(
        document == file,
        "docs/protocol.md is not what the method tables say, from line {} on. To renew it:\n\
         UPDATE_DOCS=1 cargo test -p acp-sdk-wire --test it protocol_table",
        differs.map_or(0, |line| line + 1)
    );
}

fn render_document() -> String {
    let mut text = DOCUMENT_HEAD.to_owned();
    render_methods(&mut text);
    render_extension_methods(&mut text);
    render_updates(&mut text);
    render_content(&mut text);
    text += NOT_OFFERED_TEXT;
    text
}

fn render_methods(text: &mut String) {
    let by_name = |methods: &'static [Method]| -> BTreeMap<_, _> {
        methods.iter().map(|row| (row.name, row)).collect()
    };
    let (v1, v2) = (by_name(v1::METHODS), by_name(v2::METHODS));
    assert_statuses_cover("method", METHOD_STATUSES, v1.keys().chain(v2.keys()));

    *text += "\n## Methods\n\n";
    *text += "| method | from | kind | version 1 | version 2 | agent | client |\n|---|---|---|---|---|---|---|\n";
    let mut notes = String::new();
    for (name, agent, client) in METHOD_STATUSES {
        let rows = [v1.get(name), v2.get(name)];
        let row = rows.iter().copied().flatten().next().unwrap();
        for other in rows.iter().copied().flatten() {
            assert_eq!((row.sender, row.kind), (other.sender, other.kind), "{name}");
        }
        let sender = match row.sender {
            Sender::Client => "client",
            Sender::Agent => "agent",
            Sender::Either => "either",
        };
        let kind = match row.kind {
            MethodKind::Request => "request",
            MethodKind::Notification => "notification",
        };
        let types = rows.map(|row| row.map_or("–".to_owned(), |row| type_names(row)));
        let [in_v1, in_v2] = types;
        writeln!(
            text,
            "| `{name}` | {sender} | {kind} | {in_v1} | {in_v2} | {agent} | {client} |"
        )
        .unwrap();
        for (version, row) in [1, 2].into_iter().zip(rows) {
            if let Some(why) = row.and_then(|row| row.unstable) {
                writeln!(notes, "- `{name}` in version {version}: {why}.").unwrap();
            }
        }
    }
    write!(
        text,
        "\nUnstable methods, and the reasons for supporting them:\n\n{notes}"
    )
    .unwrap();
}

fn render_extension_methods(text: &mut String) {
    let names = extensions::METHODS.iter().map(|row| &row.name);
    assert_statuses_cover("extension", EXTENSION_STATUSES, names);
    *text += "\n## Extensions\n\n";
    *text += "Methods that are not part of the protocol, but that several agents support. They are the same in both versions. An\n\
              agent announces them in `_meta` of its response to `initialize`.\n\n";
    *text += "| method | types | announced by | agent | client |\n|---|---|---|---|---|\n";
    for (name, agent, client) in EXTENSION_STATUSES {
        let row = extensions::method(name).unwrap();
        let path = row.capability.unwrap().path;
        let types = type_names(row);
        writeln!(
            text,
            "| `{name}` | {types} | `_meta.{path}` | {agent} | {client} |"
        )
        .unwrap();
    }
}

fn type_names(row: &Method) -> String {
    let mut types = format!("`{}`", row.params);
    if let Some(result) = row.result {
        write!(types, " → `{result}`").unwrap();
    }
    if row.unstable.is_some() {
        types += " (unstable)";
    }
    types
}

fn render_updates(text: &mut String) {
    let (v1, v2) = (v1::SessionUpdate::TAGS, v2::SessionUpdate::TAGS);
    assert_statuses_cover("kind of update", UPDATE_STATUSES, v1.iter().chain(v2));
    *text += "\n## Kinds of `session/update`\n\n";
    render_kinds(
        text,
        UPDATE_STATUSES,
        (
            v1,
            UNSTABLE_UPDATES_V1,
            "unstable: behind a client capability",
        ),
        (v2, UNSTABLE_UPDATES_V2, "not in the draft of August 2026"),
    );
}

fn render_content(text: &mut String) {
    let (v1, v2) = (v1::ContentBlock::TAGS, v2::ContentBlock::TAGS);
    assert_statuses_cover("kind of content", CONTENT_STATUSES, v1.iter().chain(v2));
    *text += "\n## Kinds of content\n\nIn prompts, messages and tool calls.\n\n";
    render_kinds(text, CONTENT_STATUSES, (v1, &[], ""), (v2, &[], ""));
}

/// All kinds in one version, the unstable kinds among them, and the note to print for the unstable ones.
type VersionKinds = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

fn render_kinds(text: &mut String, statuses: &[MethodStatus], v1: VersionKinds, v2: VersionKinds) {
    for (all, unstable, _) in [v1, v2] {
        for kind in unstable {
            assert!(all.contains(kind), "{kind} is not there to be unstable");
        }
    }
    *text += "| kind | version 1 | version 2 | agent | client |\n|---|---|---|---|---|\n";
    for (name, agent, client) in statuses {
        let [in_v1, in_v2] = [v1, v2].map(|(all, unstable, note)| {
            if unstable.contains(name) {
                note
            } else if all.contains(name) {
                "yes"
            } else {
                "–"
            }
        });
        writeln!(
            text,
            "| `{name}` | {in_v1} | {in_v2} | {agent} | {client} |"
        )
        .unwrap();
    }
}

/// Checks that a manually maintained list contains every item exactly once, and nothing else.
fn assert_statuses_cover<'a>(
    what: &str,
    statuses: &[MethodStatus],
    there: impl Iterator<Item = &'a &'static str>,
) {
    let there: BTreeSet<&str> = there.copied().collect();
    let named: BTreeSet<&str> = statuses.iter().map(|(name, ..)| *name).collect();
    assert_eq!(named.len(), statuses.len(), "a {what} is named twice");
    let missing: Vec<_> = there.difference(&named).collect();
    let surplus: Vec<_> = named.difference(&there).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "the status of each {what} is kept in this test; missing: {missing:?}, surplus: {surplus:?}"
    );
}

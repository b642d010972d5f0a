//! Tests that the tables of checks in `docs/conformance/` agree with `acp check ... --list`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::common::ACP;

/// The level and requirement of a check.
type ListedCheck = (String, String);

/// Returns all checks of the suite, indexed by id.
fn listed_checks() -> BTreeMap<String, ListedCheck> {
    let mut checks = BTreeMap::new();
    for subject in ["agent", "client", "server", "remote-client"] {
        let listed = Command::new(ACP)
            .args(["check", subject, "--list"])
            .output()
            .unwrap();
        for line in String::from_utf8(listed.stdout).unwrap().lines() {
            let (id, rest) = line.split_once(' ').unwrap();
            let (level, requirement) = rest.trim_start().split_once(' ').unwrap();
            checks.insert(id.to_owned(), (level.to_owned(), requirement.to_owned()));
        }
    }
    checks
}

/// Returns the rows of all tables on a page. Each row has an id, a level and a requirement.
fn rows_of_page(page: &str) -> Vec<(String, ListedCheck)> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/conformance")
        .join(page);
    let text = std::fs::read_to_string(file).unwrap();
    let cells = text.lines().filter_map(|line| {
        let line = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let (id, rest) = line.split_once("` | ")?;
        let (level, requirement) = rest.split_once(" | ")?;
        Some((id.to_owned(), (level.to_owned(), requirement.to_owned())))
    });
    cells.collect()
}

#[test]
fn pages_and_checks_agree() {
    let checks = listed_checks();
    let mut documented = BTreeSet::new();
    // Each page, and what its ids lack.
    for (page, prefixes) in [
        ("remote.md", &["remote/"][..]),
        ("v2.md", &[""]),
        ("unstable.md", &["v1/", "v2/"]),
    ] {
        for (id, row) in rows_of_page(page) {
            let ids = prefixes.iter().map(|prefix| format!("{prefix}{id}"));
            let found: Vec<String> = ids.filter(|id| checks.contains_key(id)).collect();
            assert!(!found.is_empty(), "{page}: there is no check {id}");
            for id in found {
                assert_eq!(checks[&id], row, "{page}: {id}");
                documented.insert(id);
            }
        }
    }
    // The page about version 2 describes the checks of the schema and of the rules as a whole.
    let is_alone = |id: &&String| {
        id.starts_with("remote/")
            || (id.starts_with("v2/")
                && !id.starts_with("v2/schema/")
                && !id.starts_with("v2/rules/"))
    };
    let missing: Vec<&String> = checks
        .keys()
        .filter(is_alone)
        .filter(|id| !documented.contains(*id))
        .collect();
    assert!(missing.is_empty(), "not in docs/conformance/: {missing:?}");
}

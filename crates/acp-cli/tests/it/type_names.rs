//! Tests that type names are unique and clear: no two types visible to other files may share a name, and no type may
//! have a vague name such as `Found` or `Asked`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The directories that contain the workspace's source files.
const SOURCE_DIRECTORIES: [&str; 4] = ["crates", "bench", "interop", "fuzz"];

/// Participles and other words that say too little as type names.
const VAGUE_NAMES: [&str; 22] = [
    "Found", "Asked", "Told", "Known", "Place", "Shown", "Written", "Deed", "Doing", "Standing",
    "Laid", "Leaflet", "Over", "Own", "Said", "Kept", "Heard", "Seen", "Given", "Gone", "Left",
    "Made",
];

/// Names that two types share on purpose, each with the reason. Types that exist in both protocol versions may share
/// names, too.
const SHARED_NAMES: [(&str, &str); 11] = [
    ("Error", "each library's own error, as everywhere in Rust"),
    ("Result", "with Error"),
    ("Frame", "the fuzzers' view of the connection's"),
    ("Framer", "the fuzzers' view of the connection's"),
    (
        "SessionCapabilities",
        "of an agent, one for each version, in one file",
    ),
    ("ProcessGroup", "one for each operating system"),
    ("ChildPipes", "one for each operating system"),
    ("OutputPipe", "one for each operating system"),
    ("ConfinementThread", "one for each operating system"),
    ("TerminalSettings", "one for each operating system"),
    ("TypedLines", "one for each operating system"),
];

#[test]
fn type_names_are_unique_and_specific() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in SOURCE_DIRECTORIES {
        collect_rust_files(&root.join(folder), &mut files);
    }
    assert!(files.len() > 500, "only {} files found", files.len());

    let mut visible: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut vague = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let path = file.strip_prefix(&root).unwrap();
        let is_test = path.iter().any(|part| part == "tests") || path.ends_with("tests.rs");
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default();
        for item in code.lines().filter_map(type_definition) {
            if VAGUE_NAMES.contains(&item.name) {
                vague.push(format!("{} in {}", item.name, path.display()));
            }
            if item.is_visible && !is_test {
                visible
                    .entry(item.name.to_owned())
                    .or_default()
                    .push(path.to_owned());
            }
        }
    }
    assert!(
        vague.is_empty(),
        "types with names that say nothing: {vague:#?}"
    );

    visible.retain(|name, paths| {
        paths.len() > 1 && !exists_in_both_versions(paths) && !is_shared(name)
    });
    assert!(
        visible.is_empty(),
        "names that more than one type has: {visible:#?}"
    );
}

/// The line that defines a type.
struct TypeDefinition<'a> {
    name: &'a str,
    is_visible: bool,
}

/// Parses a line such as `pub(crate) struct Name`. Ignores associated types, which are indented.
fn type_definition(line: &str) -> Option<TypeDefinition<'_>> {
    let trimmed = line.trim_start();
    let (is_visible, rest) = match trimmed.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => (true, rest.split_once(") ")?.1),
        Some(rest) => (true, rest.strip_prefix(' ')?),
        None => (false, trimmed),
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (keyword, rest) = rest.split_once(' ')?;
    let is_indented = trimmed.len() < line.len();
    if !["struct", "enum", "trait", "union"].contains(&keyword)
        && (keyword != "type" || is_indented)
    {
        return None;
    }
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    // In a macro, the name is `$name`.
    (end > 0).then_some(TypeDefinition {
        name: &rest[..end],
        is_visible,
    })
}

fn exists_in_both_versions(paths: &[PathBuf]) -> bool {
    let is_of = |path: &Path, version: &str| path.iter().any(|part| part == version);
    paths.len() == 2
        && ["v1", "v2"]
            .iter()
            .all(|version| paths.iter().any(|path| is_of(path, version)))
}

fn is_shared(name: &str) -> bool {
    SHARED_NAMES.iter().any(|(shared, _)| *shared == name)
}

fn collect_rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                collect_rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

//! Tests for import cycles between the files of a crate. Such files can be understood only by reading all of them.
//!
//! What counts is what a file names in `use` and in paths: `crate::a::B` leads to the file of `a`, also where `a` has `B`
//! from a file below it, since whoever follows the path reads that file first. Unit tests count for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crates to check.
const CHECKED_CRATES: [&str; 8] = [
    "acp-agent",
    "acp-check",
    "acp-cli",
    "acp-config",
    "acp-registry",
    "acp-rewind",
    "acp-rules",
    "acp-trace",
];

#[test]
fn no_files_import_each_other_in_a_cycle() {
    for name in CHECKED_CRATES {
        let files = read_sources(name);
        let found = find_cycles(&files);
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn cycles_are_found() {
    let files = source_tree(&[
        ("", "mod a; mod b; use a::A; use b::B;"),
        (
            "a",
            "mod x; mod y; pub use x::X; use crate::b::{self, B as C};",
        ),
        (
            "a::x",
            "use std::fmt::{self, Debug}; fn f() -> super::y::Y {}",
        ),
        ("a::y", "use {super::{X, z}, std::io};"),
        (
            "b",
            "fn f() { let lifetime: &'static str = \"\\\"\"; crate::c::g::<crate::c::G>('\"') }",
        ),
        ("c", "pub use crate::d::*;"),
        ("d", "use crate::{b, // not e\n c};"),
        ("g", "mod h; fn f() { h::run(std::fmt::Error) }"),
        ("g::h", "impl super::G for H {}"),
    ]);
    let found = find_cycles(&files);
    let expected = [
        vec!["a", "a::x", "a::y"],
        vec!["b", "c", "d"],
        vec!["g", "g::h"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn no_false_cycles_are_found() {
    let files = source_tree(&[
        ("", "mod a; mod b; use b::B;"),
        // A comment, a text and a test import nothing, and a file may name itself.
        (
            "a",
            "// use crate::b::B;\n/* use crate::b::B; */ const A: &str = \"crate::b::B\"; use crate::a::c;",
        ),
        (
            "b",
            "use crate::a; const B: &str = r#\"crate::b\"#; #[cfg(test)] mod tests { use super::*; use crate::e; }",
        ),
        // Within a module in the file `super` is the file.
        ("c", "mod inner { use super::Outer; use super::super::a; }"),
        ("e", "#[cfg(test)]\nuse crate::f; use crate::b::B;"),
        ("f", "use crate::e::{E, tests};"),
    ]);
    let found = find_cycles(&files);
    assert_eq!(found, Vec::<Vec<&str>>::new());
}

fn source_tree(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let files = files.iter();
    files
        .map(|(module, text)| ((*module).to_owned(), (*text).to_owned()))
        .collect()
}

/// Returns the source files of a crate by module path. The crate root has an empty path.
fn read_sources(name: &str) -> BTreeMap<String, String> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = all.join(name).join("src");
    let mut files = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if name.ends_with("tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let module = path.strip_prefix(&root).unwrap().with_extension("");
                let parts = module.iter().map(|part| part.to_str().unwrap());
                let mut parts: Vec<&str> = parts.collect();
                if matches!(parts[..], ["lib" | "main"]) || parts.ends_with(&["mod"]) {
                    parts.pop();
                }
                let text = std::fs::read_to_string(&path).unwrap();
                files.insert(parts.join("::"), text);
            }
        }
    }
    assert!(files.len() > 1, "{name}");
    files
}

/// Returns the import cycles, each as a list of modules.
fn find_cycles(files: &BTreeMap<String, String>) -> Vec<Vec<&str>> {
    let modules: BTreeSet<&str> = files.keys().map(String::as_str).collect();
    let imports: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .map(|(module, text)| (module.as_str(), imported_modules(module, text, &modules)))
        .collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> = modules
        .iter()
        .map(|module| (*module, reachable_modules(module, &imports)))
        .collect();
    let mut circles: Vec<Vec<&str>> = Vec::new();
    for module in &modules {
        let others = reached[module].iter();
        let circle: Vec<&str> = others
            .copied()
            .filter(|other| reached[other].contains(module))
            .collect();
        if circle.first() == Some(module) {
            circles.push(circle);
        }
    }
    circles
}

/// Returns the modules that are reachable from a module by following imports.
fn reachable_modules<'a>(
    module: &str,
    imports: &BTreeMap<&'a str, BTreeSet<&'a str>>,
) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = imports[module].iter().copied().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(&imports[module]);
        }
    }
    reached
}

/// Returns the modules in other files that this module imports.
fn imported_modules<'a>(
    module: &str,
    text: &str,
    modules: &BTreeSet<&'a str>,
) -> BTreeSet<&'a str> {
    let mut imports = BTreeSet::new();
    let here: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    for path in path_references(&tokenize(text), &here) {
        let parts = (0..=path.len()).rev();
        let mut files = parts.filter_map(|most| modules.get(path[..most].join("::").as_str()));
        if let Some(file) = files.next().filter(|file| **file != module) {
            imports.insert(*file);
        }
    }
    imports
}

/// Returns the paths that a module refers to, relative to the crate root. Paths into other crates are included, and
/// treated as relative to the module.
fn path_references(tokens: &[String], here: &[&str]) -> Vec<Vec<String>> {
    // Where the modules that are written out in the file begin and end.
    let mut inner: Vec<(String, usize)> = Vec::new();
    let mut paths = Vec::new();
    let (mut at, mut depth) = (0, 0);
    while let Some(token) = tokens.get(at) {
        let rest = &tokens[at..];
        at += 1;
        match token.as_str() {
            "#" if is_test_attribute(rest) => at = item_end(tokens, at),
            "mod" if rest.get(2).is_some_and(|brace| brace == "{") => {
                inner.push((rest[1].clone(), depth));
            }
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inner.pop_if(|(_, outside)| *outside == depth);
            }
            "use" => {
                let within = inner.iter().map(|(name, _)| name.as_str());
                let within: Vec<&str> = here.iter().copied().chain(within).collect();
                let mut found = Vec::new();
                at += parse_use_tree(&rest[1..], &[], &mut found);
                paths.extend(found.iter().map(|path| resolve_from_crate(path, &within)));
            }
            name if is_identifier(name) && rest.get(1).is_some_and(|next| next == "::") => {
                let within = inner.iter().map(|(name, _)| name.as_str());
                let within: Vec<&str> = here.iter().copied().chain(within).collect();
                let mut path = vec![token.clone()];
                while let [colons, name, ..] = &tokens[at..] {
                    if colons != "::" || !is_identifier(name) {
                        break;
                    }
                    path.push(name.clone());
                    at += 2;
                }
                paths.push(resolve_from_crate(&path, &within));
            }
            _ => {}
        }
    }
    paths
}

/// Returns the path relative to the crate root. A path without `crate`, `super` or `self` is treated as relative to the
/// module, although it may refer to another crate.
fn resolve_from_crate(path: &[String], here: &[&str]) -> Vec<String> {
    let mut base: Vec<String> = here.iter().map(|part| (*part).to_owned()).collect();
    let mut rest = path;
    while let [first, others @ ..] = rest {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = others;
    }
    base.extend(rest.iter().cloned());
    base
}

/// Parses a whole `use` tree, adds its paths to `found`, and returns the number of tokens in the tree.
fn parse_use_tree(tokens: &[String], before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            ";" | "," | "}" => break,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at += parse_use_tree(&tokens[at..], &path, found);
                    at += usize::from(tokens.get(at).is_some_and(|token| token == ","));
                }
                return at + 1;
            }
            // The new name is none of the path.
            "as" => at += 1,
            "::" | "*" => {}
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    found.push(path);
    at
}

/// Returns the index just past the item that an attribute applies to.
fn item_end(tokens: &[String], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.as_str() {
            "{" => depth += 1,
            "}" if depth < 2 => return at + depth,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Returns `true` if these tokens begin with an attribute that marks test code.
fn is_test_attribute(tokens: &[String]) -> bool {
    let begins: [&[&str]; 2] = [
        &["#", "[", "cfg", "(", "test"],
        &["#", "[", "cfg", "(", "all", "(", "test"],
    ];
    let begins_with = |begin: &&[&str]| tokens.iter().zip(*begin).filter(|(a, b)| a == b).count();
    begins.iter().any(|begin| begins_with(begin) == begin.len())
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Returns the identifiers and punctuation in a file, omitting comments, strings and numbers.
fn tokenize(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let rest = &chars[at..];
        at += match (c, rest.get(1)) {
            ('/', Some('/')) => matching_len(rest, |c| *c != '\n'),
            ('/', Some('*')) => comment_len(rest),
            ('"', _) => string_len(rest),
            // A lifetime is a name behind a quote; a character has a quote behind it.
            ('\'', Some('\\')) => {
                4 + matching_len(rest.get(3..).unwrap_or_default(), |c| *c != '\'')
            }
            ('\'', Some(_)) if rest.get(2) == Some(&'\'') => 3,
            ('r' | 'b', Some('"' | '#' | 'r')) if raw_string_len(rest).is_some() => {
                raw_string_len(rest).unwrap()
            }
            (':', Some(':')) => {
                tokens.push("::".to_owned());
                2
            }
            _ if c.is_whitespace() || c == '\'' => 1,
            _ if is_part(&c) => {
                let length = matching_len(rest, is_part);
                tokens.push(rest[..length].iter().collect());
                length
            }
            _ => {
                tokens.push(c.to_string());
                1
            }
        };
    }
    tokens
}

fn matching_len(chars: &[char], is_part: impl Fn(&char) -> bool) -> usize {
    chars.iter().take_while(|c| is_part(c)).count()
}

/// Returns the length of a block comment, which may contain nested comments.
fn comment_len(chars: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    loop {
        match chars.get(at..at + 2) {
            Some(['/', '*']) => (depth, at) = (depth + 1, at + 2),
            Some(['*', '/']) => (depth, at) = (depth - 1, at + 2),
            Some(_) => at += 1,
            None => return chars.len(),
        }
        if depth == 0 {
            return at;
        }
    }
}

fn string_len(chars: &[char]) -> usize {
    let mut at = 1;
    loop {
        match chars.get(at) {
            Some('\\') => at += 2,
            Some('"') => return at + 1,
            Some(_) => at += 1,
            None => return chars.len(),
        }
    }
}

/// Returns the length of a raw string literal, or `None` if the text does not begin with one.
fn raw_string_len(chars: &[char]) -> Option<usize> {
    let begin = matching_len(chars, |c| matches!(c, 'b' | 'r'));
    if !chars[..begin].contains(&'r') || begin > 2 {
        return None;
    }
    let signs = matching_len(&chars[begin..], |c| *c == '#');
    if chars.get(begin + signs) != Some(&'"') {
        return None;
    }
    let mut end = vec!['"'];
    end.resize(1 + signs, '#');
    let behind = &chars[begin + signs + 1..];
    let closes = behind.windows(end.len()).position(|window| window == end)?;
    Some(begin + signs + 1 + closes + end.len())
}

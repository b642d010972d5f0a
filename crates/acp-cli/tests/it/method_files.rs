//! Tests how many production files mention each method. Anyone who changes a method has to read these files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acp::wire::{Method, extensions};
use acp::{v1, v2};

/// The library crates. The crates in `SUITE_CRATES` check other programs instead.
const LIBRARY_CRATES: [&str; 2] = ["acp-wire", "acp"];
const SUITE_CRATES: [&str; 3] = ["acp-rules", "acp-trace", "acp-check"];

/// Directories that contain documentation rather than production code.
const NON_PRODUCTION_DIRECTORIES: [&str; 1] = ["guide"];

/// The maximum allowed median number of files that mention a method.
const MAX_LIBRARY_FILES: usize = 7;

#[test]
fn each_method_is_named_in_few_files() {
    let library = read_sources(&LIBRARY_CRATES);
    let suite = read_sources(&SUITE_CRATES);
    let methods = v1::METHODS.iter().chain(v2::METHODS);
    let methods = methods.chain(extensions::METHODS);
    let methods: BTreeSet<&str> = methods.map(|method| method.name).collect();
    let mut counts = Vec::new();
    println!("{:<28} library  suite", "method");
    for name in methods {
        let words = name_variants(name);
        let of = |files: &[(PathBuf, String)]| {
            let naming = files.iter().filter(|(_, text)| contains_word(text, &words));
            naming.map(|(path, _)| path.clone()).collect::<Vec<_>>()
        };
        let (in_library, in_suite) = (of(&library), of(&suite));
        println!("{name:<28} {:>7}  {:>5}", in_library.len(), in_suite.len());
        for path in &in_library {
            println!("    {}", path.display());
        }
        counts.push(in_library.len());
    }
    counts.sort_unstable();
    let median = counts[counts.len() / 2];
    println!("median: {median}");
    assert!(
        median <= MAX_LIBRARY_FILES,
        "a method is named in {median} files of the library"
    );
}

/// Returns the words that refer to a method: its name, its types in each version, and its function.
fn name_variants(name: &str) -> Vec<String> {
    let rows = [v1::method(name), v2::method(name), extensions::method(name)];
    let mut words = vec![format!("\"{name}\"")];
    for Method { params, result, .. } in rows.into_iter().flatten() {
        words.push((*params).to_owned());
        words.extend(result.map(str::to_owned));
        let stem = ["Request", "Notification"]
            .iter()
            .find_map(|end| params.strip_suffix(end))
            .unwrap_or(params);
        words.push(stem.to_owned());
        words.push(snake_case(stem));
    }
    // Too common a word to name a method by itself.
    words.retain(|word| {
        !["prompt", "Prompt", "cancel", "Cancel", "Session", "session"].contains(&word.as_str())
    });
    words
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// Returns `true` if the text contains one of these words as a whole word.
fn contains_word(text: &str, words: &[String]) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    words.iter().any(|word| {
        text.match_indices(word.as_str()).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    })
}

/// Returns the production files of these crates, without unit tests and comments.
fn read_sources(crates: &[&str]) -> Vec<(PathBuf, String)> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = crates
        .iter()
        .map(|name| all.join(name).join("src"))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if NON_PRODUCTION_DIRECTORIES.contains(&name) || name.ends_with("tests") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text
                    .split("#[cfg(test)]\nmod tests")
                    .next()
                    .unwrap_or_default();
                let lines = code
                    .lines()
                    .filter(|line| !line.trim_start().starts_with("//"));
                let code = lines.collect::<Vec<_>>().join("\n");
                files.push((path.strip_prefix(&all).unwrap().to_owned(), code));
            }
        }
    }
    files
}

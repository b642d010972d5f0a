//! Surveys a workspace without using a language model.

use serde_json::Value;

use crate::model::message::{ToolRequest, ToolResult, ToolStatus};
use crate::text::first_line;
use crate::tools::read::without_line_numbers;

/// The maximum number of words in a goal to search for.
const MAX_WORDS: usize = 4;

/// Returns the words of a goal that are worth searching for: long words and identifiers.
pub(super) fn extract_search_words(goal: &str) -> Vec<String> {
    const COMMON_WORDS: [&str; 16] = [
        "about", "after", "before", "change", "create", "delete", "every", "should", "their",
        "there", "these", "those", "where", "which", "while", "would",
    ];
    let mut words: Vec<String> = Vec::new();
    for word in goal.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let word = word.to_lowercase();
        let long = word.chars().count() >= 5 || word.contains('_');
        if long && !COMMON_WORDS.contains(&word.as_str()) && !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(MAX_WORDS);
    words
}

pub(super) fn quote_words(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("“{word}”")).collect();
    words.join(", ")
}

pub(super) fn find_readme(names: &[String]) -> Option<&str> {
    let is_readme =
        |name: &&String| name.to_lowercase().starts_with("readme") && !name.ends_with('/');
    names.iter().find(is_readme).map(String::as_str)
}

pub(super) fn find_manifest(names: &[String]) -> Option<&str> {
    [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "go.mod",
        "Makefile",
    ]
    .into_iter()
    .find(|manifest| names.iter().any(|name| name == manifest))
}

/// Formats the results of the list and read calls as a Markdown list.
pub(super) fn survey(
    listing: &ToolResult,
    names: &[String],
    read: &[(&ToolRequest, &ToolResult)],
) -> String {
    if listing.status != ToolStatus::Done {
        return format!("- Cannot list the directory: {}\n", listing.text);
    }
    let directories = names.iter().filter(|name| name.ends_with('/')).count();
    let files = names.len() - directories;
    let mut text = format!(
        "- {directories} {} and {files} {} at the top level{}\n",
        if directories == 1 {
            "directory"
        } else {
            "directories"
        },
        if files == 1 { "file" } else { "files" },
        if names.is_empty() { "." } else { ":" }
    );
    if !names.is_empty() {
        let shown: Vec<String> = names
            .iter()
            .take(20)
            .map(|name| format!("`{name}`"))
            .collect();
        let more = if names.len() > 20 { ", …" } else { "" };
        text = format!("{} {}{more}\n", text.trim_end(), shown.join(", "));
    }
    for (call, result) in read.iter().rev() {
        let name = call
            .arguments
            .get("path")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if result.status != ToolStatus::Done {
            text.push_str(&format!("- Cannot read `{name}`: {}\n", result.text));
            continue;
        }
        // Take the first line with letters from prose, and the project's name from a manifest.
        let file = without_line_numbers(&result.text);
        let line = file.lines().map(str::trim).find(|line| {
            if find_manifest(&[name.to_owned()]).is_some() {
                line.contains("name") || line.starts_with("module")
            } else {
                line.chars().any(char::is_alphabetic)
            }
        });
        match line {
            Some(line) => {
                let line = first_line(line.trim_start_matches(['#', ' ']));
                text.push_str(&format!("- `{name}` begins with: {line}\n"));
            }
            None => text.push_str(&format!("- `{name}`\n")),
        }
    }
    text
}

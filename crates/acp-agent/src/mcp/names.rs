//! The names of MCP servers' tools and prompts, as shown to the model and the user.
//!
//! Providers accept at most 64 letters, digits, `_` and `-` in the name of a tool, and some accept no digit or `-` at
//! the start. MCP servers use other names too, and two servers may use the same name.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The maximum length of a tool name that all providers accept, in bytes.
const MAX_TOOL_NAME_LEN: usize = 64;

/// The maximum length of the server prefix in a tool's name, in bytes. It leaves enough space for the tool's own name.
const MAX_SERVER_KEY_LEN: usize = 32;

/// The maximum length of a prompt's name, including the name of its server, in bytes. Users type this name.
const MAX_PROMPT_NAME_LEN: usize = 128;

/// The separator between the server and the tool. The names of the agent's own tools do not contain it.
pub(super) const SEPARATOR: &str = "__";

/// The names that are in use, from which every new name must differ.
#[derive(Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// Creates a set that already contains these names.
    pub(super) fn excluding(taken: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(taken.into_iter().map(Into::into).collect())
    }

    /// Returns the prefix for the names of the server's tools and prompts. It is the same in every session that has the
    /// same servers.
    pub(super) fn server_key(&mut self, server: &str, nth: usize) -> String {
        let key = match sanitize(server) {
            key if key.bytes().all(|byte| byte == b'_') => format!("server_{nth}"),
            key if key.starts_with(|c: char| c.is_ascii_digit() || c == '-') => format!("_{key}"),
            key => key,
        };
        // Two servers of a session may have the same name.
        self.insert_unique(key, MAX_SERVER_KEY_LEN, &(server, nth))
    }

    /// Returns the name of a server's tool, as the model sees it.
    pub(super) fn tool_name(&mut self, key: &str, tool: &str) -> String {
        let name = format!("{key}{SEPARATOR}{}", sanitize(tool));
        self.insert_unique(name, MAX_TOOL_NAME_LEN, &(key, tool))
    }

    /// Returns the name of the slash command for a server's prompt. It contains no white space, because a command's
    /// name ends at the first space.
    pub(super) fn prompt_name(&mut self, key: &str, prompt: &str) -> String {
        let typed = |c: char| {
            if c.is_whitespace() || c.is_control() {
                '_'
            } else {
                c
            }
        };
        let shown: String = prompt
            .chars()
            .take(MAX_PROMPT_NAME_LEN)
            .map(typed)
            .collect();
        self.insert_unique(
            format!("{key}:{shown}"),
            MAX_PROMPT_NAME_LEN,
            &(key, prompt),
        )
    }

    /// Adds `name` to the set and returns it. If the name is too long or already in use, adds and returns a
    /// replacement: the start of the name followed by a hash of `stands_for`.
    fn insert_unique(&mut self, name: String, longest: usize, stands_for: &impl Hash) -> String {
        if name.len() <= longest && self.0.insert(name.clone()) {
            return name;
        }
        let mut hasher = DefaultHasher::new();
        stands_for.hash(&mut hasher);
        let hash = format!("_{:08x}", hasher.finish() & 0xffff_ffff);
        let room = longest.min(name.len() + hash.len()) - hash.len();
        let name = format!("{}{hash}", crate::text::truncate_to_head(&name, room));
        self.0.insert(name.clone());
        name
    }
}

/// Replaces characters that are not allowed in the name of a tool.
fn sanitize(name: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unchanged_where_providers_accept_them() {
        let mut names = UniqueNames::default();
        assert_eq!(names.tool_name("files", "read-file"), "files__read-file");
        assert_eq!(names.tool_name("files", "read file"), "files__read_file");
    }

    #[test]
    fn duplicate_names_are_made_unique() {
        let mut names = UniqueNames::excluding(["run", "a__run"]);
        let given = [
            names.tool_name("a", "run"),
            names.tool_name("a", "r.n"),
            names.tool_name("a", "r n"),
            names.tool_name("a", "b__c"),
            names.tool_name("a__b", "c"),
        ];
        let mut seen: HashSet<&str> = ["run", "a__run"].into();
        for name in &given {
            assert!(seen.insert(name), "{given:?}");
        }
        assert!(given[0].starts_with("a__run_"), "{given:?}");
    }

    #[test]
    fn long_names_are_shortened() {
        let mut names = UniqueNames::default();
        let long = "very_long_".repeat(20);
        let key = names.server_key(&long, 0);
        let (one, other) = (
            names.tool_name(&key, &long),
            names.tool_name(&key, &format!("{long}b")),
        );
        assert_ne!(one, other);
        for name in [&one, &other] {
            assert_eq!(name.len(), MAX_TOOL_NAME_LEN, "{name}");
            assert!(name.starts_with("very_long_"), "{name}");
        }
    }

    #[test]
    fn prompt_names_can_be_typed() {
        let mut names = UniqueNames::default();
        assert_eq!(names.prompt_name("a", "sum it\u{7}up"), "a:sum_it_up");
        let long = names.prompt_name("a", &"é".repeat(1_000_000));
        assert!(long.len() <= MAX_PROMPT_NAME_LEN, "{long}");
        assert_ne!(names.prompt_name("a", &"é".repeat(1_000_001)), long);
    }

    #[test]
    fn servers_with_the_same_name_get_distinct_keys() {
        let mut names = UniqueNames::default();
        let (one, other) = (
            names.server_key("my files", 0),
            names.server_key("my files", 1),
        );
        assert_eq!(one, "my_files");
        assert!(other.starts_with("my_files_") && other != one, "{other}");
        assert_eq!(names.server_key("日本", 2), "server_2");
        assert_eq!(names.server_key("7zip", 3), "_7zip");
    }
}

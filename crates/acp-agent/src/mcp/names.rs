//! The names of servers' tools and prompts for the model and the user.
//!
//! Providers accept letters, digits, `_` and `-` in the name of a tool, and at most 64 of them. Some do not accept a
//! digit or `-` at the start. Servers use other names too, and two servers may use the same.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The limit on the name of a tool that all providers accept, in bytes.
const LONGEST: usize = 64;

/// The limit on a server's part of that name, which leaves enough for the tool's.
const LONGEST_KEY: usize = 32;

/// The limit on the name of a prompt with its server's, in bytes: short enough to enter.
const LONGEST_PROMPT: usize = 128;

/// What separates the server from its tool. The names of the agent's own tools do not contain it.
pub(super) const BETWEEN: &str = "__";

/// The names in use, each of them unique.
#[derive(Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// Creates a set in which these names are in use.
    pub(super) fn excluding(taken: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self(taken.into_iter().map(Into::into).collect())
    }

    /// Returns a server's key in the names of its tools and prompts. It is the same in each session with the same
    /// servers.
    pub(super) fn name_key(&mut self, server: &str, nth: usize) -> String {
        let key = match sanitize(server) {
            key if key.bytes().all(|byte| byte == b'_') => format!("server_{nth}"),
            key if key.starts_with(|c: char| c.is_ascii_digit() || c == '-') => format!("_{key}"),
            key => key,
        };
        // Two servers of a session may have the same name.
        self.insert_unique(key, LONGEST_KEY, &(server, nth))
    }

    /// Returns the name of a server's tool for the model.
    pub(super) fn tool(&mut self, key: &str, tool: &str) -> String {
        let name = format!("{key}{BETWEEN}{}", sanitize(tool));
        self.insert_unique(name, LONGEST, &(key, tool))
    }

    /// Returns the name of a server's prompt as a slash command, which ends at the first space.
    pub(super) fn prompt(&mut self, key: &str, prompt: &str) -> String {
        let typed = |c: char| {
            if c.is_whitespace() || c.is_control() {
                '_'
            } else {
                c
            }
        };
        let shown: String = prompt.chars().take(LONGEST_PROMPT).map(typed).collect();
        self.insert_unique(format!("{key}:{shown}"), LONGEST_PROMPT, &(key, prompt))
    }

    /// Adds `name` and returns it. If it is too long or in use, its start with a hash of `stands_for` is returned
    /// instead.
    fn insert_unique(&mut self, name: String, longest: usize, stands_for: &impl Hash) -> String {
        if name.len() <= longest && self.0.insert(name.clone()) {
            return name;
        }
        let mut hasher = DefaultHasher::new();
        stands_for.hash(&mut hasher);
        let hash = format!("_{:08x}", hasher.finish() & 0xffff_ffff);
        let room = longest.min(name.len() + hash.len()) - hash.len();
        let name = format!("{}{hash}", crate::text::head(&name, room));
        self.0.insert(name.clone());
        name
    }
}

/// Replaces the characters that are not allowed in the name of a tool.
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
    fn names_are_those_of_the_servers_where_providers_take_them() {
        let mut names = UniqueNames::default();
        assert_eq!(names.tool("files", "read-file"), "files__read-file");
        assert_eq!(names.tool("files", "read file"), "files__read_file");
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut names = UniqueNames::excluding(["run", "a__run"]);
        let given = [
            names.tool("a", "run"),
            names.tool("a", "r.n"),
            names.tool("a", "r n"),
            names.tool("a", "b__c"),
            names.tool("a__b", "c"),
        ];
        let mut seen: HashSet<&str> = ["run", "a__run"].into();
        for name in &given {
            assert!(seen.insert(name), "{given:?}");
        }
        assert!(given[0].starts_with("a__run_"), "{given:?}");
    }

    #[test]
    fn names_fit() {
        let mut names = UniqueNames::default();
        let long = "very_long_".repeat(20);
        let key = names.name_key(&long, 0);
        let (one, other) = (
            names.tool(&key, &long),
            names.tool(&key, &format!("{long}b")),
        );
        assert_ne!(one, other);
        for name in [&one, &other] {
            assert_eq!(name.len(), LONGEST, "{name}");
            assert!(name.starts_with("very_long_"), "{name}");
        }
    }

    #[test]
    fn prompts_can_be_typed() {
        let mut names = UniqueNames::default();
        assert_eq!(names.prompt("a", "sum it\u{7}up"), "a:sum_it_up");
        let long = names.prompt("a", &"é".repeat(1_000_000));
        assert!(long.len() <= LONGEST_PROMPT, "{long}");
        assert_ne!(names.prompt("a", &"é".repeat(1_000_001)), long);
    }

    #[test]
    fn servers_with_the_same_name_have_keys_of_their_own() {
        let mut names = UniqueNames::default();
        let (one, other) = (names.name_key("my files", 0), names.name_key("my files", 1));
        assert_eq!(one, "my_files");
        assert!(other.starts_with("my_files_") && other != one, "{other}");
        assert_eq!(names.name_key("日本", 2), "server_2");
        assert_eq!(names.name_key("7zip", 3), "_7zip");
    }
}

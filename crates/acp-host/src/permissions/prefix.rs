//! Command prefixes: which commands an "always" answer may cover beyond the exact one.
//!
//! A prefix is offered beside the exact command, and the question says what it covers. It is offered only for programs
//! of which the first words say what they do. `python`, `sudo` or `rm`, followed by anything, could do anything.

use super::action::Action;
use super::command_parts::bare_name;
use super::patterns::{self, CommandPattern};
use super::remembered::{RememberedSubject, remembered_subjects};
use super::wrappers::wrapped_command_start;
use acp_wire::v1::ToolKind;

/// Programs whose first word after the name says what they do.
const PROGRAMS_WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "bazel",
    "brew",
    "bun",
    "bundle",
    "cabal",
    "cargo",
    "cmake",
    "composer",
    "dart",
    "deno",
    "docker",
    "dotnet",
    "flutter",
    "gh",
    "git",
    "glab",
    "go",
    "gradle",
    "gradlew",
    "helm",
    "journalctl",
    "just",
    "kubectl",
    "make",
    "meson",
    "mix",
    "mvn",
    "mvnw",
    "npm",
    "nx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rake",
    "rustup",
    "stack",
    "swift",
    "systemctl",
    "terraform",
    "tox",
    "turbo",
    "uv",
    "yarn",
    "zig",
];

/// Programs that do one thing, so that no further word is needed: test runners, linters and formatters.
const SINGLE_PURPOSE_PROGRAMS: &[&str] = &[
    "black",
    "ctest",
    "eslint",
    "jest",
    "mypy",
    "ninja",
    "phpunit",
    "prettier",
    "pyright",
    "pytest",
    "rspec",
    "rubocop",
    "ruff",
    "rustfmt",
    "shellcheck",
    "tsc",
    "vitest",
];

/// Subcommands that run a script or task, whose name follows.
const RUNNER_SUBCOMMANDS: [&str; 4] = ["run", "run-script", "script", "task"];

/// The maximum length of a prefix, in bytes.
const MAX_PREFIX_BYTES: usize = 100;

/// Returns the pattern that an "always" answer about this action can cover, such as `cargo test *`.
pub(super) fn command_prefix(action: &Action) -> Option<String> {
    let subjects = remembered_subjects(action)?;
    let ([command], [RememberedSubject::Command(line)]) =
        (action.commands.as_slice(), subjects.as_slice())
    else {
        return None;
    };
    if action.kinds().any(|kind| *kind != ToolKind::Execute) {
        return None;
    }
    let words = shell_words::split(line).ok()?;
    let mut rest = words.iter();
    let program = rest.next()?;
    let name = bare_name(program);
    // Such as `docker run`, which runs what follows.
    if wrapped_command_start(name, words.get(1..)?).is_some() {
        return None;
    }
    let mut prefix = vec![program.as_str()];
    if PROGRAMS_WITH_SUBCOMMANDS.contains(&name) {
        let subcommand = rest.next().filter(|word| is_subcommand(word))?;
        prefix.push(subcommand);
        if RUNNER_SUBCOMMANDS.contains(&subcommand.as_str()) {
            prefix.push(rest.next().filter(|word| is_subcommand(word))?);
        }
    } else if !SINGLE_PURPOSE_PROGRAMS.contains(&name) {
        return None;
    }
    let is_plain = |word: &&str| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:+@".contains(c))
    };
    if !prefix.iter().all(is_plain) {
        return None;
    }
    let pattern = format!("{} *", prefix.join(" "));
    // Never a prefix that does not cover the command in the question, such as one with `;`.
    let covers =
        CommandPattern::new(&pattern).is_ok_and(|pattern| pattern.matches_to_allow(command));
    (covers && pattern.len() <= MAX_PREFIX_BYTES).then_some(pattern)
}

/// Returns whether a word reads as a subcommand, not as an option, a file or data.
fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_:".contains(c))
}

/// Returns whether a remembered pattern covers the action, which consists of this one command.
pub(super) fn prefix_covers(pattern: &str, action: &Action) -> bool {
    let [command] = action.commands.as_slice() else {
        return false;
    };
    CommandPattern::new(pattern).is_ok_and(|pattern| pattern.matches_to_allow(command))
        // As for a rule of the user: files that decide about permissions must be named.
        && !action
            .paths
            .iter()
            .any(|target| patterns::is_permission_directory(&target.given_path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::Roots;

    fn prefix(line: &str) -> Option<String> {
        let cwd = std::env::temp_dir();
        let roots = Roots::open([cwd.clone()]).unwrap();
        command_prefix(&Action::for_command(line, &cwd, &roots))
    }

    #[test]
    fn prefix_ends_after_the_subcommand() {
        for (line, expected) in [
            ("cargo test --workspace -- a::b", "cargo test *"),
            ("git status", "git status *"),
            ("npm run build -- --watch", "npm run build *"),
            ("./gradlew check", "./gradlew check *"),
            ("go test ./...", "go test *"),
            ("pytest -x tests/a.py", "pytest *"),
        ] {
            assert_eq!(prefix(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn no_prefix_is_offered_if_what_follows_decides_what_runs() {
        for line in [
            "ls",
            "ls -la",
            "echo hello",
            "/tmp/tool test",
            "rm file",
            "sudo apt install x",
            "python3.12 main",
            "bash build",
            "env cargo test",
            "git -c alias.x=!sh status",
            "docker run image",
            "npm run",
            "xargs cargo test",
            "cargo test; rm -r x",
            "cargo test && ls",
            "cargo test $(ls)",
            "cargo test *.rs",
            "cargo test > out",
            "X=1 cargo test",
            "cargo 'te st'",
        ] {
            assert_eq!(prefix(line), None, "{line}");
        }
    }
}

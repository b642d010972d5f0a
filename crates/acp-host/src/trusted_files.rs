//! Lists files that other programs run or trust without asking anyone.
//!
//! A hook in `.git`, a task in `.vscode` or a server in `.mcp.json` runs later: with the next `git status`, when an
//! editor opens the project, or when another agent starts in it. So an agent that can change such a file can run
//! anything, outside of any sandbox. Files with which a project is built and tested (`Makefile`, `package.json`,
//! sources) are not listed, because users run them themselves and agents are meant to change them. Files that only run
//! elsewhere (`.github/workflows`) are not listed either.
//!
//! Such a list can never be complete.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::roots::Roots;

/// The maximum length of a path to examine, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Files and directories that other programs run or trust. A directory includes everything in it.
///
/// Each entry is a name, or several names separated by `/`, and matches anywhere in a project. A `*` at the start or
/// end of a name matches any text. Case is ignored, as on many file systems.
pub const TRUSTED_PATHS: &[&str] = &[
    // Version control: hooks, and settings that name programs (`core.fsmonitor`).
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".githooks",
    ".config/git",
    ".bzr",
    ".hg",
    ".jj",
    ".svn",
    // What hooks run.
    ".husky",
    ".huskyrc*",
    ".lefthook*",
    "lefthook.*",
    "lefthook-local.*",
    ".lintstagedrc*",
    ".pre-commit-config.yaml",
    // Editors: tasks, language servers and interpreters that start when a project is opened.
    ".devcontainer",
    ".devcontainer.json",
    ".exrc",
    ".fleet",
    ".helix",
    ".idea",
    ".lazy.lua",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".vs",
    ".vscode",
    ".zed",
    "*.code-workspace",
    "*.sublime-project",
    // Agents: permissions, hooks and MCP servers.
    ".acp",
    ".agent",
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".augment",
    ".claude",
    ".claude.json",
    ".clinerules",
    ".codex",
    ".continue",
    ".continuerc.json",
    ".copilot",
    ".crush.json",
    "crush.json",
    ".cursor",
    ".factory",
    ".gemini",
    ".github/agents",
    ".github/hooks",
    ".github/skills",
    ".goose",
    ".junie",
    ".kilocode",
    ".kilocodemodes",
    ".kiro",
    ".mcp.json",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".openhands",
    ".pi",
    ".qwen",
    ".roo",
    ".roomodes",
    ".trae",
    ".vibe",
    ".windsurf",
    // Environments and tool versions that a shell loads when it enters a directory.
    ".config/mise*",
    ".envrc",
    ".mise",
    ".mise.*",
    "mise/config*",
    "mise.local.toml",
    "mise.toml",
    ".rtx.toml",
    ".tool-versions",
    // Tools: settings that choose a compiler, shell, registry or custom program, whatever the tool is used for.
    ".bazeliskrc",
    ".bazelrc",
    ".cargo/config",
    ".cargo/config.toml",
    ".mvn",
    ".npmrc",
    ".pnpmfile.*",
    ".yarn/plugins",
    ".yarn/releases",
    ".yarnrc",
    ".yarnrc.yml",
    "rust-toolchain",
    "rust-toolchain.toml",
    // Interpreters and debuggers that run a file of the directory in which they start.
    ".erlang",
    ".gdbinit",
    ".ghci",
    ".iex.exs",
    ".irbrc",
    ".lldbinit",
    ".ocamlinit",
    ".pdbrc",
    ".pryrc",
    ".Rprofile",
    // A home directory: shells, logins, and what a desktop starts.
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/systemd",
    ".local/bin",
    ".profile",
    ".ssh",
    ".xprofile",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Files with instructions that agents follow, in the same notation as [`TRUSTED_PATHS`]. They do not run anything by
/// themselves, and agents write them as part of their normal work. The user is therefore asked before such a file is
/// changed, but changes by sandboxed commands are not undone.
pub const INSTRUCTION_PATHS: &[&str] = &[
    ".augment-guidelines",
    ".cursorrules",
    ".github/chatmodes",
    ".github/copilot*",
    ".github/instructions",
    ".github/prompts",
    ".goosehints",
    ".windsurfrules",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
];

/// Returns `true` if other programs run or trust the file at this path, given relative to the project's directory.
///
/// Only names are checked, so symlinks in the path must be resolved first. See also [`is_in_bare_repository`].
#[must_use]
pub fn is_trusted_by_programs(path: &Path) -> bool {
    is_listed(path, TRUSTED_PATHS) || is_listed(path, INSTRUCTION_PATHS)
}

/// Returns `true` if programs other than agents run or trust the file.
pub(crate) fn is_executed_by_programs(path: &Path) -> bool {
    is_listed(path, TRUSTED_PATHS)
}

fn is_listed(path: &Path, list: &[&str]) -> bool {
    let names = component_names(path);
    (0..names.len()).any(|from| {
        let rest = names.get(from..).unwrap_or_default();
        list.iter().any(|listed| starts_with(rest, listed))
    })
}

/// Returns `true` if the path is in a bare git repository, or would be if it existed. Git trusts the `config` in every
/// directory that looks like a bare repository, whatever its name.
///
/// The path is relative to the project's directory. `exists` returns whether another path in it exists.
pub fn is_in_bare_repository(path: &Path, exists: impl Fn(&Path) -> bool) -> bool {
    path.ancestors().skip(1).any(|directory| {
        let below = path.strip_prefix(directory).unwrap_or(path);
        let first = below.components().next();
        let has = |name: &str| {
            let is_written =
                first.is_some_and(|first| matches_name(&normalize_name(first.as_os_str()), name));
            is_written || exists(&directory.join(name))
        };
        // With `commondir`, the other two are elsewhere.
        has("HEAD") && (has("commondir") || has("objects") && has("refs"))
    })
}

/// Returns `true` if the absolute path refers to an ordinary file in the project: one that is under a root and that
/// other programs neither run nor trust. Checks the path both as given and with symlinks resolved.
#[must_use]
pub fn is_ordinary(path: &Path, roots: &Roots) -> bool {
    // No system has a file with so long a path, and each of its directories would be examined.
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return false;
    }
    let mut named = roots
        .paths()
        .filter_map(|root| path.strip_prefix(root).ok());
    !named.any(is_trusted_by_programs)
        && roots.resolve(path).is_ok_and(|place| {
            let exists = |path: &Path| place.dir().symlink_metadata(path).is_ok();
            !is_trusted_by_programs(place.path()) && !is_in_bare_repository(place.path(), exists)
        })
}

fn component_names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(normalize_name(name)),
            Component::ParentDir => {
                names.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

/// Returns a file name as Windows interprets it: without a stream name, and without trailing dots and spaces.
fn normalize_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let file = name.split(':').next().unwrap_or_default();
    let file = file.trim_end_matches(['.', ' ']);
    file.to_owned()
}

fn starts_with(names: &[String], obeyed: &str) -> bool {
    let mut names = names.iter();
    let mut obeyed = obeyed.split('/');
    obeyed.all(|obeyed| names.next().is_some_and(|name| matches_name(name, obeyed)))
}

fn matches_name(name: &str, obeyed: &str) -> bool {
    let (name, obeyed) = (name.as_bytes(), obeyed.as_bytes());
    let same = |a: Option<&[u8]>, b: &[u8]| a.is_some_and(|a| a.eq_ignore_ascii_case(b));
    match (obeyed.strip_prefix(b"*"), obeyed.strip_suffix(b"*")) {
        (Some(end), _) => same(
            name.len()
                .checked_sub(end.len())
                .and_then(|at| name.get(at..)),
            end,
        ),
        (None, Some(begin)) => same(name.get(..begin.len()), begin),
        (None, None) => name.eq_ignore_ascii_case(obeyed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trusted_files_are_recognized_at_any_depth() {
        for obeyed in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            ".git.",
            ".git::$INDEX_ALLOCATION/config",
            "sub/.vscode/tasks.json",
            "src/../.acp/permissions.toml",
            ".claude/settings.json",
            ".mcp.json",
            "crates/a/.cargo/config.toml",
            ".cargo/Config",
            "my.code-workspace",
            "lefthook.yml",
            ".github/copilot-instructions.md",
            ".config/mise/config.toml",
            ".mise.local.toml",
            ".yarnrc.yml",
            "sub/AGENTS.md",
        ] {
            assert!(is_trusted_by_programs(Path::new(obeyed)), "{obeyed}");
        }
        for ordinary in [
            "",
            "src/main.rs",
            ".gitignore",
            ".github/workflows/ci.yml",
            "cargo/config.toml",
            ".cargo/credentials.md",
            "config.toml",
            "code-workspace",
            "Makefile",
            ".config/nextest.toml",
            "promise.rs",
            ".git/../README.md",
        ] {
            assert!(!is_trusted_by_programs(Path::new(ordinary)), "{ordinary}");
        }
    }

    #[test]
    fn bare_repository_is_recognized_while_it_is_created() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let is_in = |path: &str| is_in_bare_repository(Path::new(path), |p| root.join(p).exists());
        std::fs::create_dir_all(root.join("a/b/objects")).unwrap();
        std::fs::create_dir_all(root.join("a/b/refs")).unwrap();
        assert!(!is_in("a/b/config"));
        // The missing part of a repository.
        assert!(is_in("a/b/HEAD"));
        assert!(is_in("a/b/head"));
        std::fs::write(root.join("a/b/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert!(is_in("a/b/config"));
        assert!(is_in("a/b/hooks/post-checkout"));
        assert!(!is_in("a/config"));
        assert!(!is_in("HEAD"));
        std::fs::remove_dir(root.join("a/b/refs")).unwrap();
        assert!(!is_in("a/b/config"));
        assert!(is_in("a/b/refs/heads/main"));
        assert!(is_in("a/b/commondir"));
        // The project's directory itself.
        for directory in ["objects", "refs"] {
            std::fs::create_dir(root.join(directory)).unwrap();
        }
        assert!(is_in("HEAD"));
    }
}

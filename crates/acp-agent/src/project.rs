//! Detects a project's test command from the files in its directory.

use std::collections::HashMap;

use serde_json::Value;

/// The parts of a project that have been read so far.
#[derive(Debug, Default)]
pub(crate) struct ProjectFiles<'a> {
    /// The names of the entries in the project's directory. Names of directories end with `/`.
    pub(crate) names: Vec<&'a str>,
    /// The contents of the files that were read. `None` for a file that cannot be read.
    pub(crate) texts: HashMap<&'a str, Option<&'a str>>,
    /// The names of the entries in each subdirectory that was listed. `None` for a directory that cannot be listed.
    pub(crate) lists: HashMap<&'a str, Option<Vec<&'a str>>>,
}

/// A project's test command, or the file or directory to read next to find it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProjectHint {
    /// The test command, and the reason for choosing it.
    Command {
        command: &'static str,
        because: &'static str,
    },
    /// Read this file next.
    Read(&'static str),
    /// List this directory next.
    List(&'static str),
    /// No test command can be detected.
    Nothing,
}

/// The command that runs pytest. When run as a Python module, pytest also finds the project's own packages.
const PYTEST_COMMAND: &str = if cfg!(windows) {
    "python -m pytest"
} else {
    "python3 -m pytest"
};

/// Tells the user which files the test command is detected from.
pub(crate) const TEST_FILES_DESCRIPTION: &str = "`Cargo.toml`, `package.json` with a test script, pytest \
     settings or tests, `go.mod`, or `Makefile` with a `test` target";

/// Detects the test command, or returns what to read next.
pub(crate) fn detect_test_command(clues: &ProjectFiles<'_>) -> ProjectHint {
    let has = |name: &str| clues.names.contains(&name);
    let found = |command, because| ProjectHint::Command { command, because };
    if has("Cargo.toml") {
        return found("cargo test", "found `Cargo.toml`");
    }
    if has("package.json") {
        match clues.texts.get("package.json") {
            None => return ProjectHint::Read("package.json"),
            Some(Some(text)) if has_npm_tests(text) => {
                return found("npm test", "`package.json` has a `test` script");
            }
            Some(_) => {}
        }
    }
    if ["pyproject.toml", "pytest.ini", "setup.cfg"]
        .into_iter()
        .any(has)
    {
        return found(PYTEST_COMMAND, "found Python project settings");
    }
    if clues.names.iter().any(|name| is_python_test(name)) {
        return found(PYTEST_COMMAND, "found `test_*.py` files");
    }
    if has("tests/") {
        match clues.lists.get("tests") {
            None => return ProjectHint::List("tests"),
            Some(Some(names)) if names.iter().any(|name| is_python_test(name)) => {
                return found(PYTEST_COMMAND, "found `test_*.py` files in `tests`");
            }
            Some(_) => {}
        }
    }
    if has("go.mod") {
        return found("go test ./...", "found `go.mod`");
    }
    // The names are in the order in which `make` looks for them.
    for makefile in ["GNUmakefile", "makefile", "Makefile"]
        .into_iter()
        .filter(|name| has(name))
    {
        match clues.texts.get(makefile) {
            None => return ProjectHint::Read(makefile),
            Some(Some(text)) if has_make_tests(text) => {
                return found("make test", "the makefile has a `test` target");
            }
            Some(_) => {}
        }
    }
    ProjectHint::Nothing
}

fn has_npm_tests(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    package
        .pointer("/scripts/test")
        .and_then(Value::as_str)
        // The script that `npm init` writes only prints that there are no tests.
        .is_some_and(|script| !script.contains("no test specified"))
}

fn has_make_tests(makefile: &str) -> bool {
    makefile.lines().any(|line| {
        let Some((targets, rest)) = line.split_once(':') else {
            return false;
        };
        // Recipes are indented, and `test := x` defines a variable.
        !line.starts_with(['\t', ' ', '#'])
            && !rest.starts_with('=')
            && targets.split_whitespace().any(|target| target == "test")
    })
}

fn is_python_test(name: &str) -> bool {
    name.starts_with("test_") && name.ends_with(".py")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(names: &[&'static str], texts: &[(&'static str, &'static str)]) -> ProjectHint {
        detect_test_command(&ProjectFiles {
            names: names.to_vec(),
            texts: texts
                .iter()
                .map(|(name, text)| (*name, Some(*text)))
                .collect(),
            lists: HashMap::new(),
        })
    }

    fn command_from_hint(finding: ProjectHint) -> &'static str {
        match finding {
            ProjectHint::Command { command, .. } => command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn test_command_is_detected_from_project_files() {
        assert_eq!(
            command_from_hint(detect(&["Cargo.toml", "package.json", "Makefile"], &[])),
            "cargo test"
        );
        let package = r#"{"scripts": {"test": "vitest"}}"#;
        assert_eq!(
            detect(&["package.json"], &[]),
            ProjectHint::Read("package.json")
        );
        assert_eq!(
            command_from_hint(detect(&["package.json"], &[("package.json", package)])),
            "npm test"
        );
        assert_eq!(
            command_from_hint(detect(&["pytest.ini", "go.mod"], &[])),
            PYTEST_COMMAND
        );
        assert_eq!(
            command_from_hint(detect(&["test_a.py"], &[])),
            PYTEST_COMMAND
        );
        assert_eq!(detect(&["tests/"], &[]), ProjectHint::List("tests"));
        assert_eq!(command_from_hint(detect(&["go.mod"], &[])), "go test ./...");
        let makefile = ".PHONY: all test\ntest: all\n\tpytest\n";
        assert_eq!(
            command_from_hint(detect(&["Makefile"], &[("Makefile", makefile)])),
            "make test"
        );
    }

    #[test]
    fn lookalike_files_do_not_count_as_tests() {
        let init = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        assert_eq!(
            detect(&["package.json"], &[("package.json", init)]),
            ProjectHint::Nothing
        );
        assert_eq!(
            detect(&["package.json"], &[("package.json", "{")]),
            ProjectHint::Nothing
        );
        let makefile = "test := 1\nall:\n\techo test: no\n# test:\n";
        assert_eq!(
            detect(&["Makefile"], &[("Makefile", makefile)]),
            ProjectHint::Nothing
        );
        assert_eq!(detect(&["README.md"], &[]), ProjectHint::Nothing);
    }
}

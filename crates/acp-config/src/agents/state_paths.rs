//! Determines where agents store their own state. Agents must be able to write to these paths even in a sandbox that
//! makes all others read-only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use acp_host::Environment;

use crate::paths;

/// A path where an agent stores its own state. These paths follow Linux conventions, since sandboxes are not available
/// on other systems.
#[derive(Debug, Clone, Copy)]
pub enum AgentStatePath {
    /// A directory, given relative to the home directory.
    Home(&'static str),
    /// A file, given relative to the home directory. Not created if missing, because agents reject an empty file.
    HomeFile(&'static str),
    /// The directory in an environment variable (the first string), or if unset, a directory in the home directory (the
    /// second string).
    EnvOrHome(&'static str, &'static str),
    /// A directory in `$XDG_CONFIG_HOME`.
    Config(&'static str),
    /// A directory in `$XDG_DATA_HOME`.
    Data(&'static str),
    /// A directory in `$XDG_STATE_HOME`.
    State(&'static str),
    /// A directory in `$XDG_CACHE_HOME`.
    Cache(&'static str),
}

use AgentStatePath::{Cache, Config, Data, EnvOrHome, Home, HomeFile, State};

/// Returns the state paths of a package runner such as `npx`, or `None` for any other program.
pub(super) fn package_runner_paths(program: &str) -> Option<&'static [AgentStatePath]> {
    Some(match program {
        "npx" | "npm" => &[EnvOrHome("npm_config_cache", ".npm")],
        "uvx" | "uv" => &[EnvOrHome("UV_CACHE_DIR", ".cache/uv"), Data("uv")],
        "bunx" | "bun" => &[EnvOrHome("BUN_INSTALL", ".bun")],
        "pnpx" | "pnpm" => &[Data("pnpm"), Cache("pnpm"), State("pnpm")],
        _ => return None,
    })
}

/// The paths where an agent may write its own state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AgentStatePaths {
    /// The existing directories and files.
    pub writable: Vec<PathBuf>,
    /// Notes for the user about paths that were not made writable.
    pub notes: Vec<String>,
}

/// Returns the paths where an agent may write its own state while working in `cwd`. Some of them depend on the agent's
/// environment.
///
/// Missing directories are created, because the agent cannot create them.
pub(crate) fn prepare_state_paths<'a>(
    places: impl IntoIterator<Item = &'a AgentStatePath>,
    environment: &Environment,
    cwd: &Path,
) -> AgentStatePaths {
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let home = variable("HOME")
        .map(PathBuf::from)
        .or_else(std::env::home_dir);
    let mut own = AgentStatePaths::default();
    let Some(home) = home.filter(|home| home.is_absolute()) else {
        return own;
    };
    for place in places {
        let Some(path) = resolve_path(*place, &home, variable) else {
            continue;
        };
        let made = match place {
            HomeFile(_) => Ok(()),
            _ => create_private_dir(&path),
        };
        let opened = made.and_then(|()| std::fs::canonicalize(&path));
        let shown = paths::display_path(&path);
        match opened {
            Ok(real) if is_too_broad(&real, &home, cwd) => own.notes.push(format!(
                "{shown} stays read-only: making it writable would also make the project or the home directory writable"
            )),
            Ok(real) if own.writable.contains(&real) => {}
            Ok(real) => own.writable.push(real),
            Err(_) if matches!(place, HomeFile(_)) => {}
            Err(e) => own.notes.push(format!("cannot make {shown} writable: {e}")),
        }
    }
    own
}

/// Resolves a state path to a path in the file system.
fn resolve_path(
    place: AgentStatePath,
    home: &Path,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = |name: &str, usual: &str| absolute(name).unwrap_or_else(|| home.join(usual));
    Some(match place {
        Home(name) => home.join(name),
        HomeFile(name) => home.join(name),
        EnvOrHome(name, usual) => match variable(name) {
            // Only the agent knows the directory of a relative path.
            Some(_) => absolute(name)?,
            None => home.join(usual),
        },
        Config(name) => base("XDG_CONFIG_HOME", ".config").join(name),
        Data(name) => base("XDG_DATA_HOME", ".local/share").join(name),
        State(name) => base("XDG_STATE_HOME", ".local/state").join(name),
        Cache(name) => base("XDG_CACHE_HOME", ".cache").join(name),
    })
}

/// Creates a directory that only the user can access, unless it already exists.
fn create_private_dir(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Returns `true` if a path contains the project or the home directory, or is inside the project. Such a path must not
/// be made writable.
fn is_too_broad(real: &Path, home: &Path, cwd: &Path) -> bool {
    let real_home = std::fs::canonicalize(home);
    let home = real_home.as_deref().unwrap_or(home);
    // If the user works in the home directory, all agents' directories are in the project.
    real.starts_with(project_root(cwd, home)) || cwd.starts_with(real) || home.starts_with(real)
}

/// Returns the root of the repository that contains `cwd`, or `cwd` itself if there is none.
///
/// A repository that contains the home directory is ignored, because it contains the user's settings and not the
/// project.
fn project_root<'a>(cwd: &'a Path, home: &Path) -> &'a Path {
    let repository = cwd
        .ancestors()
        .find(|directory| directory.join(".git").exists());
    repository
        .filter(|directory| !home.starts_with(directory))
        .unwrap_or(cwd)
}

#[cfg(all(test, unix))]
#[allow(
    clippy::unwrap_used,
    reason = "clippy recognizes only test functions as tests"
)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Creates a home directory, and an environment that points to it.
    fn home_fixture() -> (tempfile::TempDir, PathBuf, Environment) {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let mut environment = Environment::new().set("HOME", &home);
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
            "XDG_CACHE_HOME",
        ] {
            environment = environment.set(name, "");
        }
        (directory, home, environment)
    }

    #[test]
    fn state_directories_are_private_and_follow_variables() {
        let (_directory, home, environment) = home_fixture();
        let cwd = home.join("project");
        std::fs::create_dir(&cwd).unwrap();
        let places = [Home(".codex"), Data("goose"), HomeFile(".claude.json")];
        let own = prepare_state_paths(&places, &environment, &cwd);
        assert_eq!(own.notes, Vec::<String>::new());
        assert_eq!(
            own.writable,
            [home.join(".codex"), home.join(".local/share/goose")]
        );
        let mode = std::fs::metadata(home.join(".codex"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(home.join(".claude.json"), "{}").unwrap();
        let moved = environment
            .set("XDG_DATA_HOME", home.join("data"))
            .set("CODEX_HOME", home.join("moved"));
        let places = [
            EnvOrHome("CODEX_HOME", ".codex"),
            Data("goose"),
            HomeFile(".claude.json"),
        ];
        let own = prepare_state_paths(&places, &moved, &cwd);
        let there = ["moved", "data/goose", ".claude.json"].map(|name| home.join(name));
        assert_eq!(own.writable, there);
    }

    #[test]
    fn overly_broad_directories_are_rejected() {
        let (_directory, home, environment) = home_fixture();
        let cwd = home.join("project");
        std::fs::create_dir_all(cwd.join("sub/.git")).unwrap();
        std::fs::create_dir_all(cwd.join("inside")).unwrap();
        std::fs::create_dir(cwd.join(".git")).unwrap();
        for (name, target) in [
            (".inside", cwd.join("inside")),
            (".project", cwd.clone()),
            (".home", home.clone()),
            (".root", PathBuf::from("/")),
            (".dangling", home.join("nowhere")),
        ] {
            symlink(target, home.join(name)).unwrap();
            let own = prepare_state_paths(&[Home(name)], &environment, &cwd);
            assert_eq!(own.writable, Vec::<PathBuf>::new(), "{name}");
            assert_eq!(own.notes.len(), 1, "{name}");
        }
        // In a subdirectory of the project, the whole project counts.
        let own = prepare_state_paths(&[Home(".inside")], &environment, &cwd.join("inside"));
        assert_eq!(own.writable, Vec::<PathBuf>::new());
        // If the user works in the home directory, the state is inside the project. If the user works in a directory
        // below it, the state is outside, even if the home directory is a repository.
        let own = prepare_state_paths(&[Home(".codex")], &environment, &home);
        assert_eq!(own.writable, Vec::<PathBuf>::new());
        std::fs::create_dir(home.join(".git")).unwrap();
        let elsewhere = home.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let own = prepare_state_paths(&[Home(".codex")], &environment, &elsewhere);
        assert_eq!(own.writable, [home.join(".codex")]);
        // This state directory contains the project.
        let inside = home.join(".codex/worktree");
        std::fs::create_dir(&inside).unwrap();
        let own = prepare_state_paths(&[Home(".codex")], &environment, &inside);
        assert_eq!(own.writable, Vec::<PathBuf>::new());
    }
}

//! What an agent keeps of its own, which it must be able to write where it may write nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use acp_host::Environment;

use crate::paths;

/// A place where an agent keeps something. By Linux's conventions: elsewhere nothing is confined.
#[derive(Debug, Clone, Copy)]
pub enum AgentStatePath {
    /// A directory in the home directory.
    Home(&'static str),
    /// A file there. One that is not there is not made: an empty one would be no file of the agent's.
    HomeFile(&'static str),
    /// The directory that this variable names, or else this one in the home directory.
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

/// Where a program that fetches what it runs keeps it; absent for any other program.
pub(super) fn runner(program: &str) -> Option<&'static [AgentStatePath]> {
    Some(match program {
        "npx" | "npm" => &[EnvOrHome("npm_config_cache", ".npm")],
        "uvx" | "uv" => &[EnvOrHome("UV_CACHE_DIR", ".cache/uv"), Data("uv")],
        "bunx" | "bun" => &[EnvOrHome("BUN_INSTALL", ".bun")],
        "pnpx" | "pnpm" => &[Data("pnpm"), Cache("pnpm"), State("pnpm")],
        _ => return None,
    })
}

/// What an agent is let write of its own.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AgentStatePaths {
    /// Directories and files that are there.
    pub writable: Vec<PathBuf>,
    /// What the person is to be told of those that it is not let write.
    pub notes: Vec<String>,
}

/// Where an agent that gets this environment, and works in `cwd`, may write because it keeps its own there.
/// Directories that are not there are made, for the agent cannot.
pub(crate) fn prepare<'a>(
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
                "not making {shown} writable: that would also make the project or the home directory writable"
            )),
            Ok(real) if own.writable.contains(&real) => {}
            Ok(real) => own.writable.push(real),
            Err(_) if matches!(place, HomeFile(_)) => {}
            Err(e) => own.notes.push(format!("cannot make {shown} writable: {e}")),
        }
    }
    own
}

/// Where a place is.
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
            // Where a relative path leads is the agent's to say.
            Some(_) => absolute(name)?,
            None => home.join(usual),
        },
        Config(name) => base("XDG_CONFIG_HOME", ".config").join(name),
        Data(name) => base("XDG_DATA_HOME", ".local/share").join(name),
        State(name) => base("XDG_STATE_HOME", ".local/state").join(name),
        Cache(name) => base("XDG_CACHE_HOME", ".cache").join(name),
    })
}

/// Makes a directory of the user's alone, if it is not there.
fn create_private_dir(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Whether whoever may write there could write the project, or all that the user has.
fn is_too_broad(real: &Path, home: &Path, cwd: &Path) -> bool {
    let real_home = std::fs::canonicalize(home);
    let home = real_home.as_deref().unwrap_or(home);
    // Someone who works at home has all directories of agents in the project.
    real.starts_with(project_root(cwd, home)) || cwd.starts_with(real) || home.starts_with(real)
}

/// The repository that someone works in. One that has the home directory in it is not meant: it keeps the
/// user's settings, and is not what is worked on.
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
    reason = "clippy takes only what is in a test function for a test"
)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A home directory, and an environment with it.
    fn home() -> (tempfile::TempDir, PathBuf, Environment) {
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
    fn directories_are_made_for_the_user_alone_and_variables_move_them() {
        let (_directory, home, environment) = home();
        let cwd = home.join("project");
        std::fs::create_dir(&cwd).unwrap();
        let places = [Home(".codex"), Data("goose"), HomeFile(".claude.json")];
        let own = prepare(&places, &environment, &cwd);
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
        let own = prepare(&places, &moved, &cwd);
        let there = ["moved", "data/goose", ".claude.json"].map(|name| home.join(name));
        assert_eq!(own.writable, there);
    }

    #[test]
    fn nothing_that_would_open_the_project_or_the_home_is_let_through() {
        let (_directory, home, environment) = home();
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
            let own = prepare(&[Home(name)], &environment, &cwd);
            assert_eq!(own.writable, Vec::<PathBuf>::new(), "{name}");
            assert_eq!(own.notes.len(), 1, "{name}");
        }
        // In a directory of the project, the whole of it is meant.
        let own = prepare(&[Home(".inside")], &environment, &cwd.join("inside"));
        assert_eq!(own.writable, Vec::<PathBuf>::new());
        // Who works at home has it all in the project; who has a repository there has not.
        let own = prepare(&[Home(".codex")], &environment, &home);
        assert_eq!(own.writable, Vec::<PathBuf>::new());
        std::fs::create_dir(home.join(".git")).unwrap();
        let elsewhere = home.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let own = prepare(&[Home(".codex")], &environment, &elsewhere);
        assert_eq!(own.writable, [home.join(".codex")]);
        // One that has the project in it.
        let inside = home.join(".codex/worktree");
        std::fs::create_dir(&inside).unwrap();
        let own = prepare(&[Home(".codex")], &environment, &inside);
        assert_eq!(own.writable, Vec::<PathBuf>::new());
    }
}

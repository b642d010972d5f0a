//! The command that an agent runs to reach a tool server.

use std::io;
use std::path::{Path, PathBuf};

/// The command that an agent runs as an MCP server: a proxy that forwards bytes to the
/// [`ToolServer`](crate::ToolServer). The endpoint is added to its arguments as `--connect ENDPOINT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyCommand {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

impl ProxyCommand {
    /// Creates a command from a program and its arguments. The program must call
    /// [`run_proxy`](crate::proxy::run_proxy). A relative path is resolved against this process's current directory,
    /// because the agent may run in a different one.
    ///
    /// # Errors
    /// Fails if the path is empty or is not valid Unicode, which the protocol cannot represent.
    pub fn new<A: Into<String>>(
        program: impl AsRef<Path>,
        args: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        let program = std::path::absolute(program)?;
        let program = program.into_os_string().into_string().map_err(|path| {
            let message = format!(
                "the path to the proxy is not valid Unicode: {}",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidInput, message)
        })?;
        Ok(Self {
            program,
            args: args.into_iter().map(Into::into).collect(),
        })
    }

    /// Creates a command that runs the current program with `args`, so that a client can serve as its own proxy.
    ///
    /// # Errors
    /// Fails if the path of the current program is unknown, and for the same reasons as [`new`](Self::new).
    pub fn this_program<A: Into<String>>(args: impl IntoIterator<Item = A>) -> io::Result<Self> {
        Self::new(std::env::current_exe()?, args)
    }

    /// Creates a command that runs `acp`: the current program if it is `acp`, or else the one on the `PATH`.
    ///
    /// # Errors
    /// Fails if `acp` is not installed.
    pub fn acp() -> io::Result<Self> {
        const ARGS: [&str; 1] = ["mcp-proxy"];
        match std::env::current_exe() {
            Ok(this) if this.file_stem().is_some_and(|name| name == "acp") => Self::new(this, ARGS),
            _ => Self::new(find_on_path("acp")?, ARGS),
        }
    }
}

/// Finds a program in the directories listed in `PATH`.
fn find_on_path(name: &str) -> io::Result<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(&file))
        .find(|file| file.is_file());
    found.ok_or_else(|| {
        let message = format!("command not found: {name}");
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_path_is_absolute() {
        let command = ProxyCommand::new("bin/editor", ["proxy"]).unwrap();
        assert!(Path::new(&command.program).is_absolute());
        assert!(Path::new(&command.program).ends_with("bin/editor"));
        assert_eq!(command.args, ["proxy"]);
        assert!(ProxyCommand::new("", ["proxy"]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn non_utf8_path_is_an_error() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/bin/\xff"));
        let error = ProxyCommand::new(path, ["proxy"]).unwrap_err();
        assert!(error.to_string().contains("not valid Unicode"), "{error}");
    }

    #[test]
    fn program_is_found_on_path() {
        // Every system that runs this test has Cargo on its PATH.
        let cargo = find_on_path("cargo").unwrap();
        assert!(cargo.is_file());
        let error = find_on_path("no-such-program-anywhere").unwrap_err();
        assert!(error.to_string().contains("no-such-program-anywhere"));
    }
}

//! Converts a terminal request to a command.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

use acp_wire::jsonrpc::Error;
use acp_wire::v1::CreateTerminalRequest;
use serde_json::json;

use crate::environment::Environment;
use crate::program::{self, ProgramError};
use crate::sys;

/// Returns the error for a command that could not be started.
pub(super) fn start_error(request: &CreateTerminalRequest, error: &io::Error) -> Error {
    let message = format!("cannot start {}: {error}", request.command);
    match error.kind() {
        io::ErrorKind::InvalidInput
        | io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ArgumentListTooLong => Error::invalid_params(message),
        _ => Error::internal(message),
    }
}

/// Converts a terminal request to a command that can be started.
pub(super) fn build_command(
    request: &CreateTerminalRequest,
    cwd: &Path,
    environment: &Environment,
) -> Result<Command, Error> {
    let invalid = |message: String| Error::invalid_params(message);
    if !cwd.is_absolute() {
        return Err(invalid(format!(
            "`cwd` must be an absolute path: {}",
            cwd.display()
        )));
    }
    if !cwd.is_dir() {
        let message = format!("no such working directory: {}", cwd.display());
        return Err(
            invalid(message).data(json!({ "errno": "ENOENT", "path": cwd.to_string_lossy() }))
        );
    }
    for variable in &request.env {
        if variable.name.is_empty() || variable.name.contains('=') {
            return Err(invalid(format!(
                "invalid environment variable name: {:?}",
                variable.name
            )));
        }
    }
    let path = request
        .env
        .iter()
        .rev()
        .find(|variable| variable.name == "PATH")
        .map(|variable| variable.value.clone().into())
        .or_else(|| environment.get("PATH"));
    let name = OsStr::new(&request.command);
    let is_line = request.args.is_empty() && program::is_shell_line(&request.command);
    // A shell line is not a path in the project, whatever files exist: permissions treat it as a line.
    let is_path = Path::new(name).components().count() > 1 && !Path::new(name).is_absolute();
    let found = match is_line && is_path {
        true => Err(ProgramError::NotFound),
        false => program::find_program(name, path.as_deref(), cwd),
    };
    let mut command = match found {
        Ok(file) => {
            let mut command = sys::program(&file, name);
            command.args(&request.args);
            command
        }
        Err(ProgramError::NotFound) if is_line => sys::shell(&request.command),
        Err(ProgramError::NotFound) => {
            return Err(invalid(format!("command not found: {}", request.command))
                .data(json!({ "errno": "ENOENT", "path": request.command })));
        }
        Err(ProgramError::NotExecutable(file)) => {
            return Err(
                invalid(format!("not an executable file: {}", file.display()))
                    .data(json!({ "errno": "EACCES", "path": file.to_string_lossy() })),
            );
        }
    };
    environment.apply_to(&mut command);
    // Some programs trust `PWD` rather than the system's answer.
    command.current_dir(cwd).env("PWD", cwd);
    command.envs(
        request
            .env
            .iter()
            .map(|variable| (&variable.name, &variable.value)),
    );
    Ok(command)
}

/// Returns the request's command line as the user would type it.
pub(crate) fn display_command(request: &CreateTerminalRequest) -> String {
    let mut line = request.command.clone();
    for arg in &request.args {
        line.push(' ');
        if arg.is_empty() || program::is_shell_line(arg) {
            line.push('\'');
            line.push_str(&arg.replace('\'', r"'\''"));
            line.push('\'');
        } else {
            line.push_str(arg);
        }
    }
    line
}

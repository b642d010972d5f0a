//! `acp users`: adds, lists and removes users of `acp serve`.

use std::fmt::Write;
use std::path::PathBuf;

use acp_config::paths;
use acp_server::users::{User, UserFileError, UserLimits, add_user, read_users, remove_user};

use crate::args::users::{AddUserArgs, UserFileArgs, UsersArgs, UsersSubcommand};
use crate::exit::CommandExit;
use crate::screen::print;

/// The name of the file in the state directory.
const USERS_FILE: &str = "serve-users.toml";

pub(crate) fn run_users(args: &UsersArgs) -> CommandExit {
    let done = match &args.command {
        UsersSubcommand::Add(args) => add(args),
        UsersSubcommand::List(args) => list(&args.file),
        UsersSubcommand::Remove(args) => file(&args.file)
            .and_then(|file| remove_user(&file, &args.name).map_err(|e| user_exit(&e))),
    };
    match done {
        Ok(()) => CommandExit::SUCCESS,
        Err(exit) => exit,
    }
}

/// Returns the default file. Returns `None` if there is no home directory.
pub(crate) fn default_file() -> Option<PathBuf> {
    Some(paths::state_dir()?.join(USERS_FILE))
}

fn add(args: &AddUserArgs) -> Result<(), CommandExit> {
    let limits = UserLimits::new(args.max_connections, args.max_sessions);
    let scopes = args.can.iter().copied();
    let (user, token) = User::new(&args.name, scopes, args.own_sessions, limits)
        .map_err(|e| CommandExit::usage(format!("{}: {e}", args.name)))?;
    add_user(&file(&args.file)?, user).map_err(|e| user_exit(&e))?;
    // Written only once the user is stored, so that every token that is printed is valid.
    print(format!("{}\n", token.expose()).as_bytes());
    Ok(())
}

fn list(args: &UserFileArgs) -> Result<(), CommandExit> {
    let users = read_users(&file(args)?).map_err(|e| user_exit(&e))?;
    let mut text = String::new();
    for user in &users {
        let scopes: Vec<&str> = user.scopes().map(|scope| scope.name()).collect();
        // Writing to a string does not fail.
        let _ = write!(text, "{}: {}", user.name(), scopes.join(", "));
        if user.has_own_sessions_only() {
            text.push_str("; own sessions");
        }
        let limits = user.limits();
        for (limit, what) in [
            (limits.connections, "connections"),
            (limits.sessions, "live sessions"),
        ] {
            if let Some(limit) = limit {
                let _ = write!(text, "; at most {limit} {what}");
            }
        }
        text.push('\n');
    }
    if users.is_empty() {
        text.push_str("no users; add one with `acp users add`\n");
    }
    print(text.as_bytes());
    Ok(())
}

fn file(args: &UserFileArgs) -> Result<PathBuf, CommandExit> {
    let file = args.file.clone().or_else(default_file);
    file.ok_or_else(|| CommandExit::usage("there is no home directory; use --file"))
}

fn user_exit(error: &UserFileError) -> CommandExit {
    CommandExit::usage(error.to_string())
}

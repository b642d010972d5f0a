//! Runs the user's own editor in the terminal, for a prompt or for a file of the conversation.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use acp_host::{AgentCommand, Environment};

/// The editors to look for if none is configured, in order of preference.
const DEFAULT_EDITORS: &[&str] = if cfg!(windows) {
    &["notepad.exe"]
} else {
    &["vi", "nano"]
};

/// Returns the command line of the configured editor or, if none is configured, of an installed one.
fn editor_command() -> Option<String> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|line| !line.trim().is_empty())
    };
    set("VISUAL").or_else(|| set("EDITOR")).or_else(|| {
        let path = std::env::var_os("PATH")?;
        let is_there =
            |name: &&&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
        DEFAULT_EDITORS
            .iter()
            .find(is_there)
            .map(|name| (*name).to_owned())
    })
}

/// Returns the command of the editor, or an error for the user.
fn find_editor() -> Result<AgentCommand, String> {
    let line = editor_command().ok_or_else(|| {
        format!(
            "no editor found: set VISUAL or EDITOR (tried {})",
            DEFAULT_EDITORS.join(", ")
        )
    })?;
    let command = AgentCommand::from_line(&line).map_err(|e| format!("EDITOR: {e}"))?;
    Ok(command.environment(Environment::inherit()))
}

/// Runs an editor, and waits until it exits.
async fn run_editor(command: AgentCommand) -> Result<(), String> {
    let exit = command
        .run_in_terminal()
        .await
        .map_err(|e| format!("cannot start the editor: {e}"))?;
    match exit.success() {
        true => Ok(()),
        false => Err(format!("the editor failed ({exit})")),
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FilePlace {
    /// The absolute path of the file, so that no editor takes it for an option.
    pub(crate) path: PathBuf,
    /// The line, counting from 1.
    pub(crate) line: Option<u32>,
}

/// Opens a file in the user's own editor, at the line if the editor is known to take one.
pub(crate) async fn open_file(place: &FilePlace) -> Result<(), String> {
    let editor = find_editor()?;
    let arguments = editor_arguments(&editor, place);
    run_editor(editor.args(arguments)).await
}

/// Returns the arguments with which the editor opens a file.
fn editor_arguments(editor: &AgentCommand, place: &FilePlace) -> Vec<OsString> {
    let file = place.path.clone().into_os_string();
    let Some(line) = place.line else {
        return vec![file];
    };
    let name = Path::new(&editor.program).file_stem().unwrap_or_default();
    let with_line = |file: OsString| {
        let mut file = file;
        file.push(format!(":{line}"));
        file
    };
    match &*name.to_string_lossy() {
        "vi" | "vim" | "nvim" | "view" | "nano" | "pico" | "emacs" | "emacsclient" | "micro"
        | "kak" | "joe" | "mg" | "ne" => vec![format!("+{line}").into(), file],
        "hx" | "helix" | "subl" | "zed" => vec![with_line(file)],
        "code" | "code-insiders" | "codium" | "cursor" | "windsurf" => {
            vec!["--goto".into(), with_line(file)]
        }
        _ => vec![file],
    }
}

/// Lets the user edit text in their own editor.
pub(crate) async fn edit_externally(text: &str) -> Result<String, String> {
    let editor = find_editor()?;
    let failed = |what: &str, e: &dyn std::fmt::Display| format!("{what}: {e}");
    let directory =
        tempfile::tempdir().map_err(|e| failed("cannot create a temporary file", &e))?;
    let file = directory.path().join("prompt.md");
    std::fs::write(&file, text).map_err(|e| failed("cannot create a temporary file", &e))?;
    run_editor(editor.args([&file])).await?;
    let text =
        std::fs::read_to_string(&file).map_err(|e| failed("cannot read the edited prompt", &e))?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_editors_get_the_line() {
        let place = |line| FilePlace {
            path: "/p/-x.rs".into(),
            line,
        };
        for (editor, expected) in [
            ("vi", &["+7", "/p/-x.rs"][..]),
            ("'/opt/my editors/nvim' -R", &["+7", "/p/-x.rs"]),
            ("hx", &["/p/-x.rs:7"]),
            ("code --wait", &["--goto", "/p/-x.rs:7"]),
            ("my-editor", &["/p/-x.rs"]),
        ] {
            let editor = AgentCommand::from_line(editor).unwrap();
            assert_eq!(editor_arguments(&editor, &place(Some(7))), expected);
        }
        let editor = AgentCommand::new("vi");
        assert_eq!(editor_arguments(&editor, &place(None)), ["/p/-x.rs"]);
    }
}

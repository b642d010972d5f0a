//! `config.toml` in the user's configuration directory.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::agents::settings::Settings;
use crate::chat;
use crate::exit::Exit;
use crate::mcp_servers::UsersServer;
use crate::models::Agent;
use crate::places;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;

/// What it is called, the user's and a project's.
pub(crate) const FILE: &str = "config.toml";

/// What the user has configured. What is not known here is an error, so that nothing is mistyped unseen.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) environment: Environment,
    /// The bundled agent.
    #[serde(default)]
    pub(crate) agent: Agent,
    /// MCP servers for `acp agent`.
    #[serde(default)]
    pub(crate) mcp_servers: Vec<UsersServer>,
    /// Agents by name, for `--agent`.
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, Settings>,
    /// The terminal client.
    #[serde(default)]
    pub(crate) chat: chat::Settings,
    /// The agent that is meant where none is said.
    pub(crate) default_agent: Option<String>,
}

/// What agents get of the environment.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Environment {
    /// Variables to pass on; `*` at the end of a name stands for any rest.
    #[serde(default)]
    pub(crate) pass: Vec<String>,
}

/// Where the user's configuration is, if they have a place for it.
pub(crate) fn file() -> Option<PathBuf> {
    Some(places::config()?.join(FILE))
}

/// Reads the configuration; that of a user who has none is empty.
pub(crate) fn read() -> Result<Config, Exit> {
    let Some(file) = file() else {
        return Ok(Config::default());
    };
    let wrong = |what: String| Exit::usage(format!("{}: {what}", file.display()));
    match std::fs::metadata(&file) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(wrong("not a regular file".to_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(e) => return Err(wrong(e.to_string())),
    }
    let opened = std::fs::File::open(&file).map_err(|e| wrong(e.to_string()))?;
    parse(&file, &text(&file, opened)?)
}

/// The text of a file that was opened.
pub(crate) fn text(file: &Path, opened: impl Read) -> Result<String, Exit> {
    let wrong = |what: String| Exit::usage(format!("{}: {what}", file.display()));
    let mut text = String::new();
    let read = opened.take(MAX_FILE + 1).read_to_string(&mut text);
    read.map_err(|e| wrong(e.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(wrong(format!("more than {MAX_FILE} bytes")));
    }
    Ok(text)
}

/// What a file says, with the line of what is wrong in it.
pub(crate) fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, Exit> {
    toml::from_str(text).map_err(|e: toml::de::Error| {
        let before = e.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| 1 + before.matches('\n').count());
        let line = line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        Exit::usage(format!("{}{line}: {}", file.display(), e.message()))
    })
}

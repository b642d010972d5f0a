//! `config.toml` in the user's configuration directory.

use std::io::Read;

use serde::Deserialize;

use crate::exit::Exit;
use crate::mcp_servers::UsersServer;
use crate::models::Agent;
use crate::places;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 * 1024;

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
}

/// What agents get of the environment.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Environment {
    /// Variables to pass on; `*` at the end of a name stands for any rest.
    #[serde(default)]
    pub(crate) pass: Vec<String>,
}

/// Reads the configuration; that of a user who has none is empty.
pub(crate) fn read() -> Result<Config, Exit> {
    let Some(directory) = places::config() else {
        return Ok(Config::default());
    };
    let file = directory.join("config.toml");
    let wrong = |what: String| Exit::usage(format!("{}{what}", file.display()));
    match std::fs::metadata(&file) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(wrong(": not a regular file".to_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
        Err(e) => return Err(wrong(format!(": {e}"))),
    }
    let mut text = String::new();
    let opened = std::fs::File::open(&file).map_err(|e| wrong(format!(": {e}")))?;
    let read = opened.take(MAX_FILE + 1).read_to_string(&mut text);
    read.map_err(|e| wrong(format!(": {e}")))?;
    if text.len() as u64 > MAX_FILE {
        return Err(wrong(format!(": more than {MAX_FILE} bytes")));
    }
    toml::from_str(&text).map_err(|e: toml::de::Error| {
        let before = e.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| 1 + before.matches('\n').count());
        let line = line
            .map(|line| format!(", line {line}"))
            .unwrap_or_default();
        wrong(format!("{line}: {}", e.message()))
    })
}

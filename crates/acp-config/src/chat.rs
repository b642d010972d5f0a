//! `[chat]` in `config.toml`: the terminal client.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What is configured of the terminal client.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatSettings {
    /// What the colours are to fit; by default what the terminal says.
    pub theme: Option<Background>,
    /// How images are shown.
    #[serde(default)]
    pub images: Images,
    /// Whether the mouse's wheel scrolls.
    #[serde(default)]
    pub mouse: bool,
    /// Actions by name, each with the keys that do it instead of its own.
    #[serde(default)]
    pub keys: BTreeMap<String, Vec<String>>,
}

/// What is behind the text of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// A dark terminal.
    #[default]
    Dark,
    /// A light one.
    Light,
}

/// How images are to be shown. A configuration names it in lowercase letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Images {
    /// As the terminal can.
    #[default]
    Auto,
    /// By kitty's graphics protocol, with its Unicode placeholders: kitty, Ghostty.
    Kitty,
    /// By iTerm2's inline images: iTerm2, `WezTerm`, Konsole, mintty.
    Iterm2,
    /// As sixels: xterm, foot, Windows Terminal.
    Sixel,
    /// As half blocks in two colours each. Needs 256 colours.
    Blocks,
    /// Not at all: a line says what they are.
    Off,
}

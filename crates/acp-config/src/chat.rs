//! `[chat]` in `config.toml`: the terminal client.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The settings of the terminal client.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatSettings {
    /// The background that the colors must fit. By default, the one that the terminal reports.
    pub theme: Option<Background>,
    /// How images are shown.
    #[serde(default)]
    pub images: Images,
    /// Whether the mouse wheel scrolls.
    #[serde(default)]
    pub mouse: bool,
    /// Key bindings: for each action, the keys that replace its default ones.
    #[serde(default)]
    pub keys: BTreeMap<String, Vec<String>>,
}

/// The background of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// A dark background.
    #[default]
    Dark,
    /// A light background.
    Light,
}

/// How images are shown. The configuration file has these names in lowercase letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Images {
    /// The best way that the terminal supports.
    #[default]
    Auto,
    /// With kitty's graphics protocol and its Unicode placeholders: kitty, Ghostty.
    Kitty,
    /// With iTerm2's inline images: iTerm2, `WezTerm`, Konsole, mintty.
    Iterm2,
    /// With sixels: xterm, foot, Windows Terminal.
    Sixel,
    /// With half blocks in two colors each. Requires 256 colors.
    Blocks,
    /// Images are not shown; a line describes each.
    Off,
}

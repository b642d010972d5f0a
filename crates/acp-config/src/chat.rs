//! `[chat]` in `config.toml`: the terminal client.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The settings of the terminal client.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChatSettings {
    /// The background color that the theme is chosen for. By default, the one that the terminal reports.
    pub theme: Option<Background>,
    /// How to show images.
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

/// How to show images. The configuration file uses these names in lowercase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Images {
    /// The best method that the terminal supports.
    #[default]
    Auto,
    /// kitty's graphics protocol and its Unicode placeholders: kitty, Ghostty.
    Kitty,
    /// iTerm2's inline images: iTerm2, `WezTerm`, Konsole, mintty.
    Iterm2,
    /// Sixel graphics: xterm, foot, Windows Terminal.
    Sixel,
    /// Half blocks in two colors each. Requires a terminal with 256 colors.
    Blocks,
    /// No images. A line of text describes each image instead.
    Off,
}

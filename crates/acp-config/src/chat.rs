//! `[chat]` in `config.toml`: the settings of the terminal client.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::themes::ThemeSetting;

/// The settings of the terminal client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ChatSettings {
    /// The theme, or one for dark and one for light terminals. The default is the built-in pair.
    pub theme: ThemeSetting,
    /// How to show images.
    pub images: ImageMode,
    /// The keys of the prompt editor.
    pub editing: EditingMode,
    /// Whether the chat uses the mouse. The default is `true`.
    pub mouse: bool,
    /// How to call the user back when the terminal is not in use.
    pub notify: NotifyMode,
    /// Whether to keep snapshots of the project's files, so that turns can be undone. The default is `true`.
    pub rewind: bool,
    /// Key bindings: the keys for each action, which replace the default ones.
    pub keys: BTreeMap<String, Vec<String>>,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            theme: ThemeSetting::default(),
            images: ImageMode::default(),
            editing: EditingMode::default(),
            mouse: true,
            notify: NotifyMode::default(),
            rewind: true,
            keys: BTreeMap::new(),
        }
    }
}

/// How to call the user back when a question waits, a turn ends or an agent exits. In the configuration file, these
/// names are in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotifyMode {
    /// Show a notification of the desktop if the terminal is known to support that, and ring the bell otherwise.
    #[default]
    Auto,
    /// Show notifications with the escape sequence OSC 9 (iTerm2).
    Osc9,
    /// Show notifications with the escape sequence OSC 99 (kitty).
    Osc99,
    /// Show notifications with the escape sequence OSC 777 (Ghostty, `WezTerm`, foot, rxvt-unicode).
    Osc777,
    /// Ring the terminal's bell.
    Bell,
    /// Do not call the user back.
    Off,
}

/// The keys of the prompt editor. In the configuration file, these names are in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EditingMode {
    /// The keys of shells.
    #[default]
    Standard,
    /// The keys of Vim, with a normal and an insert mode.
    Vim,
}

/// How to show images. In the configuration file, these names are in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageMode {
    /// Use the best method that the terminal supports.
    #[default]
    Auto,
    /// Use kitty's graphics protocol with Unicode placeholders (kitty, Ghostty).
    Kitty,
    /// Use iTerm2's inline images (iTerm2, `WezTerm`, Konsole, mintty).
    Iterm2,
    /// Use Sixel graphics (xterm, foot, Windows Terminal).
    Sixel,
    /// Draw images with half-block characters, each in two colors. Requires a terminal with 256 colors.
    Blocks,
    /// Show no images. A line of text describes each image instead.
    Off,
}

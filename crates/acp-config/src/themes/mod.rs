//! Color themes of the terminal client: the built-in ones, and TOML files in the configuration directory.
//!
//! A theme gives each [`ThemeRole`] a [`ThemeStyle`]. It names the theme that it starts from, so a file can be short.

mod background;
mod builtin;
mod file;
mod role;
mod setting;
mod style;

pub use background::Background;
pub use file::{ThemeDefinition, ThemeListing, builtin_theme, list_themes, read_theme, themes_dir};
pub use role::ThemeRole;
pub use setting::{ThemeName, ThemeSetting};
pub use style::{TextAttribute, ThemeColor, ThemeStyle};

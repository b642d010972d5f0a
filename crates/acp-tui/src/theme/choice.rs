//! The themes for dark and for light terminals.

use acp_config::ConfigError;
use acp_config::themes::{ThemeName, ThemeSetting, read_theme};

use super::{Background, Colors, Theme};

/// The themes for dark and for light terminals. Both are the same if the terminal does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThemePair {
    setting: ThemeSetting,
    dark: Theme,
    light: Theme,
}

impl ThemePair {
    /// Reads the themes that a setting names.
    ///
    /// # Errors
    /// Fails if there is no such theme, or if a theme file is invalid.
    pub fn read(setting: &ThemeSetting, colors: Colors) -> Result<Self, ConfigError> {
        let read = |name: &ThemeName| {
            let definition = read_theme(name)?;
            Ok::<_, ConfigError>(Theme::from_definition(&definition, colors))
        };
        let dark = read(&setting.dark)?;
        let light = match setting.light == setting.dark {
            true => dark.clone(),
            false => read(&setting.light)?,
        };
        Ok(Self {
            setting: setting.clone(),
            dark,
            light,
        })
    }

    /// Returns the setting that names the themes.
    #[must_use]
    pub fn setting(&self) -> &ThemeSetting {
        &self.setting
    }

    /// Returns the theme for this background.
    #[must_use]
    pub fn for_background(&self, background: Background) -> &Theme {
        match background {
            Background::Dark => &self.dark,
            Background::Light => &self.light,
        }
    }

    /// Returns whether the terminal's background matters.
    #[must_use]
    pub fn follows_terminal(&self) -> bool {
        self.dark.colors != Colors::None && self.dark != self.light
    }
}

impl From<Theme> for ThemePair {
    fn from(theme: Theme) -> Self {
        Self {
            setting: ThemeSetting::default(),
            dark: theme.clone(),
            light: theme,
        }
    }
}

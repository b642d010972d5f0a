//! The setting that chooses a theme.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

use super::background::Background;

/// The maximum length of a theme's name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The setting that chooses the theme by the terminal's background.
const AUTO: &str = "auto";

/// The name of a theme. It is part of a file name, so it has only letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThemeName(String);

impl ThemeName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the built-in theme for this background.
    pub(super) fn for_background(background: Background) -> Self {
        Self(match background {
            Background::Dark => "dark".to_owned(),
            Background::Light => "light".to_owned(),
        })
    }

    /// Creates the name of a built-in theme.
    pub(super) fn of_builtin(name: &'static str) -> Self {
        Self(name.to_owned())
    }
}

impl fmt::Display for ThemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ThemeName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_letter) {
            return Err(format!(
                "invalid theme name: use at most {MAX_NAME_CHARS} letters, digits, - and _"
            ));
        }
        if name == AUTO {
            return Err(format!(
                "`{AUTO}` is not the name of a theme: it chooses one by the terminal's background"
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

/// The themes to use on dark and on light terminals. Both are the same if the terminal does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThemeSetting {
    /// The theme for a terminal with a dark background.
    pub dark: ThemeName,
    /// The theme for a terminal with a light background.
    pub light: ThemeName,
}

impl Default for ThemeSetting {
    fn default() -> Self {
        Self {
            dark: ThemeName::for_background(Background::Dark),
            light: ThemeName::for_background(Background::Light),
        }
    }
}

impl From<ThemeName> for ThemeSetting {
    fn from(name: ThemeName) -> Self {
        Self {
            dark: name.clone(),
            light: name,
        }
    }
}

impl FromStr for ThemeSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            AUTO => Ok(Self::default()),
            name => Ok(ThemeName::from_str(name)?.into()),
        }
    }
}

impl<'de> Deserialize<'de> for ThemeSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SettingVisitor;

        impl<'de> de::Visitor<'de> for SettingVisitor {
            type Value = ThemeSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`auto`, the name of a theme, or { dark = NAME, light = NAME }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct NamePair {
                    dark: String,
                    light: String,
                }
                let pair = NamePair::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(ThemeSetting {
                    dark: pair.dark.parse().map_err(de::Error::custom)?,
                    light: pair.light.parse().map_err(de::Error::custom)?,
                })
            }
        }

        deserializer.deserialize_any(SettingVisitor)
    }
}

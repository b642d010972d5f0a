//! Reads theme files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;
use toml::Spanned;

use super::background::Background;
use super::builtin::{BUILTIN_THEMES, find_builtin};
use super::role::ThemeRole;
use super::setting::ThemeName;
use super::style::ThemeStyle;
use crate::error::ConfigError;
use crate::paths;
use crate::source::ConfigSource;

/// The ending of theme files.
const EXTENSION: &str = "toml";

/// The maximum number of themes that start from each other.
const MAX_BASES: usize = 8;

/// The maximum number of files in the themes directory to list.
const MAX_LISTED_FILES: usize = 500;

/// A theme: the styles of all roles, including those of the theme that it starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThemeDefinition {
    /// The background that the theme is made for.
    pub background: Background,
    styles: BTreeMap<ThemeRole, ThemeStyle>,
}

impl ThemeDefinition {
    /// Returns the style of a role.
    #[must_use]
    pub fn style(&self, role: ThemeRole) -> ThemeStyle {
        self.styles.get(&role).cloned().unwrap_or_default()
    }
}

/// A theme that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThemeListing {
    /// The theme's name.
    pub name: ThemeName,
    /// What a built-in theme is for, or the path of a theme's file.
    pub about: String,
}

/// Returns the directory of the user's own themes, if there is a configuration directory.
#[must_use]
pub fn themes_dir() -> Option<PathBuf> {
    Some(paths::config_dir()?.join("themes"))
}

/// Lists all themes: the built-in ones, and then the user's own. A file with the name of a built-in theme replaces it.
#[must_use]
pub fn list_themes() -> Vec<ThemeListing> {
    let builtin = BUILTIN_THEMES.iter().map(|(name, about, _)| ThemeListing {
        name: ThemeName::of_builtin(name),
        about: (*about).to_owned(),
    });
    let mut themes: Vec<ThemeListing> = builtin.collect();
    let mut own = Vec::new();
    let entries = themes_dir().and_then(|directory| std::fs::read_dir(directory).ok());
    for entry in entries
        .into_iter()
        .flatten()
        .take(MAX_LISTED_FILES)
        .flatten()
    {
        let file = entry.path();
        let name = file.file_stem().and_then(|name| name.to_str());
        let name = name.and_then(|name| ThemeName::from_str(name).ok());
        let (Some(name), Some(EXTENSION)) = (name, file.extension().and_then(|end| end.to_str()))
        else {
            continue;
        };
        let about = paths::display_path(&file);
        match themes.iter_mut().find(|theme| theme.name == name) {
            Some(replaced) => replaced.about = about,
            None => own.push(ThemeListing { name, about }),
        }
    }
    own.sort_by(|one, other| one.name.cmp(&other.name));
    themes.extend(own);
    themes
}

/// Reads the theme with this name, and the themes that it starts from.
///
/// # Errors
/// Fails if there is no such theme, or if one of the files is invalid.
pub fn read_theme(name: &ThemeName) -> Result<ThemeDefinition, ConfigError> {
    read_theme_in(themes_dir().as_deref(), name)
}

/// Returns the built-in theme with this name, whether or not the user has a file that replaces it.
#[must_use]
pub fn builtin_theme(name: &ThemeName) -> Option<ThemeDefinition> {
    read_theme_in(None, name).ok()
}

/// The contents of a theme file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    /// The name of the theme to start from.
    base: Option<Spanned<String>>,
    background: Option<Background>,
    #[serde(default)]
    styles: BTreeMap<String, Spanned<toml::Value>>,
}

/// Reads the theme with this name from `directory`, or else the built-in one.
fn read_theme_in(
    directory: Option<&Path>,
    name: &ThemeName,
) -> Result<ThemeDefinition, ConfigError> {
    let mut wanted = name.clone();
    let mut read: Vec<ThemeName> = Vec::new();
    let mut background = None;
    let mut styles = BTreeMap::new();
    // What asked for the theme, which an unknown name is reported for.
    let mut asked_by: Option<(ConfigSource, std::ops::Range<usize>)> = None;
    loop {
        // A file that starts from a built-in theme may have the same name.
        let is_read = read.contains(&wanted);
        let source = match open_theme(directory, &wanted, is_read)? {
            Some(source) => source,
            None => {
                let why = unknown_theme(&wanted, directory, is_read);
                return Err(match asked_by {
                    Some((source, at)) => source.error_at(Some(at), &format!("base: {why}")),
                    None => ConfigError::usage(why),
                });
            }
        };
        let is_builtin = source.is_builtin();
        let file: ThemeFile = source.parse()?;
        for (key, value) in &file.styles {
            let at = Some(value.span());
            let role = ThemeRole::find(key).ok_or_else(|| {
                let all = ThemeRole::names();
                let what = format!("styles.{key}: unknown style; expected one of {all}");
                source.error_at(at.clone(), &what)
            })?;
            let style = ThemeStyle::from_toml(value.get_ref())
                .map_err(|what| source.error_at(at, &format!("styles.{key}: {what}")))?;
            styles.entry(role).or_insert(style);
        }
        background = background.or(file.background);
        read.push(wanted);
        let next = match file.base {
            Some(base) => {
                let (at, name) = (base.span(), base.into_inner());
                let wrong = |what: &str| source.error_at(Some(at.clone()), what);
                let name =
                    ThemeName::from_str(&name).map_err(|why| wrong(&format!("base: {why}")))?;
                if read.len() > MAX_BASES {
                    return Err(wrong("base: too many themes start from each other"));
                }
                asked_by = Some((source, at));
                name
            }
            None if is_builtin => break,
            // A file without a base starts from the built-in theme for its background.
            None => {
                asked_by = None;
                ThemeName::for_background(background.unwrap_or_default())
            }
        };
        wanted = next;
    }
    Ok(ThemeDefinition {
        background: background.unwrap_or_default(),
        styles,
    })
}

/// Opens the file of a theme, or the text of a built-in one. Returns `None` if there is neither.
fn open_theme(
    directory: Option<&Path>,
    name: &ThemeName,
    is_file_read: bool,
) -> Result<Option<ConfigSource>, ConfigError> {
    let file = directory.map(|directory| directory.join(format!("{name}.{EXTENSION}")));
    if let Some(file) = file.filter(|_| !is_file_read) {
        let wrong = |what: &str| ConfigError::usage(format!("{}: {what}", file.display()));
        match std::fs::metadata(&file) {
            Ok(metadata) if metadata.is_file() => {
                let opened = File::open(&file).map_err(|e| wrong(&e.to_string()))?;
                return ConfigSource::read(&file, opened).map(Some);
            }
            Ok(_) => return Err(wrong("not a regular file")),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(wrong(&e.to_string())),
        }
    }
    Ok(find_builtin(name.as_str()).map(ConfigSource::builtin))
}

/// Says that there is no theme with this name.
fn unknown_theme(name: &ThemeName, directory: Option<&Path>, is_read: bool) -> String {
    if is_read {
        return format!("the theme `{name}` starts from itself");
    }
    let names: Vec<&str> = BUILTIN_THEMES.iter().map(|(name, ..)| *name).collect();
    let names = names.join(", ");
    let file = directory.map(|directory| directory.join(format!("{name}.{EXTENSION}")));
    let file = file.map(|file| format!(", or a file {}", paths::display_path(&file)));
    format!(
        "unknown theme `{name}`; expected one of {names}{}",
        file.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::super::style::{TextAttribute, ThemeColor};
    use super::*;

    fn theme_name(name: &str) -> ThemeName {
        name.parse().unwrap()
    }

    fn read_files(files: &[(&str, &str)], name: &str) -> Result<ThemeDefinition, String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(format!("{name}.toml")), text).unwrap();
        }
        let read = read_theme_in(Some(directory.path()), &theme_name(name));
        let root = directory.path().display().to_string();
        read.map_err(|e| e.to_string().replace(&root, "DIR"))
    }

    #[test]
    fn builtin_themes_define_every_role() {
        for (name, ..) in BUILTIN_THEMES {
            let theme = read_theme_in(None, &theme_name(name)).unwrap();
            for role in ThemeRole::ALL {
                assert!(theme.styles.contains_key(role), "{name}: {}", role.name());
            }
        }
    }

    #[test]
    fn theme_starts_from_another() {
        let files = [
            (
                "mine",
                "base = \"theirs\"\n[styles]\naccent = \"#ff8000\"\n",
            ),
            (
                "theirs",
                "background = \"light\"\n[styles]\naccent = 3\nbad = { color = 200, background = \"bright-red\", attributes = [\"bold\", \"crossed-out\"] }\n",
            ),
        ];
        let theme = read_files(&files, "mine").unwrap();
        assert_eq!(theme.background, Background::Light);
        let color = |role| theme.style(role).color;
        assert_eq!(color(ThemeRole::Accent), Some(ThemeColor::Rgb(255, 128, 0)));
        let bad = theme.style(ThemeRole::Bad);
        assert_eq!(bad.color, Some(ThemeColor::Indexed(200)));
        assert_eq!(bad.background, Some(ThemeColor::Ansi(9)));
        let attributes = [TextAttribute::Bold, TextAttribute::CrossedOut];
        assert_eq!(bad.attributes, attributes);
        // The rest is that of the built-in theme for the background.
        let light = read_theme_in(None, &theme_name("light")).unwrap();
        assert_eq!(theme.style(ThemeRole::Good), light.style(ThemeRole::Good));
    }

    #[test]
    fn file_can_replace_the_builtin_theme_that_it_starts_from() {
        let files = [("dark", "base = \"dark\"\n[styles]\ngood = \"green\"\n")];
        let theme = read_files(&files, "dark").unwrap();
        assert_eq!(
            theme.style(ThemeRole::Good).color,
            Some(ThemeColor::Ansi(2))
        );
        let builtin = read_theme_in(None, &theme_name("dark")).unwrap();
        assert_eq!(theme.style(ThemeRole::Bad), builtin.style(ThemeRole::Bad));
    }

    #[test]
    fn errors_name_the_file_the_key_and_what_is_allowed() {
        for (text, expected) in [
            (
                "[styles]\n\nacent = \"red\"",
                "DIR/a.toml, line 3: styles.acent: unknown style; expected one of text, dim, ",
            ),
            (
                "[styles]\naccent = \"#ff80\"",
                "DIR/a.toml, line 2: styles.accent: invalid color \"#ff80\"; expected \"#rrggbb\", a number from 0 to 255, \"default\", or one of black, ",
            ),
            (
                "[styles]\naccent = 256",
                "DIR/a.toml, line 2: styles.accent: invalid color 256; expected ",
            ),
            (
                "[styles]\naccent = \"#+12345\"",
                "DIR/a.toml, line 2: styles.accent: invalid color ",
            ),
            (
                "[styles]\naccent = { colour = \"red\" }",
                "DIR/a.toml, line 2: styles.accent: unknown key `colour`; expected one of color, background, attributes",
            ),
            (
                "[styles]\naccent = { background = \"pink\" }",
                "DIR/a.toml, line 2: styles.accent: background: invalid color \"pink\"; ",
            ),
            (
                "[styles]\naccent = { attributes = [\"blink\"] }",
                "DIR/a.toml, line 2: styles.accent: attributes: invalid attribute \"blink\"; expected a list of bold, dim, ",
            ),
            (
                "base = \"none\"",
                "DIR/a.toml, line 1: base: unknown theme `none`; expected one of dark, light, ",
            ),
            (
                "base = \"a\"",
                "DIR/a.toml, line 1: base: the theme `a` starts from itself",
            ),
            (
                "style = 1",
                "DIR/a.toml, line 1: unknown field `style`, expected one of `base`, `background`, `styles`",
            ),
            (
                "background = \"blue\"",
                "DIR/a.toml, line 1: unknown variant `blue`, expected `dark` or `light`",
            ),
        ] {
            let error = read_files(&[("a", text)], "a").unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let error = read_files(&[], "missing").unwrap_err();
        assert!(
            error.starts_with("unknown theme `missing`; expected one of dark, "),
            "{error}"
        );
        assert!(error.ends_with("DIR/missing.toml"), "{error}");
        for name in ["", "../x", "a/b", "auto", "a.b", "ü"] {
            assert!(name.parse::<ThemeName>().is_err(), "{name}");
        }
    }
}

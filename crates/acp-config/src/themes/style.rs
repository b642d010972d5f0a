//! Colors and attributes as they are written in a theme file.

/// A color in a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThemeColor {
    /// The terminal's own color for text or for the background.
    Default,
    /// One of the 16 colors of the terminal's palette, by its number.
    Ansi(u8),
    /// One of the other colors of a terminal with 256 colors, by its number.
    Indexed(u8),
    /// A color given by its parts: red, green and blue.
    Rgb(u8, u8, u8),
}

/// The names of the terminal's 16 colors, in the order of their numbers.
const ANSI_NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "bright-black",
    "bright-red",
    "bright-green",
    "bright-yellow",
    "bright-blue",
    "bright-magenta",
    "bright-cyan",
    "bright-white",
];

/// An attribute of text in a theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextAttribute {
    /// Bold text.
    Bold,
    /// Dimmed text.
    Dim,
    /// Italic text.
    Italic,
    /// Underlined text.
    Underlined,
    /// Text with the colors of text and background exchanged.
    Reversed,
    /// Text with a line through it.
    CrossedOut,
}

const ATTRIBUTE_NAMES: [(&str, TextAttribute); 6] = [
    ("bold", TextAttribute::Bold),
    ("dim", TextAttribute::Dim),
    ("italic", TextAttribute::Italic),
    ("underlined", TextAttribute::Underlined),
    ("reversed", TextAttribute::Reversed),
    ("crossed-out", TextAttribute::CrossedOut),
];

/// The style of a role: its colors and attributes. What is not set stays as it is where the text is drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ThemeStyle {
    /// The color of the text.
    pub color: Option<ThemeColor>,
    /// The color behind the text.
    pub background: Option<ThemeColor>,
    /// The attributes of the text.
    pub attributes: Vec<TextAttribute>,
}

/// The keys of a style that is written as a table.
const STYLE_KEYS: &str = "color, background, attributes";

impl ThemeStyle {
    /// Parses a style: a color, or a table. Returns what is wrong with it otherwise.
    pub(super) fn from_toml(value: &toml::Value) -> Result<Self, String> {
        let toml::Value::Table(table) = value else {
            return Ok(Self {
                color: Some(ThemeColor::from_toml(value)?),
                ..Self::default()
            });
        };
        let mut style = Self::default();
        for (key, value) in table {
            let within = |what: String| format!("{key}: {what}");
            match key.as_str() {
                "color" => style.color = Some(ThemeColor::from_toml(value).map_err(within)?),
                "background" => {
                    style.background = Some(ThemeColor::from_toml(value).map_err(within)?);
                }
                "attributes" => style.attributes = parse_attributes(value).map_err(within)?,
                _ => return Err(format!("unknown key `{key}`; expected one of {STYLE_KEYS}")),
            }
        }
        Ok(style)
    }
}

impl ThemeColor {
    fn from_toml(value: &toml::Value) -> Result<Self, String> {
        let color = match value {
            toml::Value::Integer(number) => u8::try_from(*number).ok().map(Self::from_number),
            toml::Value::String(text) => Self::from_text(text),
            _ => None,
        };
        color.ok_or_else(|| {
            format!(
                "invalid color {value}; expected \"#rrggbb\", a number from 0 to 255, \"default\", or one of {}",
                ANSI_NAMES.join(", ")
            )
        })
    }

    fn from_number(number: u8) -> Self {
        match number {
            ..16 => Self::Ansi(number),
            _ => Self::Indexed(number),
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        if text == "default" {
            return Some(Self::Default);
        }
        if let Some(number) = ANSI_NAMES.iter().position(|name| *name == text) {
            return u8::try_from(number).ok().map(Self::Ansi);
        }
        let digits = text.strip_prefix('#')?;
        // Without this check, a sign would count as a digit.
        let is_hex = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        match is_hex {
            true => Some(Self::Rgb(part(0)?, part(2)?, part(4)?)),
            false => None,
        }
    }
}

fn parse_attributes(value: &toml::Value) -> Result<Vec<TextAttribute>, String> {
    let wrong = |value: &toml::Value| {
        let names: Vec<&str> = ATTRIBUTE_NAMES.iter().map(|(name, _)| *name).collect();
        format!(
            "invalid attribute {value}; expected a list of {}",
            names.join(", ")
        )
    };
    let list = value.as_array().ok_or_else(|| wrong(value))?;
    let attributes = list.iter().map(|item| {
        let mut known = ATTRIBUTE_NAMES.iter();
        let found = known.find(|(name, _)| item.as_str() == Some(name));
        found
            .map(|(_, attribute)| *attribute)
            .ok_or_else(|| wrong(item))
    });
    attributes.collect()
}

//! Defines the syntect themes, and converts their colors to the terminal's.

use ratatui::style::{Color, Modifier, Style};
use syntect::highlighting::{self, FontStyle, StyleModifier, ThemeItem, ThemeSettings};

/// A syntect theme and the conversion of its colors.
pub(super) struct ColorPalette {
    pub(super) highlighter: highlighting::Highlighter<'static>,
    default_color: highlighting::Color,
}

impl ColorPalette {
    pub(super) fn new(theme: &'static highlighting::Theme) -> Self {
        let highlighter = highlighting::Highlighter::new(theme);
        let ordinary = highlighter.get_default().foreground;
        Self {
            highlighter,
            default_color: ordinary,
        }
    }

    pub(super) fn style(&self, style: highlighting::Style) -> Style {
        let mut made = Style::new();
        if let Some(color) = self.convert_color(style.foreground) {
            made = made.fg(color);
        }
        if style.foreground == DIM_COLOR {
            made = made.add_modifier(Modifier::DIM);
        }
        for (font, modifier) in [
            (FontStyle::BOLD, Modifier::BOLD),
            (FontStyle::ITALIC, Modifier::ITALIC),
            (FontStyle::UNDERLINE, Modifier::UNDERLINED),
        ] {
            if style.font_style.contains(font) {
                made = made.add_modifier(modifier);
            }
        }
        made
    }

    /// Converts a color. Returns `None` for ordinary text, which has the terminal's default color.
    fn convert_color(&self, color: highlighting::Color) -> Option<Color> {
        match color {
            color if color == self.default_color => None,
            highlighting::Color { r, a: 0, .. } => ANSI_COLORS.get(usize::from(r)).copied(),
            highlighting::Color { r, g, b, .. } => Some(Color::Rgb(r, g, b)),
        }
    }
}

/// The terminal colors for the indices of [`ansi_color`]. Black and white are left out, because one of them would be
/// invisible.
const ANSI_COLORS: [Color; 6] = [
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
];

/// Returns a theme color that stands for one of the terminal's own colors. Its alpha is 0, which no full-color theme
/// uses.
const fn ansi_color(index: u8) -> highlighting::Color {
    highlighting::Color {
        r: index,
        g: 0,
        b: 0,
        a: 0,
    }
}

/// The theme color that stands for dimmed text in the terminal's default color.
const DIM_COLOR: highlighting::Color = ansi_color(u8::MAX);

/// Returns the theme that uses the terminal's own colors.
pub(super) fn ansi_theme() -> highlighting::Theme {
    const SCOPE_COLORS: [(&str, highlighting::Color); 8] = [
        ("comment, markup.quote, meta.diff.range", DIM_COLOR),
        (
            "string, constant.character, markup.raw, markup.inserted",
            ansi_color(1),
        ),
        (
            "constant.numeric, constant.language, constant.other",
            ansi_color(2),
        ),
        ("keyword, storage, keyword.operator.word", ansi_color(4)),
        ("keyword.operator", ORDINARY_COLOR),
        (
            "entity.name.function, support.function, variable.function, markup.heading",
            ansi_color(3),
        ),
        (
            "entity.name.type, entity.name.class, entity.name.struct, entity.name.enum, entity.name.trait, entity.name.interface, support.type, support.class, entity.other.attribute-name",
            ansi_color(5),
        ),
        (
            "entity.name.tag, variable.language, invalid, markup.deleted",
            ansi_color(0),
        ),
    ];
    let scopes = SCOPE_COLORS
        .iter()
        .filter_map(|(scope, color)| {
            Some(ThemeItem {
                scope: scope.parse().ok()?,
                style: StyleModifier {
                    foreground: Some(*color),
                    background: None,
                    font_style: None,
                },
            })
        })
        .collect();
    highlighting::Theme {
        settings: ThemeSettings {
            foreground: Some(ORDINARY_COLOR),
            ..ThemeSettings::default()
        },
        scopes,
        ..highlighting::Theme::default()
    }
}

/// The theme color that stands for ordinary text.
const ORDINARY_COLOR: highlighting::Color = ansi_color(u8::MAX - 1);

//! Defines the syntect theme, whose colors stand for the kinds of elements of code, and gives them the chat's styles.

use ratatui::style::Style;
use syntect::highlighting::{self, StyleModifier, ThemeItem, ThemeSettings};

use crate::theme::SyntaxStyles;

/// A kind of element of code that has a style of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyntaxElement {
    Comment,
    String,
    Number,
    Keyword,
    Function,
    Type,
    Tag,
    Ordinary,
}

impl SyntaxElement {
    const ALL: [Self; 8] = [
        Self::Comment,
        Self::String,
        Self::Number,
        Self::Keyword,
        Self::Function,
        Self::Type,
        Self::Tag,
        Self::Ordinary,
    ];

    /// Returns the scopes of the element in the syntax definitions. `keyword.operator` is more specific than `keyword`,
    /// and so operators are ordinary text.
    const fn scopes(self) -> &'static str {
        match self {
            Self::Comment => "comment, markup.quote, meta.diff.range",
            Self::String => "string, constant.character, markup.raw, markup.inserted",
            Self::Number => "constant.numeric, constant.language, constant.other",
            Self::Keyword => "keyword, storage, keyword.operator.word",
            Self::Function => {
                "entity.name.function, support.function, variable.function, markup.heading"
            }
            Self::Type => {
                "entity.name.type, entity.name.class, entity.name.struct, entity.name.enum, entity.name.trait, entity.name.interface, support.type, support.class, entity.other.attribute-name"
            }
            Self::Tag => "entity.name.tag, variable.language, invalid, markup.deleted",
            Self::Ordinary => "keyword.operator",
        }
    }

    /// Returns the theme color that stands for the element.
    const fn color(self) -> highlighting::Color {
        highlighting::Color {
            r: self as u8,
            g: 0,
            b: 0,
            a: 0,
        }
    }
}

impl SyntaxStyles {
    /// Returns the style for text that the syntect theme gives this color.
    pub(super) fn style_for(&self, color: highlighting::Color) -> Style {
        let element = SyntaxElement::ALL.get(usize::from(color.r));
        match element.copied().unwrap_or(SyntaxElement::Ordinary) {
            SyntaxElement::Comment => self.comment,
            SyntaxElement::String => self.string,
            SyntaxElement::Number => self.number,
            SyntaxElement::Keyword => self.keyword,
            SyntaxElement::Function => self.function,
            SyntaxElement::Type => self.type_name,
            SyntaxElement::Tag => self.tag,
            SyntaxElement::Ordinary => Style::new(),
        }
    }
}

/// Returns the syntect theme whose colors stand for the elements of code.
pub(super) fn element_theme() -> highlighting::Theme {
    let items = SyntaxElement::ALL.iter().filter_map(|element| {
        Some(ThemeItem {
            scope: element.scopes().parse().ok()?,
            style: StyleModifier {
                foreground: Some(element.color()),
                background: None,
                font_style: None,
            },
        })
    });
    highlighting::Theme {
        settings: ThemeSettings {
            foreground: Some(SyntaxElement::Ordinary.color()),
            ..ThemeSettings::default()
        },
        scopes: items.collect(),
        ..highlighting::Theme::default()
    }
}

//! Defines the theme, which assigns a style to each kind of element on the screen.

pub use acp_config::Background;
use ratatui::style::{Color, Modifier, Style};

/// The number of colors that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Colors {
    /// No colors, only bold, dim, underlined and reversed text. Used if the terminal has no colors, or if `NO_COLOR` is
    /// set.
    None,
    /// The 16 colors of the user's own palette.
    #[default]
    Ansi16,
    /// 256 colors or more.
    Full,
}

/// The styles of all elements on the screen. No other code chooses colors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Theme {
    /// The terminal's background, dark or light.
    pub background: Background,
    /// The number of colors that the terminal shows.
    pub colors: Colors,
    /// The style of ordinary text.
    pub text: Style,
    /// The style of less important text.
    pub dim: Style,
    /// The style of emphasized text.
    pub strong: Style,
    /// The style of elements that users look for, such as the active tab and the keys that can be pressed.
    pub accent: Style,
    /// The style of successful results.
    pub good: Style,
    /// The style of failures.
    pub bad: Style,
    /// The style of warnings.
    pub warn: Style,
    /// The style of the user's messages.
    pub user: Style,
    /// The style of the agent's thoughts.
    pub thought: Style,
    /// The style of borders and separators.
    pub border: Style,
    /// The style of the border around the focused element.
    pub focus: Style,
    /// The style of the selected entry in a list.
    pub selected: Style,
    /// The style of letters that match a filter.
    pub matched: Style,
    /// The style of headings.
    pub heading: Style,
    /// The style of inline code.
    pub code: Style,
    /// The style of links.
    pub link: Style,
    /// The style of quotations.
    pub quote: Style,
    /// The style of added lines.
    pub added: Style,
    /// The style of removed lines.
    pub removed: Style,
    /// The style of changed words in an added line.
    pub added_word: Style,
    /// The style of changed words in a removed line.
    pub removed_word: Style,
}

impl Theme {
    /// Creates the theme for a terminal with this background and these colors.
    #[must_use]
    pub fn new(background: Background, colors: Colors) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let dim = plain.add_modifier(Modifier::DIM);
        let reversed = plain.add_modifier(Modifier::REVERSED);
        let underlined = plain.add_modifier(Modifier::UNDERLINED);
        let none = Self {
            background,
            colors,
            text: plain,
            dim,
            strong: bold,
            accent: bold,
            good: plain,
            bad: bold,
            warn: bold,
            user: bold,
            thought: dim.add_modifier(Modifier::ITALIC),
            border: dim,
            focus: bold,
            selected: reversed,
            matched: underlined,
            heading: bold,
            code: plain,
            link: underlined,
            quote: dim,
            added: plain,
            removed: dim,
            added_word: bold,
            removed_word: dim.add_modifier(Modifier::CROSSED_OUT),
        };
        if colors == Colors::None {
            return none;
        }
        // Use the 16 named colors, because the user's palette has suitable values for either background.
        let fg = |color| plain.fg(color);
        let ansi = Self {
            accent: fg(Color::Cyan).add_modifier(Modifier::BOLD),
            good: fg(Color::Green),
            bad: fg(Color::Red),
            warn: fg(Color::Yellow),
            user: fg(Color::Blue).add_modifier(Modifier::BOLD),
            focus: fg(Color::Cyan),
            matched: fg(Color::Cyan).add_modifier(Modifier::UNDERLINED),
            heading: fg(Color::Magenta).add_modifier(Modifier::BOLD),
            code: fg(Color::Cyan),
            link: fg(Color::Blue).add_modifier(Modifier::UNDERLINED),
            added: fg(Color::Green),
            removed: fg(Color::Red),
            added_word: fg(Color::Green).add_modifier(Modifier::REVERSED),
            removed_word: fg(Color::Red).add_modifier(Modifier::REVERSED),
            ..none
        };
        if colors == Colors::Ansi16 {
            return ansi;
        }
        let rgb = |dark: (u8, u8, u8), light: (u8, u8, u8)| {
            let (r, g, b) = match background {
                Background::Dark => dark,
                Background::Light => light,
            };
            Color::Rgb(r, g, b)
        };
        Self {
            added: plain.bg(rgb((18, 52, 34), (218, 251, 225))),
            removed: plain.bg(rgb((66, 25, 30), (255, 235, 233))),
            added_word: plain.bg(rgb((30, 95, 58), (172, 238, 187))),
            removed_word: plain.bg(rgb((122, 40, 48), (255, 196, 190))),
            selected: plain.bg(rgb((48, 62, 84), (209, 224, 246))),
            ..ansi
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::new(Background::default(), Colors::default())
    }
}

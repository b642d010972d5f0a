//! Colours, by what they mean.

pub use acp_config::Background;
use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Colors {
    /// None, or none are wanted (`NO_COLOR`): bold, dim, underlined and reversed text alone.
    None,
    /// The 16 that the person has chosen for their terminal.
    #[default]
    Ansi16,
    /// 256 or more.
    Full,
}

/// A style for each thing that is shown. Nothing else chooses colours.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Theme {
    /// What is behind the text.
    pub background: Background,
    /// How many colours there are.
    pub colors: Colors,
    /// Ordinary text.
    pub text: Style,
    /// What matters less.
    pub dim: Style,
    /// What is stressed.
    pub strong: Style,
    /// What the eye should find: the tab that is shown, keys that can be pressed.
    pub accent: Style,
    /// It went well.
    pub good: Style,
    /// It went wrong.
    pub bad: Style,
    /// It wants attention.
    pub warn: Style,
    /// What the person said.
    pub user: Style,
    /// What the agent thought.
    pub thought: Style,
    /// Frames and rules.
    pub border: Style,
    /// The frame of what has the keyboard.
    pub focus: Style,
    /// What is chosen in a list.
    pub selected: Style,
    /// The letters by which something was found.
    pub matched: Style,
    /// Headings.
    pub heading: Style,
    /// Code within text.
    pub code: Style,
    /// Addresses.
    pub link: Style,
    /// Quotations.
    pub quote: Style,
    /// A line that a diff adds.
    pub added: Style,
    /// A line that it takes away.
    pub removed: Style,
    /// What has changed within such a line.
    pub added_word: Style,
    /// The same of one that is taken away.
    pub removed_word: Style,
}

impl Theme {
    /// The theme for a terminal.
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
        // The names of the 16, which the person's own palette gives fitting values for either background.
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

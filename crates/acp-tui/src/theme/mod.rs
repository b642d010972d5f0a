//! Defines the theme, which assigns a style to each kind of element on the screen.

mod choice;
#[cfg(test)]
mod tests;

pub use acp_config::Background;
use acp_config::themes::{
    TextAttribute, ThemeColor, ThemeDefinition, ThemeName, ThemeRole, ThemeSetting, ThemeStyle,
};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

pub use choice::ThemePair;

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
    /// The background that the theme is made for, dark or light.
    pub background: Background,
    /// The number of colors that the terminal shows.
    pub colors: Colors,
    /// The style of ordinary text. Its background fills the screen.
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
    /// The styles of code.
    pub syntax: SyntaxStyles,
}

/// The styles of the parts of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct SyntaxStyles {
    /// The style of comments.
    pub comment: Style,
    /// The style of strings.
    pub string: Style,
    /// The style of numbers and constants.
    pub number: Style,
    /// The style of keywords.
    pub keyword: Style,
    /// The style of the names of functions.
    pub function: Style,
    /// The style of the names of types.
    pub type_name: Style,
    /// The style of tags and special variables.
    pub tag: Style,
}

impl Theme {
    /// Creates the built-in theme for a terminal with this background and these colors.
    #[must_use]
    pub fn new(background: Background, colors: Colors) -> Self {
        let setting = ThemeSetting::default();
        let name = match background {
            Background::Dark => setting.dark,
            Background::Light => setting.light,
        };
        match acp_config::themes::builtin_theme(&name) {
            Some(definition) => Self::from_definition(&definition, colors),
            None => Self::uncolored(background, colors),
        }
    }

    /// Creates a theme from its definition for a terminal with these colors.
    ///
    /// On a terminal with 16 colors, the styles with other colors are those of the built-in theme `terminal`. Without
    /// colors, all themes look the same.
    #[must_use]
    pub fn from_definition(definition: &ThemeDefinition, colors: Colors) -> Self {
        let background = definition.background;
        if colors == Colors::None {
            return Self::uncolored(background, colors);
        }
        let terminal = "terminal".parse::<ThemeName>().ok();
        let terminal = terminal.and_then(|name| acp_config::themes::builtin_theme(&name));
        let style = |role| {
            let style = definition.style(role);
            let fits = colors == Colors::Full || has_only_ansi_colors(&style);
            match (&terminal, fits) {
                (Some(terminal), false) => to_style(&terminal.style(role)),
                _ => to_style(&style),
            }
        };
        Self {
            background,
            colors,
            text: style(ThemeRole::Text),
            dim: style(ThemeRole::Dim),
            strong: style(ThemeRole::Strong),
            accent: style(ThemeRole::Accent),
            good: style(ThemeRole::Good),
            bad: style(ThemeRole::Bad),
            warn: style(ThemeRole::Warn),
            user: style(ThemeRole::User),
            thought: style(ThemeRole::Thought),
            border: style(ThemeRole::Border),
            focus: style(ThemeRole::Focus),
            selected: style(ThemeRole::Selected),
            matched: style(ThemeRole::Matched),
            heading: style(ThemeRole::Heading),
            code: style(ThemeRole::Code),
            link: style(ThemeRole::Link),
            quote: style(ThemeRole::Quote),
            added: style(ThemeRole::Added),
            removed: style(ThemeRole::Removed),
            added_word: style(ThemeRole::AddedWord),
            removed_word: style(ThemeRole::RemovedWord),
            syntax: SyntaxStyles {
                comment: style(ThemeRole::SyntaxComment),
                string: style(ThemeRole::SyntaxString),
                number: style(ThemeRole::SyntaxNumber),
                keyword: style(ThemeRole::SyntaxKeyword),
                function: style(ThemeRole::SyntaxFunction),
                type_name: style(ThemeRole::SyntaxType),
                tag: style(ThemeRole::SyntaxTag),
            },
        }
    }

    /// Creates the theme for a terminal without colors.
    fn uncolored(background: Background, colors: Colors) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let dim = plain.add_modifier(Modifier::DIM);
        let reversed = plain.add_modifier(Modifier::REVERSED);
        let underlined = plain.add_modifier(Modifier::UNDERLINED);
        Self {
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
            syntax: SyntaxStyles::default(),
        }
    }

    /// Gives all cells that have the terminal's own colors those of ordinary text.
    ///
    /// This is done last, so that no other code has to know whether the theme has a background of its own.
    pub(crate) fn fill(&self, buf: &mut Buffer) {
        let (fg, bg) = (self.text.fg, self.text.bg);
        let is_own = |color: Option<Color>| color.is_some_and(|color| color != Color::Reset);
        if !is_own(fg) && !is_own(bg) {
            return;
        }
        for cell in &mut buf.content {
            if cell.fg == Color::Reset {
                cell.fg = fg.unwrap_or_default();
            }
            if cell.bg == Color::Reset {
                cell.bg = bg.unwrap_or_default();
            }
        }
    }
}

impl Default for Theme {
    fn default() -> Self {
        Self::new(Background::default(), Colors::default())
    }
}

/// Returns whether a terminal with 16 colors can show the style.
fn has_only_ansi_colors(style: &ThemeStyle) -> bool {
    let mut colors = [style.color, style.background].into_iter().flatten();
    colors.all(|color| matches!(color, ThemeColor::Default | ThemeColor::Ansi(_)))
}

fn to_style(style: &ThemeStyle) -> Style {
    let mut made = Style::new();
    // A style without a color keeps the color of where it is drawn, and so does one with the terminal's own color,
    // because nothing is drawn in another color before.
    made.fg = style.color.and_then(to_color);
    made.bg = style.background.and_then(to_color);
    style.attributes.iter().fold(made, |made, attribute| {
        made.add_modifier(match attribute {
            TextAttribute::Bold => Modifier::BOLD,
            TextAttribute::Dim => Modifier::DIM,
            TextAttribute::Italic => Modifier::ITALIC,
            TextAttribute::Underlined => Modifier::UNDERLINED,
            TextAttribute::Reversed => Modifier::REVERSED,
            TextAttribute::CrossedOut => Modifier::CROSSED_OUT,
            _ => Modifier::empty(),
        })
    })
}

fn to_color(color: ThemeColor) -> Option<Color> {
    Some(match color {
        ThemeColor::Ansi(number) => ansi_color(number),
        ThemeColor::Indexed(number) => Color::Indexed(number),
        ThemeColor::Rgb(r, g, b) => Color::Rgb(r, g, b),
        _ => return None,
    })
}

/// Returns one of the terminal's 16 colors by its number.
fn ansi_color(number: u8) -> Color {
    match number {
        0 => Color::Black,
        1 => Color::Red,
        2 => Color::Green,
        3 => Color::Yellow,
        4 => Color::Blue,
        5 => Color::Magenta,
        6 => Color::Cyan,
        7 => Color::Gray,
        8 => Color::DarkGray,
        9 => Color::LightRed,
        10 => Color::LightGreen,
        11 => Color::LightYellow,
        12 => Color::LightBlue,
        13 => Color::LightMagenta,
        14 => Color::LightCyan,
        15 => Color::White,
        other => Color::Indexed(other),
    }
}

//! Represents the style of a terminal cell, and converts it to the theme's colors.

use ratatui::style::{Color, Modifier, Style};

use crate::theme::{Colors, Theme};

/// The colors and attributes of terminal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CellStyle {
    fg: Option<Color>,
    bg: Option<Color>,
    modifiers: Modifier,
}

impl CellStyle {
    /// Returns the style of a cell.
    pub(super) fn from_cell(cell: &vt100::Cell) -> Self {
        let mut modifiers = Modifier::empty();
        modifiers.set(Modifier::BOLD, cell.bold());
        modifiers.set(Modifier::DIM, cell.dim());
        modifiers.set(Modifier::ITALIC, cell.italic());
        modifiers.set(Modifier::UNDERLINED, cell.underline());
        modifiers.set(Modifier::REVERSED, cell.inverse());
        Self {
            fg: convert_color(cell.fgcolor()),
            bg: convert_color(cell.bgcolor()),
            modifiers,
        }
    }

    /// Returns whether text in this style is visible.
    pub(super) fn is_visible(self, text: &str) -> bool {
        let drawn = Modifier::REVERSED | Modifier::UNDERLINED;
        !text.trim_matches(' ').is_empty() || self.bg.is_some() || self.modifiers.intersects(drawn)
    }

    /// Converts the style for display, choosing the nearest colors that the terminal supports.
    pub(super) fn style(self, theme: &Theme) -> Style {
        let mut style = theme.text.add_modifier(self.modifiers);
        style.fg = self
            .fg
            .and_then(|fg| nearest_color(fg, theme.colors))
            .or(style.fg);
        style.bg = self
            .bg
            .and_then(|bg| nearest_color(bg, theme.colors))
            .or(style.bg);
        style
    }

    /// Applies an SGR sequence, which sets colors and attributes.
    fn apply_sgr(&mut self, parameters: &str) {
        let mut numbers = parameters
            .split(';')
            .map(|number| number.parse().unwrap_or(0));
        while let Some(number) = numbers.next() {
            let mut extended = || match numbers.next() {
                Some(5) => convert_color(vt100::Color::Idx(numbers.next()?)),
                Some(2) => Some(Color::Rgb(
                    numbers.next()?,
                    numbers.next()?,
                    numbers.next()?,
                )),
                _ => None,
            };
            match number {
                0 => *self = Self::default(),
                // The screen supports only one of bold and dim at a time.
                1 => {
                    self.modifiers.remove(Modifier::DIM);
                    self.modifiers.insert(Modifier::BOLD);
                }
                2 => {
                    self.modifiers.remove(Modifier::BOLD);
                    self.modifiers.insert(Modifier::DIM);
                }
                3 => self.modifiers.insert(Modifier::ITALIC),
                4 => self.modifiers.insert(Modifier::UNDERLINED),
                7 => self.modifiers.insert(Modifier::REVERSED),
                22 => self.modifiers.remove(Modifier::BOLD | Modifier::DIM),
                23 => self.modifiers.remove(Modifier::ITALIC),
                24 => self.modifiers.remove(Modifier::UNDERLINED),
                27 => self.modifiers.remove(Modifier::REVERSED),
                30..=37 => self.fg = convert_color(vt100::Color::Idx(number - 30)),
                38 => self.fg = extended(),
                39 => self.fg = None,
                40..=47 => self.bg = convert_color(vt100::Color::Idx(number - 40)),
                48 => self.bg = extended(),
                49 => self.bg = None,
                90..=97 => self.fg = convert_color(vt100::Color::Idx(number - 82)),
                100..=107 => self.bg = convert_color(vt100::Color::Idx(number - 92)),
                _ => {}
            }
        }
    }
}

/// Splits a scrolled-off row into pieces with their styles.
///
/// Such a row contains only text and the style sequences that the screen writes.
pub(super) fn styled_pieces(row: &str) -> impl Iterator<Item = (String, CellStyle)> {
    let mut look = CellStyle::default();
    row.split("\u{1b}[").enumerate().map(move |(n, piece)| {
        let text = match piece.split_once('m') {
            Some((parameters, text)) if n > 0 => {
                look.apply_sgr(parameters);
                text
            }
            _ => piece,
        };
        (text.to_owned(), look)
    })
}

fn convert_color(color: vt100::Color) -> Option<Color> {
    Some(match color {
        vt100::Color::Default => return None,
        vt100::Color::Idx(index) => NAMED_COLORS
            .get(usize::from(index))
            .map_or(Color::Indexed(index), |(color, _)| *color),
        vt100::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
    })
}

/// Returns the color itself if the terminal supports it, or else the nearest color that it does support.
fn nearest_color(color: Color, colors: Colors) -> Option<Color> {
    let (r, g, b) = match (color, colors) {
        (_, Colors::None) => return None,
        (color, Colors::Full) => return Some(color),
        (Color::Rgb(r, g, b), _) => (r, g, b),
        (Color::Indexed(index), _) => indexed_rgb(index),
        (named, _) => return Some(named),
    };
    let distance = |(_, (nr, ng, nb)): &&(Color, (u8, u8, u8))| {
        let apart = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        apart(r, *nr) + apart(g, *ng) + apart(b, *nb)
    };
    NAMED_COLORS
        .iter()
        .min_by_key(distance)
        .map(|(color, _)| *color)
}

/// Returns the RGB value of one of the 240 indexed colors after the named ones. These colors form a cube and a row of
/// grays.
fn indexed_rgb(index: u8) -> (u8, u8, u8) {
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return (grey, grey, grey);
    }
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let at = index.saturating_sub(16);
    (level(at / 36), level(at / 6 % 6), level(at % 6))
}

/// The 16 named colors in order, with the RGB values that xterm shows for them.
const NAMED_COLORS: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (205, 0, 0)),
    (Color::Green, (0, 205, 0)),
    (Color::Yellow, (205, 205, 0)),
    (Color::Blue, (0, 0, 238)),
    (Color::Magenta, (205, 0, 205)),
    (Color::Cyan, (0, 205, 205)),
    (Color::Gray, (229, 229, 229)),
    (Color::DarkGray, (127, 127, 127)),
    (Color::LightRed, (255, 0, 0)),
    (Color::LightGreen, (0, 255, 0)),
    (Color::LightYellow, (255, 255, 0)),
    (Color::LightBlue, (92, 92, 255)),
    (Color::LightMagenta, (255, 0, 255)),
    (Color::LightCyan, (0, 255, 255)),
    (Color::White, (255, 255, 255)),
];

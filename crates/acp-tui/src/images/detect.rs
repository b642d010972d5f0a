//! Detects from the environment which image protocol the terminal supports.

use acp_config::ImageMode;

use super::{ColorDepth, ImageProtocol, PixelSize};
use crate::terminal_query::TerminalReply;
use crate::theme::Colors;

/// The terminal's image support, as far as environment variables reveal it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageSupport {
    /// The protocol is known. `None` means that images are not shown.
    Known(Option<ImageProtocol>),
    /// The terminal may support sixels and can be queried. The given protocol is the fallback.
    QuerySixel(Option<ImageProtocol>),
    /// Sixels are configured, and the terminal can be queried for its cell size.
    QueryCellSize(ImageProtocol),
}

impl ImageSupport {
    /// Determines the image support after the terminal has replied or the query has timed out.
    pub(crate) fn with_reply(self, answer: TerminalReply) -> Self {
        match self {
            Self::QuerySixel(_) if answer.supports_sixel => {
                Self::Known(Some(ImageProtocol::Sixel { tmux: false }))
            }
            Self::QuerySixel(otherwise) => Self::Known(otherwise),
            Self::QueryCellSize(way) => Self::Known(Some(way)),
            known @ Self::Known(_) => known,
        }
    }
}

/// Detects image support without querying the terminal. `cell` is the size of a cell, if known.
pub(crate) fn detect_support(
    wanted: ImageMode,
    colors: Colors,
    cell: Option<PixelSize>,
    variable: impl Fn(&str) -> Option<String>,
) -> ImageSupport {
    let value = |name| variable(name).unwrap_or_default();
    let set = |name| !value(name).is_empty();
    let term = value("TERM");
    let program = value("TERM_PROGRAM");
    let tmux = set("TMUX");
    let depth = match colors {
        Colors::None => None,
        Colors::Full => Some(ColorDepth::Rgb),
        Colors::Ansi16 if term.contains("256color") => Some(ColorDepth::Indexed),
        Colors::Ansi16 => None,
    };
    let blocks = depth.map(ImageProtocol::Blocks);
    // kitty's protocol encodes the number of an image as the color of its cells.
    let kitty = (colors != Colors::None).then_some(ImageProtocol::Kitty { tmux });
    match wanted {
        ImageMode::Off => return ImageSupport::Known(None),
        ImageMode::Kitty => return ImageSupport::Known(kitty),
        ImageMode::Iterm2 => return ImageSupport::Known(Some(ImageProtocol::Iterm2 { tmux })),
        ImageMode::Sixel if cell.is_some() => {
            return ImageSupport::Known(Some(ImageProtocol::Sixel { tmux }));
        }
        ImageMode::Sixel => return ImageSupport::QueryCellSize(ImageProtocol::Sixel { tmux }),
        ImageMode::Blocks => return ImageSupport::Known(blocks),
        ImageMode::Auto => {}
    }
    // A multiplexer answers queries itself, whatever the outer terminal supports.
    if tmux || set("STY") || term.starts_with("screen") || term.starts_with("tmux") {
        return ImageSupport::Known(blocks);
    }
    if term == "dumb" || term == "linux" || program == "Apple_Terminal" {
        return ImageSupport::Known(blocks);
    }
    let has_kitty = ["xterm-kitty", "xterm-ghostty"].contains(&term.as_str())
        || set("KITTY_WINDOW_ID")
        || program == "ghostty";
    if has_kitty {
        return ImageSupport::Known(kitty);
    }
    let has_iterm2 = ["iTerm.app", "WezTerm", "mintty"].contains(&program.as_str())
        || value("LC_TERMINAL") == "iTerm2"
        || set("KONSOLE_VERSION");
    if has_iterm2 {
        return ImageSupport::Known(Some(ImageProtocol::Iterm2 { tmux: false }));
    }
    if cfg!(unix) {
        ImageSupport::QuerySixel(blocks)
    } else {
        ImageSupport::Known(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL_SIZE: Option<PixelSize> = Some(PixelSize {
        width: 8,
        height: 16,
    });

    fn detect_with(wanted: ImageMode, colors: Colors, set: &[(&str, &str)]) -> ImageSupport {
        detect_support(wanted, colors, CELL_SIZE, |name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn detect_auto(set: &[(&str, &str)]) -> ImageSupport {
        detect_with(ImageMode::Auto, Colors::Full, set)
    }

    #[test]
    fn terminals_are_recognized_by_their_variables() {
        let kitty = ImageSupport::Known(Some(ImageProtocol::Kitty { tmux: false }));
        assert_eq!(detect_auto(&[("TERM", "xterm-kitty")]), kitty);
        assert_eq!(detect_auto(&[("TERM_PROGRAM", "ghostty")]), kitty);
        let iterm2 = ImageSupport::Known(Some(ImageProtocol::Iterm2 { tmux: false }));
        assert_eq!(detect_auto(&[("TERM_PROGRAM", "WezTerm")]), iterm2);
        assert_eq!(detect_auto(&[("LC_TERMINAL", "iTerm2")]), iterm2);
        let blocks = Some(ImageProtocol::Blocks(ColorDepth::Rgb));
        assert_eq!(
            detect_auto(&[("TERM_PROGRAM", "Apple_Terminal")]),
            ImageSupport::Known(blocks)
        );
        #[cfg(unix)]
        assert_eq!(
            detect_auto(&[("TERM", "xterm-256color")]),
            ImageSupport::QuerySixel(blocks)
        );
    }

    #[test]
    fn multiplexer_is_not_queried_for_the_outer_terminal() {
        let set = [("TMUX", "/tmp/x"), ("KITTY_WINDOW_ID", "1")];
        assert_eq!(
            detect_auto(&set),
            ImageSupport::Known(Some(ImageProtocol::Blocks(ColorDepth::Rgb)))
        );
        // The user knows whether the multiplexer passes on unknown sequences.
        let wanted = detect_with(ImageMode::Kitty, Colors::Full, &set);
        assert_eq!(
            wanted,
            ImageSupport::Known(Some(ImageProtocol::Kitty { tmux: true }))
        );
    }

    #[test]
    fn blocks_require_enough_colors() {
        let of = |colors, term| detect_with(ImageMode::Blocks, colors, &[("TERM", term)]);
        let indexed = Some(ImageProtocol::Blocks(ColorDepth::Indexed));
        assert_eq!(
            of(Colors::Ansi16, "xterm-256color"),
            ImageSupport::Known(indexed)
        );
        assert_eq!(of(Colors::Ansi16, "xterm"), ImageSupport::Known(None));
        assert_eq!(
            of(Colors::None, "xterm-256color"),
            ImageSupport::Known(None)
        );
        // There are no colors to encode the numbers of kitty's images in either. Sixels have their own colors.
        let no_color = |wanted| detect_with(wanted, Colors::None, &[]);
        assert_eq!(no_color(ImageMode::Kitty), ImageSupport::Known(None));
        let sixel = ImageSupport::Known(Some(ImageProtocol::Sixel { tmux: false }));
        assert_eq!(no_color(ImageMode::Sixel), sixel);
    }

    #[test]
    fn sixel_terminal_of_unknown_cell_size_is_queried() {
        let found = detect_support(ImageMode::Sixel, Colors::Full, None, |_| None);
        assert_eq!(
            found,
            ImageSupport::QueryCellSize(ImageProtocol::Sixel { tmux: false })
        );
    }
}

use std::collections::BTreeSet;

use acp_config::themes::{builtin_theme, list_themes};

use super::*;

/// The backgrounds of terminals on which the themes without a background of their own must be readable.
const DARK_TERMINALS: [Color; 3] = [
    Color::Rgb(0, 0, 0),
    Color::Rgb(30, 30, 46),
    Color::Rgb(40, 44, 52),
];
const LIGHT_TERMINALS: [Color; 3] = [
    Color::Rgb(255, 255, 255),
    Color::Rgb(250, 250, 250),
    Color::Rgb(253, 246, 227),
];

fn builtin(name: &str, colors: Colors) -> Theme {
    Theme::from_definition(&builtin_theme(&name.parse().unwrap()).unwrap(), colors)
}

fn rgb(color: Color) -> [u8; 3] {
    match color {
        Color::Rgb(r, g, b) => [r, g, b],
        other => panic!("{other} is not an RGB color"),
    }
}

/// Returns the contrast of two colors, as WCAG 2 defines it.
fn contrast(one: Color, other: Color) -> f64 {
    let luminance = |color| {
        let [r, g, b] = rgb(color).map(|part| {
            let part = f64::from(part) / 255.0;
            match part <= 0.04045 {
                true => part / 12.92,
                false => ((part + 0.055) / 1.055).powf(2.4),
            }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Returns the styles of text, by name.
fn text_styles(theme: &Theme) -> Vec<(&'static str, Style)> {
    let syntax = theme.syntax;
    vec![
        ("text", theme.text),
        ("dim", theme.dim),
        ("accent", theme.accent),
        ("good", theme.good),
        ("bad", theme.bad),
        ("warn", theme.warn),
        ("user", theme.user),
        ("thought", theme.thought),
        ("matched", theme.matched),
        ("heading", theme.heading),
        ("code", theme.code),
        ("link", theme.link),
        ("quote", theme.quote),
        ("comment", syntax.comment),
        ("string", syntax.string),
        ("number", syntax.number),
        ("keyword", syntax.keyword),
        ("function", syntax.function),
        ("type", syntax.type_name),
        ("tag", syntax.tag),
    ]
}

#[test]
fn text_has_enough_contrast() {
    for (name, least, terminals) in [
        ("dark", 4.5, DARK_TERMINALS),
        ("light", 4.5, LIGHT_TERMINALS),
        ("high-contrast-dark", 7.0, LIGHT_TERMINALS),
        ("high-contrast-light", 7.0, DARK_TERMINALS),
        ("ember", 4.5, LIGHT_TERMINALS),
    ] {
        let theme = builtin(name, Colors::Full);
        let screens = match theme.text.bg {
            Some(own) => vec![own],
            None => terminals.to_vec(),
        };
        for screen in screens {
            // Without a color of its own, the terminal has chosen the text's color.
            let ordinary = theme.text.fg.unwrap_or(match theme.background {
                Background::Dark => Color::Rgb(220, 220, 220),
                Background::Light => Color::Rgb(40, 40, 40),
            });
            for (role, style) in text_styles(&theme) {
                let text = style.fg.unwrap_or(ordinary);
                let found = contrast(text, screen);
                assert!(found >= least, "{name}: {role} on {screen}: {found:.2}");
                // Lists and diffs contain text of most of these kinds, and so do the lines of code in them.
                for (behind, style) in [
                    ("selected", theme.selected),
                    ("added", theme.added),
                    ("removed", theme.removed),
                ] {
                    let found = contrast(text, style.bg.unwrap());
                    assert!(found >= 4.5, "{name}: {role} on {behind}: {found:.2}");
                }
            }
            for (behind, style) in [
                ("selected", theme.selected),
                ("added", theme.added),
                ("removed", theme.removed),
                ("added-word", theme.added_word),
                ("removed-word", theme.removed_word),
            ] {
                let found = contrast(ordinary, style.bg.unwrap());
                assert!(found >= least, "{name}: text on {behind}: {found:.2}");
            }
            for (behind, style) in [
                ("added-word", theme.added_word),
                ("removed-word", theme.removed_word),
            ] {
                let code = [
                    theme.syntax.comment,
                    theme.syntax.string,
                    theme.syntax.keyword,
                ];
                for text in code {
                    let found = contrast(text.fg.unwrap(), style.bg.unwrap());
                    assert!(found >= 2.5, "{name}: code on {behind}: {found:.2}");
                }
            }
            let found = contrast(theme.border.fg.unwrap(), screen);
            assert!(found >= 2.5, "{name}: border on {screen}: {found:.2}");
        }
    }
}

#[test]
fn warm_theme_has_little_blue() {
    let theme = builtin("ember", Colors::Full);
    for (role, style) in text_styles(&theme) {
        let [r, _, b] = rgb(style.fg.unwrap());
        assert!(b < r, "{role}");
        assert!(b <= 200, "{role}");
    }
}

#[test]
fn terminals_with_16_colors_get_only_those() {
    let terminal = builtin("terminal", Colors::Full);
    for listing in list_themes() {
        let Some(definition) = builtin_theme(&listing.name) else {
            continue;
        };
        let theme = Theme::from_definition(&definition, Colors::Ansi16);
        let colors = text_styles(&theme).into_iter();
        let colors: BTreeSet<String> = colors
            .flat_map(|(_, style)| [style.fg, style.bg])
            .flatten()
            .map(|color| color.to_string())
            .collect();
        let other = colors.iter().find(|color| color.starts_with('#'));
        assert_eq!(other, None, "{}", listing.name);
        assert_eq!(theme.accent, terminal.accent, "{}", listing.name);
    }
    // Without colors, nothing has one.
    let none = builtin("ember", Colors::None);
    for (role, style) in text_styles(&none) {
        assert_eq!((style.fg, style.bg), (None, None), "{role}");
    }
}

#[test]
fn background_of_text_fills_the_screen() {
    let theme = builtin("ember", Colors::Full);
    let mut buf = Buffer::empty(ratatui::layout::Rect::new(0, 0, 4, 1));
    buf.set_string(0, 0, "ab", theme.accent);
    buf.set_style(ratatui::layout::Rect::new(2, 0, 1, 1), theme.selected);
    theme.fill(&mut buf);
    let colors = |x: u16| (buf[(x, 0)].fg, buf[(x, 0)].bg);
    let (fg, bg) = (theme.text.fg.unwrap(), theme.text.bg.unwrap());
    assert_eq!(colors(0), (theme.accent.fg.unwrap(), bg));
    assert_eq!(colors(2), (fg, theme.selected.bg.unwrap()));
    assert_eq!(colors(3), (fg, bg));
    // A theme without colors for text leaves the terminal's own.
    let mut buf = Buffer::empty(ratatui::layout::Rect::new(0, 0, 1, 1));
    builtin("dark", Colors::Full).fill(&mut buf);
    assert_eq!(
        (buf[(0, 0)].fg, buf[(0, 0)].bg),
        (Color::Reset, Color::Reset)
    );
}

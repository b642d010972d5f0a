//! The built-in themes, which are theme files within the program.

/// The names of the built-in themes, what they are for, and their text.
pub(super) const BUILTIN_THEMES: [(&str, &str, &str); 6] = [
    (
        "dark",
        "for terminals with a dark background",
        include_str!("dark.toml"),
    ),
    (
        "light",
        "for terminals with a light background",
        include_str!("light.toml"),
    ),
    (
        "high-contrast-dark",
        "white on black, with strong contrast",
        include_str!("high-contrast-dark.toml"),
    ),
    (
        "high-contrast-light",
        "black on white, with strong contrast",
        include_str!("high-contrast-light.toml"),
    ),
    (
        "terminal",
        "only the terminal's own 16 colors",
        include_str!("terminal.toml"),
    ),
    (
        "ember",
        "warm colors with little blue, on dark brown",
        include_str!("ember.toml"),
    ),
];

/// Returns the text of the built-in theme with this name.
pub(super) fn find_builtin(name: &str) -> Option<&'static str> {
    let mut all = BUILTIN_THEMES.iter();
    all.find(|(known, ..)| *known == name)
        .map(|(_, _, text)| *text)
}

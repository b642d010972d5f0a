//! The colours of code.
//!
//! The syntaxes take a while to unpack, so that a thread does it: until it is done, code is shown plain.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use syntect::highlighting::{
    self, FontStyle, HighlightIterator, HighlightState, StyleModifier, ThemeItem, ThemeSettings,
};
use syntect::parsing::{ParseState, ScopeStack, SyntaxReference, SyntaxSet};
use two_face::theme::EmbeddedThemeName;

use crate::theme::{Background, Colors, Theme};

/// Lines that are coloured of one text. The others are shown plain.
pub(crate) const MAX_LINES: usize = 2_000;
/// Bytes of one text that are coloured.
pub(crate) const MAX_BYTES: usize = 200_000;
/// Bytes of the longest line that is looked at. Behind a longer one nothing is coloured, for it is not known
/// how it ended.
pub(crate) const MAX_LINE: usize = 1_000;

/// What a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language<'a> {
    /// As it is called, which is what stands behind a fence: `rust`, `c++`, `sh`.
    Name(&'a str),
    /// As the file is called. If that says nothing, its first line does.
    Path(&'a Path),
}

/// `code` in colours, a line for each of [`str::lines`]. The text of each is that of the code, byte for byte, so
/// that others can lay marks over it; [`wrap`](super::wrap) makes it fit to be shown.
pub(crate) fn highlight(code: &str, language: Language<'_>, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = code.lines().peekable();
    let first = lines.peek().copied().unwrap_or_default();
    let mut highlighter = Highlighter::new(language, first, theme);
    lines.map(|line| highlighter.line(line)).collect()
}

/// Colours a text line by line. A clone goes on from the same place.
#[derive(Clone)]
pub(crate) struct Highlighter {
    /// `None` if nothing is known of the language, or too much has been seen.
    state: Option<State>,
    lines: usize,
    bytes: usize,
}

#[derive(Clone)]
struct State {
    loaded: &'static Loaded,
    palette: &'static Palette,
    parse: ParseState,
    highlight: HighlightState,
    line: String,
}

impl Highlighter {
    /// At the beginning of a text whose first line is `first`. Does not wait for the syntaxes: until
    /// [`ready`] they are not used.
    pub(crate) fn new(language: Language<'_>, first: &str, theme: &Theme) -> Self {
        let state = match theme.colors {
            Colors::None => None,
            colors => begun().and_then(|loaded| {
                let syntax = loaded.syntax(language, first)?;
                let palette = loaded.palette(theme.background, colors);
                Some(State {
                    loaded,
                    palette,
                    parse: ParseState::new(syntax),
                    highlight: HighlightState::new(&palette.highlighter, ScopeStack::new()),
                    line: String::new(),
                })
            }),
        };
        Self {
            state,
            lines: 0,
            bytes: 0,
        }
    }

    /// The next line, which has no line feed.
    pub(crate) fn line(&mut self, line: &str) -> Line<'static> {
        self.lines += 1;
        self.bytes += line.len();
        if line.len() > MAX_LINE || self.lines > MAX_LINES || self.bytes > MAX_BYTES {
            self.state = None;
        }
        let spans = self.state.as_mut().and_then(|state| state.line(line));
        match spans {
            Some(spans) => Line::from(spans),
            None => {
                self.state = None;
                Line::from(line.to_owned())
            }
        }
    }
}

impl State {
    /// `None` if the syntax cannot be used.
    fn line(&mut self, line: &str) -> Option<Vec<Span<'static>>> {
        self.line.clear();
        self.line.push_str(line);
        self.line.push('\n');
        let changes = self.parse.parse_line(&self.line, &self.loaded.syntaxes).ok()?;
        let pieces = HighlightIterator::new(
            &mut self.highlight,
            &changes,
            &self.line,
            &self.palette.highlighter,
        );
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (style, text) in pieces {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let style = self.palette.style(style);
            match spans.last_mut() {
                _ if text.is_empty() => {}
                Some(span) if span.style == style => span.content.to_mut().push_str(text),
                _ => spans.push(Span::styled(text.to_owned(), style)),
            }
        }
        Some(spans)
    }
}

/// Whether code is coloured by now.
pub(crate) fn ready() -> bool {
    READY.load(Ordering::Acquire)
}

/// Unpacks the syntaxes and waits until that is done.
pub(crate) fn load() {
    loaded();
}

static READY: AtomicBool = AtomicBool::new(false);

fn loaded() -> &'static Loaded {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    let loaded = LOADED.get_or_init(Loaded::new);
    READY.store(true, Ordering::Release);
    loaded
}

/// The syntaxes if they are there. If nobody has, a thread is set to unpack them.
fn begun() -> Option<&'static Loaded> {
    static BEGUN: Once = Once::new();
    if ready() {
        return Some(loaded());
    }
    BEGUN.call_once(|| {
        // Without the thread code stays plain.
        if let Err(error) = std::thread::Builder::new().name("syntaxes".to_owned()).spawn(load) {
            tracing::warn!(%error, "code is shown without colours: no thread could be started for them");
        }
    });
    None
}

struct Loaded {
    syntaxes: SyntaxSet,
    dark: Palette,
    light: Palette,
    ansi: Palette,
}

/// A theme of syntect's, and how its colours become the terminal's.
struct Palette {
    highlighter: highlighting::Highlighter<'static>,
    ordinary: highlighting::Color,
}

impl Loaded {
    fn new() -> Self {
        static THEMES: OnceLock<two_face::theme::EmbeddedLazyThemeSet> = OnceLock::new();
        static ANSI_THEME: OnceLock<highlighting::Theme> = OnceLock::new();
        let themes = THEMES.get_or_init(two_face::theme::extra);
        let palette = |name| Palette::new(themes.get(name));
        Self {
            syntaxes: two_face::syntax::extra_newlines(),
            dark: palette(EmbeddedThemeName::CatppuccinMocha),
            light: palette(EmbeddedThemeName::ColdarkCold),
            ansi: Palette::new(ANSI_THEME.get_or_init(ansi)),
        }
    }

    fn palette(&self, background: Background, colors: Colors) -> &Palette {
        match (colors, background) {
            (Colors::Full, Background::Dark) => &self.dark,
            (Colors::Full, Background::Light) => &self.light,
            _ => &self.ansi,
        }
    }

    fn syntax(&self, language: Language<'_>, first: &str) -> Option<&SyntaxReference> {
        match language {
            Language::Name(name) => self.by_name(name),
            Language::Path(path) => {
                let part = |part: Option<&std::ffi::OsStr>| {
                    let part = part?.to_str()?;
                    self.syntaxes
                        .find_syntax_by_extension(part)
                        .or_else(|| self.syntaxes.find_syntax_by_extension(alias(part)?))
                };
                part(path.file_name())
                    .or_else(|| part(path.extension()))
                    .or_else(|| {
                        let first = (first.len() <= MAX_LINE).then_some(first)?;
                        self.syntaxes.find_syntax_by_first_line(first)
                    })
            }
        }
    }

    fn by_name(&self, name: &str) -> Option<&SyntaxReference> {
        // Behind a fence there may be more: `rust,ignore`, `js {1,3}`, `12:40:src/main.rs`.
        let name = name.split([',', ' ', '\t', '{']).next()?.trim_start_matches('.');
        let name = name.to_ascii_lowercase();
        if matches!(name.as_str(), "" | "text" | "txt" | "plain" | "plaintext") {
            return None;
        }
        self.syntaxes
            .find_syntax_by_token(alias(&name).unwrap_or(&name))
            .or_else(|| {
                let path = Path::new(name.rsplit(':').next()?);
                let extension = path.extension().or_else(|| path.file_name())?;
                self.syntaxes.find_syntax_by_extension(extension.to_str()?)
            })
    }
}

/// Names that models use and the syntaxes do not know.
fn alias(name: &str) -> Option<&'static str> {
    Some(match name {
        "shell" | "console" | "shellsession" | "shell-session" | "terminal" | "zsh" | "ksh" => "sh",
        "jsonc" | "json5" | "jsonl" | "ndjson" => "json",
        "golang" => "go",
        "python3" | "pycon" => "py",
        "node" | "jsx" | "mjs" | "cjs" => "js",
        "mts" | "cts" => "ts",
        "c#" => "cs",
        "f#" => "fs",
        "objective-c" => "m",
        "docker" => "dockerfile",
        "rustscript" => "rs",
        "patch" => "diff",
        "hcl" => "tf",
        _ => return None,
    })
}

impl Palette {
    fn new(theme: &'static highlighting::Theme) -> Self {
        let highlighter = highlighting::Highlighter::new(theme);
        let ordinary = highlighter.get_default().foreground;
        Self {
            highlighter,
            ordinary,
        }
    }

    fn style(&self, style: highlighting::Style) -> Style {
        let mut made = Style::new();
        if let Some(color) = self.color(style.foreground) {
            made = made.fg(color);
        }
        if style.foreground == DIM {
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

    /// Ordinary text has the terminal's own colour.
    fn color(&self, color: highlighting::Color) -> Option<Color> {
        match color {
            color if color == self.ordinary => None,
            highlighting::Color { r, a: 0, .. } => ANSI.get(usize::from(r)).copied(),
            highlighting::Color { r, g, b, .. } => Some(Color::Rgb(r, g, b)),
        }
    }
}

/// What is named by a [`named`] colour. Neither black nor white, for one of them cannot be seen.
const ANSI: [Color; 6] = [
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
];

/// Stands for one of the terminal's own colours in a theme: no theme of full colours is transparent.
const fn named(index: u8) -> highlighting::Color {
    highlighting::Color {
        r: index,
        g: 0,
        b: 0,
        a: 0,
    }
}

/// Less than ordinary text, in whatever colour that has.
const DIM: highlighting::Color = named(u8::MAX);

/// What has which of the terminal's own colours.
fn ansi() -> highlighting::Theme {
    const SCOPES: [(&str, highlighting::Color); 8] = [
        ("comment, markup.quote, meta.diff.range", DIM),
        ("string, constant.character, markup.raw, markup.inserted", named(1)),
        ("constant.numeric, constant.language, constant.other", named(2)),
        ("keyword, storage, keyword.operator.word", named(4)),
        ("keyword.operator", ORDINARY),
        ("entity.name.function, support.function, variable.function, markup.heading", named(3)),
        ("entity.name.type, entity.name.class, storage.type.numeric, support.type, support.class, entity.other.attribute-name", named(5)),
        ("entity.name.tag, variable.language, invalid, markup.deleted", named(0)),
    ];
    let scopes = SCOPES
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
            foreground: Some(ORDINARY),
            ..ThemeSettings::default()
        },
        scopes,
        ..highlighting::Theme::default()
    }
}

/// Ordinary text in the theme of the terminal's own colours.
const ORDINARY: highlighting::Color = named(u8::MAX - 1);

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = "// note\nfn main() -> u32 {\n    let s = \"text\"; 42\n}\n";

    /// The style of what stands there first.
    fn style_of(lines: &[Line<'_>], text: &str) -> Style {
        let spans = lines.iter().flat_map(|line| &line.spans);
        spans
            .filter(|span| span.content.contains(text))
            .map(|span| span.style)
            .next()
            .unwrap_or_else(|| panic!("{text} is not there: {lines:?}"))
    }

    fn coloured(code: &str, language: Language<'_>, colors: Colors) -> Vec<Line<'static>> {
        load();
        let theme = Theme::new(Background::Dark, colors);
        let lines = highlight(code, language, &theme);
        let texts: Vec<String> = lines.iter().map(Line::to_string).collect();
        assert_eq!(texts, code.lines().collect::<Vec<_>>());
        lines
    }

    #[test]
    fn code_has_colours_of_its_language() {
        for language in [
            Language::Name("rust"),
            Language::Name("rust,ignore"),
            Language::Name("12:40:src/main.rs"),
            Language::Path(Path::new("src/main.rs")),
        ] {
            let lines = coloured(RUST, language, Colors::Full);
            let words = ["// note", "fn", "main", "text", "42"];
            let styles = words.map(|word| style_of(&lines, word).fg);
            for (at, style) in styles.iter().enumerate() {
                assert!(matches!(style, Some(Color::Rgb(..))), "{}", words[at]);
                assert!(!styles[..at].contains(style), "{}", words[at]);
            }
            assert!(lines.iter().all(|line| line.spans.iter().all(|span| span.style.bg.is_none())));
        }
    }

    #[test]
    fn sixteen_colours_are_the_terminals_own() {
        let lines = coloured(RUST, Language::Name("rs"), Colors::Ansi16);
        assert_eq!(style_of(&lines, "// note"), Style::new().add_modifier(Modifier::DIM));
        assert_eq!(style_of(&lines, "let").fg, Some(Color::Magenta));
        assert_eq!(style_of(&lines, "main").fg, Some(Color::Blue));
        assert_eq!(style_of(&lines, "text").fg, Some(Color::Green));
        assert_eq!(style_of(&lines, "42").fg, Some(Color::Yellow));
        assert_eq!(style_of(&lines, "u32").fg, Some(Color::Cyan));
        let lines = coloured(RUST, Language::Name("rs"), Colors::None);
        assert!(lines.iter().flat_map(|line| &line.spans).all(|span| span.style == Style::new()));
    }

    #[test]
    fn the_language_is_found_by_many_names() {
        load();
        let known = |language, first| loaded().syntax(language, first).map(|found| found.name.as_str());
        let names = [
            "rust", "Rust", "ts", "typescript", "tsx", "js", "jsx", "python", "py", "sh", "bash", "shell", "console", "zsh", "go",
            "golang", "c", "cpp", "c++", "csharp", "java", "kotlin", "swift", "ruby", "php", "json", "jsonc", "yaml", "yml", "toml",
            "html", "css", "scss", "sql", "diff", "patch", "markdown", "md", "xml", "dockerfile", "makefile", "lua", "haskell",
            "elixir", "zig", "nix", "graphql", "powershell", "vue", "svelte", "ini", "hcl",
        ];
        let unknown: Vec<&str> = names
            .into_iter()
            .filter(|name| known(Language::Name(name), "").is_none())
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let path = |path| Language::Path(Path::new(path));
        assert_eq!(known(path("Makefile"), ""), Some("Makefile"));
        assert_eq!(known(path("a/b.py"), ""), Some("Python"));
        assert_eq!(known(path("run"), "#!/usr/bin/env python3"), Some("Python"));
        assert_eq!(known(path("run"), "nothing"), None);
        assert_eq!(known(Language::Name("text"), ""), None);
        assert_eq!(known(Language::Name("no such language"), ""), None);
    }

    #[test]
    fn what_is_too_much_is_plain() {
        let plain = |line: &Line<'_>| line.spans.iter().all(|span| span.style == Style::new());
        let many = "1\n".repeat(MAX_LINES + 1);
        let lines = coloured(&many, Language::Name("json"), Colors::Full);
        assert!(!plain(&lines[MAX_LINES - 1]) && plain(&lines[MAX_LINES]));
        let long = format!("1\n{}\n1\n", "1".repeat(MAX_LINE + 1));
        let lines = coloured(&long, Language::Name("json"), Colors::Full);
        assert!(!plain(&lines[0]) && plain(&lines[1]) && plain(&lines[2]));
    }

    #[test]
    fn colours_can_be_read_on_their_backgrounds() {
        let light_of = |color: highlighting::Color| {
            let part = |value: u8| {
                let value = f64::from(value) / 255.0;
                if value <= 0.04 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(color.r) + 0.7152 * part(color.g) + 0.0722 * part(color.b)
        };
        let contrast = |a, b| {
            let (a, b) = (light_of(a), light_of(b));
            (f64::max(a, b) + 0.05) / (f64::min(a, b) + 0.05)
        };
        load();
        for background in [Background::Dark, Background::Light] {
            let theme = Theme::new(background, Colors::Full);
            let terminal = match background {
                Background::Dark => Color::Rgb(30, 30, 46),
                Background::Light => Color::Rgb(255, 255, 255),
            };
            let highlighter = &loaded().palette(background, Colors::Full).highlighter;
            for scope in [
                "comment", "keyword", "string", "constant.numeric", "constant.language", "entity.name.function",
                "entity.name.type", "storage.type", "variable.parameter", "entity.name.tag", "punctuation",
            ] {
                let scope = [syntect::parsing::Scope::new(scope).unwrap()];
                let color = highlighter.style_for_stack(&scope).foreground;
                for (behind, least) in [
                    (Some(terminal), 4.5),
                    (theme.added.bg, 4.5),
                    (theme.removed.bg, 4.5),
                    (theme.added_word.bg, 2.5),
                    (theme.removed_word.bg, 2.5),
                ] {
                    let Some(Color::Rgb(r, g, b)) = behind else { panic!("a full colour") };
                    let contrast = contrast(color, highlighting::Color { r, g, b, a: 255 });
                    assert!(contrast >= least, "{background:?} {scope:?} on {behind:?}: {contrast}");
                }
            }
        }
    }
}

use ratatui::style::{Color, Modifier, Style};

use super::*;
use crate::theme::{Background, Colors, Theme};

const RUST_CODE: &str = "// note\nfn main() -> u32 {\n    let s = \"text\"; 42\n}\n";

/// Returns the style of the first span that contains this text.
fn style_of(lines: &[Line<'_>], text: &str) -> Style {
    let spans = lines.iter().flat_map(|line| &line.spans);
    spans
        .filter(|span| span.content.contains(text))
        .map(|span| span.style)
        .next()
        .unwrap_or_else(|| panic!("{text} is missing: {lines:?}"))
}

fn highlight_lines(code: &str, language: Language<'_>, colors: Colors) -> Vec<Line<'static>> {
    let styles = Theme::new(Background::Dark, colors).syntax;
    let mut highlighter = Highlighter::new(language, "", styles);
    let lines: Vec<Line<'static>> = code
        .lines()
        .map(|line| highlighter.highlight_line(line))
        .collect();
    let texts: Vec<String> = lines.iter().map(Line::to_string).collect();
    assert_eq!(texts, code.lines().collect::<Vec<_>>());
    lines
}

#[test]
fn code_is_highlighted_in_its_language() {
    for language in [
        Language::Name("rust"),
        Language::Name("rust,ignore"),
        Language::Name("12:40:src/main.rs"),
        Language::Path(Path::new("src/main.rs")),
    ] {
        let lines = highlight_lines(RUST_CODE, language, Colors::Full);
        let words = ["// note", "fn", "main", "text", "42"];
        let styles = words.map(|word| style_of(&lines, word).fg);
        for (at, style) in styles.iter().enumerate() {
            assert!(matches!(style, Some(Color::Rgb(..))), "{}", words[at]);
            assert!(!styles[..at].contains(style), "{}", words[at]);
        }
        assert!(
            lines
                .iter()
                .all(|line| line.spans.iter().all(|span| span.style.bg.is_none()))
        );
    }
}

#[test]
fn sixteen_color_theme_uses_terminal_colors() {
    let lines = highlight_lines(RUST_CODE, Language::Name("rs"), Colors::Ansi16);
    assert_eq!(
        style_of(&lines, "// note"),
        Style::new().add_modifier(Modifier::DIM)
    );
    assert_eq!(style_of(&lines, "let").fg, Some(Color::Magenta));
    assert_eq!(style_of(&lines, "main").fg, Some(Color::Blue));
    assert_eq!(style_of(&lines, "text").fg, Some(Color::Green));
    assert_eq!(style_of(&lines, "42").fg, Some(Color::Yellow));
    let lines = highlight_lines(RUST_CODE, Language::Name("rs"), Colors::None);
    assert!(
        lines
            .iter()
            .flat_map(|line| &line.spans)
            .all(|span| span.style == Style::new())
    );
}

#[test]
fn language_is_found_by_its_aliases() {
    let known = |language, first| {
        highlight_assets()
            .syntax(language, first)
            .map(|found| found.name.as_str())
    };
    let names = [
        "rust",
        "Rust",
        "ts",
        "typescript",
        "tsx",
        "js",
        "jsx",
        "python",
        "py",
        "sh",
        "bash",
        "shell",
        "console",
        "zsh",
        "go",
        "golang",
        "c",
        "cpp",
        "c++",
        "csharp",
        "java",
        "kotlin",
        "swift",
        "ruby",
        "php",
        "json",
        "jsonc",
        "yaml",
        "yml",
        "toml",
        "html",
        "css",
        "scss",
        "sql",
        "diff",
        "patch",
        "markdown",
        "md",
        "xml",
        "dockerfile",
        "makefile",
        "lua",
        "haskell",
        "elixir",
        "zig",
        "nix",
        "graphql",
        "vue",
        "svelte",
        "ini",
        "hcl",
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
fn oversized_code_is_not_highlighted() {
    let plain = |line: &Line<'_>| line.spans.iter().all(|span| span.style == Style::new());
    let many = "1\n".repeat(MAX_LINES + 1);
    let lines = highlight_lines(&many, Language::Name("json"), Colors::Full);
    assert!(!plain(&lines[MAX_LINES - 1]) && plain(&lines[MAX_LINES]));
    let long = format!("1\n{}\n1\n", "1".repeat(MAX_LINE_BYTES + 1));
    let lines = highlight_lines(&long, Language::Name("json"), Colors::Full);
    assert!(!plain(&lines[0]) && plain(&lines[1]) && plain(&lines[2]));
}

/// Requests a text's highlighting repeatedly, as drawing does, until it is ready.
fn wait_for_lines(text: &str, path: &str) -> Option<std::sync::Arc<Vec<Line<'static>>>> {
    let theme = Theme::new(Background::Dark, Colors::Full);
    let language = Language::Path(Path::new(path));
    let ask = || with_pending_flag(|| highlighted_lines(text, language, &theme));
    let (first, missed) = ask();
    assert_eq!(first.is_none(), missed);
    // Other tests may fill the cache in the meantime, which drops the text.
    for _ in 0..100 {
        wait_until_idle();
        let (found, missed) = ask();
        if !missed {
            return found;
        }
    }
    panic!("{path} is never highlighted");
}

#[test]
fn highlights_are_computed_in_the_background_and_cached() {
    let text = RUST_CODE.repeat(3);
    let found = wait_for_lines(&text, "src/main.rs").unwrap();
    let texts: Vec<String> = found.iter().map(Line::to_string).collect();
    assert_eq!(texts, text.lines().collect::<Vec<_>>());
    assert!(matches!(style_of(&found, "fn").fg, Some(Color::Rgb(..))));
    // The same text in another language is cached separately.
    let plain = wait_for_lines(&text, "notes.txt").unwrap();
    assert_ne!(found, plain);
    assert_eq!(wait_for_lines(&text, "src/main.rs").unwrap(), found);
}

#[test]
fn plain_text_is_not_queued() {
    let theme = Theme::new(Background::Dark, Colors::Full);
    let code = HighlightedCode::new(Language::Name("json"), &theme).unwrap();
    let wanted = (0..MAX_LINES + 10).filter(|_| code.push("1")).count();
    assert_eq!(wanted, MAX_LINES);
    wait_until_idle();
    assert_eq!(code.take().len(), MAX_LINES);
    assert!(code.take().is_empty());
    assert!(HighlightedCode::new(Language::Name(""), &theme).is_none());
    let none = Theme::new(Background::Dark, Colors::None);
    assert!(HighlightedCode::new(Language::Name("json"), &none).is_none());
}

//! Tests of themes: those that follow the terminal, the built-in ones, and those of the user.

use vt100::Color;

use super::colors::start_with_colors;
use super::*;

const WHITE_REPORT: &str = "\u{1b}]11;rgb:ffff/ffff/ffff\u{1b}\\";
const BLACK_REPORT: &str = "\u{1b}]11;rgb:0000/0000/0000\u{7}";
/// The reply to the last query, after which the terminal owes no reply.
const LAST_REPLY: &str = "\u{1b}[?62;22c";
const FOCUS_GAINED: &str = "\u{1b}[I";

/// Waits until the lines of the diff are drawn for a light or a dark terminal.
fn wait_for_background(screen: &mut ChatScreen, is_light: bool) {
    screen.wait_for_matching_screen("the colors of a light or dark theme", |screen| {
        let behind = find_cell(screen, "two();").bgcolor();
        let Color::Rgb(r, g, b) = behind else {
            return false;
        };
        (u16::from(r) + u16::from(g) + u16::from(b) > 384) == is_light
    });
}

#[test]
fn theme_follows_the_background_of_the_terminal() {
    let project = TestProject::new();
    let mut screen = start_with_colors(&project, "A=b", "");
    assert_eq!(screen.background_queries(), 1);
    wait_for_background(&mut screen, false);
    // The reply comes late, among the keys, as over a slow network.
    screen.send_keys(&format!("be{WHITE_REPORT}fore{LAST_REPLY}"));
    wait_for_background(&mut screen, true);
    screen.wait_for("│before");
    // The desktop may have changed its colors while another window had the focus.
    screen.send_keys(FOCUS_GAINED);
    screen.wait_for_matching_screen("another query", |screen| screen.background_queries() == 2);
    screen.send_keys(&format!("{BLACK_REPORT} and after"));
    wait_for_background(&mut screen, false);
    screen.wait_for("│before and after");
}

#[test]
fn reply_at_the_start_takes_precedence_over_the_environment() {
    let project = TestProject::new();
    write_hello_file(&project);
    // The reply is there before the chat reads its input, and so is what the user types ahead.
    let line = format!("env 'COLORFGBG=0;15' {ACP} chat");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.send_keys(&format!("{BLACK_REPORT}{LAST_REPLY}typed ahead"));
    screen.wait_for("│typed ahead");
    let accent = |screen: &ChatScreen| find_cell(screen, "1 · ACP Agent").fgcolor();
    screen.wait_for("1 · ACP Agent");
    screen.wait_for_matching_screen("the dark theme", |screen| {
        accent(screen) == theme_color(ThemeRole::Accent)
    });
}

#[test]
fn theme_that_does_not_follow_the_terminal_stays() {
    let project = TestProject::new();
    let mut screen = start_with_colors(&project, "A=b", "--theme dark");
    screen.send_keys(&format!("{WHITE_REPORT}{LAST_REPLY}typed"));
    screen.wait_for("│typed");
    wait_for_background(&mut screen, false);
    screen.send_keys(FOCUS_GAINED);
    screen.send_keys(" later");
    screen.wait_for("│typed later");
    assert_eq!(screen.background_queries(), 1);
}

#[test]
fn builtin_themes_color_the_whole_screen_or_leave_the_background() {
    for (name, expected) in [
        ("dark", Color::Default),
        ("light", Color::Default),
        ("terminal", Color::Default),
        ("high-contrast-dark", Color::Rgb(0, 0, 0)),
        ("high-contrast-light", Color::Rgb(255, 255, 255)),
        ("ember", Color::Rgb(0x1f, 0x16, 0x11)),
    ] {
        let project = TestProject::new();
        let screen = start_with_colors(&project, "A=b", &format!("--theme {name}"));
        for (row, column) in [(0, 0), (0, 99), (39, 0), (39, 99), (20, 99)] {
            let cell = screen.screen().cell(row, column).unwrap();
            assert_eq!(cell.bgcolor(), expected, "{name}: {row}, {column}");
        }
        if let Some(directory) = std::env::var_os("ACP_PICTURES") {
            let page = std::path::Path::new(&directory).join(format!("theme-{name}.html"));
            std::fs::write(page, screen.to_html()).unwrap();
        }
    }
}

#[test]
fn user_writes_a_theme_of_their_own() {
    let project = TestProject::new();
    project.write_config("config.toml", "[chat]\ntheme = \"mine\"\n");
    project.write_config(
        "themes/mine.toml",
        "base = \"ember\"\n[styles]\ntext = { color = \"#010203\", background = \"#fdfcfb\" }\naccent = 201\n",
    );
    let mut screen = start_chat(&project, 80, 24);
    let tab = find_cell(&screen, "1 · ACP Agent");
    assert_eq!(tab.fgcolor(), Color::Idx(201));
    assert_eq!(tab.bgcolor(), Color::Rgb(0xfd, 0xfc, 0xfb));
    screen.send_line("/theme");
    screen.wait_for("● mine");
}

#[test]
fn invalid_theme_is_an_error_with_its_place() {
    for (config, theme, args, expected) in [
        (
            "[chat]\ntheme = \"mine\"\n",
            "[styles]\nacent = \"red\"\n",
            &[][..],
            "mine.toml, line 2: styles.acent: unknown style; expected one of text, dim,",
        ),
        (
            "",
            "",
            &["--theme", "solarised"],
            "unknown theme `solarised`; expected one of dark, light, high-contrast-dark,",
        ),
        (
            "",
            "",
            &["--theme", "../x"],
            "invalid theme name: use at most 64 letters, digits, - and _",
        ),
    ] {
        let project = TestProject::new();
        project.write_config("config.toml", config);
        project.write_config("themes/mine.toml", theme);
        let args = args.join(" ");
        let line = format!("{ACP} chat {args}; echo exit code $?");
        let mut screen = ChatScreen::start(&project, 160, 24, &line);
        screen.wait_for("exit code 2");
        let text = screen.text().replace('\n', "");
        assert!(text.contains(expected), "{args}: {text}");
    }
}

#[test]
fn theme_is_shown_while_it_is_selected_and_kept_when_it_is_chosen() {
    let project = TestProject::new();
    project.write_config(
        "themes/broken.toml",
        "[styles]\ntext = { background = \"pink\" }\n",
    );
    let mut screen = start_chat(&project, 100, 24);
    let corner = |screen: &ChatScreen| screen.screen().cell(0, 99).unwrap().bgcolor();
    let ember = Color::Rgb(0x1f, 0x16, 0x11);
    screen.send_line("/theme");
    screen.wait_for("● auto");
    // A file with an error is listed with the error, and cannot be chosen.
    screen.wait_for("broken.toml, line 2: styles.text: background: invalid color");
    screen.send_keys("ember");
    // The whole screen, not only its corner, which is drawn first.
    screen.wait_until_gone("● auto");
    screen.wait_for_matching_screen("the theme", |screen| corner(screen) == ember);
    // Esc clears the filter, and then closes the list without a choice.
    screen.send_keys(ESCAPE);
    screen.wait_for("● auto");
    screen.send_keys("\u{1b}[B\u{1b}[B\u{1b}[B\u{1b}[B\u{1b}[B\u{1b}[B");
    screen.wait_for_matching_screen("the theme again", |screen| corner(screen) == ember);
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("╭ Theme");
    screen.wait_for_matching_screen("the theme as before", |screen| {
        corner(screen) == Color::Default
    });
    screen.send_line("/theme");
    screen.wait_for("● auto");
    screen.send_keys("ember");
    screen.wait_for("› ember");
    screen.send_keys(ENTER);
    screen.wait_until_gone("╭ Theme");
    screen.wait_for("theme = \"ember\" under [chat]");
    assert_eq!(corner(&screen), ember);
    // A new tab has it, too.
    screen.send_keys("\u{14}");
    screen.wait_for(" 2 · ACP Agent");
    assert_eq!(corner(&screen), ember);
}

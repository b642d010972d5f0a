use super::*;

fn chosen_option(outcome: &QuestionOutcome) -> Option<&str> {
    match outcome {
        QuestionOutcome::Answer(ChatAnswer::Permission(id)) => id.as_ref().map(|id| id.as_str()),
        _ => None,
    }
}

#[test]
fn edit_is_shown_with_its_diff_and_all_options() {
    let mut diff = Diff::new(
        "/home/me/project/src/main.rs",
        "fn main() {\n    run();\n}\n",
    );
    diff.old_text = Some("fn main() {\n    walk();\n}\n".to_owned());
    let call = ToolCallUpdate::new("c")
        .title("Edit src/main.rs")
        .kind(ToolKind::Edit)
        .content(vec![ToolCallContent::Diff(diff)])
        .locations(vec![ToolCallLocation::new("/etc/passwd")]);
    let always = AlwaysEffect::Remembered {
        kind: ToolKind::Edit,
        subjects: vec![RememberedSubject::Path(
            "/home/me/project/src/main.rs".into(),
        )],
        prefix: None,
    };
    let mut shown = ShownQuestion::new(permission_question(call, all_options(), always));
    let screen = shown.screen();
    assert_eq!(
        screen,
        "\
╭ fix-agent asks for permission ───────────────────────────────────────────────╮
│ fix-agent wants to: Edit src/main.rs (edit)                                  │
│ src/main.rs  +1 -1                                                           │
│ 1 1   fn main() {                                                            │
│ 2   -     walk();                                                            │
│   2 +     run();                                                             │
│ 3 3   }                                                                      │
│ file /etc/passwd                                                             │
│ ──────────────────────────────────────────────────────────────────────────── │
│  1 y  Allow – allow once                                                     │
│  2 a  Always allow – allow in this project, until you revoke it: any edit of │
│       src/main.rs; the agent may apply it to more files                      │
│  3 n  Reject – reject once                                                   │
│  4 x  Never – reject in this project, until you revoke it: any edit of       │
│       src/main.rs; the agent may apply it to more files                      │
╰ ↑↓ enter choose · w reject and explain · esc cancel the turn ────────────────╯
"
    );
    let buf = shown.draw(80, 24).0;
    let theme = Theme::default();
    // A file outside the session's directory is emphasized.
    assert_eq!(
        buf[find_text(&buf, "/etc/passwd")].style().fg,
        theme.warn.fg
    );
    assert_eq!(buf[find_text(&buf, "+     run")].style().fg, theme.added.fg);
    for (key, id) in [('y', "once"), ('n', "no"), ('3', "no")] {
        let outcome = shown.press_key(KeyCode::Char(key));
        assert_eq!(chosen_option(&outcome), Some(id), "{key}");
    }
    // What lasts is only selected.
    for (key, id) in [
        ('a', "always"),
        ('x', "never"),
        ('N', "never"),
        ('2', "always"),
    ] {
        shown.now += SETTLE_WAIT;
        let outcome = shown.press_key(KeyCode::Char(key));
        assert_eq!(chosen_option(&outcome), None, "{key}");
        assert!(shown.screen().contains(" enter confirm "));
        let outcome = shown.press_key(KeyCode::Enter);
        assert_eq!(chosen_option(&outcome), Some(id), "{key}");
    }
    for key in ['5', '0', 'q'] {
        shown.now += SETTLE_WAIT;
        assert!(matches!(
            shown.press_key(KeyCode::Char(key)),
            QuestionOutcome::Early
        ));
    }
    shown.now += SETTLE_WAIT;
    assert!(matches!(shown.press_ctrl('c'), QuestionOutcome::Ignored));
    assert!(matches!(shown.press_ctrl('y'), QuestionOutcome::Ignored));
    assert!(matches!(
        shown.press_key(KeyCode::Esc),
        QuestionOutcome::Ignored
    ));
    assert_eq!(shown.view.id(), 7);
}

#[test]
fn command_is_shown_in_full() {
    let line = format!(
        "echo {}\nrm -rf \u{202e}~\u{200b}; true\r\u{1b}[2K",
        "x".repeat(100)
    );
    let mut shown = ShownQuestion::new(command_question(&line));
    let screen = shown.screen();
    assert!(screen.contains("$ echo xxx"), "{screen}");
    let rows = screen.lines().map(|row| row.trim_matches(['│', ' ']));
    assert!(
        rows.collect::<String>().contains(&"x".repeat(100)),
        "{screen}"
    );
    assert!(
        screen.contains(r"> rm -rf \u{202e}~\u{200b}; true\u{d}\u{1b}[2K"),
        "{screen}"
    );
    assert!(screen.contains("│ in ."), "{screen}");
    assert!(
        screen.contains("2 a  Always allow – allow for as long as the agent remembers it; not"),
        "{screen}"
    );
    let buf = shown.draw(80, 24).0;
    assert_eq!(
        buf[find_text(&buf, r"\u{202e}")].style().fg,
        Theme::default().warn.fg
    );
    // The tool's raw input can be shown.
    assert!(!screen.contains("\"command\":"));
    shown.press_keys("i");
    assert!(shown.draw(80, 60).0.area.height > buf.area.height);
    let raw = buffer_text(&shown.draw(80, 60).0);
    assert!(raw.contains("\"cwd\": \"/home/me/project\""), "{raw}");
}

#[test]
fn effect_of_always_is_described() {
    let call = || {
        ToolCallUpdate::new("c")
            .kind(ToolKind::Execute)
            .raw_input(json!({ "command": ["git", "commit", "-m", "a b"], "cwd": "/tmp" }))
    };
    let shown = |always| {
        let mut shown = ShownQuestion::new(permission_question(call(), all_options(), always));
        shown.screen()
    };
    let line = "git commit -m 'a b'".to_owned();
    let screen = shown(AlwaysEffect::Remembered {
        kind: ToolKind::Execute,
        subjects: vec![RememberedSubject::Command(line)],
        prefix: None,
    });
    assert!(
        screen.contains("$ git commit -m 'a b'\n") || screen.contains("$ git commit -m 'a b' ")
    );
    assert!(screen.contains("in /tmp"), "{screen}");
    assert!(
        screen.contains("Always allow – allow in this project, until you revoke it: exactly ")
            && screen.contains("  this command "),
        "{screen}"
    );
    let by = acp_host::DecisionSource::Default {
        file: "rules.toml".into(),
    };
    let screen = shown(AlwaysEffect::AskEachTime(by));
    assert!(
        screen.contains("allow this time only: the default in rules.toml"),
        "{screen}"
    );
    let screen = shown(AlwaysEffect::OwnOptions);
    assert!(screen.contains("2 a  Always allow  "), "{screen}");
}

#[test]
fn enter_selects_only_after_an_arrow_key() {
    let mut shown = ShownQuestion::new(command_question("make"));
    assert!(matches!(
        shown.press_key(KeyCode::Enter),
        QuestionOutcome::Changed
    ));
    shown.press_key(KeyCode::Down);
    shown.press_key(KeyCode::Down);
    shown.press_key(KeyCode::Down);
    let buf = shown.draw(80, 24).0;
    let at = find_text(&buf, "›3 n  Reject");
    let selected = Theme::default().selected.add_modifier;
    assert!(buf[at].style().add_modifier.contains(selected));
    assert_eq!(chosen_option(&shown.press_key(KeyCode::Enter)), Some("no"));
    shown.press_key(KeyCode::Up);
    shown.press_key(KeyCode::Up);
    shown.press_key(KeyCode::Up);
    assert_eq!(
        chosen_option(&shown.press_key(KeyCode::Enter)),
        Some("never")
    );
}

#[test]
fn fast_typing_does_not_answer_a_question() {
    let now = Instant::now();
    let at = |ms| now + Duration::from_millis(ms);
    let key = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    let mut view = QuestionView::new(open_question(command_question("make")), "a", now);
    assert!(matches!(
        view.handle_key(key('y'), at(0)),
        QuestionOutcome::Early
    ));
    assert!(matches!(
        view.handle_key(key('a'), at(250)),
        QuestionOutcome::Early
    ));
    // The key is still early, because the user has not paused.
    assert!(matches!(
        view.handle_key(key('y'), at(450)),
        QuestionOutcome::Early
    ));
    let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    assert!(matches!(
        view.handle_key(enter, at(700)),
        QuestionOutcome::Early
    ));
    assert!(matches!(
        view.handle_paste("yyy", at(720)),
        QuestionOutcome::Early
    ));
    let mut shown = ShownQuestion {
        view,
        now: at(900),
        theme: Theme::default(),
    };
    assert!(
        shown
            .screen()
            .contains("key ignored because it came too soon")
    );
    // Scrolling and leaving always work.
    let page = KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE);
    assert!(matches!(
        shown.view.handle_key(page, at(910)),
        QuestionOutcome::Changed
    ));
    assert!(matches!(
        shown.press_key(KeyCode::Esc),
        QuestionOutcome::Ignored
    ));
    // After a pause, the question gets the keys.
    assert!(matches!(
        shown.view.handle_key(key('i'), at(1020)),
        QuestionOutcome::Changed
    ));
    assert!(!shown.screen().contains("too soon"));
    assert!(
        shown.screen().contains("\"command\": \"make\""),
        "{}",
        shown.screen()
    );
    assert_eq!(
        chosen_option(&shown.view.handle_key(key('y'), at(1040))),
        Some("once")
    );
    shown.view.on_shown(at(2000));
    assert!(matches!(
        shown.view.handle_key(key('y'), at(2100)),
        QuestionOutcome::Early
    ));
}

#[test]
fn word_typed_into_a_question_answers_nothing() {
    let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    for word in [
        "maybe", "and then", "always", "perhaps", "xyz", "2 or 3", "add",
    ] {
        let mut shown = ShownQuestion::new(command_question("make"));
        shown.screen();
        let mut now = shown.now;
        for (index, c) in word.chars().enumerate() {
            now += Duration::from_millis(120);
            let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
            let outcome = shown.view.handle_key(key, now);
            assert_eq!(chosen_option(&outcome), None, "{word}: {c}");
            // The prompt gets the letters. Only the first one may have selected an option.
            let is_taken = !matches!(outcome, QuestionOutcome::Early);
            assert!(index == 0 || !is_taken, "{word}: {c}");
        }
        // Even much later, Enter has nothing to confirm.
        let outcome = shown.view.handle_key(enter, now + SETTLE_WAIT);
        assert_eq!(chosen_option(&outcome), None, "{word}");
    }
    let mut shown = ShownQuestion::new(command_question("make"));
    shown.press_key(KeyCode::Char('m'));
    let screen = shown.screen();
    assert!(
        screen.contains("this key is no answer; what you type goes to the prompt"),
        "{screen}"
    );
}

#[test]
fn shift_tab_is_not_for_the_question() {
    let mut shown = ShownQuestion::new(command_question("make"));
    let key = KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT);
    shown.screen();
    assert!(matches!(
        shown.view.handle_key(key, shown.now),
        QuestionOutcome::Ignored
    ));
    assert_eq!(chosen_option(&shown.press_key(KeyCode::Enter)), None);
}

#[test]
fn footer_fits_a_narrow_screen() {
    let mut shown = ShownQuestion::new(command_question("make"));
    let footer = |shown: &mut ShownQuestion| {
        let screen = buffer_text(&shown.draw(40, 24).0);
        screen.lines().last().unwrap().to_owned()
    };
    assert_eq!(
        footer(&mut shown),
        "╰ ↑↓ enter · w explain · esc cancel ───╯"
    );
    shown.press_key(KeyCode::Char('m'));
    assert_eq!(
        footer(&mut shown),
        "╰ no answer; it goes to the prompt ────╯"
    );
}

#[test]
fn long_question_scrolls_above_fixed_options() {
    let lines: Vec<String> = (1..=60).map(|n| format!("echo line-{n}")).collect();
    let mut shown = ShownQuestion::new(command_question(&lines.join("\n")));
    let screen = shown.screen();
    assert!(
        screen.contains("line-1\n") || screen.contains("line-1 "),
        "{screen}"
    );
    assert!(screen.contains("more lines: PgDn"), "{screen}");
    assert!(screen.contains("1 y  Allow"), "{screen}");
    assert_eq!(screen.lines().count(), 24);
    let mut seen = screen.clone();
    for _ in 0..10 {
        shown.press_key(KeyCode::PageDown);
        let screen = shown.screen();
        assert!(screen.contains("4 x  Never"), "{screen}");
        seen.push_str(&screen);
    }
    for n in 1..=60 {
        assert!(seen.contains(&format!("line-{n} ")), "{n}");
    }
    assert!(
        shown.screen().contains("lines above: PgUp"),
        "{}",
        shown.screen()
    );
    shown.press_key(KeyCode::Home);
    assert!(shown.screen().contains("echo line-1 "));
    // This also works on a small screen with many options.
    let many = (0..30).map(|n| {
        permission_option(
            &n.to_string(),
            &format!("Option {n}"),
            PermissionOptionKind::AllowOnce,
        )
    });
    let call = ToolCallUpdate::new("c").title("Do it");
    let mut shown = ShownQuestion::new(permission_question(
        call,
        many.collect(),
        AlwaysEffect::LeftToAgent,
    ));
    let screen = buffer_text(&shown.draw(40, 12).0);
    assert!(
        screen.contains("Do it") && screen.contains("more options: ↑↓"),
        "{screen}"
    );
    shown.press_key(KeyCode::Up);
    let screen = buffer_text(&shown.draw(40, 12).0);
    assert!(screen.contains("Option 29"), "{screen}");
    // An answer counts only once all possible answers have been visible.
    assert_eq!(chosen_option(&shown.press_key(KeyCode::Enter)), None);
    let screen = buffer_text(&shown.draw(60, 12).0);
    assert!(screen.contains("read to the end first"), "{screen}");
    shown.press_key(KeyCode::End);
    assert_eq!(chosen_option(&shown.press_key(KeyCode::Enter)), Some("29"));
}

#[test]
fn option_shows_its_kind_regardless_of_its_name() {
    let options = vec![
        permission_option(
            "a",
            "No\u{1b}[2J way\u{202e}",
            PermissionOptionKind::AllowOnce,
        ),
        permission_option("b", "Hm", serde_json::from_value(json!("odd")).unwrap()),
    ];
    let call = ToolCallUpdate::new("c").raw_input(json!({ "url": "https://example.org" }));
    let mut shown = ShownQuestion::new(permission_question(
        call,
        options,
        AlwaysEffect::LeftToAgent,
    ));
    let screen = shown.screen();
    assert!(
        screen.contains(r"1 y  No\u{1b}[2J way\u{202e} – allow once"),
        "{screen}"
    );
    assert!(
        screen.contains("2    Hm – unknown whether this option allows or rejects"),
        "{screen}"
    );
    assert!(screen.contains("url: https://example.org"), "{screen}");
    let call = ToolCallUpdate::new("c");
    let mut shown = ShownQuestion::new(permission_question(
        call,
        Vec::new(),
        AlwaysEffect::LeftToAgent,
    ));
    assert!(shown.screen().contains("The agent offers no options"));
}

#[test]
fn question_too_long_to_show_can_only_be_rejected() {
    let long = "echo\n".repeat(300_000);
    let title = ToolCallUpdate::new("c").title("x".repeat(20_000));
    let mut odd = all_options();
    odd[0].name = "y".repeat(20_000);
    for question in [
        command_question(&long),
        permission_question(title, all_options(), AlwaysEffect::LeftToAgent),
        permission_question(ToolCallUpdate::new("c"), odd, AlwaysEffect::LeftToAgent),
    ] {
        let mut shown = ShownQuestion::new(question);
        shown.press_key(KeyCode::End);
        assert_eq!(chosen_option(&shown.press_key(KeyCode::Char('y'))), None);
        let screen = shown.screen();
        assert!(screen.contains("it can only be rejected"), "{screen}");
        assert_eq!(
            chosen_option(&shown.press_key(KeyCode::Char('n'))),
            Some("no")
        );
    }
}

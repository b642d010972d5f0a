use super::*;

fn url_question(url: &str) -> ShownQuestion {
    ShownQuestion::new(elicitation_question(ElicitationMode::Url {
        elicitation_id: "e".into(),
        url: url.to_owned(),
    }))
}

#[test]
fn full_url_is_shown_and_opened_only_by_its_key() {
    let long = format!(
        "https://login.example.org/oauth?state={}&end=here",
        "s".repeat(150)
    );
    let mut shown = url_question(&long);
    let screen = shown.screen();
    let joined: String = screen
        .lines()
        .map(|line| line.trim_matches(['│', ' ']))
        .collect();
    assert!(joined.contains(&long), "{screen}");
    assert!(
        screen.contains("y  done: tell the agent to continue"),
        "{screen}"
    );
    let buf = shown.draw(80, 24).0;
    let strong = Theme::default().strong.add_modifier;
    assert!(
        buf[find_text(&buf, "login.example")]
            .style()
            .add_modifier
            .contains(strong)
    );
    assert!(
        !buf[find_text(&buf, "/oauth")]
            .style()
            .add_modifier
            .contains(strong)
    );
    assert!(matches!(
        shown.press_key(KeyCode::Enter),
        QuestionOutcome::Changed
    ));
    assert!(matches!(
        shown.press_key(KeyCode::Char('o')),
        QuestionOutcome::OpenAddress(_)
    ));
    shown
        .view
        .on_address_opened(Err("no-browser: not found".to_owned()));
    assert!(
        shown
            .screen()
            .contains("Cannot open the URL: no-browser: not found.")
    );
    let outcome = shown.press_key(KeyCode::Char('y'));
    assert!(
        matches!(
            &outcome,
            QuestionOutcome::Answer(ChatAnswer::Elicitation(ElicitationAction::Accept(_)))
        ),
        "{outcome:?}"
    );
    let outcome = shown.press_key(KeyCode::Char('n'));
    assert!(
        matches!(
            &outcome,
            QuestionOutcome::Answer(ChatAnswer::Elicitation(ElicitationAction::Decline(_)))
        ),
        "{outcome:?}"
    );
}

#[test]
fn misleading_url_gets_a_warning() {
    let screen = url_question("https://аpple.com/login").screen();
    assert!(
        screen.contains("https://xn--pple-43d.com/login"),
        "{screen}"
    );
    assert!(
        screen.contains("letters that can look like others. It reads")
            && screen.contains(" аpple.com. "),
        "{screen}"
    );
    let screen = url_question("https://google.com@evil.example/").screen();
    assert!(screen.contains("The site is evil.example."), "{screen}");
    let screen = url_question("http://example.org/").screen();
    assert!(screen.contains("not encrypted"), "{screen}");
    assert!(
        !url_question("http://127.0.0.1:8080/callback")
            .screen()
            .contains("not encrypted")
    );
    let mut file = url_question("file:///etc/passwd");
    let screen = file.screen();
    assert!(
        screen.contains("Not a web page: `file`") && !screen.contains("o  open"),
        "{screen}"
    );
    assert!(matches!(
        file.press_key(KeyCode::Char('o')),
        QuestionOutcome::Changed
    ));
    let screen = url_question("not an\u{202e} address").screen();
    assert!(screen.contains(r"not an\u{202e} address"), "{screen}");
    assert!(screen.contains("Invalid URL."), "{screen}");
    let screen = url_question("https:\\\\example.org\\x").screen();
    assert!(
        screen.contains("https://example.org/x") && screen.contains("As written by the agent:"),
        "{screen}"
    );
}

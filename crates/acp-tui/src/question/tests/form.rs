use super::*;

fn accepted(outcome: QuestionOutcome) -> serde_json::Value {
    match outcome {
        QuestionOutcome::Answer(ChatAnswer::Elicitation(ElicitationAction::Accept(accept))) => {
            serde_json::to_value(accept).unwrap()["content"].take()
        }
        other => panic!("{other:?}"),
    }
}

fn person() -> ChatQuestion {
    form(
        r#"{
        "type": "object", "title": "About you", "required": ["name", "sure"],
        "properties": {
            "name": { "type": "string", "title": "Full name", "description": "As in your passport", "minLength": 2 },
            "age": { "type": "integer", "minimum": 18, "maximum": 99, "default": 42 },
            "key": { "type": "string", "format": "password" },
            "sure": { "type": "boolean", "title": "Are you sure?" },
            "color": { "type": "string", "oneOf": [
                { "const": "r", "title": "Red" }, { "const": "g", "title": "Green", "description": "as grass" }] },
            "tools": { "type": "array", "items": { "type": "string", "enum": ["hammer", "saw"] }, "default": ["saw"] }
        }
    }"#,
    )
}

#[test]
fn a_form_is_filled_in() {
    let mut shown = ShownQuestion::new(person());
    let screen = shown.screen();
    assert_eq!(
        screen,
        "\
╭ fix-agent has a question ────────────────────────────────────────────────────╮
│ fix-agent asks: Who are you?                                                 │
│ About you                                                                    │
│ › Full name  required · 2 or more characters                                 │
│   As in your passport                                                        │
│                                                                              │
│   age  18 to 99                                                              │
│   42                                                                         │
│   key  password                                                              │
│                                                                              │
│   [?] Are you sure?  required · no answer                                    │
│   color                                                                      │
│   ( ) Red                                                                    │
│   ( ) Green – as grass                                                       │
│   tools                                                                      │
│   [ ] hammer                                                                 │
│   [x] saw                                                                    │
│ ──────────────────────────────────────────────────────────────────────────── │
│  [ Submit ]   [ Decline ]   [ Cancel ]                                       │
╰ tab next · ctrl-s submit · esc cancel the turn ──────────────────────────────╯
"
    );
    // A missing value is shown, and its field gets the focus.
    assert!(matches!(shown.control('s'), QuestionOutcome::Changed));
    let screen = shown.screen();
    assert_eq!(screen.matches("✗ Required.").count(), 2, "{screen}");
    shown.keys("A");
    assert!(
        shown
            .screen()
            .contains("✗ Too short: the minimum length is 2.")
    );
    shown.keys("da");
    assert_eq!(shown.draw(80, 24).1, Some(Position::new(7, 5)));
    shown.key(KeyCode::Tab);
    shown.key(KeyCode::Backspace);
    shown.keys("x");
    assert!(shown.screen().contains("✗ Enter a whole number."));
    shown.control('u');
    shown.keys("17");
    assert!(shown.screen().contains("✗ Must be 18 to 99."));
    shown.control('u');
    shown.keys("18");
    shown.key(KeyCode::Enter);
    shown.view.handle_paste("s3same", shown.now);
    let screen = shown.screen();
    assert!(
        screen.contains("••••••") && !screen.contains("s3same"),
        "{screen}"
    );
    shown.key(KeyCode::Down);
    shown.keys(" ");
    assert!(shown.screen().contains("[x] Are you sure?"));
    shown.key(KeyCode::Down);
    shown.key(KeyCode::Down);
    shown.key(KeyCode::Enter);
    assert!(shown.screen().contains("(•) Green"));
    shown.keys(" ");
    // From the last choice, the focus moves on to the buttons.
    shown.key(KeyCode::Down);
    shown.key(KeyCode::Down);
    let buf = shown.draw(80, 24).0;
    let at = find(&buf, "›[ Submit ]‹");
    let selected = Theme::default().selected.add_modifier;
    assert!(buf[at].style().add_modifier.contains(selected));
    let content = accepted(shown.key(KeyCode::Enter));
    assert_eq!(
        content,
        json!({ "age": 18, "color": "g", "key": "s3same", "name": "Ada", "sure": true, "tools": ["hammer", "saw"] })
    );
}

#[test]
fn a_form_can_be_declined_and_cancelled() {
    let mut shown = ShownQuestion::new(person());
    shown.key(KeyCode::BackTab);
    let outcome = shown.key(KeyCode::Enter);
    let is = |outcome: &QuestionOutcome, name: &str| match outcome {
        QuestionOutcome::Answer(ChatAnswer::Elicitation(action)) => {
            serde_json::to_value(action).unwrap()["action"] == name
        }
        _ => false,
    };
    assert!(is(&outcome, "cancel"), "{outcome:?}");
    shown.key(KeyCode::Left);
    let outcome = shown.key(KeyCode::Char(' '));
    assert!(is(&outcome, "decline"), "{outcome:?}");
    assert!(matches!(shown.key(KeyCode::Esc), QuestionOutcome::Ignored));
    // A form that cannot be shown cannot be submitted.
    let mut shown = ShownQuestion::new(form(
        r#"{ "type": "object", "required": ["x"], "properties": {} }"#,
    ));
    let screen = shown.screen();
    assert!(
        screen.contains("Cannot show this form: the form has no schema for the required field x."),
        "{screen}"
    );
    assert!(!screen.contains("Submit"));
    assert!(matches!(shown.control('s'), QuestionOutcome::Changed));
    assert!(is(&shown.key(KeyCode::Enter), "decline"));
}

#[test]
fn a_long_list_is_found_in_by_typing_and_a_long_form_scrolls() {
    let names: Vec<String> = (0..40).map(|n| format!("model-{n}")).collect();
    let model = json!({ "type": "string", "enum": names, "default": "model-30" });
    let mut properties = format!(r#""model": {model}"#);
    for n in 0..30 {
        properties.push_str(&format!(r#", "f{n}": {{ "type": "string" }}"#));
    }
    let schema = format!(r#"{{ "type": "object", "properties": {{ {properties} }} }}"#);
    let mut shown = ShownQuestion::new(form(&schema));
    let screen = shown.screen();
    assert!(
        screen.contains("(•) model-30") && screen.contains("⋯ 32 more"),
        "{screen}"
    );
    shown.keys("37");
    let buf = shown.draw(80, 24).0;
    assert!(text(&buf).contains("( ) model-37"));
    let (x, y) = find(&buf, "( ) model-37");
    let matched = Theme::default().matched.add_modifier;
    assert!(buf[(x + 10, y)].style().add_modifier.contains(matched));
    assert!(!buf[(x + 5, y)].style().add_modifier.contains(matched));
    shown.key(KeyCode::Enter);
    for _ in 0..29 {
        shown.key(KeyCode::Tab);
    }
    shown.keys("last");
    let (buf, cursor) = shown.draw(80, 24);
    let screen = text(&buf);
    assert!(
        screen.contains("› f29") && screen.contains("lines above: PgUp"),
        "{screen}"
    );
    assert!(screen.contains("[ Submit ]"));
    let (x, y) = find(&buf, "last");
    assert_eq!(cursor, Some(Position::new(x + 4, y)));
    assert_eq!(
        accepted(shown.control('s')),
        json!({ "model": "model-37", "f29": "last" })
    );
}

#[test]
fn a_value_that_is_typed_is_not_in_what_is_logged() {
    let mut shown = ShownQuestion::new(form(
        r#"{ "type": "object", "properties": { "key": { "type": "string", "format": "password" } } }"#,
    ));
    shown.keys("hush");
    let outcome = shown.control('s');
    assert!(!format!("{outcome:?}").contains("hush"));
    assert_eq!(accepted(outcome), json!({ "key": "hush" }));
}

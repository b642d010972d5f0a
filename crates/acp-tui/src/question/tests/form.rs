use super::*;

fn accepted_content(outcome: QuestionOutcome) -> serde_json::Value {
    match outcome {
        QuestionOutcome::Answer(ChatAnswer::Elicitation(ElicitationAction::Accept(accept))) => {
            serde_json::to_value(accept).unwrap()["content"].take()
        }
        other => panic!("{other:?}"),
    }
}

fn person_form() -> ChatQuestion {
    form_question(
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
fn form_is_filled_in() {
    let mut shown = ShownQuestion::new(person_form());
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
    assert!(matches!(shown.press_ctrl('s'), QuestionOutcome::Changed));
    let screen = shown.screen();
    assert_eq!(screen.matches("✗ Required.").count(), 2, "{screen}");
    shown.press_keys("A");
    assert!(
        shown
            .screen()
            .contains("✗ Too short: the minimum length is 2.")
    );
    shown.press_keys("da");
    assert_eq!(shown.draw(80, 24).1, Some(Position::new(7, 5)));
    shown.press_key(KeyCode::Tab);
    shown.press_key(KeyCode::Backspace);
    shown.press_keys("x");
    assert!(shown.screen().contains("✗ Enter a whole number."));
    shown.press_ctrl('u');
    shown.press_keys("17");
    assert!(shown.screen().contains("✗ Must be 18 to 99."));
    shown.press_ctrl('u');
    shown.press_keys("18");
    shown.press_key(KeyCode::Enter);
    shown.view.handle_paste("s3same", shown.now);
    let screen = shown.screen();
    assert!(
        screen.contains("••••••") && !screen.contains("s3same"),
        "{screen}"
    );
    shown.press_key(KeyCode::Down);
    shown.press_keys(" ");
    assert!(shown.screen().contains("[x] Are you sure?"));
    shown.press_key(KeyCode::Down);
    shown.press_key(KeyCode::Down);
    shown.press_key(KeyCode::Enter);
    assert!(shown.screen().contains("(•) Green"));
    shown.press_keys(" ");
    // From the last choice, the focus moves on to the buttons.
    shown.press_key(KeyCode::Down);
    shown.press_key(KeyCode::Down);
    let buf = shown.draw(80, 24).0;
    let at = find_text(&buf, "›[ Submit ]‹");
    let selected = Theme::default().selected.add_modifier;
    assert!(buf[at].style().add_modifier.contains(selected));
    let content = accepted_content(shown.press_key(KeyCode::Enter));
    assert_eq!(
        content,
        json!({ "age": 18, "color": "g", "key": "s3same", "name": "Ada", "sure": true, "tools": ["hammer", "saw"] })
    );
}

#[test]
fn form_can_be_declined_and_cancelled() {
    let mut shown = ShownQuestion::new(person_form());
    shown.press_key(KeyCode::BackTab);
    let outcome = shown.press_key(KeyCode::Enter);
    let is = |outcome: &QuestionOutcome, name: &str| match outcome {
        QuestionOutcome::Answer(ChatAnswer::Elicitation(action)) => {
            serde_json::to_value(action).unwrap()["action"] == name
        }
        _ => false,
    };
    assert!(is(&outcome, "cancel"), "{outcome:?}");
    shown.press_key(KeyCode::Left);
    let outcome = shown.press_key(KeyCode::Char(' '));
    assert!(is(&outcome, "decline"), "{outcome:?}");
    assert!(matches!(
        shown.press_key(KeyCode::Esc),
        QuestionOutcome::Ignored
    ));
    // A form that cannot be shown cannot be submitted.
    let mut shown = ShownQuestion::new(form_question(
        r#"{ "type": "object", "required": ["x"], "properties": {} }"#,
    ));
    let screen = shown.screen();
    assert!(
        screen.contains("Cannot show this form: the form has no schema for the required field x."),
        "{screen}"
    );
    assert!(!screen.contains("Submit"));
    assert!(matches!(shown.press_ctrl('s'), QuestionOutcome::Changed));
    assert!(is(&shown.press_key(KeyCode::Enter), "decline"));
}

#[test]
fn long_list_is_filtered_by_typing_and_long_form_scrolls() {
    let names: Vec<String> = (0..40).map(|n| format!("model-{n}")).collect();
    let model = json!({ "type": "string", "enum": names, "default": "model-30" });
    let mut properties = format!(r#""model": {model}"#);
    for n in 0..30 {
        properties.push_str(&format!(r#", "f{n}": {{ "type": "string" }}"#));
    }
    let schema = format!(r#"{{ "type": "object", "properties": {{ {properties} }} }}"#);
    let mut shown = ShownQuestion::new(form_question(&schema));
    let screen = shown.screen();
    assert!(
        screen.contains("(•) model-30") && screen.contains("⋯ 32 more"),
        "{screen}"
    );
    shown.press_keys("37");
    let buf = shown.draw(80, 24).0;
    assert!(buffer_text(&buf).contains("( ) model-37"));
    let (x, y) = find_text(&buf, "( ) model-37");
    let matched = Theme::default().matched.add_modifier;
    assert!(buf[(x + 10, y)].style().add_modifier.contains(matched));
    assert!(!buf[(x + 5, y)].style().add_modifier.contains(matched));
    shown.press_key(KeyCode::Enter);
    for _ in 0..29 {
        shown.press_key(KeyCode::Tab);
    }
    shown.press_keys("last");
    let (buf, cursor) = shown.draw(80, 24);
    let screen = buffer_text(&buf);
    assert!(
        screen.contains("› f29") && screen.contains("lines above: PgUp"),
        "{screen}"
    );
    assert!(screen.contains("[ Submit ]"));
    let (x, y) = find_text(&buf, "last");
    assert_eq!(cursor, Some(Position::new(x + 4, y)));
    assert_eq!(
        accepted_content(shown.press_ctrl('s')),
        json!({ "model": "model-37", "f29": "last" })
    );
}

#[test]
fn typed_values_do_not_appear_in_debug_output() {
    let mut shown = ShownQuestion::new(form_question(
        r#"{ "type": "object", "properties": { "key": { "type": "string", "format": "password" } } }"#,
    ));
    shown.press_keys("hush");
    let outcome = shown.press_ctrl('s');
    assert!(!format!("{outcome:?}").contains("hush"));
    assert_eq!(accepted_content(outcome), json!({ "key": "hush" }));
}

use super::*;
use std::path::Path;

use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp::v1::{
    ContentBlock, CreateElicitationRequest, Diff, ElicitationScope, PermissionOption,
    PermissionOptionKind, ToolCallContent, ToolCallLocation, ToolCallUpdate, ToolKind,
};
use acp_host::{Always, Subject};
use proptest::prelude::*;
use ratatui::buffer::CellWidth;
use serde_json::json;

use crate::theme::{Background, Colors};

const LATER: Duration = Duration::from_secs(5);

fn asked(question: Question) -> Arc<Asked> {
    Arc::new(Asked {
        id: 7,
        session: None,
        question,
    })
}

/// A question that has been there for a while.
struct Shown {
    view: QuestionView,
    now: Instant,
    theme: Theme,
}

impl Shown {
    fn new(question: Question) -> Self {
        let now = Instant::now();
        Self {
            view: QuestionView::new(asked(question), "fix-agent", now),
            now: now + LATER,
            theme: Theme::default(),
        }
    }

    fn key(&mut self, code: KeyCode) -> Outcome {
        self.view
            .key(KeyEvent::new(code, KeyModifiers::NONE), self.now)
    }

    fn control(&mut self, c: char) -> Outcome {
        let key = KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        self.view.key(key, self.now)
    }

    fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            let outcome = self.key(KeyCode::Char(c));
            assert!(matches!(outcome, Outcome::Changed), "{c}: {outcome:?}");
        }
    }

    fn draw(&mut self, width: u16, most: u16) -> (Buffer, Option<Position>) {
        let theme = self.theme.clone();
        let look = Look {
            theme: &theme,
            cwd: Path::new("/home/me/project"),
            frame: 0,
        };
        let height = self.view.height(width, most, &look);
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        let cursor = self.view.draw(area, &mut buf, &look);
        (buf, cursor)
    }

    /// What a person sees in 80 columns and at most 24 rows.
    fn screen(&mut self) -> String {
        text(&self.draw(80, 24).0)
    }
}

/// A buffer as text, without what follows on each row.
fn text(buf: &Buffer) -> String {
    let mut text = String::new();
    for y in buf.area.top()..buf.area.bottom() {
        let mut row = String::new();
        let mut skip = 0;
        for x in buf.area.left()..buf.area.right() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buf[(x, y)].symbol();
            skip = symbol.cell_width().saturating_sub(1);
            row.push_str(symbol);
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Where a text is seen that is on one row.
fn find(buf: &Buffer, what: &str) -> (u16, u16) {
    let rows = text(buf);
    for (y, row) in rows.lines().enumerate() {
        if let Some(at) = row.find(what) {
            let x: u16 = row[..at].cell_width();
            return (x, u16::try_from(y).unwrap());
        }
    }
    panic!("{what} is not in\n{rows}")
}

fn option(id: &str, name: &str, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption::new(id, name, kind)
}

fn options() -> Vec<PermissionOption> {
    vec![
        option("once", "Allow", PermissionOptionKind::AllowOnce),
        option("always", "Always allow", PermissionOptionKind::AllowAlways),
        option("no", "Reject", PermissionOptionKind::RejectOnce),
        option("never", "Never", PermissionOptionKind::RejectAlways),
    ]
}

fn permission(call: ToolCallUpdate, options: Vec<PermissionOption>, always: Always) -> Question {
    let request = PermissionRequest::new("s", &call, options, ThreadHandle::new());
    Question::Permission(Box::new(request), always)
}

fn command(line: &str) -> Question {
    let call = ToolCallUpdate::new("c")
        .title("Run the tests")
        .kind(ToolKind::Execute)
        .raw_input(json!({ "command": line, "cwd": "/home/me/project" }));
    permission(call, options(), Always::ByAgent)
}

fn chosen(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::Answer(Answer::Permission(id)) => id.as_ref().map(|id| id.as_str()),
        _ => None,
    }
}

#[test]
fn an_edit_is_shown_with_its_changes_and_all_that_can_be_answered() {
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
    let always = Always::Remembered {
        kind: ToolKind::Edit,
        subjects: vec![Subject::Path("/home/me/project/src/main.rs".into())],
    };
    let mut shown = Shown::new(permission(call, options(), always));
    let screen = shown.screen();
    assert_eq!(
        screen,
        "\
╭ fix-agent asks for permission ───────────────────────────────────────────────╮
│ fix-agent wants to: Edit src/main.rs (edit)                                  │
│ modify src/main.rs                                                           │
│   fn main() {                                                                │
│ -     walk();                                                                │
│ +     run();                                                                 │
│   }                                                                          │
│ file /etc/passwd                                                             │
│ ──────────────────────────────────────────────────────────────────────────── │
│  1 y  Allow – yes, this time                                                 │
│  2 a  Always allow – yes, in this project until you revoke it: any edit of   │
│       src/main.rs                                                            │
│  3 n  Reject – no, this time                                                 │
│  4 x  Never – no, in this project until you revoke it: any edit of           │
│       src/main.rs                                                            │
╰ ↑↓ enter choose · esc cancel the turn ───────────────────────────────────────╯
"
    );
    let buf = shown.draw(80, 24).0;
    let theme = Theme::default();
    // A file outside of the session's directory stands out.
    assert_eq!(buf[find(&buf, "/etc/passwd")].style().fg, theme.warn.fg);
    assert_eq!(buf[find(&buf, "+     run")].style().fg, theme.added.fg);
    for (key, id) in [
        ('y', "once"),
        ('a', "always"),
        ('n', "no"),
        ('x', "never"),
        ('N', "never"),
        ('3', "no"),
    ] {
        let outcome = shown.key(KeyCode::Char(key));
        assert_eq!(chosen(&outcome), Some(id), "{key}");
    }
    for key in ['5', '0', 'q'] {
        assert!(matches!(shown.key(KeyCode::Char(key)), Outcome::Changed));
    }
    assert!(matches!(shown.control('c'), Outcome::Ignored));
    assert!(matches!(shown.control('y'), Outcome::Ignored));
    assert!(matches!(shown.key(KeyCode::Esc), Outcome::Ignored));
    assert_eq!(shown.view.id(), 7);
}

#[test]
fn a_command_is_shown_to_the_last_character() {
    let line = format!(
        "echo {}\nrm -rf \u{202e}~\u{200b}; true\r\u{1b}[2K",
        "x".repeat(100)
    );
    let mut shown = Shown::new(command(&line));
    let screen = shown.screen();
    assert!(screen.contains("$ echo xxx"), "{screen}");
    let rows = screen.lines().map(|row| row.trim_matches(['│', ' ']));
    assert!(
        rows.collect::<String>().contains(&"x".repeat(100)),
        "{screen}"
    );
    assert!(
        screen.contains(r"> rm -rf \u{202e}~\u{200b}; true\r\u{1b}[2K"),
        "{screen}"
    );
    assert!(screen.contains("│ in ."), "{screen}");
    assert!(
        screen
            .contains("2 a  Always allow – yes, for as long and as much as the agent remembers it"),
        "{screen}"
    );
    let buf = shown.draw(80, 24).0;
    assert_eq!(
        buf[find(&buf, r"\u{202e}")].style().fg,
        Theme::default().warn.fg
    );
    // What the tool gets can be looked at.
    assert!(!screen.contains("\"command\":"));
    shown.keys("i");
    assert!(shown.draw(80, 60).0.area.height > buf.area.height);
    let raw = text(&shown.draw(80, 60).0);
    assert!(raw.contains("\"cwd\": \"/home/me/project\""), "{raw}");
}

#[test]
fn what_always_means_is_said_as_it_is() {
    let call = || {
        ToolCallUpdate::new("c")
            .kind(ToolKind::Execute)
            .raw_input(json!({ "command": ["git", "commit", "-m", "a b"], "cwd": "/tmp" }))
    };
    let shown = |always| {
        let mut shown = Shown::new(permission(call(), options(), always));
        shown.screen()
    };
    let line = "git commit -m 'a b'".to_owned();
    let screen = shown(Always::Remembered {
        kind: ToolKind::Execute,
        subjects: vec![Subject::Command(line)],
    });
    assert!(
        screen.contains("$ git commit -m 'a b'\n") || screen.contains("$ git commit -m 'a b' ")
    );
    assert!(screen.contains("in /tmp"), "{screen}");
    assert!(
        screen.contains("Always allow – yes, in this project until you revoke it: exactly this"),
        "{screen}"
    );
    let by = acp_host::By::Default {
        file: "rules.toml".into(),
    };
    let screen = shown(Always::EachTime(by));
    assert!(
        screen.contains("but you are asked again each time"),
        "{screen}"
    );
    let screen = shown(Always::AsNamed);
    assert!(screen.contains("2 a  Always allow  "), "{screen}");
}

#[test]
fn enter_takes_only_what_the_arrows_have_gone_to() {
    let mut shown = Shown::new(command("make"));
    assert!(matches!(shown.key(KeyCode::Enter), Outcome::Changed));
    shown.key(KeyCode::Down);
    shown.key(KeyCode::Down);
    shown.key(KeyCode::Down);
    let buf = shown.draw(80, 24).0;
    let at = find(&buf, "›3 n  Reject");
    let selected = Theme::default().selected.add_modifier;
    assert!(buf[at].style().add_modifier.contains(selected));
    assert_eq!(chosen(&shown.key(KeyCode::Enter)), Some("no"));
    shown.key(KeyCode::Up);
    shown.key(KeyCode::Up);
    shown.key(KeyCode::Up);
    assert_eq!(chosen(&shown.key(KeyCode::Enter)), Some("never"));
}

#[test]
fn what_is_typed_on_answers_nothing() {
    let now = Instant::now();
    let at = |ms| now + Duration::from_millis(ms);
    let key = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
    let mut view = QuestionView::new(asked(command("make")), "a", now);
    assert!(matches!(view.key(key('y'), at(0)), Outcome::Early));
    assert!(matches!(view.key(key('a'), at(250)), Outcome::Early));
    // Not yet: they are still typing.
    assert!(matches!(view.key(key('y'), at(450)), Outcome::Early));
    let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    assert!(matches!(view.key(enter, at(700)), Outcome::Early));
    assert!(matches!(view.paste("yyy", at(720)), Outcome::Early));
    let mut shown = Shown {
        view,
        now: at(900),
        theme: Theme::default(),
    };
    assert!(shown.screen().contains("that key came too early to count"));
    // Scrolling and leaving are possible always.
    let page = KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE);
    assert!(matches!(shown.view.key(page, at(910)), Outcome::Changed));
    assert!(matches!(shown.key(KeyCode::Esc), Outcome::Ignored));
    // After a pause it has the keyboard, and from then on each key counts.
    assert!(matches!(
        shown.view.key(key('q'), at(1020)),
        Outcome::Changed
    ));
    assert!(!shown.screen().contains("too early"));
    assert_eq!(chosen(&shown.view.key(key('y'), at(1040))), Some("once"));
    shown.view.appeared(at(2000));
    assert!(matches!(shown.view.key(key('y'), at(2100)), Outcome::Early));
}

#[test]
fn what_is_long_scrolls_and_the_options_stay() {
    let lines: Vec<String> = (1..=60).map(|n| format!("echo line-{n}")).collect();
    let mut shown = Shown::new(command(&lines.join("\n")));
    let screen = shown.screen();
    assert!(
        screen.contains("line-1\n") || screen.contains("line-1 "),
        "{screen}"
    );
    assert!(screen.contains("more below: PgDn"), "{screen}");
    assert!(screen.contains("1 y  Allow"), "{screen}");
    assert_eq!(screen.lines().count(), 24);
    let mut seen = screen.clone();
    for _ in 0..10 {
        shown.key(KeyCode::PageDown);
        let screen = shown.screen();
        assert!(screen.contains("4 x  Never"), "{screen}");
        seen.push_str(&screen);
    }
    for n in 1..=60 {
        assert!(seen.contains(&format!("line-{n} ")), "{n}");
    }
    assert!(
        shown.screen().contains("more above: PgUp"),
        "{}",
        shown.screen()
    );
    shown.key(KeyCode::Home);
    assert!(shown.screen().contains("echo line-1 "));
    // Also in a low terminal, with many options.
    let many = (0..30).map(|n| {
        option(
            &n.to_string(),
            &format!("Option {n}"),
            PermissionOptionKind::AllowOnce,
        )
    });
    let call = ToolCallUpdate::new("c").title("Do it");
    let mut shown = Shown::new(permission(call, many.collect(), Always::ByAgent));
    let screen = text(&shown.draw(40, 12).0);
    assert!(
        screen.contains("Do it") && screen.contains("other options: ↑↓"),
        "{screen}"
    );
    shown.key(KeyCode::Up);
    let screen = text(&shown.draw(40, 12).0);
    assert!(screen.contains("Option 29"), "{screen}");
    assert_eq!(chosen(&shown.key(KeyCode::Enter)), Some("29"));
}

#[test]
fn an_option_says_what_it_is_whatever_it_is_called() {
    let options = vec![
        option(
            "a",
            "No\u{1b}[2J way\u{202e}",
            PermissionOptionKind::AllowOnce,
        ),
        option("b", "Hm", serde_json::from_value(json!("odd")).unwrap()),
    ];
    let call = ToolCallUpdate::new("c").raw_input(json!({ "url": "https://example.org" }));
    let mut shown = Shown::new(permission(call, options, Always::ByAgent));
    let screen = shown.screen();
    assert!(screen.contains("1 y  No way – yes, this time"), "{screen}");
    assert!(
        screen.contains("2    Hm – the agent does not say whether this is a yes"),
        "{screen}"
    );
    // Where nothing else says what it is about, the input does.
    assert!(
        screen.contains("\"url\": \"https://example.org\""),
        "{screen}"
    );
    let call = ToolCallUpdate::new("c");
    let mut shown = Shown::new(permission(call, Vec::new(), Always::ByAgent));
    assert!(
        shown
            .screen()
            .contains("The agent offers nothing to answer")
    );
}

/// The fields are in the order in which they are written.
fn form(schema: &str) -> Question {
    let schema = serde_json::from_str(schema).unwrap();
    elicit(ElicitationMode::Form {
        requested_schema: schema,
    })
}

fn elicit(mode: ElicitationMode) -> Question {
    let scope = ElicitationScope::Session {
        session_id: "s".into(),
        tool_call_id: None,
    };
    let request = CreateElicitationRequest::new("Who are you?", mode, scope);
    Question::Elicitation(Box::new(request))
}

fn accepted(outcome: Outcome) -> serde_json::Value {
    match outcome {
        Outcome::Answer(Answer::Elicitation(ElicitationAction::Accept(accept))) => {
            serde_json::to_value(accept).unwrap()["content"].take()
        }
        other => panic!("{other:?}"),
    }
}

fn person() -> Question {
    form(
        r#"{
        "type": "object", "title": "About you", "required": ["name", "sure"],
        "properties": {
            "name": { "type": "string", "title": "Full name", "description": "As in your passport", "minLength": 2 },
            "age": { "type": "integer", "minimum": 18, "maximum": 99, "default": 42 },
            "key": { "type": "string", "format": "password" },
            "sure": { "type": "boolean", "title": "Are you sure?" },
            "colour": { "type": "string", "oneOf": [
                { "const": "r", "title": "Red" }, { "const": "g", "title": "Green", "description": "as grass" }] },
            "tools": { "type": "array", "items": { "type": "string", "enum": ["hammer", "saw"] }, "default": ["saw"] }
        }
    }"#,
    )
}

#[test]
fn a_form_is_filled_in() {
    let mut shown = Shown::new(person());
    let screen = shown.screen();
    assert_eq!(
        screen,
        "\
╭ fix-agent asks you ──────────────────────────────────────────────────────────╮
│ fix-agent asks: Who are you?                                                 │
│ About you                                                                    │
│ › Full name  required · 2 or more characters                                 │
│   As in your passport                                                        │
│                                                                              │
│   age  18 to 99                                                              │
│   42                                                                         │
│   key  password                                                              │
│                                                                              │
│   [?] Are you sure?  required · not answered                                 │
│   colour                                                                     │
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
    // What is missing is said, and gone to.
    assert!(matches!(shown.control('s'), Outcome::Changed));
    let screen = shown.screen();
    assert_eq!(screen.matches("✗ This is required.").count(), 2, "{screen}");
    shown.keys("A");
    assert!(
        shown
            .screen()
            .contains("✗ That is too short: 2 characters at least.")
    );
    shown.keys("da");
    assert_eq!(shown.draw(80, 24).1, Some(Position::new(7, 5)));
    shown.key(KeyCode::Tab);
    shown.key(KeyCode::Backspace);
    shown.keys("x");
    assert!(shown.screen().contains("✗ That is no whole number."));
    shown.control('u');
    shown.keys("17");
    assert!(shown.screen().contains("✗ It must be 18 to 99."));
    shown.control('u');
    shown.keys("18");
    shown.key(KeyCode::Enter);
    shown.view.paste("s3same", shown.now);
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
    // From the last choice one goes on to the buttons.
    shown.key(KeyCode::Down);
    shown.key(KeyCode::Down);
    let buf = shown.draw(80, 24).0;
    let at = find(&buf, "›[ Submit ]‹");
    let selected = Theme::default().selected.add_modifier;
    assert!(buf[at].style().add_modifier.contains(selected));
    let content = accepted(shown.key(KeyCode::Enter));
    assert_eq!(
        content,
        json!({ "age": 18, "colour": "g", "key": "s3same", "name": "Ada", "sure": true, "tools": ["hammer", "saw"] })
    );
}

#[test]
fn a_form_can_be_declined_and_cancelled() {
    let mut shown = Shown::new(person());
    shown.key(KeyCode::BackTab);
    let outcome = shown.key(KeyCode::Enter);
    let is = |outcome: &Outcome, name: &str| match outcome {
        Outcome::Answer(Answer::Elicitation(action)) => {
            serde_json::to_value(action).unwrap()["action"] == name
        }
        _ => false,
    };
    assert!(is(&outcome, "cancel"), "{outcome:?}");
    shown.key(KeyCode::Left);
    let outcome = shown.key(KeyCode::Char(' '));
    assert!(is(&outcome, "decline"), "{outcome:?}");
    assert!(matches!(shown.key(KeyCode::Esc), Outcome::Ignored));
    // What cannot be shown cannot be submitted.
    let mut shown = Shown::new(form(
        r#"{ "type": "object", "required": ["x"], "properties": {} }"#,
    ));
    let screen = shown.screen();
    assert!(
        screen.contains("cannot be filled in: the field x is required"),
        "{screen}"
    );
    assert!(!screen.contains("Submit"));
    assert!(matches!(shown.control('s'), Outcome::Changed));
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
    let mut shown = Shown::new(form(&schema));
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
        screen.contains("› f29") && screen.contains("more above"),
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

fn address(url: &str) -> Shown {
    Shown::new(elicit(ElicitationMode::Url {
        elicitation_id: "e".into(),
        url: url.to_owned(),
    }))
}

#[test]
fn an_address_is_shown_whole_and_opened_only_by_its_key() {
    let long = format!(
        "https://login.example.org/oauth?state={}&end=here",
        "s".repeat(150)
    );
    let mut shown = address(&long);
    let screen = shown.screen();
    let joined: String = screen
        .lines()
        .map(|line| line.trim_matches(['│', ' ']))
        .collect();
    assert!(joined.contains(&long), "{screen}");
    assert!(screen.contains("y  tell the agent to go on"), "{screen}");
    let buf = shown.draw(80, 24).0;
    let strong = Theme::default().strong.add_modifier;
    assert!(
        buf[find(&buf, "login.example")]
            .style()
            .add_modifier
            .contains(strong)
    );
    assert!(
        !buf[find(&buf, "/oauth")]
            .style()
            .add_modifier
            .contains(strong)
    );
    assert!(matches!(shown.key(KeyCode::Enter), Outcome::Changed));
    assert!(matches!(shown.key(KeyCode::Char('o')), Outcome::Open(_)));
    shown.view.opened(Err("no-browser: not found".to_owned()));
    assert!(
        shown
            .screen()
            .contains("It could not be opened: no-browser: not found.")
    );
    let outcome = shown.key(KeyCode::Char('y'));
    assert!(
        matches!(
            &outcome,
            Outcome::Answer(Answer::Elicitation(ElicitationAction::Accept(_)))
        ),
        "{outcome:?}"
    );
    let outcome = shown.key(KeyCode::Char('n'));
    assert!(
        matches!(
            &outcome,
            Outcome::Answer(Answer::Elicitation(ElicitationAction::Decline(_)))
        ),
        "{outcome:?}"
    );
}

#[test]
fn an_address_that_misleads_is_warned_of() {
    let screen = address("https://аpple.com/login").screen();
    assert!(
        screen.contains("https://xn--pple-43d.com/login"),
        "{screen}"
    );
    assert!(screen.contains("read as аpple.com"), "{screen}");
    let screen = address("https://google.com@evil.example/").screen();
    assert!(screen.contains("The site is evil.example."), "{screen}");
    let screen = address("http://example.org/").screen();
    assert!(screen.contains("not encrypted"), "{screen}");
    assert!(
        !address("http://127.0.0.1:8080/callback")
            .screen()
            .contains("not encrypted")
    );
    let mut file = address("file:///etc/passwd");
    let screen = file.screen();
    assert!(
        screen.contains("no web page") && !screen.contains("o  open"),
        "{screen}"
    );
    assert!(matches!(file.key(KeyCode::Char('o')), Outcome::Changed));
    let screen = address("not an\u{202e} address").screen();
    assert!(screen.contains(r"not an\u{202e} address"), "{screen}");
    assert!(
        screen.contains("no address that a browser understands"),
        "{screen}"
    );
    let screen = address("https:\\\\example.org\\x").screen();
    assert!(
        screen.contains("https://example.org/x") && screen.contains("wrote it so"),
        "{screen}"
    );
}

#[test]
fn without_colours_what_is_chosen_is_still_seen() {
    for (background, colors) in [
        (Background::Dark, Colors::None),
        (Background::Light, Colors::Ansi16),
        (Background::Light, Colors::Full),
    ] {
        let mut shown = Shown::new(command("make"));
        shown.theme = Theme::new(background, colors);
        shown.key(KeyCode::Down);
        let buf = shown.draw(80, 24).0;
        let (x, y) = find(&buf, "›1 y  Allow");
        let (style, selected) = (buf[(x + 6, y)].style(), shown.theme.selected);
        assert!(style.add_modifier.contains(selected.add_modifier));
        if selected.bg.is_some() {
            assert_eq!(style.bg, selected.bg);
        }
        if colors == Colors::None {
            let plain = ratatui::style::Color::Reset;
            let colours = buf.content().iter().map(|cell| (cell.fg, cell.bg));
            assert!(colours.into_iter().all(|colours| colours == (plain, plain)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_agent_and_no_size_breaks_it(
        words in prop::collection::vec("(\\PC|[\u{0}-\u{20}\u{1b}\u{202e}\u{9b}日👩\u{200d}\u{301}]){0,40}", 6),
        width in 1_u16..200,
        most in 1_u16..40,
        which in 0..3,
        keys in prop::collection::vec(0_usize..9, 0..12),
    ) {
        let [title, text, line, name, path, more] = &words[..] else { unreachable!() };
        let question = match which {
            0 => {
                let call = ToolCallUpdate::new("c")
                    .title(title.as_str())
                    .content(vec![
                        ContentBlock::text(text.as_str()).into(),
                        ToolCallContent::Diff(Diff::new(path.as_str(), more.as_str())),
                    ])
                    .locations(vec![ToolCallLocation::new(path.as_str())])
                    .raw_input(json!({ "command": line, "cwd": path }));
                let options = vec![
                    option("1", name, PermissionOptionKind::AllowAlways),
                    option("2", more, PermissionOptionKind::RejectOnce),
                ];
                permission(call, options, Always::ByAgent)
            }
            1 => form(&json!({ "type": "object", "title": title, "description": text, "properties": {
                "a": { "type": "string", "title": name, "description": more, "default": line, "pattern": path },
                "b": { "type": "string", "oneOf": [{ "const": line, "title": name, "description": more }] },
                "c": { "type": "boolean", "title": more },
            } }).to_string()),
            _ => elicit(ElicitationMode::Url { elicitation_id: "e".into(), url: format!("https://{line}") }),
        };
        let mut shown = Shown::new(question);
        let codes = [KeyCode::Up, KeyCode::Down, KeyCode::Tab, KeyCode::BackTab, KeyCode::PageDown,
            KeyCode::Char('i'), KeyCode::Char(' '), KeyCode::End, KeyCode::Left];
        for key in keys {
            shown.key(codes[key]);
            shown.draw(width, most);
        }
        let (buf, cursor) = shown.draw(width, most);
        for cell in buf.content() {
            let hostile = |c: char| c.is_control() || c == '\u{202e}';
            prop_assert!(!cell.symbol().contains(hostile), "{:?}", cell.symbol());
        }
        if let Some(cursor) = cursor {
            prop_assert!(buf.area.contains(cursor));
        }
    }
}

#[test]
fn a_value_that_is_typed_is_not_in_what_is_logged() {
    let mut shown = Shown::new(form(
        r#"{ "type": "object", "properties": { "key": { "type": "string", "format": "password" } } }"#,
    ));
    shown.keys("hush");
    let outcome = shown.control('s');
    assert!(!format!("{outcome:?}").contains("hush"));
    assert_eq!(accepted(outcome), json!({ "key": "hush" }));
}

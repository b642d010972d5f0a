//! Reads the terminal's reports of its background, also when they arrive late, among the keys.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use acp_config::Background;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The query for the background color. The reply is `OSC 11 ; rgb:RRRR/GGGG/BBBB`, and a terminator.
pub(crate) const BACKGROUND_QUERY: &[u8] = b"\x1b]11;?\x1b\\";

/// How long a reply may take. After that, the same keys are what the user types.
const REPLY_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait for the next character of a reply.
pub(crate) const HOLD_TIMEOUT: Duration = Duration::from_millis(100);

/// The maximum length of a reply, in characters.
const MAX_REPLY_CHARS: usize = 40;

/// Parses the part of a report between `OSC` and the terminator, such as `11;rgb:1e1e/1e1e/2e2e`.
pub(crate) fn parse_report(report: &str) -> Option<Background> {
    let color = report.strip_prefix("11;")?;
    let color = color
        .strip_prefix("rgb:")
        .or_else(|| color.strip_prefix("rgba:"))?;
    let parts: Option<Vec<f64>> = color.split('/').map(parse_part).collect();
    let [r, g, b, ..] = parts?[..] else {
        return None;
    };
    // The brightness as people perceive it.
    let brightness = 0.299 * r + 0.587 * g + 0.114 * b;
    Some(match brightness > 0.5 {
        true => Background::Light,
        false => Background::Dark,
    })
}

/// Parses a part of a color, which has 1 to 4 digits, as a number from 0 to 1.
fn parse_part(digits: &str) -> Option<f64> {
    if !(1..=4).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let most = 16_u32.pow(u32::try_from(digits.len()).ok()?) - 1;
    Some(f64::from(value) / f64::from(most))
}

/// The time until which a reply is expected. Shared by the code that queries and the thread that reads.
#[derive(Debug, Default)]
pub(crate) struct PendingReply(Mutex<Option<Instant>>);

impl PendingReply {
    /// Starts to expect a reply.
    pub(crate) fn expect(&self) {
        self.set(Some(Instant::now() + REPLY_TIMEOUT));
    }

    fn set(&self, until: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn is_expected(&self) -> bool {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }
}

/// What has become of an event that went through a [`ReportFilter`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilterOutcome {
    /// The event may be part of a report. It is kept until that is known.
    Held,
    /// These events are not part of a report.
    Keys(Vec<Event>),
    /// The terminal has reported its background.
    Report(Background),
}

/// Separates late reports from keys.
///
/// The key reader does not know such reports: it takes them for Alt-] and the characters after it.
#[derive(Debug, Default)]
pub(crate) struct ReportFilter {
    held: Vec<Event>,
    /// The report so far, without `OSC`. `None` if only a lone Esc is held, or nothing.
    report: Option<String>,
}

impl ReportFilter {
    /// Returns whether an event is held.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the events that turned out not to be a report.
    pub(crate) fn release(&mut self) -> Vec<Event> {
        self.report = None;
        std::mem::take(&mut self.held)
    }

    /// Takes the next event.
    pub(crate) fn push(&mut self, event: Event, pending: &PendingReply) -> FilterOutcome {
        if !self.is_holding() && !pending.is_expected() {
            return FilterOutcome::Keys(vec![event]);
        }
        let Event::Key(key) = &event else {
            return self.pass(event);
        };
        let Some(report) = &mut self.report else {
            return self.push_start(*key, event);
        };
        match report_char(key) {
            Some(c) if is_report_start(report, c) => {
                report.push(c);
                self.held.push(event);
                FilterOutcome::Held
            }
            None if is_terminator(key) => match parse_report(report) {
                Some(background) => {
                    self.release();
                    pending.set(None);
                    FilterOutcome::Report(background)
                }
                None => self.pass(event),
            },
            _ => self.pass(event),
        }
    }

    /// Takes an event while no report has started.
    fn push_start(&mut self, key: KeyEvent, event: Event) -> FilterOutcome {
        let is_escape = key.code == KeyCode::Esc && key.modifiers.is_empty();
        // If the two characters of `OSC` arrive separately, they are Esc and ].
        let after_escape = self.is_holding() && key.modifiers.is_empty();
        let starts = key.code == KeyCode::Char(']')
            && (key.modifiers == KeyModifiers::ALT || after_escape)
            && key.kind == KeyEventKind::Press;
        if starts {
            self.report = Some(String::new());
        } else if !is_escape || self.is_holding() {
            return self.pass(event);
        }
        self.held.push(event);
        FilterOutcome::Held
    }

    fn pass(&mut self, event: Event) -> FilterOutcome {
        let mut events = self.release();
        events.push(event);
        FilterOutcome::Keys(events)
    }
}

/// Returns the character of a report that a key stands for.
fn report_char(key: &KeyEvent) -> Option<char> {
    let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    match key.code {
        KeyCode::Char(c) if plain && key.kind == KeyEventKind::Press => Some(c),
        _ => None,
    }
}

/// Returns whether a report can start with `report` and then `c`.
fn is_report_start(report: &str, c: char) -> bool {
    let is_before = |prefix: &str| {
        let rest = prefix.strip_prefix(report);
        rest.is_some_and(|rest| rest.starts_with(c))
    };
    let is_color = ["11;rgb:", "11;rgba:"]
        .iter()
        .any(|prefix| report.starts_with(prefix) && (c.is_ascii_hexdigit() || c == '/'));
    let fits = report.len() < MAX_REPLY_CHARS;
    fits && (is_color || is_before("11;rgb:") || is_before("11;rgba:"))
}

/// Returns whether the key stands for the end of a report: `ESC \` or BEL.
fn is_terminator(key: &KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('\\') => key.modifiers == KeyModifiers::ALT,
        KeyCode::Char('g') => key.modifiers == KeyModifiers::CONTROL,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alt(c: char) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT))
    }

    fn chars(text: &str) -> impl Iterator<Item = Event> {
        text.chars().map(|c| Event::Key(KeyCode::Char(c).into()))
    }

    /// Returns the report and the keys that come through the filter.
    fn filter_events(events: impl IntoIterator<Item = Event>) -> (Option<Background>, Vec<Event>) {
        let (mut filter, pending) = (ReportFilter::default(), PendingReply::default());
        pending.expect();
        let (mut report, mut keys) = (None, Vec::new());
        for event in events {
            match filter.push(event, &pending) {
                FilterOutcome::Held => {}
                FilterOutcome::Keys(passed) => keys.extend(passed),
                FilterOutcome::Report(background) => report = Some(background),
            }
        }
        keys.extend(filter.release());
        (report, keys)
    }

    #[test]
    fn reports_are_parsed() {
        for (report, expected) in [
            ("11;rgb:0000/0000/0000", Some(Background::Dark)),
            ("11;rgb:1e1e/1e1e/2e2e", Some(Background::Dark)),
            ("11;rgb:ff/ff/ff", Some(Background::Light)),
            ("11;rgba:fdfd/f6f6/e3e3/ffff", Some(Background::Light)),
            ("11;rgb:f/f/e", Some(Background::Light)),
            ("11;rgb:0000/ffff/0000", Some(Background::Light)),
            ("11;rgb:0000/0000/ffff", Some(Background::Dark)),
            ("11;rgb:ffff/ffff", None),
            ("11;rgb:+fff/ffff/ffff", None),
            ("11;rgb:fffff/0/0", None),
            ("10;rgb:ff/ff/ff", None),
            ("11;#ffffff", None),
            ("", None),
        ] {
            assert_eq!(parse_report(report), expected, "{report}");
        }
    }

    #[test]
    fn late_report_is_not_typed() {
        let white = "11;rgb:FFFF/ffff/ffff";
        let bell = Event::Key(KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL));
        for end in [alt('\\'), bell] {
            let mut events: Vec<Event> = chars("a").collect();
            events.push(alt(']'));
            events.extend(chars(white));
            events.push(end);
            events.extend(chars("b"));
            let (report, keys) = filter_events(events);
            assert_eq!(report, Some(Background::Light));
            assert_eq!(keys, chars("ab").collect::<Vec<_>>());
        }
        // The first two characters may arrive separately.
        let mut events = vec![Event::Key(KeyCode::Esc.into())];
        events.extend(chars("]").chain(chars(white)));
        events.push(alt('\\'));
        assert_eq!(filter_events(events), (Some(Background::Light), Vec::new()));
    }

    #[test]
    fn keys_that_only_resemble_a_report_are_kept() {
        let escape = || Event::Key(KeyCode::Esc.into());
        for typed in [
            vec![escape(), escape(), alt('x')],
            vec![alt(']'), alt(']')],
            std::iter::once(alt(']')).chain(chars("11;rgb:x")).collect(),
            std::iter::once(alt(']'))
                .chain(chars("11;rgb:12"))
                .collect(),
            std::iter::once(escape()).chain(chars("dd")).collect(),
            vec![alt(']'), Event::FocusGained],
        ] {
            let (report, keys) = filter_events(typed.clone());
            assert_eq!((report, keys), (None, typed));
        }
        // Nothing is held if no report is expected.
        let (mut filter, pending) = (ReportFilter::default(), PendingReply::default());
        let passed = filter.push(alt(']'), &pending);
        assert_eq!(passed, FilterOutcome::Keys(vec![alt(']')]));
    }
}

//! Calls the user back to the terminal: with a notification of the desktop where the terminal can show one, or else
//! with the bell.

use acp_config::NotifyMode;
use acp_host::terminal_text;

/// The maximum length of each part of a notification, in characters.
const MAX_NOTIFICATION_CHARS: usize = 100;

/// A message that calls the user back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DesktopNotification {
    /// The name of the tab.
    pub(crate) title: String,
    /// What has happened.
    pub(crate) body: &'static str,
}

/// How the terminal shows notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notifier {
    /// The escape sequence, or `None` if there is only the bell.
    sequence: Option<NotificationSequence>,
    /// Whether to ring the bell, too.
    has_bell: bool,
    /// Whether the sequence must be wrapped, so that tmux passes it on.
    is_in_tmux: bool,
}

/// An escape sequence for notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotificationSequence {
    /// OSC 9, of iTerm2: one text.
    Osc9,
    /// OSC 99, of kitty.
    Osc99,
    /// OSC 777, of rxvt.
    Osc777,
}

impl Notifier {
    /// Chooses how to notify, by the user's setting and by the variables that terminals set.
    pub(crate) fn detect(mode: NotifyMode, variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let is_in_tmux = is_set("TMUX");
        let sequence = match mode {
            NotifyMode::Off | NotifyMode::Bell => None,
            NotifyMode::Osc9 => Some(NotificationSequence::Osc9),
            NotifyMode::Osc99 => Some(NotificationSequence::Osc99),
            NotifyMode::Osc777 => Some(NotificationSequence::Osc777),
            // GNU screen passes none of them on.
            NotifyMode::Auto if is_set("STY") => None,
            NotifyMode::Auto => detect_sequence(variable),
        };
        let has_bell = match mode {
            NotifyMode::Off => false,
            // By default, tmux does not pass sequences on. It marks the window of a bell.
            _ => sequence.is_none() || (mode == NotifyMode::Auto && is_in_tmux),
        };
        Self {
            sequence,
            has_bell,
            is_in_tmux,
        }
    }

    /// Returns the bytes that the terminal shows as this notification.
    pub(crate) fn render(self, notification: &DesktopNotification) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(sequence) = self.sequence {
            let title = clean_part(&notification.title);
            let body = notification.body;
            let text = match sequence {
                NotificationSequence::Osc9 => format!("\x1b]9;{title}: {body}\x1b\\"),
                // Later notifications replace earlier ones, which have the same id.
                NotificationSequence::Osc99 => {
                    format!("\x1b]99;i=acp:d=0;{title}\x1b\\\x1b]99;i=acp:d=1:p=body;{body}\x1b\\")
                }
                // A semicolon would end the title.
                NotificationSequence::Osc777 => {
                    let title = title.replace(';', ",");
                    format!("\x1b]777;notify;{title};{body}\x1b\\")
                }
            };
            let text = match self.is_in_tmux {
                true => format!("\x1bPtmux;{}\x1b\\", text.replace('\x1b', "\x1b\x1b")),
                false => text,
            };
            bytes.extend(text.into_bytes());
        }
        if self.has_bell {
            bytes.push(b'\x07');
        }
        bytes
    }
}

/// Returns the sequence that the terminal is known to show.
///
/// In tmux, the variables are those of the terminal that started the tmux server, which is usually the same.
fn detect_sequence(variable: impl Fn(&str) -> Option<String>) -> Option<NotificationSequence> {
    let program = variable("TERM_PROGRAM").unwrap_or_default();
    let term = variable("TERM").unwrap_or_default();
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("KITTY_WINDOW_ID") || term == "xterm-kitty" {
        Some(NotificationSequence::Osc99)
    } else if program == "ghostty"
        || is_set("GHOSTTY_RESOURCES_DIR")
        || program == "WezTerm"
        || is_set("WEZTERM_PANE")
        || term.starts_with("foot")
        || term.starts_with("rxvt-unicode")
    {
        Some(NotificationSequence::Osc777)
    } else if program == "iTerm.app" || variable("LC_TERMINAL").as_deref() == Some("iTerm2") {
        Some(NotificationSequence::Osc9)
    } else {
        None
    }
}

/// Returns text without characters that could end the sequence, and not too long for a notification.
fn clean_part(text: &str) -> String {
    let text = terminal_text::clean_text(text);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    terminal_text::truncate_middle(&text, MAX_NOTIFICATION_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notifier(mode: NotifyMode, variables: &[(&str, &str)]) -> Notifier {
        Notifier::detect(mode, |name| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn rendered(mode: NotifyMode, variables: &[(&str, &str)]) -> String {
        let notification = DesktopNotification {
            title: "fix; \x1b]0;x\x07the\nbuild".to_owned(),
            body: "has a question",
        };
        String::from_utf8(notifier(mode, variables).render(&notification)).unwrap()
    }

    #[test]
    fn terminals_get_the_sequence_that_they_show() {
        let auto = |variables: &[_]| notifier(NotifyMode::Auto, variables);
        let known: [(&[_], NotificationSequence); 7] = [
            (&[("KITTY_WINDOW_ID", "1")], NotificationSequence::Osc99),
            (&[("TERM", "xterm-kitty")], NotificationSequence::Osc99),
            (&[("TERM_PROGRAM", "ghostty")], NotificationSequence::Osc777),
            (&[("TERM_PROGRAM", "WezTerm")], NotificationSequence::Osc777),
            (&[("TERM", "foot-extra")], NotificationSequence::Osc777),
            (
                &[("TERM", "rxvt-unicode-256color")],
                NotificationSequence::Osc777,
            ),
            (&[("TERM_PROGRAM", "iTerm.app")], NotificationSequence::Osc9),
        ];
        for (variables, sequence) in known {
            assert_eq!(auto(variables).sequence, Some(sequence), "{variables:?}");
            assert!(!auto(variables).has_bell, "{variables:?}");
        }
        for variables in [
            &[("TERM", "xterm-256color")][..],
            &[("KITTY_WINDOW_ID", "1"), ("STY", "1.pts")],
        ] {
            assert_eq!(auto(variables).sequence, None);
            assert!(auto(variables).has_bell);
        }
    }

    #[test]
    fn tab_name_cannot_end_a_sequence() {
        assert_eq!(
            rendered(NotifyMode::Osc777, &[]).matches('\x1b').count(),
            2,
            "begin and end"
        );
        for mode in [NotifyMode::Osc9, NotifyMode::Osc99, NotifyMode::Osc777] {
            let text = rendered(mode, &[]);
            assert!(!text.contains(['\x07', '\n']), "{text:?}");
            assert!(text.ends_with("has a question\x1b\\"), "{text:?}");
        }
        assert_eq!(rendered(NotifyMode::Osc777, &[]).matches(';').count(), 3);
    }

    #[test]
    fn tmux_gets_the_bell_and_a_wrapped_sequence() {
        let text = rendered(NotifyMode::Auto, &[("TMUX", "x"), ("KITTY_WINDOW_ID", "1")]);
        assert!(text.starts_with("\x1bPtmux;\x1b\x1b]99;"), "{text:?}");
        assert!(text.ends_with("\x1b\x1b\\\x1b\\\x07"), "{text:?}");
        assert_eq!(rendered(NotifyMode::Off, &[("TMUX", "x")]), "");
        assert_eq!(
            rendered(NotifyMode::Bell, &[("KITTY_WINDOW_ID", "1")]),
            "\x07"
        );
    }
}

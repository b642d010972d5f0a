//! Defines the chat's actions and their key bindings.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key and the modifiers held down with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyChord {
    code: KeyCode,
    modifiers: KeyModifiers,
}

impl From<KeyEvent> for KeyChord {
    fn from(event: KeyEvent) -> Self {
        let mut modifiers =
            event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT);
        let code = match event.code {
            // Terminals differ in whether they report Shift for a letter that is already uppercase.
            KeyCode::Char(c) => {
                modifiers -= KeyModifiers::SHIFT;
                KeyCode::Char(c)
            }
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            other => other,
        };
        Self { code, modifiers }
    }
}

/// The error for a string that does not name a key. Contains that string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown key `{0}`; examples: ctrl-t, alt-1, f1, pageup, shift-tab")]
pub struct ParseKeyError(String);

impl FromStr for KeyChord {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        loop {
            let lower = rest.to_ascii_lowercase();
            let (modifier, length) = if lower.starts_with("ctrl-") {
                (KeyModifiers::CONTROL, 5)
            } else if lower.starts_with("alt-") {
                (KeyModifiers::ALT, 4)
            } else if lower.starts_with("shift-") {
                (KeyModifiers::SHIFT, 6)
            } else {
                break;
            };
            modifiers |= modifier;
            rest = rest.get(length..).unwrap_or_default();
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => {
                if modifiers.contains(KeyModifiers::SHIFT) {
                    modifiers -= KeyModifiers::SHIFT;
                    KeyCode::Char(c.to_ascii_uppercase())
                } else {
                    KeyCode::Char(c)
                }
            }
            _ => {
                let lower = rest.to_ascii_lowercase();
                let named = NAMED_KEYS.iter().find(|(name, _)| *name == lower);
                let numbered = || {
                    let n = lower.strip_prefix('f')?.parse::<u8>().ok()?;
                    (1..=12).contains(&n).then_some(KeyCode::F(n))
                };
                named
                    .map(|(_, code)| *code)
                    .or_else(numbered)
                    .ok_or_else(|| ParseKeyError(text.to_owned()))?
            }
        };
        Ok(Self { code, modifiers })
    }
}

/// The names of keys that are not letters.
const NAMED_KEYS: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
];

impl fmt::Display for KeyChord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, name) in [
            (KeyModifiers::CONTROL, "Ctrl-"),
            (KeyModifiers::ALT, "Alt-"),
            (KeyModifiers::SHIFT, "Shift-"),
        ] {
            if self.modifiers.contains(modifier) {
                f.write_str(name)?;
            }
        }
        if let Some((name, _)) = NAMED_KEYS.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(match *name {
                "enter" => "Enter",
                "esc" => "Esc",
                "tab" => "Tab",
                "space" => "Space",
                "backspace" => "Backspace",
                "delete" => "Del",
                "up" => "↑",
                "down" => "↓",
                "left" => "←",
                "right" => "→",
                "home" => "Home",
                "end" => "End",
                "pageup" => "PgUp",
                _ => "PgDn",
            });
        }
        match self.code {
            KeyCode::Char(c) if self.modifiers.contains(KeyModifiers::CONTROL) => {
                write!(f, "{}", c.to_ascii_uppercase())
            }
            KeyCode::Char(c) => write!(f, "{c}"),
            KeyCode::F(n) => write!(f, "F{n}"),
            _ => f.write_str("?"),
        }
    }
}

macro_rules! actions {
    ($($action:ident $name:literal $about:literal [$($key:literal),*];)*) => {
        /// An action of the chat, bound to keys and listed in the command palette.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum KeyAction {
            $(#[doc = $about] $action,)*
        }

        impl KeyAction {
            /// All actions, in the order of the help page.
            pub const ALL: &'static [Self] = &[$(Self::$action),*];

            /// Returns the action's name in the configuration.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$action => $name,)* }
            }

            /// Returns a short description of the action.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self { $(Self::$action => $about,)* }
            }

            /// Returns the names of all actions, separated by commas, for an error message.
            fn names() -> String {
                let names = Self::ALL.iter().map(|action| action.name());
                names.collect::<Vec<_>>().join(", ")
            }

            fn default_keys(self) -> &'static [&'static str] {
                match self { $(Self::$action => &[$($key),*],)* }
            }
        }
    };
}

actions! {
    Palette "palette" "Command palette" ["ctrl-p"];
    Help "help" "Help" ["f1"];
    Cancel "cancel" "Cancel turn" ["ctrl-c"];
    FocusThread "focus-thread" "Switch between conversation and prompt" ["tab"];
    ScrollUp "scroll-up" "Scroll up one page" ["pageup"];
    ScrollDown "scroll-down" "Scroll down one page" ["pagedown"];
    ToTop "top" "Go to top" ["ctrl-home"];
    ToEnd "end" "Go to bottom" ["ctrl-end"];
    NewTab "new-tab" "New session in a new tab" ["ctrl-t"];
    NextTab "next-tab" "Next tab" ["alt-right", "ctrl-pagedown"];
    PreviousTab "previous-tab" "Previous tab" ["alt-left", "ctrl-pageup"];
    CloseTab "close-tab" "Close tab" ["alt-w"];
    Sessions "sessions" "Sessions: open, fork, delete" ["ctrl-o"];
    Clear "clear" "New session in this tab" [];
    Fork "fork" "Fork this session" [];
    Rename "rename" "Rename session" ["f2"];
    Agents "agents" "New session with another agent" ["alt-a"];
    NextMode "next-mode" "Next mode" ["shift-tab"];
    Modes "modes" "Select mode" ["alt-m"];
    Models "models" "Select model" ["alt-p"];
    Options "options" "Change session option" ["alt-o"];
    Theme "theme" "Select theme" [];
    Open "open" "Open a file or link of the conversation" [];
    ExpandAll "expand-all" "Expand or collapse all thoughts and tool calls" ["alt-e"];
    DiffLayout "diff-layout" "Change diff layout" ["alt-d"];
    Plan "plan" "Show or hide plan" ["alt-l"];
    Queue "queue" "Queue prompt until the turn ends" ["alt-q"];
    Undo "undo" "Undo the last turn" [];
    Redo "redo" "Redo what was undone" [];
    Rewind "rewind" "Undo turns: files, conversation or both" [];
    Usage "usage" "Time, tokens and cost of the turns" [];
    Editor "editor" "Edit prompt in $EDITOR" ["ctrl-g"];
    Attach "attach" "Attach file" [];
    PasteImage "paste-image" "Paste image from clipboard" ["ctrl-v"];
    Export "export" "Save conversation as Markdown" [];
    Login "login" "Log in" ["f6"];
    Logout "logout" "Log out" [];
    Restart "restart" "Restart agent" ["f5"];
    AgentOutput "printed" "Show agent log" ["f4"];
    Suspend "suspend" "Suspend to shell" ["ctrl-z"];
    Redraw "redraw" "Redraw screen" ["ctrl-l"];
    Quit "quit" "Quit" ["ctrl-q"];
}

/// The mapping from keys to actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBindings(Vec<(KeyChord, KeyAction)>);

/// An error in the user's custom key bindings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyBindingsError {
    /// No action has this name.
    #[error("unknown action `{0}`{meant}; expected one of {all}", meant = suggest_action(.0), all = KeyAction::names())]
    UnknownAction(String),
    /// One of the keys for an action is invalid.
    #[error("{action}: {error}")]
    InvalidKey {
        /// The name of the action to bind the key to.
        action: String,
        /// The error in the name of the key.
        error: ParseKeyError,
    },
}

/// Suggests the action with the most similar name.
fn suggest_action(name: &str) -> String {
    let names: Vec<&str> = KeyAction::ALL.iter().map(|action| action.name()).collect();
    let nearest = similar::get_close_matches(name, &names, 1, 0.6);
    let nearest = nearest
        .first()
        .map(|name| format!(" (did you mean `{name}`?)"));
    nearest.unwrap_or_default()
}

impl Default for KeyBindings {
    fn default() -> Self {
        let keys = KeyAction::ALL.iter().flat_map(|action| {
            let keys = action.default_keys().iter();
            keys.filter_map(|key| Some((key.parse().ok()?, *action)))
        });
        Self(keys.collect())
    }
}

impl KeyBindings {
    /// Binds an action to these keys instead of its current ones. If `keys` is empty, the action has no key.
    ///
    /// A key that was bound to another action is rebound.
    ///
    /// # Errors
    /// Fails if the action or a key is unknown.
    pub fn bind(&mut self, action: &str, keys: &[String]) -> Result<(), KeyBindingsError> {
        let known = KeyAction::ALL.iter().find(|known| known.name() == action);
        let action = *known.ok_or_else(|| KeyBindingsError::UnknownAction(action.to_owned()))?;
        let keys: Result<Vec<KeyChord>, ParseKeyError> =
            keys.iter().map(|key| key.parse()).collect();
        let keys = keys.map_err(|error| KeyBindingsError::InvalidKey {
            action: action.name().to_owned(),
            error,
        })?;
        self.0
            .retain(|(key, bound)| *bound != action && !keys.contains(key));
        self.0.extend(keys.into_iter().map(|key| (key, action)));
        Ok(())
    }

    /// Returns the action that a key is bound to, if any.
    #[must_use]
    pub fn action(&self, key: KeyEvent) -> Option<KeyAction> {
        let key = KeyChord::from(key);
        let bound = self.0.iter().find(|(known, _)| *known == key);
        bound.map(|(_, action)| *action)
    }

    /// Returns the first key that is bound to an action, if any.
    #[must_use]
    pub fn key(&self, action: KeyAction) -> Option<KeyChord> {
        let bound = self.0.iter().find(|(_, bound)| *bound == action);
        bound.map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_keys_are_valid_and_unique() {
        let keys = KeyBindings::default();
        let all: usize = KeyAction::ALL.iter().map(|a| a.default_keys().len()).sum();
        assert_eq!(keys.0.len(), all);
        for (key, action) in &keys.0 {
            let others = keys.0.iter().filter(|(other, _)| other == key);
            assert_eq!(others.count(), 1, "{key} of {action:?}");
        }
    }

    #[test]
    fn keys_round_trip_through_their_text() {
        let key: KeyChord = "ctrl-t".parse().unwrap();
        assert_eq!(
            key,
            KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL).into()
        );
        assert_eq!(key.to_string(), "Ctrl-T");
        let key: KeyChord = "Shift-Tab".parse().unwrap();
        assert_eq!(
            key,
            KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT).into()
        );
        assert_eq!(key.to_string(), "Shift-Tab");
        let key: KeyChord = "alt--".parse().unwrap();
        assert_eq!(key.to_string(), "Alt--");
        assert!("ctrl-".parse::<KeyChord>().is_err());
        assert!("f13".parse::<KeyChord>().is_err());
    }

    #[test]
    fn unknown_action_gets_a_suggestion() {
        let mut keys = KeyBindings::default();
        let error = keys.bind("next-mod", &[]).unwrap_err().to_string();
        assert!(
            error.starts_with("unknown action `next-mod` (did you mean `next-mode`?)"),
            "{error}"
        );
        for action in KeyAction::ALL {
            assert!(error.contains(action.name()), "{error}");
        }
        let error = keys.bind("xyzzy", &[]).unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn reassigned_key_is_removed_from_its_old_action() {
        let mut keys = KeyBindings::default();
        keys.bind("quit", &["ctrl-t".to_owned()]).unwrap();
        let ctrl = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(keys.action(ctrl('t')), Some(KeyAction::Quit));
        assert_eq!(keys.action(ctrl('q')), None);
        assert_eq!(keys.key(KeyAction::NewTab), None);
        assert!(keys.bind("fly", &[]).is_err());
        assert!(keys.bind("quit", &["wing".to_owned()]).is_err());
    }
}

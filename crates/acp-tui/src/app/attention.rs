//! Decides when to call the user back to the terminal.

use std::time::{Duration, Instant};

use super::{App, ChatEffect, TabKey};
use crate::notification::DesktopNotification;

/// How long a user does nothing before they count as away, if the terminal does not report its focus.
const AWAY_AFTER: Duration = Duration::from_secs(10);

/// What is known about whether the user looks at the terminal.
#[derive(Debug)]
pub(super) struct UserAttention {
    /// Whether the terminal has the keyboard focus. `None` until it reports a change, since many never do.
    is_focused: Option<bool>,
    last_input_at: Instant,
}

impl UserAttention {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            is_focused: None,
            last_input_at: now,
        }
    }

    pub(super) fn on_input(&mut self, now: Instant) {
        self.last_input_at = now;
    }

    pub(super) fn on_focus_changed(&mut self, is_focused: bool) {
        self.is_focused = Some(is_focused);
    }

    fn is_away(&self, now: Instant) -> bool {
        match self.is_focused {
            Some(is_focused) => !is_focused,
            None => now.duration_since(self.last_input_at) >= AWAY_AFTER,
        }
    }
}

impl App {
    /// Calls the user because something has happened in this tab, unless they see it.
    pub(super) fn call_user(&self, key: TabKey, body: &'static str) -> Vec<ChatEffect> {
        let is_active = self.tabs.get(self.active).map(|tab| tab.key) == Some(key);
        let Some(tab) = self.tabs.iter().find(|tab| tab.key == key) else {
            return Vec::new();
        };
        if is_active && !self.attention.is_away(Instant::now()) {
            return Vec::new();
        }
        vec![ChatEffect::Notify(DesktopNotification {
            title: self.tab_title(tab),
            body,
        })]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_focus_counts_more_than_the_time_without_input() {
        let begin = Instant::now();
        let mut attention = UserAttention::new(begin);
        assert!(!attention.is_away(begin));
        assert!(attention.is_away(begin + AWAY_AFTER));
        attention.on_input(begin + AWAY_AFTER);
        assert!(!attention.is_away(begin + AWAY_AFTER));
        attention.on_focus_changed(true);
        assert!(!attention.is_away(begin + AWAY_AFTER * 10));
        attention.on_focus_changed(false);
        assert!(attention.is_away(begin + AWAY_AFTER));
    }
}

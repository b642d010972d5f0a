//! Formats dates and durations for users.

use jiff::{Timestamp, Zoned};

/// Describes how long ago an ISO 8601 time was. Returns an empty string if the time cannot be parsed.
pub(super) fn format_time_ago(time: &str) -> String {
    time.parse::<Timestamp>()
        .map(|then| format_age(then, Timestamp::now()))
        .unwrap_or_default()
}

fn format_age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    let (n, unit) = match seconds {
        ..60 => return "now".to_owned(),
        60..3_600 => (seconds / 60, "min"),
        3_600..86_400 => (seconds / 3_600, "h"),
        86_400..2_592_000 => (seconds / 86_400, "d"),
        2_592_000..31_536_000 => (seconds / 2_592_000, "months"),
        _ => (seconds / 31_536_000, "years"),
    };
    format!("{n} {unit} ago")
}

/// Returns a file name for an exported conversation: `2026-11-22-fix-the-parser.md`.
pub(super) fn export_file_name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .take(8)
        .map(str::to_lowercase)
        .collect();
    let name: String = words.join("-").chars().take(60).collect();
    let name = if name.is_empty() {
        "conversation"
    } else {
        &name
    };
    format!("{}-{name}.md", Zoned::now().date())
}

/// Formats a duration: `7 s`, `2 min 5 s`.
pub(super) fn format_duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_relative_to_now() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let ago = |then: &str| format_age(then.parse().unwrap(), now);
        assert_eq!(ago("2026-11-22T11:59:30Z"), "now");
        assert_eq!(ago("2026-11-22T13:00:00Z"), "now");
        assert_eq!(ago("2026-11-22T11:00:00Z"), "1 h ago");
        assert_eq!(ago("2026-11-19T11:00:00+02:00"), "3 d ago");
        assert_eq!(super::format_time_ago("yesterday"), "");
        assert!(export_file_name("Fix: the ../parser!").ends_with("-fix-the-parser.md"));
        assert!(export_file_name("…").ends_with("-conversation.md"));
    }
}

//! Times as people say them.

use jiff::civil::Time;
use jiff::{Timestamp, ToSpan, Zoned};

/// Describes when something was, as seen at `now`. A text that is not a time is returned unchanged.
pub(super) fn describe_time(time: &str, now: &Zoned) -> String {
    let Ok(then) = time.parse::<Timestamp>() else {
        return time.to_owned();
    };
    let seconds = now.timestamp().duration_since(then).as_secs();
    let then = then.to_zoned(now.time_zone().clone());
    let yesterday = now.date().checked_sub(1.day()).ok();
    match seconds {
        // The clock of an agent on another machine may be slightly ahead.
        -60..60 => "just now".to_owned(),
        60..3_600 => ago(seconds / 60, "minute"),
        3_600.. if then.date() == now.date() => ago(seconds / 3_600, "hour"),
        3_600.. if Some(then.date()) == yesterday => format!("yesterday {}", clock(then.time())),
        _ => then.date().to_string(),
    }
}

fn ago(count: i64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

fn clock(time: Time) -> String {
    format!("{:02}:{:02}", time.hour(), time.minute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::{TimeZone, offset};

    #[test]
    fn recent_times_are_relative_and_others_are_dates() {
        let zone = TimeZone::fixed(offset(2));
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let now = now.to_zoned(zone.clone());
        let said = |time: &str| describe_time(time, &now);
        assert_eq!(said("2026-11-22T11:59:30Z"), "just now");
        assert_eq!(said("2026-11-22T12:00:30Z"), "just now");
        assert_eq!(said("2026-11-22T11:58:59Z"), "1 minute ago");
        assert_eq!(said("2026-11-22T13:58:00.5+02:00"), "1 minute ago");
        assert_eq!(said("2026-11-22T11:58:00Z"), "2 minutes ago");
        assert_eq!(said("2026-11-22T11:00:00Z"), "1 hour ago");
        // The day begins at 22:00Z here.
        assert_eq!(said("2026-11-21T22:00:00Z"), "14 hours ago");
        assert_eq!(said("2026-11-21T21:59:00Z"), "yesterday 23:59");
        assert_eq!(said("2026-11-21T12:05:00Z"), "yesterday 14:05");
        assert_eq!(said("2026-11-20T21:59:00Z"), "2026-11-20");
        assert_eq!(said("2027-01-01T00:00:00Z"), "2027-01-01");
        assert_eq!(said("last week"), "last week");
        // Half an hour ago is not yesterday, even after midnight.
        let night: Timestamp = "2026-11-22T22:10:00Z".parse().unwrap();
        let said = describe_time("2026-11-22T21:40:00Z", &night.to_zoned(zone));
        assert_eq!(said, "30 minutes ago");
    }
}

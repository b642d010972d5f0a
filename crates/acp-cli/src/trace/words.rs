//! The words for times and messages that `acp trace show` and the page of `acp trace live` share.

/// Converts microseconds to seconds.
#[allow(clippy::cast_precision_loss, reason = "only three digits are shown")]
pub(super) fn to_seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

/// Formats a duration for display.
pub(super) fn format_duration(microseconds: u64) -> String {
    let seconds = to_seconds(microseconds);
    match microseconds {
        0..1000 => format!("{microseconds} µs"),
        1000..100_000 => format!("{:.1} ms", seconds * 1e3),
        100_000..1_000_000 => format!("{:.0} ms", seconds * 1e3),
        1_000_000..100_000_000 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// Formats JSON on several lines, each after `margin` spaces, without changing any values or the order of fields.
pub(super) fn pretty_print(json: &str, margin: usize) -> String {
    let mut out = " ".repeat(margin);
    let mut depth = 0;
    let mut in_string = false;
    let mut chars = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        // Deeper indentation does not help.
        out.push_str(&" ".repeat(margin + 2 * depth.min(40)));
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                out.push(c);
                out.extend(chars.next());
            }
            '"' => {
                in_string = !in_string;
                out.push(c);
            }
            _ if in_string => out.push(c),
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = chars.next_if(|&c| c == '}' || c == ']') {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pretty_printed_json_is_unchanged() {
        let json = r#"{"z":[1.50,{}],"a":"\",{"}"#;
        for margin in [0, 4] {
            let shown = pretty_print(json, margin);
            let squeezed: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
            assert_eq!(squeezed, json);
            let indents: Vec<usize> = shown
                .lines()
                .map(|line| line.len() - line.trim_start().len() - margin)
                .collect();
            assert_eq!(indents, [0, 2, 4, 4, 2, 2, 0], "{shown}");
        }
    }

    #[test]
    fn durations_have_three_significant_digits() {
        let shown = [7, 1500, 150_000, 1_500_000, 150_000_000].map(format_duration);
        assert_eq!(shown, ["7 µs", "1.5 ms", "150 ms", "1.50 s", "150 s"]);
    }
}

//! Explains why some text was not found in a file, so that the model can correct its call.

/// The maximum number of line numbers listed in a message.
const MAX_LISTED_NUMBERS: usize = 10;

/// The maximum number of lines to compare character by character.
const MAX_COMPARED_LINES: usize = 5000;

/// The maximum length of a line to compare, in bytes. Longer lines are skipped.
const MAX_COMPARED_BYTES: usize = 1000;

/// The minimum similarity, from 0 to 1, at which a line is reported.
const MIN_SIMILARITY: f64 = 0.6;

/// The maximum length of a line in a message, in bytes. Longer lines are truncated.
const MAX_QUOTED_BYTES: usize = 200;

/// Explains that the text was not found, and shows the closest match and where it differs.
pub(super) fn explain_not_found(file: &str, search: &str) -> String {
    let wanted: Vec<&str> = search.lines().collect();
    let lines: Vec<&str> = file.lines().collect();
    let Some(first) = wanted.iter().position(|line| !line.trim().is_empty()) else {
        return "no match: the search text contains only whitespace.".to_owned();
    };
    // Of the positions at which the first line matches, choose the one at which most of the other lines match too.
    let trimmed = |line: &str| line.trim().to_owned();
    let wanted_first = wanted
        .get(first)
        .map(|line| trimmed(line))
        .unwrap_or_default();
    let same: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| *at >= first && line.trim() == wanted_first)
        .map(|(at, _)| at - first)
        .collect();
    let agree = |start: usize| {
        let there = lines.get(start..).unwrap_or_default();
        let pairs = there.iter().zip(&wanted);
        pairs.filter(|(a, b)| a.trim() == b.trim()).count()
    };
    let best = same
        .iter()
        .copied()
        .max_by_key(|start| (agree(*start), usize::MAX - start));
    if let Some(start) = best {
        return describe_difference(&lines, &wanted, start, &same);
    }
    let part: Vec<usize> = (1..)
        .zip(&lines)
        .filter(|(_, line)| line.contains(&wanted_first))
        .map(|(number, _)| number)
        .collect();
    if !part.is_empty() {
        return format!(
            "no match. The first line of the search text is part of {} {}.",
            if part.len() == 1 { "line" } else { "lines" },
            list_numbers(&part)
        );
    }
    let comparable = |line: &&str| !line.trim().is_empty() && line.len() <= MAX_COMPARED_BYTES;
    let likeness = lines
        .iter()
        .enumerate()
        .take(MAX_COMPARED_LINES)
        .filter(|(_, line)| wanted_first.len() <= MAX_COMPARED_BYTES && comparable(line))
        .map(|(at, line)| (at, strsim::sorensen_dice(line.trim(), &wanted_first)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b));
    match likeness {
        Some((at, like)) if like >= MIN_SIMILARITY => format!(
            "no exact match. The closest match for the first line is line {}:\n{}\nThe search text has:\n{}",
            at + 1,
            quote_line(lines.get(at).copied().unwrap_or_default()),
            quote_line(wanted.get(first).copied().unwrap_or_default()),
        ),
        _ => format!(
            "no match for the search text or its first line (the file has {} {}).",
            lines.len(),
            if lines.len() == 1 { "line" } else { "lines" },
        ),
    }
}

/// Describes the closest match, which starts at line index `start`, and the first line where it differs.
fn describe_difference(lines: &[&str], wanted: &[&str], start: usize, same: &[usize]) -> String {
    let there = lines.get(start..).unwrap_or_default();
    let differs = |(at, line): &(usize, &&str)| there.get(*at) != Some(*line);
    let elsewhere = match same {
        [_] => String::new(),
        _ => {
            let numbers: Vec<usize> = same.iter().map(|start| start + 1).collect();
            format!(
                " (the first line occurs on lines {})",
                list_numbers(&numbers)
            )
        }
    };
    let found = wanted.iter().enumerate().find(differs);
    match found {
        None => format!(
            "no exact match. The same lines start on line {}, but the line endings or the surrounding text differ{elsewhere}.",
            start + 1
        ),
        Some((at, line)) => {
            let number = start + at + 1;
            let Some(is) = there.get(at) else {
                return format!(
                    "no exact match. The closest match starts on line {}, but the file ends before line {} of the search text:\n{}",
                    start + 1,
                    at + 1,
                    quote_line(line)
                );
            };
            let how = match is.trim() == line.trim() {
                true => "differs only in whitespace",
                false => "differs",
            };
            format!(
                "no exact match. The closest match starts on line {}{elsewhere}, where line {number} {how}. The file has:\n{}\nThe search text has:\n{}",
                start + 1,
                quote_line(is),
                quote_line(line)
            )
        }
    }
}

/// Quotes a line in a way that makes its white space visible.
fn quote_line(line: &str) -> String {
    let shown = crate::text::truncate_to_head(line, MAX_QUOTED_BYTES);
    let shown = shown.replace('\t', "\\t").replace('\r', "\\r");
    let more = if line.len() > MAX_QUOTED_BYTES {
        "…"
    } else {
        ""
    };
    format!("  |{shown}|{more}")
}

/// Lists line numbers, up to the limit.
pub(super) fn list_numbers(lines: &[usize]) -> String {
    let mut named: Vec<String> = lines
        .iter()
        .take(MAX_LISTED_NUMBERS)
        .map(ToString::to_string)
        .collect();
    if lines.len() > MAX_LISTED_NUMBERS {
        named.push("…".to_owned());
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_differing_line_is_reported_and_quoted() {
        let file = "mod a;\n\nfn one() {\n\tlet a = 1;\n\tlet b = 2;\n}\n\nfn one() {\n}\n";
        let said = explain_not_found(file, "fn one() {\n    let a = 1;\n    let b = 2;\n}");
        assert!(said.contains("starts on line 3"), "{said}");
        assert!(said.contains("occurs on lines 3, 8"), "{said}");
        assert!(said.contains("line 4 differs only in whitespace"), "{said}");
        assert!(
            said.contains("|\\tlet a = 1;|") && said.contains("|    let a = 1;|"),
            "{said}"
        );

        let said = explain_not_found(file, "\tlet a = 1;\n\tlet b = 3;\n");
        assert!(said.contains("line 5 differs. "), "{said}");
        let said = explain_not_found("a\nb", "b\nc");
        assert!(said.contains("ends before line 2 of"), "{said}");
    }

    #[test]
    fn similar_line_is_reported_if_there_is_no_close_match() {
        assert!(explain_not_found("x\nlet ab = 1;\n", "ab = 1\nc").contains("part of line 2"));
        let said = explain_not_found(
            "one\nlet number = compute(1);\n",
            "let numbers = compute(1);",
        );
        assert!(said.contains("first line is line 2:"), "{said}");
        assert!(explain_not_found("x\ny\n", "zzz").contains("2 lines"));
        assert!(explain_not_found("x", " \n").contains("only whitespace"));
    }
}

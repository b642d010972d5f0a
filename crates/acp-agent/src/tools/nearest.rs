//! Explains where a file has text similar to one that was not found, so that the model can correct its call.

/// The limit on the line numbers in a message.
const NAMED: usize = 10;

/// The limit on the lines of a file that are compared character by character.
const COMPARED: usize = 5000;

/// The limit on the length of such a line, in bytes.
const LONGEST: usize = 1000;

/// The least similarity of a line that is worth mentioning, from 0 to 1.
const LIKE: f64 = 0.6;

/// The limit on how much of a line is shown, in bytes.
const SHOWN: usize = 200;

/// Explains that the text was not found, where a similar text is, and how the two differ.
pub(super) fn explain_not_found(file: &str, search: &str) -> String {
    let wanted: Vec<&str> = search.lines().collect();
    let lines: Vec<&str> = file.lines().collect();
    let Some(first) = wanted.iter().position(|line| !line.trim().is_empty()) else {
        return "the text was not found; it is only whitespace.".to_owned();
    };
    // Of the positions where the first line matches, take the one where most of the other lines match too.
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
            "the text was not found. Its first line is part of line {}.",
            named(&part)
        );
    }
    let comparable = |line: &&str| !line.trim().is_empty() && line.len() <= LONGEST;
    let likeness = lines
        .iter()
        .enumerate()
        .take(COMPARED)
        .filter(|(_, line)| wanted_first.len() <= LONGEST && comparable(line))
        .map(|(at, line)| (at, strsim::sorensen_dice(line.trim(), &wanted_first)))
        .max_by(|(_, a), (_, b)| a.total_cmp(b));
    match likeness {
        Some((at, like)) if like >= LIKE => format!(
            "the text was not found. The closest match for its first line is line {}:\n{}\nwhere the text has\n{}",
            at + 1,
            quote_line(lines.get(at).copied().unwrap_or_default()),
            quote_line(wanted.get(first).copied().unwrap_or_default()),
        ),
        _ => format!(
            "the text was not found, and neither was its first line, in the {} lines of the file.",
            lines.len()
        ),
    }
}

/// Describes the lines from `start` on, and the first of them that differs.
fn describe_difference(lines: &[&str], wanted: &[&str], start: usize, same: &[usize]) -> String {
    let there = lines.get(start..).unwrap_or_default();
    let differs = |(at, line): &(usize, &&str)| there.get(*at) != Some(*line);
    let elsewhere = match same {
        [_] => String::new(),
        _ => {
            let numbers: Vec<usize> = same.iter().map(|start| start + 1).collect();
            format!(" (its first line also occurs on lines {})", named(&numbers))
        }
    };
    let found = wanted.iter().enumerate().find(differs);
    match found {
        None => format!(
            "the text was not found as given. The same lines start on line {}, but the line endings or the text around them differ{elsewhere}.",
            start + 1
        ),
        Some((at, line)) => {
            let number = start + at + 1;
            let Some(is) = there.get(at) else {
                return format!(
                    "the text was not found as given. It starts on line {}, but the file ends before its line {}:\n{}",
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
                "the text was not found as given. The closest match starts on line {}{elsewhere}; there, line {number} {how}. The file has\n{}\nwhere the text has\n{}",
                start + 1,
                quote_line(is),
                quote_line(line)
            )
        }
    }
}

/// Formats a line so that its white space is visible.
fn quote_line(line: &str) -> String {
    let shown = crate::text::head(line, SHOWN);
    let shown = shown.replace('\t', "\\t").replace('\r', "\\r");
    let more = if line.len() > SHOWN { "…" } else { "" };
    format!("  |{shown}|{more}")
}

/// Lists line numbers, up to a limit.
pub(super) fn named(lines: &[usize]) -> String {
    let mut named: Vec<String> = lines.iter().take(NAMED).map(ToString::to_string).collect();
    if lines.len() > NAMED {
        named.push("…".to_owned());
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_differs_is_named_and_shown() {
        let file = "mod a;\n\nfn one() {\n\tlet a = 1;\n\tlet b = 2;\n}\n\nfn one() {\n}\n";
        let said = explain_not_found(file, "fn one() {\n    let a = 1;\n    let b = 2;\n}");
        assert!(said.contains("starts on line 3"), "{said}");
        assert!(said.contains("also occurs on lines 3, 8"), "{said}");
        assert!(said.contains("line 4 differs only in whitespace"), "{said}");
        assert!(
            said.contains("|\\tlet a = 1;|") && said.contains("|    let a = 1;|"),
            "{said}"
        );

        let said = explain_not_found(file, "\tlet a = 1;\n\tlet b = 3;\n");
        assert!(said.contains("line 5 differs. "), "{said}");
        let said = explain_not_found("a\nb", "b\nc");
        assert!(said.contains("ends before its line 2"), "{said}");
    }

    #[test]
    fn otherwise_what_is_like_it() {
        assert!(explain_not_found("x\nlet ab = 1;\n", "ab = 1\nc").contains("part of line 2"));
        let said = explain_not_found(
            "one\nlet number = compute(1);\n",
            "let numbers = compute(1);",
        );
        assert!(said.contains("first line is line 2"), "{said}");
        assert!(explain_not_found("x\ny\n", "zzz").contains("2 lines"));
        assert!(explain_not_found("x", " \n").contains("only whitespace"));
    }
}

//! Tests that everything cited in `docs/security.md` and `docs/alternatives.md` exists.

use std::path::{Path, PathBuf};

#[test]
fn every_cited_test_exists() {
    for row in rows("security.md", "promise", 3) {
        assert!(check_tests(&row) > 0, "no test shows this: {row}");
    }
}

#[test]
fn every_row_of_the_comparison_cites_a_test_or_a_page() {
    for row in rows("alternatives.md", "feature", 9) {
        let cited = check_tests(&row) + check_pages(&row);
        assert!(cited > 0, "neither a test nor a page shows this: {row}");
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn docs() -> PathBuf {
    crates().join("../docs")
}

/// The rows of all tables of a page. Each table has `columns` columns, the first of which is called `first`.
fn rows(page: &str, first: &str, columns: usize) -> Vec<String> {
    let text = std::fs::read_to_string(docs().join(page)).unwrap();
    let header = format!("| {first} ");
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let rows: Vec<String> = rows
        .filter(|line| !line.starts_with(&header))
        .map(str::to_owned)
        .collect();
    assert!(!rows.is_empty(), "{page} has no rows");
    for row in &rows {
        assert_eq!(row.split(" | ").count(), columns, "{page}: {row}");
    }
    rows
}

fn last_cell(row: &str) -> &str {
    row.rsplit(" | ").next().unwrap()
}

/// Checks that the tests in the last cell of `row` exist, and counts them. `::test` is in the file cited before it.
fn check_tests(row: &str) -> usize {
    let mut file: Option<PathBuf> = None;
    let mut tests = 0;
    for word in last_cell(row).split('`').skip(1).step_by(2) {
        let (path, test) = word.split_once("::").unwrap_or((word, ""));
        if !path.is_empty() {
            file = Some(crates().join(path));
        }
        let file = file
            .as_ref()
            .unwrap_or_else(|| panic!("of which file? {row}"));
        let code = std::fs::read_to_string(file)
            .unwrap_or_else(|e| panic!("{}: {e}; named in {row}", file.display()));
        let function = format!("fn {test}(");
        assert!(
            test.is_empty() || code.contains(&function),
            "{} has no test {test}, which is named in {row}",
            file.display()
        );
        tests += 1;
    }
    tests
}

/// Checks that the pages to which the last cell of `row` links exist, with the headings, and counts them.
fn check_pages(row: &str) -> usize {
    let mut pages = 0;
    for link in last_cell(row).split("](").skip(1) {
        let (target, _) = link
            .split_once(')')
            .unwrap_or_else(|| panic!("a link has no end in {row}"));
        let (page, heading) = target.split_once('#').unwrap_or((target, ""));
        let text = std::fs::read_to_string(docs().join(page))
            .unwrap_or_else(|e| panic!("docs/{page}: {e}; named in {row}"));
        let mut headings = text.lines().filter(|line| line.starts_with('#'));
        assert!(
            heading.is_empty() || headings.any(|line| anchor(line) == heading),
            "docs/{page} has no heading {heading}, which is named in {row}"
        );
        pages += 1;
    }
    pages
}

/// The anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

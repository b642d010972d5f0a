//! Tests that every test cited in `docs/security.md` exists.

use std::path::{Path, PathBuf};

#[test]
fn every_cited_test_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(crates.join("../docs/security.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let rows = rows.filter(|line| !line.starts_with("| promise "));
    let mut named = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells.len(), 3, "{row}");
        let mut file: Option<PathBuf> = None;
        let words = cells[2].split('`').skip(1).step_by(2);
        let mut tests = 0;
        for word in words {
            let (path, test) = word.split_once("::").unwrap_or((word, ""));
            if !path.is_empty() {
                file = Some(crates.join(path));
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
        assert!(tests > 0, "no test shows this: {row}");
        named += tests;
    }
    assert!(named > 0, "the page has no promises");
}

//! Parses patches in git's format. Unrecognized lines are kept, because a patch is shown for review.

use super::change::{DiffRow, DiffRowKind, FileDiff, Hunk};

/// A part of a patch in git's format.
pub(super) enum PatchPart<'t> {
    /// The change to a file.
    File(FileDiff<'t>),
    /// A line outside any file's change.
    Line(&'t str),
}

/// Splits a patch into its parts.
pub(super) fn parse_parts(patch: &str) -> Vec<PatchPart<'_>> {
    let mut reader = PatchReader::default();
    for line in patch.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        reader.read_line(text);
    }
    reader.end_file();
    reader.parts
}

#[derive(Default)]
struct PatchReader<'t> {
    parts: Vec<PatchPart<'t>>,
    file: Option<FileDiff<'t>>,
    /// The path in the `---` line of the file header.
    old_path: Option<String>,
    old_mode: Option<&'t str>,
    /// The old and new numbers of the next line.
    numbers: [usize; 2],
    /// The numbers of old and new lines that remain in the hunk.
    remaining: [usize; 2],
    /// The old line number at which the previous hunk ends.
    hunk_end: usize,
}

impl<'t> PatchReader<'t> {
    fn read_line(&mut self, line: &'t str) {
        if self.read_hunk_line(line) {
            return;
        }
        if let Some(paths) = line.strip_prefix("diff --git ") {
            self.begin_file(common_path(paths));
        } else if let Some(path) = line.strip_prefix("--- ") {
            if self.file.as_ref().is_none_or(|file| !file.hunks.is_empty()) {
                // This is a patch without git's header lines.
                self.begin_file(None);
            }
            self.old_path = parse_path(path);
        } else if let Some(file) = &mut self.file {
            if let Some(path) = line.strip_prefix("+++ ") {
                match (parse_path(path), self.old_path.take()) {
                    (Some(new), _) => file.path = new,
                    (None, Some(old)) => file.path = old,
                    (None, None) => {}
                }
            } else if let Some(header) = line.strip_prefix("@@ ") {
                if !self.begin_hunk(header) {
                    self.push_unrecognized(line);
                }
            } else if !self.read_file_header(line) {
                self.push_unrecognized(line);
            }
        } else {
            self.push_unrecognized(line);
        }
    }

    /// Parses a line of a file header. Returns whether the line was recognized.
    fn read_file_header(&mut self, line: &'t str) -> bool {
        let Some(file) = &mut self.file else {
            return false;
        };
        let special = |mode| match mode {
            "100644" => None,
            "100755" => Some("executable".to_owned()),
            "120000" => Some("symbolic link".to_owned()),
            "160000" => Some("submodule".to_owned()),
            other => Some(format!("mode {other}")),
        };
        if let Some(mode) = line.strip_prefix("new file mode ") {
            file.add_note("new file");
            special(mode)
                .into_iter()
                .for_each(|note| file.add_note(note));
        } else if let Some(mode) = line.strip_prefix("deleted file mode ") {
            file.add_note("deleted");
            special(mode)
                .filter(|_| mode != "100755")
                .into_iter()
                .for_each(|note| file.add_note(note));
        } else if let Some(mode) = line.strip_prefix("old mode ") {
            self.old_mode = Some(mode);
        } else if let Some(mode) = line.strip_prefix("new mode ") {
            let old = self.old_mode.take().unwrap_or("?");
            file.add_note(format!("mode {old} → {mode}"));
        } else if let Some(path) = line.strip_prefix("rename from ") {
            file.add_note(format!("moved from {}", unquote(path)));
        } else if let Some(path) = line.strip_prefix("copy from ") {
            file.add_note(format!("copied from {}", unquote(path)));
        } else if let Some(path) = line
            .strip_prefix("rename to ")
            .or_else(|| line.strip_prefix("copy to "))
        {
            file.path = unquote(path);
        } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
            file.add_note("binary");
        } else {
            return line.is_empty()
                || ["index ", "similarity index ", "dissimilarity index "]
                    .iter()
                    .any(|known| line.starts_with(known));
        }
        true
    }

    /// Parses a line of the current hunk. Returns whether the line belongs to the hunk.
    fn read_hunk_line(&mut self, line: &'t str) -> bool {
        let Some(file) = &mut self.file else {
            return false;
        };
        let Some(hunk) = file.hunks.last_mut() else {
            return false;
        };
        if line.starts_with('\\') {
            // `\ No newline at end of file`, about the previous line.
            if let Some(row) = hunk.rows.last_mut() {
                row.lacks_final_newline = true;
                return true;
            }
            return false;
        }
        if self.remaining == [0, 0] {
            return false;
        }
        let (kind, text) = match line.as_bytes().first() {
            Some(b'+') => (DiffRowKind::Added, line.get(1..)),
            Some(b'-') => (DiffRowKind::Removed, line.get(1..)),
            Some(b' ') => (DiffRowKind::Context, line.get(1..)),
            // This is an empty context line that has lost its leading space.
            None => (DiffRowKind::Context, Some(line)),
            Some(b'\r') if line.len() == 1 => (DiffRowKind::Context, Some(line)),
            Some(_) => {
                self.remaining = [0, 0];
                return false;
            }
        };
        let sides = match kind {
            DiffRowKind::Context => [1, 1],
            DiffRowKind::Removed => [1, 0],
            DiffRowKind::Added => [0, 1],
        };
        let numbers = [0, 1].map(|side| {
            let passed = sides.get(side).copied().unwrap_or(0);
            let next = self.numbers.get(side).copied().unwrap_or(0);
            (passed, next)
        });
        hunk.rows.push(DiffRow {
            kind,
            numbers: numbers.map(|(passed, next)| {
                if passed == 1 {
                    next
                } else {
                    next.saturating_sub(1)
                }
            }),
            text: text.unwrap_or_default(),
            lacks_final_newline: false,
        });
        self.numbers = numbers.map(|(passed, next)| next.saturating_add(passed));
        let [old, new] = sides;
        let [old_left, new_left] = self.remaining;
        self.remaining = [old_left.saturating_sub(old), new_left.saturating_sub(new)];
        file.removed += usize::from(kind == DiffRowKind::Removed);
        file.added += usize::from(kind == DiffRowKind::Added);
        self.hunk_end = self.numbers.first().copied().unwrap_or(0);
        true
    }

    /// Parses a hunk header such as `-1,3 +1,4 @@ fn main() {`. Returns whether it was recognized.
    fn begin_hunk(&mut self, header: &'t str) -> bool {
        let read = || {
            let (ranges, title) = header.split_once(" @@")?;
            let (old, new) = ranges.split_once(' ')?;
            let range = |text: &str, sign| {
                let text = text.strip_prefix(sign)?;
                let (start, count) = text.split_once(',').unwrap_or((text, "1"));
                Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?))
            };
            Some((range(old, '-')?, range(new, '+')?, title.trim()))
        };
        let (Some(file), Some((old, new, title))) = (&mut self.file, read()) else {
            return false;
        };
        // An empty range starts after the line that it names.
        let first = |(start, count): (usize, usize)| {
            if count == 0 {
                start.saturating_add(1)
            } else {
                start
            }
        };
        let start = first(old);
        file.hunks.push(Hunk {
            lines_before: start.saturating_sub(self.hunk_end.max(1)),
            title,
            rows: Vec::new(),
        });
        self.numbers = [start, first(new)];
        self.remaining = [old.1, new.1];
        self.hunk_end = start;
        true
    }

    fn begin_file(&mut self, path: Option<String>) {
        self.end_file();
        self.file = Some(FileDiff {
            path: path.unwrap_or_default(),
            ..FileDiff::default()
        });
    }

    fn end_file(&mut self) {
        if let Some(mut file) = self.file.take() {
            file.hunks.retain(|hunk| !hunk.rows.is_empty());
            self.parts.push(PatchPart::File(file));
        }
        self.old_path = None;
        self.old_mode = None;
        self.remaining = [0, 0];
        self.hunk_end = 0;
    }

    /// Adds a patch line that was not recognized.
    fn push_unrecognized(&mut self, line: &'t str) {
        match &mut self.file {
            Some(file) if file.notes.iter().any(|note| note == "binary") => {}
            Some(file) => file.remarks.push(line.to_owned()),
            None if line.trim().is_empty() => {}
            None => self.parts.push(PatchPart::Line(line)),
        }
    }
}

/// Parses the path in a line such as `--- path`. Returns `None` for `/dev/null`.
fn parse_path(text: &str) -> Option<String> {
    // Some tools write a date after the path.
    let path = text.split('\t').next().unwrap_or(text);
    (path != "/dev/null").then(|| unquote(path))
}

/// Returns the path from `diff --git path path`, if the two paths are the same.
fn common_path(paths: &str) -> Option<String> {
    let middle = paths.len() / 2;
    let (old, new) = (
        paths.get(..middle)?,
        paths.get(middle..)?.strip_prefix(' ')?,
    );
    (old == new).then(|| unquote(old))
}

/// Unquotes a path that git quoted because of special characters.
fn unquote(path: &str) -> String {
    let path = path.strip_suffix('\r').unwrap_or(path);
    let inside = path
        .strip_prefix('"')
        .and_then(|path| path.strip_suffix('"'));
    let Some(inside) = inside else {
        return path.to_owned();
    };
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(u8::try_from(value & 0xff).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

//! A realistic conversation with a coding agent: prose, code in several languages, tables, file changes, command
//! output. All items differ, and are the same in each run.

use acp::v1::{Diff, TerminalId, ToolCall, ToolCallLocation, ToolCallStatus, ToolKind};
use serde_json::json;

/// The number of items after which the kinds repeat.
const ITEMS_PER_CYCLE: usize = 10;

const FILLER_TEXT: &str = "The reader takes a line from the transport, looks at the first bytes of it and knows by them \
    whose it is. What it does not know it passes on, with a note that says where it was found, and **nothing is lost** \
    on the way: see `connection/frame.rs` for how long a line may be. An error is told to whoever waits for the answer. ";

const CODE_SAMPLES: [(&str, &str); 6] = [
    (
        "rust",
        "/// The next line, if there is one.\npub fn next(&mut self) -> Option<Result<&str, Error>> {\n    let end = \
         memchr::memchr(b'\\n', self.unread())?;\n    match std::str::from_utf8(&self.unread()[..end]) {\n        \
         Ok(line) => Some(Ok(line.trim_end())), // without the feed\n        Err(e) => Some(Err(Error::NotText(e, \
         42))),\n    }\n}\n",
    ),
    (
        "python",
        "@dataclass\nclass Reader:\n    \"\"\"Reads lines.\"\"\"\n    path: Path\n\n    def lines(self, most: int = 10) \
         -> Iterator[str]:\n        with open(self.path) as file:\n            for number, line in \
         enumerate(file):\n                if number >= most:\n                    return\n                yield \
         f\"{number}: {line.strip()}\"\n",
    ),
    (
        "typescript",
        "export async function* lines(path: string, most = 10): AsyncGenerator<string> {\n  const file = await \
         open(path);\n  try {\n    for await (const line of file.readLines()) {\n      if (most-- === 0) return;\n      \
         yield `${most}: ${line.trim()}`;\n    }\n  } finally {\n    await file.close();\n  }\n}\n",
    ),
    (
        "bash",
        "set -euo pipefail\nfor file in \"$@\"; do\n  if [[ -f \"$file\" ]]; then\n    head -n 10 -- \"$file\" | sed \
         -e 's/[[:space:]]*$//' >> \"${OUT:-lines.txt}\"\n  fi\ndone\n",
    ),
    (
        "json",
        "{\n  \"name\": \"reader\",\n  \"lines\": 10,\n  \"paths\": [\"a.txt\", \"b.txt\"],\n  \"strict\": true\n}\n",
    ),
    (
        "go",
        "func Lines(path string, most int) ([]string, error) {\n\tfile, err := os.Open(path)\n\tif err != nil {\n\t\treturn \
         nil, fmt.Errorf(\"lines of %s: %w\", path, err)\n\t}\n\tdefer file.Close()\n\tvar lines []string\n\tfor scan \
         := bufio.NewScanner(file); scan.Scan() && len(lines) < most; {\n\t\tlines = append(lines, \
         scan.Text())\n\t}\n\treturn lines, nil\n}\n",
    ),
];

/// An item of the conversation.
pub(crate) enum BenchItem {
    User(String),
    Thought(String),
    Agent(String),
    ToolCall(Box<ToolCall>),
}

/// Writes items, and counts the amount of their text.
#[derive(Default)]
pub(crate) struct ItemWriter {
    bytes: usize,
}

impl ItemWriter {
    /// The amount of text so far, in bytes: messages, changes, output.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn count_bytes(&mut self, text: String) -> String {
        self.bytes += text.len();
        text
    }

    /// Writes the item with this number.
    pub(crate) fn next_item(&mut self, number: usize) -> BenchItem {
        let (language, code) = CODE_SAMPLES[number / ITEMS_PER_CYCLE % CODE_SAMPLES.len()];
        match number % ITEMS_PER_CYCLE {
            0 => BenchItem::User(self.count_bytes(format!(
                "Question {number}: what happens with a line that is too long, and who is told of it?"
            ))),
            1 => BenchItem::Thought(self.count_bytes(format!("Thought {number}. {}", FILLER_TEXT.repeat(2)))),
            2 => {
                BenchItem::Agent(self.count_bytes(format!("## Answer {number}\n\n{}\n\n{}", FILLER_TEXT, render_list(number))))
            }
            3 => self.tool_call(number, "Read `src/reader.rs`", ToolKind::Read),
            4 => self.edit_call(number, language, code),
            5 => self.command_call(number),
            6 => BenchItem::Agent(self.count_bytes(format!(
                "In {language} that is ({number}):\n\n```{language}\n{code}```\n\n{FILLER_TEXT}\n"
            ))),
            7 => self.tool_call(number, "Search for `fn next`", ToolKind::Search),
            8 => {
                // What follows is a message of its own, with a call in between.
                BenchItem::Agent(self.count_bytes(format!("Results of {number}:\n\n{}\n{FILLER_TEXT}", render_table(number))))
            }
            _ => self.tool_call(number, "Think about what is left", ToolKind::Think),
        }
    }

    fn tool_call(&mut self, number: usize, title: &str, kind: ToolKind) -> BenchItem {
        let text = self.count_bytes(format!("{number}: {FILLER_TEXT}"));
        BenchItem::ToolCall(Box::new(
            ToolCall::new(format!("call-{number}"), format!("{title} ({number})"))
                .kind(kind)
                .status(ToolCallStatus::Completed)
                .locations(vec![ToolCallLocation::new(format!(
                    "/src/reader-{number}.rs"
                ))])
                .raw_input(json!({"path": format!("src/reader-{number}.rs"), "limit": 100}))
                .content(vec![acp::v1::ContentBlock::text(text).into()]),
        ))
    }

    fn edit_call(&mut self, number: usize, language: &str, code: &str) -> BenchItem {
        let before = self.count_bytes(format!("{code}\n{code}"));
        let changed = code.replace("10", "20").replace("line", "row");
        let after = self.count_bytes(format!("{changed}\n{code}"));
        let path = format!("/src/reader-{number}.{}", file_extension(language));
        BenchItem::ToolCall(Box::new(
            ToolCall::new(format!("call-{number}"), format!("Edit `{path}`"))
                .kind(ToolKind::Edit)
                .status(ToolCallStatus::Completed)
                .locations(vec![ToolCallLocation::new(path.clone())])
                .content(vec![Diff::new(path, after).old_text(before).into()]),
        ))
    }

    /// Writes a command with a terminal of the agent.
    fn command_call(&mut self, number: usize) -> BenchItem {
        let lines = (0..12).map(|line| {
            let sign = if line % 5 == 4 {
                "\x1b[31mFAILED\x1b[0m"
            } else {
                "\x1b[32mok\x1b[0m"
            };
            format!("test reader::tests::line_{number}_{line} ... {sign}\r\n")
        });
        let output = self.count_bytes(lines.collect());
        let id = format!("terminal-{number}");
        let mut meta = acp::wire::Meta::new();
        meta.insert(
            "terminal_info".to_owned(),
            json!({"terminal_id": id, "cwd": "/src"}),
        );
        meta.insert(
            "terminal_output".to_owned(),
            json!({"terminal_id": id, "data": output}),
        );
        meta.insert(
            "terminal_exit".to_owned(),
            json!({"terminal_id": id, "exit_code": 0}),
        );
        BenchItem::ToolCall(Box::new(
            ToolCall::new(
                format!("call-{number}"),
                format!("Run `cargo test {number}`"),
            )
            .kind(ToolKind::Execute)
            .status(ToolCallStatus::Completed)
            .content(vec![TerminalId::from(id).into()])
            .meta(meta),
        ))
    }
}

fn file_extension(language: &str) -> &str {
    match language {
        "rust" => "rs",
        "python" => "py",
        "typescript" => "ts",
        "bash" => "sh",
        other => other,
    }
}

fn render_list(number: usize) -> String {
    let entries = (1..=3).map(|entry| {
        format!("{entry}. what was found in *part {number}.{entry}*, and [where](https://example.org/{number}/{entry})\n")
    });
    entries.collect()
}

fn render_table(number: usize) -> String {
    let rows = (0..4).map(|row| {
        format!(
            "| part {row} | {} | `{row}` of {number} |\n",
            number * 7 + row
        )
    });
    let head = "| part | bytes | state |\n|---|---:|---|\n";
    rows.fold(head.to_owned(), |table, row| table + &row)
}

/// A response without an end.
pub(crate) fn answer() -> BenchAnswer {
    let mut text = String::new();
    for (language, code) in CODE_SAMPLES {
        text.push_str(&format!(
            "### In {language}\n\n{FILLER_TEXT}\n\n{FILLER_TEXT}\n\n```{language}\n{code}```\n\n"
        ));
        text.push_str(&render_list(1));
        text.push('\n');
        text.push_str(&render_table(1));
        text.push('\n');
    }
    BenchAnswer { text, offset: 0 }
}

/// The text of the response, which repeats.
pub(crate) struct BenchAnswer {
    text: String,
    offset: usize,
}

impl BenchAnswer {
    /// Returns the next bytes of the text, at most up to the end of one repetition.
    pub(crate) fn next(&mut self, bytes: usize) -> &str {
        if self.offset >= self.text.len() {
            self.offset = 0;
        }
        let begin = self.offset;
        let mut end = (begin + bytes).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        self.offset = end;
        self.text.get(begin..end).unwrap_or_default()
    }
}

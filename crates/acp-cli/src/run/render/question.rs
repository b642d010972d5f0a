//! Renders a permission request as text, with all its details and the possible answers. Truncates nothing, and escapes
//! invisible characters.
//!
//! Text of the agent with several lines has a bar before each line, so that it cannot pass for text of this program.

use std::path::Path;

use acp::client::PermissionRequest;
use acp_host::question::{self, question_text};
use acp_host::{AlwaysEffect, literal};

use crate::screen::{ScreenOutput, wrap_question};

/// Renders the question. `cwd` is the session's working directory.
pub(crate) fn render_question(
    request: &PermissionRequest,
    always: &AlwaysEffect,
    cwd: &Path,
    out: &mut ScreenOutput,
) {
    let mut text = question_text(request, cwd);
    let (rows, most) = count_rows(&text);
    if rows + request.options.len() + 2 > most {
        text.push_str(&format!(
            "  (the question is {rows} lines long; scroll up to read it)\n"
        ));
    }
    let letters = question::answer_letters(&request.options, always);
    for (n, (option, letter)) in request.options.iter().zip(letters).enumerate() {
        let meaning = question::describe_answer(option, always, request, cwd);
        let meaning = meaning.unwrap_or_else(|| {
            let kind = option.kind.as_str();
            format!("unknown whether this option allows or rejects (kind {kind:?})")
        });
        let name = literal::escape_line(&option.name);
        // Before the name, so that it cannot be a part of the agent's text.
        let letter = letter.map_or_else(|| "   ".to_owned(), |letter| format!("[{letter}]"));
        text.push_str(&format!("  {letter} {}) {name}", n + 1));
        if !meaning.is_empty() {
            text.push_str(&format!(" – {}", literal::escape_line(&meaning)));
        }
        text.push('\n');
    }
    out.push_text(&text);
}

/// Returns the number of rows that text occupies on the terminal, and the terminal's height.
fn count_rows(text: &str) -> (usize, usize) {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let most = size.map_or(usize::MAX, |(_, rows)| usize::from(rows.0));
    (wrap_question(text).lines().count(), most)
}

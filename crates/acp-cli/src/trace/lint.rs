//! `acp trace lint`: finds protocol violations in a trace.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use acp_check::RequirementLevel;
use acp_host::terminal_text;
use acp_trace::{LintFinding, TraceLinter, TraceReader};
use anstyle::Style;
use serde_json::json;

use crate::args::trace::{LintArgs, LintFormat};
use crate::exit::CommandExit;
use crate::screen::{self, Styles};

/// How many bytes of output to buffer before printing them.
const PRINT_THRESHOLD_BYTES: usize = 64 * 1024;

pub(super) fn lint_trace(args: &LintArgs) -> CommandExit {
    let of_file =
        |e: &dyn std::fmt::Display| CommandExit::usage(format!("{}: {e}", args.file.display()));
    let reader = match TraceReader::open(&args.file) {
        Ok(reader) => reader,
        Err(e) => return of_file(&e),
    };
    let mut lint = TraceLinter::new();
    let mut output = LintOutput::new(args);
    for record in reader {
        match record {
            Ok(record) => output.push_all(lint.check_record(record)),
            Err(e) if e.is_line_error() => {
                eprintln!("{}", terminal_text::clean_line(&e.to_string()));
                lint.skip_line();
            }
            Err(e) => return of_file(&e),
        }
        if output.out.len() > PRINT_THRESHOLD_BYTES && !output.print() {
            return CommandExit::STDOUT_CLOSED;
        }
    }
    output.push_all(lint.end());
    output.push_totals(lint.messages());
    if !output.print() {
        return CommandExit::STDOUT_CLOSED;
    }
    if output.must > 0 || (args.strict && output.should > 0) {
        CommandExit::FINDINGS
    } else {
        CommandExit::SUCCESS
    }
}

/// The output and the running totals.
struct LintOutput<'a> {
    args: &'a LintArgs,
    styles: Styles,
    must: u64,
    should: u64,
    by_rule: BTreeMap<(RequirementLevel, &'static str, &'static str), u64>,
    out: String,
}

impl<'a> LintOutput<'a> {
    fn new(args: &'a LintArgs) -> Self {
        Self {
            args,
            styles: Styles::for_stdout(),
            must: 0,
            should: 0,
            by_rule: BTreeMap::new(),
            out: String::new(),
        }
    }

    fn push_all(&mut self, problems: Vec<LintFinding>) {
        for problem in problems
            .iter()
            .filter(|problem| passes_filter(self.args, problem))
        {
            match problem.level {
                RequirementLevel::Must => self.must += 1,
                _ => self.should += 1,
            }
            let rule = (problem.level, problem.rule, problem.side.name());
            *self.by_rule.entry(rule).or_default() += 1;
            match self.args.format {
                LintFormat::Text => self.push_text(problem),
                LintFormat::Json => self.push_json(problem),
            }
        }
    }

    fn push_text(&mut self, problem: &LintFinding) {
        let LintFinding {
            line,
            level,
            rule,
            section,
            ..
        } = problem;
        let style = match level {
            RequirementLevel::Must => self.styles.bad,
            _ => Style::new(),
        };
        let _ = write!(self.out, "{line}: {style}{level} {rule}{style:#}: ");
        self.out.push_str(&terminal_text::clean_line(&problem.text));
        if let Some(earlier) = problem.earlier {
            let _ = write!(self.out, " (line {earlier})");
        }
        let mut about = format!("[{section}]");
        if let Some(message) = &problem.message {
            let _ = write!(about, " in {}", message.name);
            if !message.summary.is_empty() {
                let _ = write!(about, ": {}", message.summary);
            }
        }
        let dim = self.styles.dim;
        let _ = writeln!(
            self.out,
            " {dim}{}{dim:#}",
            terminal_text::clean_line(&about)
        );
    }

    fn push_json(&mut self, problem: &LintFinding) {
        let message = problem.message.as_ref().map(|message| {
            json!({
                "name": message.name,
                "method": message.method,
                "session": message.session,
                "summary": message.summary,
            })
        });
        let output = json!({
            "line": problem.line,
            "earlier": problem.earlier,
            "side": problem.side.name(),
            "level": problem.level.to_string(),
            "rule": problem.rule,
            "section": problem.section,
            "text": problem.text,
            "message": message,
        });
        let _ = writeln!(self.out, "{output}");
    }

    fn push_totals(&mut self, messages: u64) {
        let (must, should) = (self.must, self.should);
        match self.args.format {
            LintFormat::Json => {
                let rules: Vec<_> = self
                    .by_rule
                    .iter()
                    .map(|((level, rule, side), count)| {
                        json!({"rule": rule, "level": level.to_string(), "side": side, "count": count})
                    })
                    .collect();
                let sums =
                    json!({"messages": messages, "must": must, "should": should, "rules": rules});
                let _ = writeln!(self.out, "{sums}");
            }
            LintFormat::Text => {
                if !self.by_rule.is_empty() {
                    self.out.push('\n');
                }
                for ((level, rule, side), count) in &self.by_rule {
                    let _ = writeln!(self.out, "{count:>7} × {level} {rule}, {side}");
                }
                let _ = writeln!(
                    self.out,
                    "{}, {}, {}",
                    format_count(messages, "message"),
                    format_count(must, "MUST violation"),
                    format_count(should, "SHOULD violation")
                );
            }
        }
    }

    /// Prints the buffered output. Returns `false` if the reader of stdout has closed it.
    fn print(&mut self) -> bool {
        let printed = screen::print(self.out.as_bytes());
        self.out.clear();
        printed
    }
}

/// Formats a count with its noun, in the singular or plural.
pub(super) fn format_count(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn passes_filter(args: &LintArgs, problem: &LintFinding) -> bool {
    let message = problem.message.as_ref();
    let session = message.and_then(|message| message.session.as_deref());
    let method = message.map(|message| message.method.as_str());
    let update = message.and_then(|message| message.update.as_deref());
    let names = [method, update].into_iter().flatten();
    args.filter.matches(Some(problem.side), session, names)
}

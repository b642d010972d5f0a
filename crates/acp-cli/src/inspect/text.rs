//! Shows what `acp inspect` has found out as text.

use acp_host::terminal_text::{
    MAX_MESSAGE_CHARS, clean_line, clean_text, clean_value, truncate_middle,
};
use anstyle::Style;
use serde_json::Value;

use super::report::{
    CommandReport, InspectReport, LoginReport, OptionReport, ProgramReport, SessionReport,
};
use crate::screen::Styles;

/// Renders the report, with styles if stdout is a terminal.
pub(super) fn render_report(report: &InspectReport) -> String {
    let mut page = Page {
        text: String::new(),
        styles: Styles::for_stdout(),
    };
    page.add_program(report);
    page.add_capabilities(report);
    page.add_logins(&report.logins);
    if let Some(session) = &report.session {
        page.add_session(session);
    }
    page.text
}

struct Page {
    text: String,
    styles: Styles,
}

/// A row of a table: each cell is shown on one line.
type Row = Vec<String>;

impl Page {
    fn add_program(&mut self, report: &InspectReport) {
        let ProgramReport {
            name,
            title,
            version,
            command,
            url,
        } = &report.agent;
        let shown = title.as_ref().or(name.as_ref());
        let mut heading = shown.map_or_else(
            || "An agent that does not say its name".to_owned(),
            |name| clean_value(name),
        );
        if let Some(version) = version {
            heading += &format!(" {}", clean_value(version));
        }
        self.add_heading(&heading);
        let mut rows = Vec::new();
        if let Some(name) = name.as_ref().filter(|_| title.is_some()) {
            rows.push(row(["name", name]));
        }
        match url {
            Some(url) => rows.push(row(["URL", url])),
            None => {
                let words: Vec<String> =
                    command.iter().map(|word| acp_config::quote(word)).collect();
                // The user's own words are shown in full.
                rows.push(vec!["command".to_owned(), clean_line(&words.join(" "))]);
            }
        }
        let accepted: Vec<String> = report
            .protocol
            .accepted
            .iter()
            .map(ToString::to_string)
            .collect();
        let versions = format!(
            "{} (inspected in version {})",
            accepted.join(", "),
            report.protocol.inspected
        );
        rows.push(row(["protocol", &versions]));
        self.add_table(&rows);
    }

    fn add_capabilities(&mut self, report: &InspectReport) {
        let capabilities = &report.capabilities;
        let prompt = capabilities.prompt.iter().map(|kind| match *kind {
            "resource_link" => "resource links",
            "resource" => "embedded resources",
            "image" => "images",
            other => other,
        });
        let mut rows = Vec::new();
        for (what, list) in [
            ("prompts", prompt.collect()),
            ("sessions", capabilities.session_methods.clone()),
            ("session params", capabilities.session_params.clone()),
            ("MCP servers", capabilities.mcp.clone()),
            ("other methods", capabilities.other_methods.clone()),
        ] {
            let list = if list.is_empty() {
                "none".to_owned()
            } else {
                list.join(", ")
            };
            rows.push(row([what, &list]));
        }
        self.add_heading("Capabilities");
        self.add_table(&rows);
        if capabilities.extensions.is_empty() {
            return;
        }
        self.add_heading("Extensions");
        let extensions = capabilities.extensions.iter();
        let rows: Vec<Row> = extensions
            .map(|(path, value)| row([path, &value.to_string()]))
            .collect();
        self.add_table(&rows);
    }

    fn add_logins(&mut self, logins: &[LoginReport]) {
        self.add_heading("Logins");
        let rows: Vec<Row> = logins
            .iter()
            .map(|login| {
                let how = match login.kind.as_str() {
                    "terminal" => " (needs a terminal)".to_owned(),
                    "agent" | "" => String::new(),
                    kind => format!(" (unknown type {kind})"),
                };
                let name = format!("{}{how}", login.name);
                let description = login.description.as_deref().unwrap_or_default();
                row([&login.id, &name, description])
            })
            .collect();
        self.add_table_or_none(&rows);
    }

    fn add_session(&mut self, session: &SessionReport) {
        self.add_heading("Session");
        if !session.is_open {
            let what = match session.needs_login {
                true => "needs a login",
                false => "cannot be opened",
            };
            let why = session.error.as_deref().unwrap_or_default();
            let text = clean_text(&format!("{what}: {why}"));
            for line in truncate_middle(&text, MAX_MESSAGE_CHARS).lines() {
                self.add_line(line);
            }
            return;
        }
        self.add_line("can be opened without a login");
        for (title, option) in [("Modes", &session.mode), ("Models", &session.model)] {
            if let Some(option) = option {
                self.add_heading(title);
                self.add_values(option);
            }
        }
        for option in &session.options {
            let id = clean_value(&option.id);
            let kind = match option.kind.as_str() {
                "select" | "boolean" => String::new(),
                kind => format!(", unknown type {}", clean_value(kind)),
            };
            let name = clean_value(&option.name);
            self.add_heading(&format!("Option {id} ({name}{kind})"));
            if let Some(description) = &option.description {
                self.add_line(&clean_value(description));
            }
            self.add_values(option);
        }
        self.add_heading("Commands");
        match &session.commands {
            Some(commands) => self.add_commands(commands),
            None => self.add_line("the agent reported none within 2 s"),
        }
    }

    /// Adds the values of an option. The current one is marked.
    fn add_values(&mut self, option: &OptionReport) {
        if let Value::Bool(is_on) = option.current {
            self.add_line(if is_on { "on" } else { "off" });
            return;
        }
        let current = option.current.as_str();
        let rows: Vec<Row> = option
            .values
            .iter()
            .map(|value| {
                let mark = if current == Some(&value.value) {
                    "*"
                } else {
                    " "
                };
                let name = match &value.group {
                    Some(group) => format!("{group}: {}", value.name),
                    None => value.name.clone(),
                };
                let description = value.description.as_deref().unwrap_or_default();
                let mut cells = row([&value.value, &name, description]);
                if let Some(first) = cells.first_mut() {
                    first.insert_str(0, &format!("{mark} "));
                }
                cells
            })
            .collect();
        self.add_table_or_none(&rows);
    }

    fn add_commands(&mut self, commands: &[CommandReport]) {
        let rows: Vec<Row> = commands
            .iter()
            .map(|command| {
                let mut usage = format!("/{}", command.name);
                if let Some(hint) = &command.hint {
                    usage += &format!(" {hint}");
                }
                row([&usage, &command.description])
            })
            .collect();
        self.add_table_or_none(&rows);
    }

    fn add_heading(&mut self, heading: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let style: Style = self.styles.bold;
        self.text.push_str(&format!("{style}{heading}{style:#}\n"));
    }

    fn add_line(&mut self, line: &str) {
        self.text.push_str(&format!("  {line}\n"));
    }

    fn add_table_or_none(&mut self, rows: &[Row]) {
        match rows.is_empty() {
            true => self.add_line("none"),
            false => self.add_table(rows),
        }
    }

    /// Adds rows with aligned columns.
    fn add_table(&mut self, rows: &[Row]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                let widths = cells.map(|cell| cell.chars().count());
                widths.max().unwrap_or_default().min(MAX_COLUMN_WIDTH)
            })
            .collect();
        for row in rows {
            let mut line = String::new();
            let mut column_start = 0;
            for (cell, width) in row.iter().zip(&widths) {
                if line.chars().count() > column_start {
                    self.add_line(line.trim_end());
                    line.clear();
                }
                line += &" ".repeat(column_start - line.chars().count());
                line += &format!("{cell:width$}  ", width = *width);
                column_start += width + 2;
            }
            self.add_line(line.trim_end());
        }
    }
}

/// The maximum width of a column. After a longer cell, the row continues on the next line.
const MAX_COLUMN_WIDTH: usize = 40;

/// Creates a row. Control characters in the cells are removed, and long cells are truncated.
fn row<const N: usize>(cells: [&str; N]) -> Row {
    cells.into_iter().map(clean_value).collect()
}

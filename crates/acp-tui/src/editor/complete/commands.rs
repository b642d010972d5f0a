//! Completes the agent's slash commands.

use acp::v1::AvailableCommand;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::editor::popup::PopupRow;

/// The maximum number of commands offered. An agent can send any number.
const MAX_COMMANDS: usize = 1_000;
/// The maximum length of a name, description or hint, in characters. Longer ones are truncated.
const MAX_DESCRIPTION_CHARS: usize = 200;

/// A slash command from the agent, sanitized for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandItem {
    /// The name of the command, without the slash.
    pub(crate) name: String,
    description: String,
    /// A hint about the input that follows the name.
    pub(crate) hint: Option<String>,
}

impl CommandItem {
    /// Converts the agent's commands to items. Omits commands that cannot be typed.
    pub(crate) fn from_available(commands: &[AvailableCommand]) -> Vec<Self> {
        let fit = |text: &str| -> String {
            let start: String = text.chars().take(MAX_DESCRIPTION_CHARS).collect();
            acp_host::terminal_text::clean_line(&start)
        };
        let commands = commands.iter().take(MAX_COMMANDS).map(|command| Self {
            name: fit(&command.name),
            description: fit(&command.description),
            hint: command.input.as_ref().map(|input| fit(&input.hint)),
        });
        commands
            .filter(|command| !command.name.is_empty())
            .collect()
    }
}

/// Returns the matching commands as indices and rows, best first. If `query` is empty, returns all commands in the
/// agent's order.
pub(super) fn search_commands(commands: &[CommandItem], query: &str) -> Vec<(usize, PopupRow)> {
    let mut matcher = Matcher::new(Config::DEFAULT);
    let pattern = Pattern::new(
        query,
        CaseMatching::Ignore,
        Normalization::Smart,
        AtomKind::Fuzzy,
    );
    let mut buffer = Vec::new();
    let mut found = Vec::new();
    for (index, command) in commands.iter().enumerate() {
        let mut matched = Vec::new();
        let name = Utf32Str::new(&command.name, &mut buffer);
        let Some(score) = pattern.indices(name, &mut matcher, &mut matched) else {
            continue;
        };
        matched.sort_unstable();
        matched.dedup();
        let row = PopupRow {
            label: format!("/{}", command.name),
            // The slash comes before them.
            match_indices: matched.into_iter().map(|at| at + 1).collect(),
            detail: command.description.clone(),
            end_first: false,
        };
        // A command with exactly this name comes first, whatever else matches.
        let exact = command.name == query;
        found.push((exact, score, index, row));
    }
    found.sort_by_key(|(exact, score, ..)| std::cmp::Reverse((*exact, *score)));
    found
        .into_iter()
        .map(|(_, _, index, row)| (index, row))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_keep_the_agents_order_until_filtered() {
        let commands = ["review", "compact", "plan"].map(|name| {
            let does = format!("what {name}\u{1b}[2J does\nand more");
            AvailableCommand::new(name, does)
        });
        let commands = CommandItem::from_available(&commands);
        let labels = |query| -> Vec<String> {
            let found = search_commands(&commands, query).into_iter();
            found.map(|(_, row)| row.label).collect()
        };
        assert_eq!(labels(""), ["/review", "/compact", "/plan"]);
        assert_eq!(labels("pl"), ["/plan"]);
        let (_, row) = search_commands(&commands, "cmp").remove(0);
        assert_eq!(
            (row.label.as_str(), row.match_indices),
            ("/compact", vec![1, 3, 4])
        );
        assert_eq!(row.detail, "what compact does and more");
    }
}

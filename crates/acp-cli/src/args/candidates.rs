//! Completion candidates for argument values, such as agents, session names, modes and policies.
//!
//! To complete a command, a shell runs `acp` with the words typed so far (`completions.rs`). No agent is started and
//! nobody is asked. Where something cannot be read, nothing is offered: a shell has no place for an error.

use std::path::PathBuf;

use acp_agent::Mode;
use acp_config::themes::list_themes;
use acp_config::{
    AgentChoice, AgentList, AgentSelector, InstalledAgents, SessionNames, UserConfig,
};
use acp_host::{Policy, terminal_text};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

/// Returns the agents that the user can choose.
pub(crate) fn agent_names() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let list = UserConfig::read().and_then(|config| {
            let cwd = TypedWords::from_process_args().working_directory();
            AgentList::discover(&config, &cwd)
        });
        let usable_agents = list.map(AgentList::usable_agents).unwrap_or_default();
        let candidates = usable_agents.into_iter().map(|agent| {
            let summary = terminal_text::clean_line(&agent.summary());
            CompletionCandidate::new(agent.name).help(Some(summary.into()))
        });
        candidates.collect()
    })
}

/// Returns the agents that are installed from a registry.
pub(crate) fn installed_agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let agents = InstalledAgents::open().and_then(|agents| agents.list().ok());
        let candidates = agents.into_iter().flatten().map(|agent| {
            let summary = terminal_text::clean_line(&format!("{} {}", agent.title, agent.version));
            CompletionCandidate::new(agent.id).help(Some(summary.into()))
        });
        candidates.collect()
    })
}

/// Returns the themes of the chat.
pub(crate) fn theme_names() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let auto = CompletionCandidate::new("auto");
        let auto = auto.help(Some("dark or light, like the terminal".into()));
        let themes = list_themes().into_iter().map(|theme| {
            let about = terminal_text::clean_line(&theme.about);
            CompletionCandidate::new(theme.name.to_string()).help(Some(about.into()))
        });
        std::iter::once(auto).chain(themes).collect()
    })
}

/// Returns the names of the sessions that the chosen agent has in the directory.
pub(crate) fn session_names() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let typed = TypedWords::from_process_args();
        let Some(agent) = typed.chosen_agent() else {
            return Vec::new();
        };
        let names = SessionNames::open(agent.storage_key(), &typed.working_directory());
        let mut sessions = names.list().unwrap_or_default();
        // The latest name first: it is the likeliest.
        sessions.reverse();
        let names = sessions.into_iter().map(|session| session.name);
        names.map(CompletionCandidate::new).collect()
    })
}

/// Returns the chosen agent's modes, as far as they are known without starting it: all of them for the bundled agent,
/// and only the configured one for any other agent.
pub(crate) fn mode_names() -> ArgValueCandidates {
    ArgValueCandidates::new(|| match TypedWords::from_process_args().chosen_agent() {
        Some(agent) if agent.is_bundled() => {
            let modes = Mode::ALL.into_iter();
            modes
                .map(|mode| {
                    CompletionCandidate::new(mode.as_str())
                        .help(Some(mode.description().to_owned().into()))
                })
                .collect()
        }
        Some(agent) => agent
            .mode
            .into_iter()
            .map(CompletionCandidate::new)
            .collect(),
        None => Vec::new(),
    })
}

/// Returns the names of the policies.
pub(crate) fn policy_names() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = Policy::ALL.iter().map(|policy| policy.as_str());
        names.map(CompletionCandidate::new).collect()
    })
}

/// Returns the names of the sandbox modes.
pub(crate) fn sandbox_mode_names() -> ArgValueCandidates {
    word_candidates(&[
        "workspace",
        "read-only",
        "off",
        "workspace,no-network",
        "read-only,no-network",
    ])
}

/// Returns the model providers for which an API key can be stored.
pub(crate) fn provider_names() -> ArgValueCandidates {
    word_candidates(&["anthropic", "openai", "gemini"])
}

fn word_candidates(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| words.iter().map(CompletionCandidate::new).collect())
}

/// The words typed on the command line so far, without the command name.
struct TypedWords(Vec<String>);

impl TypedWords {
    /// Returns the words that the shell has passed to this process as `acp -- acp WORDS`.
    fn from_process_args() -> Self {
        let passed = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let typed = passed.skip_while(|word| word != "--").skip(2);
        // Bash makes a word of each `=`. The scripts of bash and zsh pass words as they were typed, with their quotes.
        let words = typed.filter(|word| word != "=");
        Self(words.map(|word| unquote(&word)).collect())
    }

    /// Returns the value of an option, or `None` if it is not given.
    fn option_value(&self, name: &str) -> Option<&str> {
        let mut words = self.0.iter().take_while(|word| *word != "--");
        while let Some(word) = words.next() {
            match word.strip_prefix(name) {
                Some("") => return words.next().map(String::as_str),
                Some(rest) if rest.starts_with('=') => return rest.strip_prefix('='),
                _ => {}
            }
        }
        None
    }

    /// Returns the directory given with `--cwd`, or else the current one, as an absolute path without symlinks.
    fn working_directory(&self) -> PathBuf {
        let cwd = self.option_value("--cwd").unwrap_or(".");
        std::fs::canonicalize(cwd).unwrap_or_else(|_| PathBuf::from(cwd))
    }

    /// Returns the agent that the typed words choose.
    fn chosen_agent(&self) -> Option<AgentChoice> {
        let command = self.0.iter().skip_while(|word| *word != "--").skip(1);
        let selector = AgentSelector {
            name: self.option_value("--agent").map(str::to_owned),
            command: command.cloned().collect(),
            url: self.option_value("--url").and_then(|url| url.parse().ok()),
            ..AgentSelector::default()
        };
        let config = UserConfig::read().ok()?;
        selector
            .choose(&config, &self.working_directory(), None)
            .ok()
    }
}

/// Returns a word as the shell would pass it to the command. The closing quote may be missing.
pub(crate) fn unquote(word: &str) -> String {
    let closed = |quote: &str| shell_words::split(&format!("{word}{quote}")).ok();
    let split = closed("").or_else(|| closed("'")).or_else(|| closed("\""));
    match split.as_deref() {
        Some([one]) => one.clone(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use acp_config::BUNDLED_AGENT;

    use super::*;

    fn typed_words(words: &[&str]) -> TypedWords {
        TypedWords(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn options_are_found_in_every_notation() {
        let words = ["run", "--agent", "goose", "--cwd=/a b", "--", "--mode", "x"];
        let words = typed_words(&words);
        assert_eq!(words.option_value("--agent"), Some("goose"));
        assert_eq!(words.option_value("--cwd"), Some("/a b"));
        assert_eq!(
            words.option_value("--mode"),
            None,
            "`--mode` comes after `--`, so it belongs to the agent"
        );
        assert_eq!(
            typed_words(&["run", "--agent"]).option_value("--agent"),
            None
        );
        assert_eq!(
            typed_words(&["run", "--agents", "x"]).option_value("--agent"),
            None
        );
    }

    #[test]
    fn agent_candidate_is_the_one_that_would_start() {
        let agent = typed_words(&["run", "--mode", "", "--", "my-agent", "--acp"]).chosen_agent();
        assert_eq!(agent.unwrap().command, ["my-agent", "--acp"]);
        let agent = typed_words(&["run", "--agent", BUNDLED_AGENT])
            .chosen_agent()
            .unwrap();
        assert!(agent.is_bundled());
        assert!(
            typed_words(&["run", "--agent", "no such agent"])
                .chosen_agent()
                .is_none()
        );
    }

    #[test]
    fn quotes_are_removed_from_incomplete_words() {
        for (word, meant) in [
            ("build", "build"),
            (r"the\ build", "the build"),
            ("'the b", "the b"),
            ("\"the b", "the b"),
            ("", ""),
        ] {
            assert_eq!(unquote(word), meant, "{word}");
        }
    }
}

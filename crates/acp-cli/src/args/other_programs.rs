//! Options and commands of other agent programs: what to use here when a user types one of them.
//!
//! Users of acpx, Claude Code, Codex, Gemini CLI, goose and opencode type what they know. Clap would suggest the option
//! with the most similar name, which is often wrong. docs/coming-from.md explains more.

use std::ffi::OsString;

use acp_config::{AgentList, ConfigError, UserConfig};
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::CliArgs;
use super::shared::SandboxMode;

/// Words of other programs that mean the same, and a tip that says what to use here.
struct ForeignWords {
    words: &'static [&'static str],
    tip: &'static str,
}

const fn row(words: &'static [&'static str], tip: &'static str) -> ForeignWords {
    ForeignWords { words, tip }
}

/// Options, whatever the command.
const OPTIONS: &[ForeignWords] = &[
    row(
        &["-p", "--print", "--prompt", "-t", "--text"],
        "give the prompt without an option: `acp run \"PROMPT\"`",
    ),
    row(
        &["-q", "--quiet", "--suppress-reads"],
        "to print only the answer, use `acp run --format quiet`",
    ),
    row(
        &[
            "--output-format",
            "--json",
            "--json-strict",
            "--include-partial-messages",
        ],
        "`acp run --output FILE` writes the result as one JSON object, and `acp run --format json` prints all messages",
    ),
    row(
        &["-o", "--output-last-message"],
        "`acp run --format quiet` prints only the answer, and `acp run --output FILE` writes the result as JSON",
    ),
    row(
        &["--input-format"],
        "send each prompt to the same session: `acp run --session NAME \"PROMPT\"`",
    ),
    row(
        &["--json-schema"],
        "give the schema in a file: `acp run --output-schema FILE`",
    ),
    row(
        &["--max-budget-usd"],
        "to limit the cost, use `acp run --max-cost AMOUNT`",
    ),
    row(
        &[
            "--approve-all",
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
            "--dangerously-bypass-approvals-and-sandbox",
            "--yolo",
            "-y",
            "--full-auto",
            "--auto",
        ],
        "to allow everything, use `acp run --allow all`, preferably with --sandbox",
    ),
    row(
        &["--approve-reads"],
        "`acp run --allow reads` allows reading and rejects the rest, and `acp run --allow ask` asks each time",
    ),
    row(
        &["--deny-all"],
        "to reject everything, use `acp run --allow none`",
    ),
    row(
        &[
            "--ask-for-approval",
            "-a",
            "--non-interactive-permissions",
            "--permission-prompts",
            "--permission-prompt-tool",
        ],
        "`acp run --allow POLICY` says what the agent may do; without a terminal, it may only read",
    ),
    row(
        &["--permission-mode", "--approval-mode"],
        "`acp run --allow POLICY` says what the agent may do, and `acp run --mode ID` sets one of the agent's own modes",
    ),
    row(
        &[
            "--allowedTools",
            "--allowed-tools",
            "--disallowedTools",
            "--disallowed-tools",
            "--tools",
            "--permission-policy",
            "--policy",
            "--ignore-rules",
        ],
        "write rules for tools and commands in permissions.toml; `acp permissions` shows them",
    ),
    row(
        &["--restricted", "--safe-mode"],
        "to restrict the agent, use `acp run --allow reads` or `acp run --sandbox`",
    ),
    row(
        &["--resume-session"],
        "to continue a session, use `acp run --resume ID`",
    ),
    row(
        &["--fork-session"],
        "to continue in a copy of the session, use `acp run --resume ID --fork`",
    ),
    row(
        &["--last"],
        "to continue the latest session, use `acp run --continue`",
    ),
    row(
        &["--session-id", "--name", "-n", "--title"],
        "`acp run --session NAME` starts or continues a session with a name of your choice",
    ),
    row(
        &["--no-session", "--ephemeral", "--no-session-persistence"],
        "the agent decides whether to store a session; `acp sessions delete ID` deletes one",
    ),
    row(
        &["--list-sessions"],
        "to list sessions, use `acp sessions list`",
    ),
    row(
        &["--delete-session"],
        "to delete a session, use `acp sessions delete ID`",
    ),
    row(
        &["--prompt-retries"],
        "to try again after a failure, use `acp run --retries COUNT`",
    ),
    row(
        &["--ttl"],
        "to keep the agent of a session ready, use `acp run --session NAME --keep SECONDS`",
    ),
    row(
        &["--bg", "--background"],
        "to start a turn without waiting for it, use `acp run --session NAME --no-wait`",
    ),
    row(
        &[
            "--config-option",
            "--config",
            "--profile",
            "--effort",
            "--variant",
            "--thinking",
        ],
        "`acp run --set KEY=VALUE` sets an option of the session, and `acp inspect` lists the agent's options",
    ),
    row(
        &[
            "--mcp-config",
            "--strict-mcp-config",
            "--with-extension",
            "--extensions",
        ],
        "list MCP servers in a file: `acp run --mcp FILE`",
    ),
    row(
        &["--cd", "--dir", "--directory", "--working-dir"],
        "to choose the working directory, use `acp run --cwd DIR`",
    ),
    row(
        &["--include-directories"],
        "to add a directory to the session, use `acp run --add-dir DIR`",
    ),
    row(
        &["-i", "--image"],
        "to attach an image or another file, use `acp run --attach FILE`",
    ),
    row(
        &["-w", "--worktree"],
        "use `git worktree add DIR` and `acp run --cwd DIR`; `acp compare --agent NAME \"PROMPT\"` uses a worktree of its own",
    ),
    row(
        &["--system-prompt-file", "--append-system-prompt-file"],
        "give the text itself: `acp run --append-system-prompt \"$(cat FILE)\"`",
    ),
    row(
        &[
            "-v",
            "--verbose",
            "-d",
            "--debug",
            "--print-logs",
            "--log-level",
        ],
        "`acp run --log debug` prints logs, and `acp run --format trace` prints the messages of both sides",
    ),
    row(
        &["--acp", "--experimental-acp"],
        "the bundled agent is `acp agent`; another program follows after `--`: `acp run \"PROMPT\" -- gemini --acp`",
    ),
    row(
        &["--remote"],
        "to use a remote agent, give its URL: `acp run --url URL`",
    ),
    row(
        &["--auth-policy"],
        "if an agent requires a login, log in before: `acp login`",
    ),
    row(
        &["--skip-git-repo-check", "--trust"],
        "leave it out: the directory need not be a git repository",
    ),
    row(
        &["--color", "--no-color"],
        "set the environment variable NO_COLOR to turn colors off",
    ),
];

/// Commands.
const COMMANDS: &[ForeignWords] = &[
    row(
        &["exec", "e", "prompt", "ask"],
        "to send one prompt, use `acp run \"PROMPT\"`",
    ),
    row(
        &["tui", "interactive", "new"],
        "for a conversation, use `acp chat`",
    ),
    row(
        &["resume", "continue"],
        "use `acp chat --continue` for the latest session, or `acp chat --resume ID`",
    ),
    row(
        &["fork"],
        "to continue in a copy of a session, use `acp chat --resume ID --fork`",
    ),
    row(
        &["session", "history"],
        "to list sessions, use `acp sessions list`",
    ),
    row(
        &["cancel"],
        "to cancel the turn of a live session, use `acp sessions cancel NAME`",
    ),
    row(
        &["status", "ps"],
        "to show live sessions, use `acp sessions status`",
    ),
    row(
        &["attach", "watch", "logs"],
        "to see what happens in a session, use `acp sessions watch NAME`",
    ),
    row(
        &["stop", "kill"],
        "to stop the agent of live sessions, use `acp sessions stop`",
    ),
    row(
        &["queue"],
        "to show prompts that wait, use `acp sessions queue NAME`",
    ),
    row(
        &["export", "share"],
        "to export a session, use `acp sessions export ID`",
    ),
    row(
        &["archive", "unarchive", "delete", "rm"],
        "use `acp sessions archive ID`, `acp sessions unarchive ID` or `acp sessions delete ID`",
    ),
    row(
        &["set-mode"],
        "to set a mode of the agent, use `acp run --mode ID`",
    ),
    row(
        &["set"],
        "to set an option of the session, use `acp run --set KEY=VALUE`",
    ),
    row(
        &["config", "configure", "settings"],
        "settings are in config.toml in your configuration directory; `acp agents` shows the agents in it",
    ),
    row(
        &["flow", "recipe"],
        "run the steps in one session: `acp run --session NAME \"PROMPT\"` for each",
    ),
    row(
        &["doctor", "info", "features", "models"],
        "`acp inspect` shows what an agent is and can, and `acp check agent` whether it conforms to the specification",
    ),
    row(
        &["mcp", "extensions", "plugin", "plugins"],
        "list MCP servers in `[[mcp_servers]]` of config.toml, or in a file: `acp run --mcp FILE`",
    ),
    row(
        &["auth", "providers", "setup-token"],
        "to log in to an agent, use `acp login`, or for the bundled one `acp agent login`",
    ),
    row(
        &["install", "search", "add"],
        "`acp agents search` lists agents of the official registry, and `acp agents install ID` installs one",
    ),
    row(
        &["update", "upgrade"],
        "to update installed agents, use `acp agents update`",
    ),
    row(&["acp"], "the bundled agent is `acp agent`"),
    row(
        &["web", "server", "app-server", "remote-control", "gateway"],
        "to make an agent available over the network, use `acp serve`",
    ),
    row(
        &["review", "init", "compact"],
        "commands of the agent are prompts: `acp run \"/review\"`",
    ),
    row(
        &["usage", "stats", "cost"],
        "type /usage in `acp chat`; `acp run --output FILE` writes tokens and cost",
    ),
    row(&["sandbox"], "use the option: `acp run --sandbox`"),
    row(
        &["completion"],
        "to print the script of a shell, use `acp completions bash`",
    ),
    row(&["undo", "rewind"], "type /undo in `acp chat`"),
    row(
        &["record", "proxy"],
        "to record messages, use `acp trace FILE -- AGENT`",
    ),
    row(
        &["github", "pr", "ultrareview"],
        "docs/ci.md has a GitHub Action; in a script, use `acp run`",
    ),
];

/// Words after `acp sessions`.
const SESSION_COMMANDS: &[ForeignWords] = &[
    row(
        &["new", "create", "ensure", "start"],
        "a session begins with its first prompt: `acp run --session NAME --new \"PROMPT\"`",
    ),
    row(
        &["close"],
        "`acp sessions stop` stops the agents of live sessions, and `acp sessions archive ID` hides a session",
    ),
    row(
        &["read", "history"],
        "to print a session, use `acp sessions show ID`",
    ),
    row(&["ls"], "to list sessions, use `acp sessions list`"),
    row(
        &["rm", "remove"],
        "to delete a session, use `acp sessions delete ID`",
    ),
    row(
        &["resume", "continue", "attach"],
        "to continue a session, use `acp chat --resume ID`",
    ),
    row(
        &["fork"],
        "to continue in a copy of a session, use `acp chat --resume ID --fork`",
    ),
    row(
        &["import"],
        "sessions are stored by the agent; `acp sessions list` lists them, and `acp run --resume ID` continues one",
    ),
];

/// Parses the command line of this process. If it is invalid, the error says what to use in place of words of other
/// programs.
///
/// # Errors
/// The command line is invalid, or asks for help or the version.
pub(crate) fn parse_command_line() -> Result<CliArgs, clap::Error> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // What follows `--` is for the agent.
    let ours: Vec<&str> = arguments
        .iter()
        .skip(1)
        .map(|argument| argument.to_str().unwrap_or_default())
        .take_while(|argument| *argument != "--")
        .collect();
    if let Some(message) = misread_words(&ours) {
        return Err(clap::Error::raw(ErrorKind::InvalidValue, message + "\n"));
    }
    CliArgs::try_parse_from(&arguments).map_err(|error| with_tip(error, &ours))
}

/// Returns an error for a valid command line that means something else in another program, where the difference could
/// hurt: the agent would have more rights, or the wrong session would continue.
fn misread_words(arguments: &[&str]) -> Option<String> {
    if !matches!(arguments.first(), Some(&("run" | "chat"))) {
        return None;
    }
    arguments.windows(2).find_map(|pair| {
        let [option, value] = pair else { return None };
        // What Codex calls the modes of its sandbox.
        let codex_mode = match *value {
            "read-only" => Some("read-only"),
            "workspace-write" => Some("workspace"),
            "danger-full-access" => Some("off"),
            _ => None,
        };
        let own_mode = value.parse::<SandboxMode>().is_ok().then_some(*value);
        match (*option, codex_mode.or(own_mode)) {
            ("--sandbox", Some(mode)) => Some(format!(
                "the value of --sandbox follows after `=`: --sandbox={mode}\n\n\
                 In `--sandbox {value}`, {value:?} would be part of the prompt."
            )),
            ("-s", Some(mode)) if codex_mode.is_some() => Some(format!(
                "-s is short for --session; to run the agent in a sandbox, use --sandbox={mode}\n\n\
                 To use a session with this name, write --session {value}."
            )),
            ("-c", _) if is_setting(value) => Some(format!(
                "-c is short for --continue; to set an option of the session, use --set {value}\n\n\
                 To continue the latest session with this prompt, write --continue."
            )),
            _ => None,
        }
    })
}

/// Returns whether an argument has the form of a setting, such as `model=o3` or `model_providers.x.name="x"`.
fn is_setting(argument: &str) -> bool {
    let Some((key, _)) = argument.split_once('=') else {
        return false;
    };
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// Replaces the error's suggestions with a tip on a word of another program, if it is about one.
fn with_tip(mut error: clap::Error, arguments: &[&str]) -> clap::Error {
    let command = arguments.iter().find(|word| !word.starts_with('-'));
    let context = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(context) else {
        return error;
    };
    let is_before_command = arguments
        .first()
        .is_some_and(|first| first.starts_with('-'));
    let tip = match context {
        ContextKind::InvalidSubcommand => {
            find_tip(COMMANDS, word).or_else(|| command_tip(word, arguments))
        }
        // acpx has its options before the command.
        _ if is_before_command && has_option("run", word) => Some(format!(
            "options follow the command: `acp run {} …`",
            option_name(word)
        )),
        _ if word.starts_with('-') => {
            let command = command.copied().unwrap_or("run");
            format_tip(command, word)
                .or_else(|| find_tip(OPTIONS, word).map(|tip| tip_for(command, &tip)))
        }
        _ if command == Some(&"sessions") => find_tip(SESSION_COMMANDS, word),
        _ => None,
    };
    // Clap suggests to put an unknown option after `--`, where the agent's command would begin.
    error.remove(ContextKind::Suggested);
    if let Some(tip) = tip {
        let similar = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
        for kind in similar {
            error.remove(kind);
        }
        let tips = vec![StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

fn find_tip(rows: &[ForeignWords], word: &str) -> Option<String> {
    let name = option_name(word);
    let row = rows.iter().find(|row| row.words.contains(&name))?;
    Some(row.tip.to_owned())
}

/// Returns an option without its value.
fn option_name(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Returns whether a command has an option.
fn has_option(command: &str, word: &str) -> bool {
    let name = option_name(word);
    let mut all = CliArgs::command();
    all.build();
    let Some(command) = all.find_subcommand(command) else {
        return false;
    };
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        long.as_deref() == Some(name) || short.as_deref() == Some(name)
    })
}

/// Returns a tip on an option that means JSON, for a command that prints a list or a report.
fn format_tip(command: &str, word: &str) -> Option<String> {
    let is_json = matches!(
        option_name(word),
        "--json" | "--json-strict" | "--output-format"
    );
    let is_other = !matches!(command, "run" | "chat");
    (is_json && is_other && has_option(command, "--format"))
        .then(|| format!("use `acp {command} --format json`"))
}

/// Returns a tip on `acp run` for a command that has the same options.
fn tip_for(command: &str, tip: &str) -> String {
    let parts = tip.split("`acp run ").enumerate().map(|(at, part)| {
        let option = part.split([' ', '`']).next().unwrap_or_default();
        match at {
            0 => part.to_owned(),
            _ if option.starts_with('-') && has_option(command, option) => {
                format!("`acp {command} {part}")
            }
            _ => format!("`acp run {part}"),
        }
    });
    parts.collect()
}

/// Returns a tip on a word in place of a command: it is a prompt, or the name of an agent.
fn command_tip(word: &str, arguments: &[&str]) -> Option<String> {
    if word.contains(char::is_whitespace) {
        return Some(
            "to send a prompt, use `acp run \"PROMPT\"` or `acp chat \"PROMPT\"`".to_owned(),
        );
    }
    if !is_agent(word).unwrap_or_default() {
        return None;
    }
    // acpx has the agent before the command.
    let next = arguments
        .iter()
        .skip_while(|argument| **argument != word)
        .nth(1);
    Some(match next {
        Some(&"sessions") => format!("to list sessions, use `acp sessions --agent {word}`"),
        Some(control @ &("status" | "cancel")) => {
            format!("use `acp sessions {control} --agent {word}`")
        }
        _ => format!("to use the agent {word}, use `acp run --agent {word} \"PROMPT\"`"),
    })
}

fn is_agent(name: &str) -> Result<bool, ConfigError> {
    let config = UserConfig::read()?;
    let directory = std::env::current_dir().unwrap_or_default();
    let agents = AgentList::discover(&config, &directory)?;
    Ok(agents.agents.iter().any(|agent| agent.name == name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the commands in a tip, with values for what the user has to fill in.
    fn commands_in(tip: &str) -> Vec<Vec<String>> {
        let quoted = tip.split('`').skip(1).step_by(2);
        let commands = quoted.filter(|text| text.starts_with("acp "));
        let value = |word: &str| {
            let word = match word {
                "POLICY" => "ask",
                "COUNT" | "SECONDS" | "AMOUNT" => "3",
                "KEY=VALUE" => "a=b",
                "URL" => "ws://127.0.0.1:7180/acp",
                "AGENT" => "agent",
                "NAME" => "build",
                "DIR" => ".",
                word => word.trim_matches('"'),
            };
            word.to_owned()
        };
        commands
            .map(|command| {
                // What the shell would put in is one word.
                let command = command.replace("$(cat FILE)", "TEXT");
                command.split(' ').map(value).collect()
            })
            .collect()
    }

    #[test]
    fn commands_in_tips_are_valid() {
        let all = [OPTIONS, COMMANDS, SESSION_COMMANDS];
        let mut parsed = 0;
        for row in all.into_iter().flatten() {
            for command in commands_in(row.tip) {
                CliArgs::try_parse_from(&command)
                    .unwrap_or_else(|error| panic!("{:?}: {error}", row.tip));
                parsed += 1;
            }
        }
        assert!(parsed > 50, "{parsed}");
    }

    #[test]
    fn tips_are_about_the_command_that_was_typed() {
        let tip = |line: &str| {
            let arguments: Vec<&str> = line.split(' ').collect();
            let error = CliArgs::try_parse_from(&arguments).unwrap_err();
            let error = with_tip(error, &arguments[1..]).to_string();
            let (_, tip) = error
                .split_once("tip: ")
                .unwrap_or_else(|| panic!("{error}"));
            tip.lines().next().unwrap().to_owned()
        };
        for (line, expected) in [
            (
                "acp --format json codex exec hi",
                "options follow the command: `acp run --format …`",
            ),
            (
                "acp --model=m codex hi",
                "options follow the command: `acp run --model …`",
            ),
            (
                "acp -s backend hi",
                "options follow the command: `acp run -s …`",
            ),
            ("acp sessions --json", "use `acp sessions --format json`"),
            ("acp compare --json hi", "use `acp compare --format json`"),
            (
                "acp chat --approve-all",
                "to allow everything, use `acp chat --allow all`, preferably with --sandbox",
            ),
            (
                "acp run --approve-all hi",
                "to allow everything, use `acp run --allow all`, preferably with --sandbox",
            ),
        ] {
            assert_eq!(tip(line), expected, "{line}");
        }
    }

    /// A word that is one of ours would never get its tip.
    #[test]
    fn words_with_tips_are_unknown_here() {
        let mut command = CliArgs::command();
        command.build();
        let names: BTreeSet<&str> = command
            .get_subcommands()
            .flat_map(|known| std::iter::once(known.get_name()).chain(known.get_all_aliases()))
            .collect();
        let mut seen = BTreeSet::new();
        for word in COMMANDS.iter().flat_map(|row| row.words) {
            assert!(!names.contains(word), "{word}");
            assert!(seen.insert(word), "{word} has two tips");
        }
        let sessions = command.find_subcommand("sessions").unwrap();
        for word in SESSION_COMMANDS.iter().flat_map(|row| row.words) {
            assert!(sessions.find_subcommand(word).is_none(), "{word}");
        }
        for name in ["run", "chat"] {
            let known: BTreeSet<String> = command
                .find_subcommand(name)
                .unwrap()
                .get_arguments()
                .flat_map(|argument| {
                    let long = argument.get_long_and_visible_aliases().unwrap_or_default();
                    let short = argument.get_short_and_visible_aliases().unwrap_or_default();
                    let long = long.into_iter().map(|long| format!("--{long}"));
                    long.chain(short.into_iter().map(|short| format!("-{short}")))
                        .collect::<Vec<_>>()
                })
                .collect();
            let mut seen = BTreeSet::new();
            for word in OPTIONS.iter().flat_map(|row| row.words) {
                assert!(!known.contains(*word), "acp {name} has {word}");
                assert!(seen.insert(word), "{word} has two tips");
            }
        }
    }

    #[test]
    fn words_that_would_be_misread_are_errors() {
        let error = |line: &str| misread_words(&line.split(' ').collect::<Vec<_>>());
        for line in [
            "run --sandbox read-only fix",
            "chat --sandbox workspace-write",
            "run -s read-only fix",
            "run -s danger-full-access fix",
            "run -c model=\"o3\" fix",
            "run -c shell.inherit=all fix",
        ] {
            assert!(error(line).is_some(), "{line}");
        }
        for line in [
            "run --sandbox=read-only fix",
            "run --sandbox fix",
            "run --session read-only fix",
            "run -s build fix",
            "run -c fix a=b",
            "run --continue a=b",
            "sessions --sandbox read-only",
        ] {
            assert!(error(line).is_none(), "{line}");
        }
    }
}

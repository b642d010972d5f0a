//! Well-known agents: their names, and the commands that start and install them.
//!
//! The list is based on the protocol's registry (`agentclientprotocol/registry`, with a file `agent.json` for each
//! agent) and on the documentation of the agents, as of November 2026. Nothing is installed or downloaded
//! automatically: the commands are only shown to the user.

use super::state_paths::AgentStatePath::{Cache, Config, Data, EnvOrHome, Home, HomeFile, State};
use super::state_paths::{self, AgentStatePath};

/// A well-known agent: its names, command and state paths.
#[derive(Debug)]
pub struct KnownAgent {
    /// The agent's name in `acp`.
    pub name: &'static str,
    /// The agent's other names: in the registry, in other clients, and the name of its program.
    pub aliases: &'static [&'static str],
    /// The agent's title, to show to the user.
    pub title: &'static str,
    /// The agent's program and arguments. Empty for the bundled agent.
    pub command: &'static [&'static str],
    /// The command that installs the agent, as documented by its developers. Does not install prerequisites.
    pub install: &'static str,
    /// The paths where the agent stores its state, such as settings, sessions, credentials, logs and caches.
    pub state_paths: &'static [AgentStatePath],
}

/// The name of the bundled agent.
pub const BUNDLED_AGENT: &str = "acp";

/// All well-known agents: the bundled one first, then the others in order of name.
pub const KNOWN_AGENTS: &[KnownAgent] = &[
    KnownAgent {
        name: BUNDLED_AGENT,
        aliases: &[],
        title: "the bundled agent",
        command: &[],
        install: "",
        state_paths: &[State("acp")],
    },
    KnownAgent {
        name: "auggie",
        aliases: &["augment"],
        title: "Auggie, by Augment Code",
        command: &["auggie", "--acp"],
        install: "npm install -g @augmentcode/auggie",
        state_paths: &[Home(".augment")],
    },
    KnownAgent {
        name: "claude",
        aliases: &[
            "claude-code",
            "claude-acp",
            "claude-agent-acp",
            "claude-code-acp",
        ],
        title: "Claude Code, by Anthropic (ACP adapter)",
        command: &["claude-agent-acp"],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        state_paths: &[
            EnvOrHome("CLAUDE_CONFIG_DIR", ".claude"),
            HomeFile(".claude.json"),
            Cache("claude-cli-nodejs"),
            State("claude"),
        ],
    },
    KnownAgent {
        name: "cline",
        aliases: &[],
        title: "Cline",
        command: &["cline", "--acp"],
        install: "npm install -g cline",
        state_paths: &[EnvOrHome("CLINE_DIR", ".cline")],
    },
    KnownAgent {
        name: "codex",
        aliases: &["codex-acp"],
        title: "Codex, by OpenAI (ACP adapter)",
        command: &["codex-acp"],
        install: "npm install -g @agentclientprotocol/codex-acp",
        state_paths: &[EnvOrHome("CODEX_HOME", ".codex")],
    },
    KnownAgent {
        name: "copilot",
        aliases: &["github-copilot", "github-copilot-cli"],
        title: "GitHub Copilot",
        command: &["copilot", "--acp"],
        install: "npm install -g @github/copilot",
        state_paths: &[EnvOrHome("COPILOT_HOME", ".copilot"), Cache("copilot")],
    },
    KnownAgent {
        name: "cursor",
        aliases: &["cursor-agent"],
        title: "Cursor",
        command: &["cursor-agent", "acp"],
        install: "curl https://cursor.com/install -fsS | bash",
        state_paths: &[
            EnvOrHome("CURSOR_CONFIG_DIR", ".cursor"),
            Home(".cursor"),
            Config("cursor"),
        ],
    },
    KnownAgent {
        name: "droid",
        aliases: &["factory-droid"],
        title: "Droid, by Factory",
        command: &["droid", "exec", "--output-format", "acp"],
        install: "curl -fsSL https://app.factory.ai/cli | sh",
        state_paths: &[Home(".factory")],
    },
    KnownAgent {
        name: "gemini",
        aliases: &["gemini-cli"],
        title: "Gemini CLI, by Google",
        command: &["gemini", "--acp"],
        install: "npm install -g @google/gemini-cli",
        state_paths: &[Home(".gemini")],
    },
    KnownAgent {
        name: "goose",
        aliases: &[],
        title: "goose",
        command: &["goose", "acp"],
        install: "curl -fsSL https://github.com/aaif-goose/goose/releases/download/stable/download_cli.sh | bash",
        state_paths: &[Config("goose"), Data("goose"), State("goose")],
    },
    KnownAgent {
        name: "kilo",
        aliases: &["kilocode"],
        title: "Kilo Code",
        command: &["kilo", "acp"],
        install: "npm install -g @kilocode/cli",
        state_paths: &[Config("kilo"), Data("kilo"), Cache("kilo"), State("kilo")],
    },
    KnownAgent {
        name: "kimi",
        aliases: &["kimi-cli", "kimi-code"],
        title: "Kimi Code, by Moonshot AI",
        command: &["kimi", "acp"],
        install: "npm install -g @moonshot-ai/kimi-code",
        state_paths: &[
            EnvOrHome("KIMI_CODE_HOME", ".kimi-code"),
            Cache("kimi-code"),
            EnvOrHome("KIMI_SHARE_DIR", ".kimi"),
        ],
    },
    KnownAgent {
        name: "opencode",
        aliases: &["opencode-ai"],
        title: "OpenCode",
        command: &["opencode", "acp"],
        install: "curl -fsSL https://opencode.ai/install | bash",
        state_paths: &[
            Config("opencode"),
            Data("opencode"),
            Cache("opencode"),
            State("opencode"),
        ],
    },
    KnownAgent {
        name: "pi",
        aliases: &["pi-acp"],
        title: "pi (ACP adapter)",
        command: &["pi-acp"],
        install: "npm install -g pi-acp",
        state_paths: &[EnvOrHome("PI_CODING_AGENT_DIR", ".pi/agent"), Home(".pi")],
    },
    KnownAgent {
        name: "qwen",
        aliases: &["qwen-code"],
        title: "Qwen Code, by Alibaba",
        command: &["qwen", "--acp"],
        install: "npm install -g @qwen-code/qwen-code",
        state_paths: &[Home(".qwen")],
    },
    KnownAgent {
        name: "vibe",
        aliases: &["mistral-vibe", "vibe-acp"],
        title: "Vibe, by Mistral AI",
        command: &["vibe-acp"],
        install: "uv tool install mistral-vibe",
        state_paths: &[EnvOrHome("VIBE_HOME", ".vibe")],
    },
];

/// Returns the well-known agent that a command starts, directly or through a package runner.
///
/// An example of the latter is `npx -y @google/gemini-cli`.
pub(crate) fn find_by_command(command: &[String]) -> Option<&'static KnownAgent> {
    let (program, args) = split_command(command)?;
    if program == "acp" && args.first().is_some_and(|word| word == "agent") {
        return find_well_known(BUNDLED_AGENT);
    }
    if state_paths::package_runner_paths(program).is_none() {
        return find_by_program(program);
    }
    let mut args = args.iter().filter(|word| !word.starts_with('-'));
    args.find_map(|word| find_by_program(package_name(word)))
}

/// Returns the state paths of the command's package runner, or an empty slice if it does not use one.
pub(crate) fn package_runner_paths_for_command(command: &[String]) -> &'static [AgentStatePath] {
    let program = split_command(command).map(|(program, _)| program);
    program
        .and_then(state_paths::package_runner_paths)
        .unwrap_or_default()
}

/// Splits a command into the program name and its arguments, skipping a leading `env A=B`.
fn split_command(command: &[String]) -> Option<(&str, &[String])> {
    let name = |word: &'_ String| {
        let file = std::path::Path::new(word).file_name();
        file.and_then(std::ffi::OsStr::to_str) == Some("env")
    };
    let mut rest = command;
    if rest.first().is_some_and(name) {
        let is_variable = |word: &String| word.contains('=');
        let skipped = rest
            .iter()
            .skip(1)
            .take_while(|word| is_variable(word))
            .count();
        rest = rest.get(1 + skipped..)?;
    }
    let (program, args) = rest.split_first()?;
    let file = std::path::Path::new(program).file_name()?.to_str()?;
    Some((file, args))
}

/// Returns a package name without its scope and version: `gemini-cli` for `@google/gemini-cli@latest`.
fn package_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let end = name.find(['@', '=', '[']).unwrap_or(name.len());
    name.get(..end).unwrap_or(name)
}

/// Returns the name of the package that contains an agent, if there is one.
fn installed_package(known: &KnownAgent) -> Option<&'static str> {
    let install = known.install;
    let from = ["npm install -g ", "uv tool install "];
    from.iter()
        .find_map(|from| install.strip_prefix(from))
        .map(package_name)
}

/// Finds the well-known agent whose program or package is called `name`.
fn find_by_program(name: &str) -> Option<&'static KnownAgent> {
    KNOWN_AGENTS.iter().skip(1).find(|known| {
        known.command.first() == Some(&name)
            || known.aliases.contains(&name)
            || installed_package(known) == Some(name)
    })
}

/// Finds a well-known agent by its name or an alias.
#[must_use]
pub fn find_well_known(name: &str) -> Option<&'static KnownAgent> {
    let is_called = |known: &&KnownAgent| known.name == name || known.aliases.contains(&name);
    KNOWN_AGENTS.iter().find(is_called)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::agents::settings::check_name;

    #[test]
    fn known_agents_have_unique_names_and_can_be_installed() {
        let mut names = BTreeSet::new();
        for known in KNOWN_AGENTS {
            for name in std::iter::once(&known.name).chain(known.aliases) {
                check_name(name).unwrap();
                assert!(names.insert(name), "{name} is listed twice");
                assert_eq!(super::find_well_known(name).unwrap().name, known.name);
            }
            let is_bundled = known.name == BUNDLED_AGENT;
            assert_eq!(known.command.is_empty(), is_bundled, "{}", known.name);
            assert_eq!(known.install.is_empty(), is_bundled, "{}", known.name);
        }
        for known in KNOWN_AGENTS {
            assert!(!known.state_paths.is_empty(), "{}", known.name);
        }
        let listed: Vec<&str> = KNOWN_AGENTS
            .iter()
            .skip(1)
            .map(|known| known.name)
            .collect();
        assert!(listed.is_sorted(), "{listed:?}");
    }

    #[test]
    fn known_agent_is_recognized_by_its_command() {
        for (line, name) in [
            ("codex-acp", Some("codex")),
            ("/usr/local/bin/goose acp", Some("goose")),
            ("npx @zed-industries/claude-agent-acp", Some("claude")),
            ("npx -y @google/gemini-cli@latest --acp", Some("gemini")),
            (
                "env B=c npx --yes @zed-industries/codex-acp@0.9.1",
                Some("codex"),
            ),
            ("uvx --from mistral-vibe vibe-acp", Some("vibe")),
            ("bunx opencode@1.2.3 acp", Some("opencode")),
            ("npx -y opencode-ai acp", Some("opencode")),
            ("npm exec -- @qwen-code/qwen-code --acp", Some("qwen")),
            ("target/debug/acp agent --script s", Some(BUNDLED_AGENT)),
            ("npx some-agent", None),
            ("sh -c codex-acp", None),
            ("my-agent codex-acp", None),
            ("bash -c true", None),
            ("", None),
        ] {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let found = find_by_command(&command).map(|known| known.name);
            assert_eq!(found, name, "{line}");
        }
    }
}

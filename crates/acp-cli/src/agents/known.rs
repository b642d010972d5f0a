//! Well-known agents: what each is called, how it is started and how it is installed.
//!
//! From the registry of the protocol (`agentclientprotocol/registry`: a file `agent.json` for each) and the agents' own
//! documentation, as they were in November 2026. Nothing here is ever installed or looked up by itself: it is what a
//! person is told to type.

/// An agent that is known here.
#[derive(Debug)]
pub(crate) struct Known {
    /// What it is called here.
    pub(crate) name: &'static str,
    /// What it is called elsewhere: in the registry, by its program, by other clients.
    pub(crate) aliases: &'static [&'static str],
    /// What it is.
    pub(crate) title: &'static str,
    /// Its program and arguments; nothing for the bundled agent.
    pub(crate) command: &'static [&'static str],
    /// How its makers say that it is installed. What it needs for that is not said.
    pub(crate) install: &'static str,
}

/// The name of the bundled agent.
pub(crate) const BUNDLED: &str = "acp";

/// All of them. The bundled one first, then by name.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        name: BUNDLED,
        aliases: &[],
        title: "the bundled agent",
        command: &[],
        install: "",
    },
    Known {
        name: "auggie",
        aliases: &["augment"],
        title: "Auggie, of Augment Code",
        command: &["auggie", "--acp"],
        install: "npm install -g @augmentcode/auggie",
    },
    Known {
        name: "claude",
        aliases: &[
            "claude-code",
            "claude-acp",
            "claude-agent-acp",
            "claude-code-acp",
        ],
        title: "Claude Code, of Anthropic, by its adapter",
        command: &["claude-agent-acp"],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
    },
    Known {
        name: "cline",
        aliases: &[],
        title: "Cline",
        command: &["cline", "--acp"],
        install: "npm install -g cline",
    },
    Known {
        name: "codex",
        aliases: &["codex-acp"],
        title: "Codex, of OpenAI, by its adapter",
        command: &["codex-acp"],
        install: "npm install -g @agentclientprotocol/codex-acp",
    },
    Known {
        name: "copilot",
        aliases: &["github-copilot", "github-copilot-cli"],
        title: "GitHub Copilot",
        command: &["copilot", "--acp"],
        install: "npm install -g @github/copilot",
    },
    Known {
        name: "cursor",
        aliases: &["cursor-agent"],
        title: "Cursor",
        command: &["cursor-agent", "acp"],
        install: "curl https://cursor.com/install -fsS | bash",
    },
    Known {
        name: "droid",
        aliases: &["factory-droid"],
        title: "Droid, of Factory",
        command: &["droid", "exec", "--output-format", "acp"],
        install: "curl -fsSL https://app.factory.ai/cli | sh",
    },
    Known {
        name: "gemini",
        aliases: &["gemini-cli"],
        title: "Gemini CLI, of Google",
        command: &["gemini", "--acp"],
        install: "npm install -g @google/gemini-cli",
    },
    Known {
        name: "goose",
        aliases: &[],
        title: "goose",
        command: &["goose", "acp"],
        install: "curl -fsSL https://github.com/aaif-goose/goose/releases/download/stable/download_cli.sh | bash",
    },
    Known {
        name: "kilo",
        aliases: &["kilocode"],
        title: "Kilo Code",
        command: &["kilo", "acp"],
        install: "npm install -g @kilocode/cli",
    },
    Known {
        name: "kimi",
        aliases: &["kimi-cli", "kimi-code"],
        title: "Kimi Code, of Moonshot AI",
        command: &["kimi", "acp"],
        install: "npm install -g @moonshot-ai/kimi-code",
    },
    Known {
        name: "opencode",
        aliases: &[],
        title: "OpenCode",
        command: &["opencode", "acp"],
        install: "curl -fsSL https://opencode.ai/install | bash",
    },
    Known {
        name: "pi",
        aliases: &["pi-acp"],
        title: "pi, by its adapter",
        command: &["pi-acp"],
        install: "npm install -g pi-acp",
    },
    Known {
        name: "qwen",
        aliases: &["qwen-code"],
        title: "Qwen Code, of Alibaba",
        command: &["qwen", "--acp"],
        install: "npm install -g @qwen-code/qwen-code",
    },
    Known {
        name: "vibe",
        aliases: &["mistral-vibe", "vibe-acp"],
        title: "Vibe, of Mistral AI",
        command: &["vibe-acp"],
        install: "uv tool install mistral-vibe",
    },
];

/// The agent of this name, or of one that it has elsewhere.
pub(crate) fn known(name: &str) -> Option<&'static Known> {
    let is_called = |known: &&Known| known.name == name || known.aliases.contains(&name);
    KNOWN.iter().find(is_called)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::agents::settings::check_name;

    #[test]
    fn each_name_means_one_agent_and_each_agent_can_be_installed() {
        let mut names = BTreeSet::new();
        for known in KNOWN {
            for name in std::iter::once(&known.name).chain(known.aliases) {
                check_name(name).unwrap();
                assert!(names.insert(name), "{name} is there twice");
                assert_eq!(super::known(name).unwrap().name, known.name);
            }
            let is_bundled = known.name == BUNDLED;
            assert_eq!(known.command.is_empty(), is_bundled, "{}", known.name);
            assert_eq!(known.install.is_empty(), is_bundled, "{}", known.name);
        }
        let listed: Vec<&str> = KNOWN.iter().skip(1).map(|known| known.name).collect();
        assert!(listed.is_sorted(), "{listed:?}");
    }
}

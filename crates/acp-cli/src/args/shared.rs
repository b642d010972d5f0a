//! Arguments shared by several commands.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use acp::v1::McpServer;
use acp_config::{AgentChoice, paths, read_mcp_file};
use acp_host::{Policy, SandboxRules};
use clap::{ValueEnum, ValueHint};
use jiff::SignedDuration;

use super::candidates;
use crate::exit::CommandExit;

/// The subdirectory of the state directory that reverted files are moved to.
const UNDONE_DIRECTORY: &str = "undone";

// The sandbox.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Run agents and commands in a sandbox.
    ///
    /// They can read everything, but write only to a temporary directory of their own and to --writable
    /// directories. With MODE `workspace`, the default, they can also write to the session's directories; with
    /// `read-only`, to the agent's own state instead, if its location is known. `off` disables the sandbox. Append
    /// `,no-network` to block TCP (Linux 6.7 or later); other network access is not blocked.
    ///
    /// Requires Linux 6.2 or later; if sandboxing is not available, nothing is started.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "workspace", add = candidates::sandbox_mode_names())]
    pub(crate) sandbox: Option<SandboxMode>,

    /// Let sandboxed programs write to this directory.
    ///
    /// Needed for agents that store state in the home directory in a location acp does not know. Can be
    /// repeated.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) writable: Vec<PathBuf>,

    /// Let programs in a no-network sandbox open TCP connections to this port.
    ///
    /// Only the port is checked: `example.org:443` allows port 443 on every host. Can be repeated.
    #[arg(long, value_name = "[HOST:]PORT", requires = "sandbox")]
    pub(crate) reachable: Vec<ReachablePort>,
}

/// The value of `--sandbox`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SandboxMode {
    /// Where writing is allowed, or `None` to let the policy decide.
    pub(crate) writes: Option<SandboxWrites>,
    pub(crate) no_network: bool,
}

/// Where writing is allowed in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxWrites {
    /// The session's directories.
    Workspace,
    /// Nowhere, not even in the session's directories.
    ReadOnly,
    /// No sandbox.
    Off,
}

impl FromStr for SandboxMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mode = Self {
            writes: None,
            no_network: false,
        };
        for word in text.split(',') {
            let writes = match word.trim() {
                "workspace" => SandboxWrites::Workspace,
                "read-only" => SandboxWrites::ReadOnly,
                "off" => SandboxWrites::Off,
                "no-network" => {
                    mode.no_network = true;
                    continue;
                }
                _ => {
                    return Err(
                        "expected workspace, read-only, off or no-network, separated by commas"
                            .to_owned(),
                    );
                }
            };
            if mode.writes.is_some_and(|other| other != writes) {
                return Err("workspace, read-only and off are mutually exclusive".to_owned());
            }
            mode.writes = Some(writes);
        }
        if mode.no_network && mode.writes == Some(SandboxWrites::Off) {
            return Err("no-network requires a sandbox".to_owned());
        }
        Ok(mode)
    }
}

/// A TCP port that can be reached from a sandbox without network access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReachablePort(pub(crate) u16);

impl FromStr for ReachablePort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = text.rsplit_once(':').map_or(text, |(_, port)| port);
        match port.parse() {
            Ok(port) if port != 0 => Ok(Self(port)),
            _ => Err("expected PORT or HOST:PORT".to_owned()),
        }
    }
}

impl SandboxArgs {
    /// Returns the sandbox rules, or `None` for no sandbox. The policies `reads` and `none` imply a read-only sandbox,
    /// unless `--sandbox` specifies where writing is allowed.
    ///
    /// # Errors
    /// A --writable directory does not exist, or --writable or --reachable is given without the sandbox it needs.
    pub(crate) fn rules(
        &self,
        policy: Option<Policy>,
    ) -> Result<Option<SandboxRules>, CommandExit> {
        let implied = match policy {
            Some(Policy::Reads | Policy::None) => Some(SandboxWrites::ReadOnly),
            _ => None,
        };
        let mode = self.sandbox;
        let named = mode.and_then(|mode| mode.writes);
        let usual = mode.map(|_| SandboxWrites::Workspace);
        let rules = match named.or(implied).or(usual) {
            Some(SandboxWrites::Workspace) => SandboxRules::new(),
            Some(SandboxWrites::ReadOnly) => SandboxRules::new().read_only(),
            Some(SandboxWrites::Off) | None
                if self.writable.is_empty() && self.reachable.is_empty() =>
            {
                return Ok(None);
            }
            Some(SandboxWrites::Off) | None => {
                let message = "--writable and --reachable require --sandbox";
                return Err(CommandExit::usage(message));
            }
        };
        let paths = self.writable.iter();
        let paths = paths.map(|path| canonical_path("--writable", path));
        let writable: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
        let mut rules = rules.writable(writable);
        if let Some(state) = paths::state_dir() {
            rules = rules.undone_directory(state.join(UNDONE_DIRECTORY));
        }
        if mode.is_some_and(|mode| mode.no_network) {
            let ports = self.reachable.iter().map(|ReachablePort(port)| *port);
            return Ok(Some(rules.without_tcp(ports)));
        }
        if !self.reachable.is_empty() {
            let message = "--reachable requires --sandbox=no-network";
            return Err(CommandExit::usage(message));
        }
        Ok(Some(rules))
    }
}

// The local server of a session with a name.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct LocalServerArgs {
    /// Start an agent of this command's own, which ends with it.
    ///
    /// Also set by the environment variable ACP_NO_SERVER.
    #[arg(long)]
    pub(crate) no_server: bool,

    /// Seconds for which the agent of a session with a name stays ready when it is not used.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        requires = "session"
    )]
    pub(crate) keep: u64,
}

// The working directory of a session, and its initial options.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    /// Working directory of the session.
    #[arg(long, short = 'C', value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,

    /// Session mode to set.
    ///
    /// The default for a new session is the mode that is configured for the agent.
    #[arg(long, value_name = "ID", add = candidates::mode_names())]
    pub(crate) mode: Option<String>,

    /// Set a config option of the session.
    ///
    /// Can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_key_value)]
    pub(crate) options: Vec<(String, String)>,

    /// JSON file that lists MCP servers for the agent.
    ///
    /// It has a list as in the protocol, or {"mcpServers": {NAME: {...}}} as in editors.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

// The directories of a session besides the working directory.
#[derive(Debug, clap::Args)]
pub(crate) struct DirectoryArgs {
    /// Let the session use this directory, too.
    ///
    /// The agent must support it (additionalDirectories). Rules and --sandbox treat files in it like files in the
    /// working directory. Undo does not cover them. Can be repeated.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) add_dir: Vec<PathBuf>,
}

impl DirectoryArgs {
    /// Returns the directories as absolute paths without symlinks, without the working directory and duplicates.
    ///
    /// # Errors
    /// One of them is not a directory.
    pub(crate) fn additional_directories(&self, cwd: &Path) -> Result<Vec<PathBuf>, CommandExit> {
        let mut directories = Vec::new();
        for typed in &self.add_dir {
            let directory = existing_directory("--add-dir", typed)?;
            if directory != cwd && !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        Ok(directories)
    }
}

// Whether to copy the session that is continued.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ForkArgs {
    /// Continue in a copy of the session, and leave the session itself as it is.
    ///
    /// Requires --resume or --continue. The agent must support it (fork).
    #[arg(long, conflicts_with = "session")]
    pub(crate) fork: bool,
}

impl ForkArgs {
    /// Checks that there is a session to copy.
    ///
    /// # Errors
    /// `--fork` is given without the id of a session.
    pub(crate) fn require_session(self, id: Option<&str>) -> Result<(), CommandExit> {
        match self.fork && id.is_none() {
            true => Err(CommandExit::usage("--fork requires --resume or --continue")),
            false => Ok(()),
        }
    }
}

impl SessionArgs {
    /// Returns the working directory as an absolute path without symlinks.
    pub(crate) fn directory(&self) -> Result<PathBuf, CommandExit> {
        existing_directory("--cwd", &self.cwd)
    }

    /// Returns the MCP servers from `--mcp`, plus any configured for the agent under other names.
    pub(crate) fn mcp_servers(
        &self,
        configured: Vec<McpServer>,
    ) -> Result<Vec<McpServer>, CommandExit> {
        let mut all = match &self.mcp {
            Some(file) => {
                read_mcp_file(file).map_err(|e| CommandExit::usage(format!("--mcp {e}")))?
            }
            None => Vec::new(),
        };
        for server in configured {
            if all.iter().all(|other| other.name() != server.name()) {
                all.push(server);
            }
        }
        Ok(all)
    }
}

/// Returns a directory as an absolute path without symlinks. `option` is the option that it was given with.
fn existing_directory(option: &str, path: &Path) -> Result<PathBuf, CommandExit> {
    let directory = canonical_path(option, path)?;
    match directory.is_dir() {
        true => Ok(directory),
        false => {
            let message = format!("{option} {}: not a directory", path.display());
            Err(CommandExit::usage(message))
        }
    }
}

fn canonical_path(option: &str, path: &Path) -> Result<PathBuf, CommandExit> {
    std::fs::canonicalize(path)
        .map_err(|e| CommandExit::usage(format!("{option} {}: {e}", path.display())))
}

/// Returns `cwd` as an absolute path without symlinks.
pub(crate) fn absolute_directory(cwd: &Path) -> Result<PathBuf, CommandExit> {
    canonical_path("--cwd", cwd)
}

/// Parses a time span: a number and a unit, such as `30d`.
pub(super) fn parse_span(text: &str) -> Result<SignedDuration, String> {
    let invalid = || "expected a number and a unit: 90m, 12h, 30d or 8w".to_owned();
    let unit = text.chars().last().ok_or_else(invalid)?;
    let number = text.get(..text.len() - unit.len_utf8()).unwrap_or_default();
    let count: u32 = number.parse().map_err(|_| invalid())?;
    let count = i64::from(count);
    Ok(match unit {
        'm' => SignedDuration::from_secs(count * 60),
        'h' => SignedDuration::from_secs(count * 3600),
        'd' => SignedDuration::from_secs(count * 86_400),
        'w' => SignedDuration::from_secs(count * 7 * 86_400),
        _ => return Err(invalid()),
    })
}

/// Returns the arguments for an option and its value. A value that starts with `-` is joined to the name with `=`.
pub(crate) fn option_arguments(name: &str, value: &str) -> Vec<String> {
    match value.starts_with('-') {
        true => vec![format!("{name}={value}")],
        false => vec![name.to_owned(), value.to_owned()],
    }
}

fn parse_key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// Parses an amount of money, which must be positive.
pub(super) fn parse_cost(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected a positive amount, such as 0.50".to_owned()),
    }
}

pub(super) fn parse_policy(name: &str) -> Result<Policy, acp_host::ParsePolicyError> {
    name.parse()
}

// The protocol version.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ProtocolArg {
    /// Latest protocol version to accept: 1 or 2.
    ///
    /// The client chooses. Version 2 is a draft.
    #[arg(long, value_name = "VERSION", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=2))]
    pub(crate) protocol: u16,
}

impl ProtocolArg {
    /// Returns the protocol version to offer to an agent.
    pub(crate) fn for_agent(agent: &AgentChoice) -> Self {
        Self {
            protocol: agent.protocol,
        }
    }

    /// Sets the protocol version in the connection options.
    pub(crate) fn apply(self, options: acp::Options) -> acp::Options {
        if self.protocol == 2 {
            options.draft_version_2()
        } else {
            options
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explicit_sandbox_overrides_the_policy() {
        let rules = |sandbox: Option<&str>, policy| {
            let sandbox = sandbox.map(|mode| mode.parse().unwrap());
            let args = SandboxArgs {
                sandbox,
                writable: Vec::new(),
                reachable: Vec::new(),
            };
            args.rules(policy).unwrap()
        };
        let kept = paths::state_dir().unwrap().join(UNDONE_DIRECTORY);
        let workspace = SandboxRules::new().undone_directory(kept);
        let read_only = workspace.clone().read_only();
        for policy in [None, Some(Policy::Ask), Some(Policy::All)] {
            assert_eq!(rules(None, policy), None);
            assert_eq!(rules(Some("workspace"), policy), Some(workspace.clone()));
            let no_network = rules(Some("no-network"), policy);
            assert_eq!(no_network, Some(workspace.clone().without_tcp([])));
        }
        for policy in [Some(Policy::Reads), Some(Policy::None)] {
            assert_eq!(rules(None, policy), Some(read_only.clone()));
            assert_eq!(rules(Some("off"), policy), None);
            assert_eq!(rules(Some("workspace"), policy), Some(workspace.clone()));
            let no_network = rules(Some("no-network"), policy);
            assert_eq!(no_network, Some(read_only.clone().without_tcp([])));
        }
        let both = rules(Some("read-only,no-network"), None);
        assert_eq!(both, Some(read_only.without_tcp([])));
        for wrong in [
            "",
            "on",
            "workspace,read-only",
            "off,no-network",
            "read-only,",
        ] {
            assert!(wrong.parse::<SandboxMode>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn reachable_address_is_reduced_to_its_port() {
        for (text, port) in [("443", 443), ("example.org:8080", 8080), ("[::1]:80", 80)] {
            assert_eq!(text.parse(), Ok(ReachablePort(port)));
        }
        for wrong in ["", "0", "example.org", "example.org:", ":x", "70000"] {
            assert!(wrong.parse::<ReachablePort>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_have_a_number_and_a_unit() {
        assert_eq!(parse_span("90m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(parse_span("8w"), Ok(SignedDuration::from_hours(8 * 7 * 24)));
        for wrong in ["", "d", "30", "-1d", "1.5h", "1y", "30 d", "1é"] {
            assert!(parse_span(wrong).is_err(), "{wrong}");
        }
    }
}

//! What an agent of a registry would be on this machine: its command, and where its program comes from.

use std::collections::BTreeMap;

use acp_config::{InstalledAgent, InstalledDistribution};

use crate::archive::{ArchiveKind, entry_path};
use crate::download::parse_url;
use crate::error::RegistryError;
use crate::index::{BinaryTarget, PackageTarget, RegistryAgent};
use crate::package::PackageRunner;
use crate::source::RegistrySource;

/// The name of the bundled agent, which no installed agent can have.
const BUNDLED_AGENT: &str = acp_config::BUNDLED_AGENT;

/// An agent as it would be installed on this machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentOffer {
    /// The agent in the registry.
    pub agent: RegistryAgent,
    /// Where the program comes from.
    pub distribution: OfferedDistribution,
    /// The program: a path in the unpacked download, or the name of a package runner.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The environment variables to set.
    pub env: BTreeMap<String, String>,
}

/// Where the program of an offered agent comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferedDistribution {
    /// A download.
    Binary {
        /// The URL.
        url: String,
        /// The SHA-256 hash that the registry gives, in lowercase hexadecimal.
        sha256: Option<String>,
    },
    /// A package of the npm registry, with its exact version.
    Npx {
        /// The package.
        package: String,
    },
    /// A package of PyPI, with its exact version.
    Uvx {
        /// The package.
        package: String,
    },
}

/// Returns the name of this platform in registries, such as `linux-x86_64`. Returns `None` if it has none.
#[must_use]
pub fn current_platform() -> Option<&'static str> {
    Some(match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x86_64",
        ("linux", "aarch64") => "linux-aarch64",
        ("macos", "x86_64") => "darwin-x86_64",
        ("macos", "aarch64") => "darwin-aarch64",
        ("windows", "x86_64") => "windows-x86_64",
        ("windows", "aarch64") => "windows-aarch64",
        _ => return None,
    })
}

impl AgentOffer {
    /// Returns what an agent would be on this machine. A download for this platform comes first, because its checksum
    /// can be recorded, then a package of npm, then one of PyPI.
    ///
    /// # Errors
    /// The agent is not available for this machine, or what the registry says about it is not valid.
    pub fn new(agent: &RegistryAgent) -> Result<Self, RegistryError> {
        let failed = |reason: String| RegistryError::not_installable(&agent.id, reason);
        if agent.id == BUNDLED_AGENT {
            return Err(failed(format!(
                "`{BUNDLED_AGENT}` is the name of the bundled agent"
            )));
        }
        let kinds = &agent.distributions;
        let platform = current_platform().unwrap_or_default();
        let target = kinds
            .binary
            .as_ref()
            .and_then(|targets| targets.get(platform));
        let offer = match (target, &kinds.npx, &kinds.uvx) {
            (Some(target), _, _) => Self::binary(agent, target),
            (None, Some(target), _) => Self::package(agent, PackageRunner::Npx, target),
            (None, None, Some(target)) => Self::package(agent, PackageRunner::Uvx, target),
            (None, None, None) => Err(match &kinds.binary {
                Some(targets) => {
                    let targets: Vec<&str> = targets.keys().map(String::as_str).collect();
                    format!(
                        "there is no download for this platform ({}), only for: {}",
                        current_platform().unwrap_or(std::env::consts::ARCH),
                        targets.join(", ")
                    )
                }
                None => "this acp knows none of the ways to get it".to_owned(),
            }),
        };
        let offer = offer.map_err(failed)?;
        for (name, value) in &offer.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(failed(format!("invalid environment variable {name:?}")));
            }
        }
        if offer.args.iter().any(|word| word.contains('\0')) {
            return Err(failed("an argument contains a NUL character".to_owned()));
        }
        Ok(offer)
    }

    /// Returns the record of the agent when it is installed. `sha256` is the hash of the download, if there is one.
    #[must_use]
    pub fn to_record(&self, registry: &RegistrySource, sha256: &str) -> InstalledAgent {
        let distribution = match &self.distribution {
            OfferedDistribution::Binary { url, .. } => InstalledDistribution::Binary {
                url: url.clone(),
                sha256: sha256.to_owned(),
            },
            OfferedDistribution::Npx { package } => InstalledDistribution::Npx {
                package: package.clone(),
            },
            OfferedDistribution::Uvx { package } => InstalledDistribution::Uvx {
                package: package.clone(),
            },
        };
        InstalledAgent {
            id: self.agent.id.clone(),
            title: self.agent.name.clone(),
            version: self.agent.version.clone(),
            registry: registry.to_string(),
            distribution,
            program: self.program.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
        }
    }

    /// Checks that the registry has the same checksum for the installed version as when it was installed.
    ///
    /// # Errors
    /// It has another one.
    pub fn check_unchanged(&self, installed: &InstalledAgent) -> Result<(), RegistryError> {
        let now = self.distribution.sha256();
        match (now, installed.distribution.sha256()) {
            (Some(now), Some(then)) if installed.version == self.agent.version && now != then => {
                Err(RegistryError::ChangedRelease {
                    id: installed.id.clone(),
                    version: installed.version.clone(),
                    now: now.to_owned(),
                    then: then.to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if this is what is installed, from whichever registry.
    #[must_use]
    pub fn is_installed_as(&self, installed: &InstalledAgent, registry: &RegistrySource) -> bool {
        let sum = installed.distribution.sha256().unwrap_or_default();
        let mut record = self.to_record(registry, sum);
        record.registry.clone_from(&installed.registry);
        record.title.clone_from(&installed.title);
        record == *installed && self.check_unchanged(installed).is_ok()
    }

    fn binary(agent: &RegistryAgent, target: &BinaryTarget) -> Result<Self, String> {
        let url = parse_url(&target.archive).map_err(|e| e.to_string())?;
        ArchiveKind::from_url(&url)?;
        let sha256 = target.sha256.as_ref().map(|sum| sum.to_ascii_lowercase());
        let is_sum = |sum: &String| sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit());
        if sha256.as_ref().is_some_and(|sum| !is_sum(sum)) {
            return Err("its SHA-256 in the registry is not 64 hexadecimal digits".to_owned());
        }
        let program = match cfg!(windows) {
            true => target.cmd.replace('\\', "/"),
            false => target.cmd.clone(),
        };
        let program = entry_path(&program)
            .map_err(|reason| format!("its program {:?} is not valid: {reason}", target.cmd))?;
        if program.is_empty() {
            return Err("its program has no name".to_owned());
        }
        Ok(Self {
            agent: agent.clone(),
            distribution: OfferedDistribution::Binary {
                url: target.archive.clone(),
                sha256,
            },
            program,
            args: target.args.clone(),
            env: target.env.clone(),
        })
    }

    fn package(
        agent: &RegistryAgent,
        runner: PackageRunner,
        target: &PackageTarget,
    ) -> Result<Self, String> {
        let package = runner.pin(&target.package, &agent.version)?;
        let mut args = runner.arguments(&package, target.cmd.as_deref())?;
        args.extend(target.args.iter().cloned());
        Ok(Self {
            agent: agent.clone(),
            distribution: match runner {
                PackageRunner::Npx => OfferedDistribution::Npx { package },
                PackageRunner::Uvx => OfferedDistribution::Uvx { package },
            },
            program: runner.program().to_owned(),
            args,
            env: target.env.clone(),
        })
    }
}

impl OfferedDistribution {
    /// Returns the URL of the download, or the package.
    #[must_use]
    pub fn source(&self) -> &str {
        match self {
            Self::Binary { url, .. } => url,
            Self::Npx { package } | Self::Uvx { package } => package,
        }
    }

    /// Returns the SHA-256 hash that the registry gives for the download.
    #[must_use]
    pub fn sha256(&self) -> Option<&str> {
        match self {
            Self::Binary { sha256, .. } => sha256.as_deref(),
            Self::Npx { .. } | Self::Uvx { .. } => None,
        }
    }
}

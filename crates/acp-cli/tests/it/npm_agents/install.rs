//! Installs agents from npm for the tests, each once, in a directory that stays.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that allows downloads: `1` for the agents that are not large, `all` for all of them.
const DOWNLOAD_VARIABLE: &str = "ACP_TEST_NPM_AGENTS";

/// An agent in the npm registry.
pub(crate) struct NpmAgent {
    /// The package in one version.
    package: &'static str,
    /// The program in `node_modules`. Programs in JavaScript run with Node.js.
    program: &'static str,
    /// The size of the download, for people who wonder.
    megabytes: u32,
    /// Whether the download is too large to be made by default.
    is_large: bool,
}

pub(crate) const OPENCODE: NpmAgent = NpmAgent {
    package: "opencode-linux-x64-baseline@1.18.33",
    program: "opencode-linux-x64-baseline/bin/opencode",
    megabytes: 60,
    is_large: false,
};

pub(super) const GEMINI: NpmAgent = NpmAgent {
    package: "@google/gemini-cli@0.61.0",
    program: "@google/gemini-cli/bundle/gemini.js",
    megabytes: 21,
    is_large: false,
};

pub(super) const CODEX: NpmAgent = NpmAgent {
    package: "@zed-industries/codex-acp@0.16.0",
    program: "@zed-industries/codex-acp-linux-x64/bin/codex-acp",
    megabytes: 75,
    is_large: true,
};

pub(super) const CLAUDE: NpmAgent = NpmAgent {
    package: "@agentclientprotocol/claude-agent-acp@0.101.0",
    program: "@agentclientprotocol/claude-agent-acp/dist/index.js",
    megabytes: 160,
    is_large: true,
};

impl NpmAgent {
    /// Returns the agent's program, and installs it if necessary. Says on stderr why there is none.
    pub(crate) fn find_program(&self) -> Option<PathBuf> {
        match self.install() {
            Ok(program) => Some(program),
            Err(reason) => {
                // Bypass the test harness, which hides the output of tests that pass.
                let _ = writeln!(std::io::stderr(), "skipped: {reason}");
                None
            }
        }
    }

    fn install(&self) -> Result<PathBuf, String> {
        let package = self.package;
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(format!("{package} is tested on Linux on x86-64"));
        }
        let name = package.replace(['@', '/'], "-");
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.trim_matches('-'));
        let program = directory.join("node_modules").join(self.program);
        let installed = directory.join("installed");
        if installed.exists() {
            return Ok(program);
        }
        let allowed = std::env::var(DOWNLOAD_VARIABLE).unwrap_or_default();
        if allowed.is_empty() || (self.is_large && allowed != "all") {
            let value = if self.is_large { "all" } else { "1" };
            return Err(format!(
                "{package} ({} MB) is only downloaded if {DOWNLOAD_VARIABLE}={value}",
                self.megabytes
            ));
        }
        fs::create_dir_all(&directory).unwrap();
        let lock = File::create(directory.join(".lock")).unwrap();
        lock.lock().unwrap();
        // Another test may have installed it meanwhile.
        if installed.exists() {
            return Ok(program);
        }
        let ended = Command::new("npm")
            .current_dir(&directory)
            .args(["install", "--no-save", "--ignore-scripts", "--no-audit"])
            .args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000"])
            .args(["--prefix", "."])
            .arg(package)
            .output()
            .map_err(|e| format!("npm cannot be started: {e}"))?;
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Err(format!("npm cannot install {package}: {said}"));
        }
        assert!(
            program.exists(),
            "{} is not in the package",
            program.display()
        );
        fs::write(installed, "").unwrap();
        Ok(program)
    }
}

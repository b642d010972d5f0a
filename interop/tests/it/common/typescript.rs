//! The programs on the official TypeScript SDK, and how they are installed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// With this set, a test that would be skipped fails instead.
const REQUIRED: &str = "ACP_INTEROP_REQUIRE_NODE";

/// The oldest node the SDK runs on.
const NODE: u32 = 20;

/// Where the programs are, with the packages they need.
#[derive(Debug)]
pub(crate) struct TypeScriptPrograms(PathBuf);

impl TypeScriptPrograms {
    /// The programs, installed; `None`, and a word about it, where that cannot be done.
    pub(crate) fn installed() -> Option<&'static Self> {
        static INSTALLED: OnceLock<Result<TypeScriptPrograms, String>> = OnceLock::new();
        match INSTALLED.get_or_init(install) {
            Ok(installed) => Some(installed),
            Err(reason) => {
                let required = std::env::var_os(REQUIRED).is_some_and(|value| value == "1");
                assert!(!required, "{REQUIRED} is set, and {reason}");
                // Past the harness, which keeps what tests that pass print to itself.
                let _ = writeln!(std::io::stderr(), "skipped: {reason}");
                None
            }
        }
    }

    /// A program, to be given to `node`.
    pub(crate) fn program(&self, file: &str) -> String {
        self.0.join(file).into_os_string().into_string().unwrap()
    }
}

/// Copies the sources out of the source tree, where nothing is to be installed, and installs what they
/// need. Other test programs may do the same at the same time: one does it, the others wait.
fn install() -> Result<TypeScriptPrograms, String> {
    let node = run(Command::new("node").arg("--version"))?;
    let version = String::from_utf8_lossy(&node.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next();
    if major.and_then(|major| major.parse().ok()) < Some(NODE) {
        return Err(format!(
            "node is {version}, and {NODE} is the oldest that will do"
        ));
    }
    run(npm().arg("--version"))?;

    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("typescript");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    fs::create_dir_all(&to).unwrap();
    let alone = File::create(to.join(".lock")).unwrap();
    alone.lock().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // A directory is what somebody has installed there by hand.
        if entry.file_type().unwrap().is_file() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    }
    // Written when all is there: what was interrupted is done again.
    let wanted = fs::read(to.join("package-lock.json")).unwrap();
    let mark = to.join(".installed");
    if fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(TypeScriptPrograms(to));
    }
    let output = run(npm()
        .current_dir(&to)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args([
            "--prefer-offline",
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=1000",
        ]))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let code = unreachable(&said).unwrap_or_else(|| panic!("npm ci fails: {said}"));
        return Err(format!("the package registry cannot be reached: {code}"));
    }
    fs::write(mark, wanted).unwrap();
    Ok(TypeScriptPrograms(to))
}

fn npm() -> Command {
    Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
}

fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output();
    output.map_err(|e| format!("{} cannot be run: {e}", command.get_program().display()))
}

/// A program that runs already may be reading the copy: it is replaced only by another text, and whole.
fn copy(from: &Path, to: &Path) {
    let text = fs::read(from).unwrap();
    if fs::read(to).is_ok_and(|there| there == text) {
        return;
    }
    let new = to.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, to).unwrap();
}

/// The code with which npm says that it has nobody to talk to, or that the registry is out of order.
/// Everything else is a mistake of ours.
fn unreachable(said: &str) -> Option<&str> {
    let network = [
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "EHOSTUNREACH",
        "ENETUNREACH",
        "ENOTFOUND",
        "ERR_SOCKET_TIMEOUT",
        "ETIMEDOUT",
        "FETCH_ERROR",
    ];
    let code = said
        .lines()
        .find_map(|line| line.strip_prefix("npm error code "))?;
    let from_registry = code.len() == 4 && code.starts_with("E5");
    (from_registry || network.contains(&code)).then_some(code)
}

//! The programs on the official TypeScript SDK, and their installation.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// If this variable is set, tests fail instead of being skipped.
const REQUIRE_VARIABLE: &str = "ACP_INTEROP_REQUIRE_NODE";

/// The oldest major version of Node.js that the SDK supports.
const MIN_NODE_VERSION: u32 = 20;

/// The programs that are also bundled.
const BUNDLED: [&str; 6] = [
    "official-agent.mjs",
    "official-agent-v2.mjs",
    "official-client.mjs",
    "official-client-v2.mjs",
    "node_modules/sdk-with-examples/dist/examples/agent.js",
    "node_modules/sdk-with-examples/dist/examples/client.js",
];

/// The directory with the programs and their packages.
#[derive(Debug)]
pub(crate) struct TypeScriptPrograms(PathBuf);

impl TypeScriptPrograms {
    /// Returns the installed programs. If they cannot be installed, prints why and returns `None`.
    pub(crate) fn find_installed() -> Option<&'static Self> {
        static INSTALLED: OnceLock<Result<TypeScriptPrograms, String>> = OnceLock::new();
        match INSTALLED.get_or_init(install_programs) {
            Ok(installed) => Some(installed),
            Err(reason) => {
                let required = std::env::var_os(REQUIRE_VARIABLE).is_some_and(|value| value == "1");
                assert!(!required, "{REQUIRE_VARIABLE} is set, and {reason}");
                // Bypass the test harness, which hides the output of tests that pass.
                let _ = writeln!(std::io::stderr(), "skipped: {reason}");
                None
            }
        }
    }

    /// Returns the path of a program, as an argument for `node`.
    pub(crate) fn program(&self, file: &str) -> String {
        self.0.join(file).into_os_string().into_string().unwrap()
    }

    /// Returns the path of a program of [`BUNDLED`] that is one file with its packages. It starts in half the time,
    /// which counts where a program is started for each check of the conformance suite.
    pub(crate) fn bundled_program(&self, file: &str) -> String {
        assert!(BUNDLED.contains(&file), "{file} is not bundled");
        self.program(&bundle_path(file))
    }
}

/// Copies the sources out of the source tree and installs their packages there. If several test programs do this at the
/// same time, one installs and the others wait.
fn install_programs() -> Result<TypeScriptPrograms, String> {
    let node = run_command(Command::new("node").arg("--version"))?;
    let version = String::from_utf8_lossy(&node.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next();
    if major.and_then(|major| major.parse().ok()) < Some(MIN_NODE_VERSION) {
        return Err(format!(
            "node is {version}, and {MIN_NODE_VERSION} is the oldest that will do"
        ));
    }
    run_command(npm_command().arg("--version"))?;

    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("typescript");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    fs::create_dir_all(&to).unwrap();
    let alone = File::create(to.join(".lock")).unwrap();
    alone.lock().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // A directory was installed by hand.
        if entry.file_type().unwrap().is_file() {
            copy_directory(&entry.path(), &to.join(entry.file_name()));
        }
    }
    install_packages(&to)?;
    bundle_programs(&to)?;
    Ok(TypeScriptPrograms(to))
}

/// Installs the packages that `package-lock.json` lists, unless they are installed.
fn install_packages(directory: &Path) -> Result<(), String> {
    let wanted = fs::read(directory.join("package-lock.json")).unwrap();
    // The mark is written at the end, so that an interrupted installation is repeated.
    let mark = directory.join(".installed");
    if fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let output = run_command(
        npm_command()
            .current_dir(directory)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args([
                "--prefer-offline",
                "--fetch-retries=1",
                "--fetch-retry-mintimeout=1000",
            ]),
    )?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let code = network_error(&said).unwrap_or_else(|| panic!("npm ci fails: {said}"));
        return Err(format!("the package registry cannot be reached: {code}"));
    }
    fs::write(mark, wanted).unwrap();
    Ok(())
}

/// Writes the bundles of [`BUNDLED`], unless they are there and nothing has changed.
fn bundle_programs(directory: &Path) -> Result<(), String> {
    let mut sources = fs::read(directory.join("package-lock.json")).unwrap();
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mjs"))
        .collect();
    files.sort();
    for file in files {
        sources.extend(fs::read(file).unwrap());
    }
    let mark = directory.join(".bundled");
    if fs::read(&mark).is_ok_and(|bundled| bundled == sources) {
        return Ok(());
    }
    for program in BUNDLED {
        // Packages that are not modules call `require`, which a module has to make for itself.
        let require = "import { createRequire } from 'node:module'; \
                       const require = createRequire(import.meta.url);";
        let output = run_command(
            Command::new("node")
                .current_dir(directory)
                .arg("node_modules/esbuild/bin/esbuild")
                .args([program, "--bundle", "--platform=node", "--format=esm"])
                .arg("--log-level=warning")
                .arg(format!("--banner:js={require}"))
                .arg(format!("--outfile={}", bundle_path(program))),
        )?;
        assert!(output.status.success(), "{program}: {output:?}");
    }
    fs::write(mark, sources).unwrap();
    Ok(())
}

/// Returns the path of a program's bundle in the directory of the programs.
fn bundle_path(program: &str) -> String {
    let name = Path::new(program).file_stem().unwrap().to_str().unwrap();
    format!("bundles/{name}.mjs")
}

fn npm_command() -> Command {
    Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
}

fn run_command(command: &mut Command) -> Result<Output, String> {
    let output = command.output();
    output.map_err(|e| format!("{} cannot be run: {e}", command.get_program().display()))
}

/// Copies a file if its content differs. Replaces it atomically, because a running program may be reading it.
fn copy_directory(from: &Path, to: &Path) {
    let text = fs::read(from).unwrap();
    if fs::read(to).is_ok_and(|there| there == text) {
        return;
    }
    let new = to.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, to).unwrap();
}

/// Returns the error code if npm could not reach the registry, or if the registry failed. Any other error is a bug in
/// our files.
fn network_error(said: &str) -> Option<&str> {
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

//! Finds the examples in the package of the official SDK, so that they can be built here unchanged.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const EXAMPLE_FILES: [&str; 5] = [
    "yolo_one_shot_client",
    "simple_agent",
    "simple_agent_v2",
    "v2_one_shot_client",
    "v2_session_coordination",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=Cargo.toml");
    let package = official_sdk_directory()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for example in EXAMPLE_FILES {
        let file = format!("{example}.rs");
        let source = package.join("examples").join(&file);
        let code = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        // The documentation of a program cannot be included, so it becomes a plain comment. The tests at the end are
        // dropped. The rest does not change.
        let program = code.split("#[cfg(test)]").next().unwrap_or_default();
        fs::write(out.join(&file), program.replace("//!", "//"))?;
    }
    Ok(())
}

/// Returns the directory in which cargo has put the package of the SDK.
fn official_sdk_directory() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version", "1", "--filter-platform"])
        .arg(env::var("TARGET")?)
        .current_dir(env::var("CARGO_MANIFEST_DIR")?)
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    let metadata = String::from_utf8(output.stdout)?;
    let (_, package) = metadata
        .split_once(r#"{"name":"agent-client-protocol","version":"#)
        .ok_or("the official SDK is not among the packages")?;
    let (_, path) = package
        .split_once(r#""manifest_path":""#)
        .ok_or("the package has no path")?;
    let (path, _) = path
        .split_once('"')
        .ok_or("the package's path has no end")?;
    let manifest = PathBuf::from(path.replace(r"\\", r"\"));
    Ok(manifest
        .parent()
        .ok_or("the package's path has no directory")?
        .to_owned())
}

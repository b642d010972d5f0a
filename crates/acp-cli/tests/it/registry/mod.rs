//! Tests of the entry for the official agent registry in `release/registry`. The entry must meet the requirements of
//! the specification ("ACP Agent Registry") and start this program.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::common::TestProject;

/// The JSON schema for registry entries.
const ENTRY_SCHEMA: &str = include_str!("agent.schema.json");

fn registry_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release/registry/acp-toolkit")
}

fn registry_entry() -> Value {
    let text = std::fs::read_to_string(registry_directory().join("agent.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn entry_faults(entry: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(ENTRY_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults = validator.iter_errors(entry);
    faults.map(|fault| fault.to_string()).collect()
}

#[test]
fn entry_meets_the_registry_requirements() {
    let entry = registry_entry();
    assert_eq!(entry_faults(&entry), [""; 0]);
    let folder = registry_directory();
    assert_eq!(entry["id"], *folder.file_name().unwrap().to_str().unwrap());
}

#[test]
fn invalid_entries_are_detected() {
    let archive = json!({"archive": "https://example.org/acp.tar.gz", "cmd": "./acp"});
    let changes = [
        ("/id", json!("ACP")),
        ("/version", json!("latest")),
        ("/license", json!(1)),
        ("/icon", json!("icon.png")),
        ("/distribution", json!({})),
        ("/distribution/npx", json!({"args": ["agent"]})),
        // One system of three.
        (
            "/distribution",
            json!({"binary": {"linux-x86_64": archive}}),
        ),
        ("/distribution", json!({"binary": {"linux-x64": archive}})),
    ];
    for (path, value) in changes {
        let mut changed = registry_entry();
        *changed.pointer_mut(path).unwrap() = value;
        assert_ne!(entry_faults(&changed), [""; 0], "{path}: {changed}");
    }
    let everywhere = ["darwin-aarch64", "linux-x86_64", "windows-x86_64"];
    let everywhere: serde_json::Map<String, Value> = everywhere
        .map(|target| (target.to_owned(), archive.clone()))
        .into_iter()
        .collect();
    let mut changed = registry_entry();
    changed["distribution"] = json!({ "binary": everywhere });
    assert_eq!(entry_faults(&changed), [""; 0]);
}

#[test]
fn icon_is_16_by_16_and_monochrome() {
    let icon = registry_entry()["icon"].as_str().unwrap().to_owned();
    let svg = std::fs::read_to_string(registry_directory().join(icon)).unwrap();
    let attributes = |wanted: &str| -> Vec<String> {
        let name = format!(" {wanted}=\"");
        let values = svg.split(name.as_str()).skip(1);
        values
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect()
    };
    assert!(svg.starts_with("<svg "), "{svg}");
    assert_eq!(attributes("width"), ["16"]);
    assert_eq!(attributes("height"), ["16"]);
    assert_eq!(attributes("viewBox"), ["0 0 16 16"]);
    let colors = [attributes("fill"), attributes("stroke")].concat();
    assert!(colors.contains(&"currentColor".to_owned()), "{svg}");
    for color in colors {
        assert!(
            ["currentColor", "none"].contains(&color.as_str()),
            "{color}"
        );
    }
    // Nothing else that sets a color, loads something or runs.
    for other in ["style", "<script", "href", "stop-color", "url("] {
        assert!(!svg.contains(other), "{other}: {svg}");
    }
}

#[test]
fn entry_starts_this_version_as_an_agent() {
    let entry = registry_entry();
    assert_eq!(entry["version"], env!("CARGO_PKG_VERSION"));
    let npx = &entry["distribution"]["npx"];
    assert_eq!(
        npx["package"],
        format!("acp-toolkit@{}", env!("CARGO_PKG_VERSION"))
    );
    let args: Vec<&str> = npx["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap())
        .collect();
    // The registry starts each agent and requires an auth method.
    let project = TestProject::new();
    let mut child = project
        .acp_command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let request = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": true}}},
    });
    writeln!(child.stdin.take().unwrap(), "{request}").unwrap();
    let mut response = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut response).unwrap();
    child.wait().unwrap();
    let response: Value = serde_json::from_str(&response).unwrap();
    let methods = response["result"]["authMethods"].as_array();
    assert!(
        methods.is_some_and(|methods| !methods.is_empty()),
        "{response}"
    );
}

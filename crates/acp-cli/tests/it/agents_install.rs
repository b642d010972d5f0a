//! Tests of installing agents from a registry: `acp agents search`, `install`, `update` and `remove`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use acp_registry::current_platform;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use crate::common::file_server::{FileServer, ServedFile};
use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, CommandResult, TestProject};

/// Writes a program that leaves a note in the project and then runs the bundled agent.
fn program(says: &str) -> String {
    format!("#!/bin/sh\necho {says} \"$@\" \"$LEVEL\" > started\nexec '{ACP}' agent\n")
}

/// Makes a tar.gz archive of files with these names, types, link targets and texts.
fn archive(entries: &[(&str, EntryType, &str, &str)]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for (path, kind, link, text) in entries {
        let mut header = Header::new_gnu();
        // Written directly, because the functions for it refuse what these tests need.
        let old = header.as_old_mut();
        old.name[..path.len()].copy_from_slice(path.as_bytes());
        old.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(text.len() as u64);
        header.set_mode(0o755);
        header.set_cksum();
        encoder.write_all(header.as_bytes()).unwrap();
        encoder.write_all(text.as_bytes()).unwrap();
        let padding = text.len().next_multiple_of(512) - text.len();
        encoder.write_all(&vec![0; padding]).unwrap();
    }
    encoder.write_all(&[0; 1024]).unwrap();
    encoder.finish().unwrap()
}

fn agent_archive(says: &str) -> Vec<u8> {
    archive(&[
        ("./", EntryType::Directory, "", ""),
        ("./bin/tool", EntryType::Regular, "", &program(says)),
        ("./README", EntryType::Regular, "", "words"),
    ])
}

fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns an entry of a registry with a download for this platform.
fn binary_entry(version: &str, url: &str, sum: Option<&str>) -> Value {
    let mut target = json!({"archive": url, "cmd": "./bin/tool", "args": ["acp", "two words"], "env": {"LEVEL": "3"}});
    if let Some(sum) = sum {
        target["sha256"] = json!(sum);
    }
    json!({
        "id": "tool",
        "name": "Tool",
        "version": version,
        "description": "An agent for tests",
        "repository": "https://github.com/example/tool",
        "authors": ["An Author", "Another"],
        "license": "MIT",
        "license_url": "https://example.org/license",
        "distribution": {"binary": {current_platform().unwrap(): target}},
    })
}

fn registry(entries: &[Value]) -> Vec<u8> {
    let registry = json!({"version": "1.0.0", "agents": entries, "extensions": []});
    registry.to_string().into_bytes()
}

/// Runs `acp agents` with these arguments and the registry `registry.json` in the project.
fn agents(project: &TestProject, args: &[&str]) -> CommandResult {
    let mut all = vec!["agents"];
    all.extend(args);
    all.extend(["--registry", "registry.json"]);
    CommandResult::from_output(project.acp_command(&all).output().unwrap())
}

fn acp(project: &TestProject, args: &[&str]) -> CommandResult {
    CommandResult::from_output(project.acp_command(args).output().unwrap())
}

fn write_registry(project: &TestProject, entries: &[Value]) {
    let text = String::from_utf8(registry(entries)).unwrap();
    project.write_file("registry.json", &text);
}

/// Returns everything below the directory of installed agents, in order, except the locks that installations take.
fn installed_files(project: &TestProject) -> Vec<String> {
    let mut files = Vec::new();
    list_files(&project.installed_agents_directory(), "", &mut files);
    files.retain(|file| file != ".lock" && file != "installed.lock");
    files.sort();
    files
}

fn list_files(directory: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            list_files(&entry.path(), &format!("{name}/"), files);
        }
        files.push(name);
    }
}

/// Asserts that the agent starts, and returns what it has written.
#[track_caller]
fn started_by(project: &TestProject, name: &str) -> String {
    acp(project, &["run", "--agent", name, "/help"]).expect_code(0);
    let text = project.read_file("started");
    std::fs::remove_file(project.file("started")).unwrap();
    text.trim().to_owned()
}

#[test]
fn binary_agent_is_installed_started_and_removed() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let body = agent_archive("one");
    let sum = sha256(&body);
    let url = server.serve("/tool.tar.gz", ServedFile::new(body.clone()));
    write_registry(&project, &[binary_entry("1.0.0", &url, Some(&sum))]);
    let missing = acp(&project, &["run", "--agent", "tool@1.0.0", "/help"]);
    missing
        .expect_code(2)
        .expect_stderr("install it with: acp agents install tool@1.0.0");
    agents(&project, &["install", "tool@2.0.0", "--yes"])
        .expect_code(2)
        .expect_stderr("version not found");
    agents(&project, &["install", "other", "--yes"])
        .expect_code(2)
        .expect_stderr("agent not found in the registry");
    let done = agents(&project, &["install", "tool@1.0.0", "--yes"]).expect_code(0);
    let place = project.installed_agents_directory().join("tool/1.0.0");
    for part in [
        &format!("{}/bin/tool acp 'two words'", place.display()),
        "LEVEL=3",
        "1.0.0",
        &url,
        &sum,
        &format!("{} bytes", body.len()),
        "MIT (https://example.org/license)",
        "An Author, Another",
        "https://github.com/example/tool",
        "registry.json",
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert_eq!(
        installed_files(&project),
        [
            "installed.json",
            "tool",
            "tool/1.0.0",
            "tool/1.0.0/README",
            "tool/1.0.0/bin",
            "tool/1.0.0/bin/tool"
        ]
    );
    assert_eq!(started_by(&project, "tool"), "one acp two words 3");
    assert_eq!(started_by(&project, "tool@1.0.0"), "one acp two words 3");
    acp(&project, &["run", "--agent", "tool@1.0.1", "/help"])
        .expect_code(2)
        .expect_stderr(
            "version 1.0.0 is installed; install it with: acp agents install tool@1.0.1",
        );
    acp(&project, &["agents"]).expect_code(0).expect_stdout(&[
        "Installed from a registry:",
        "tool",
        "Tool 1.0.0, from",
    ]);
    let listed = acp(&project, &["agents", "--format", "json"]).expect_code(0);
    let line = listed
        .stdout
        .lines()
        .find(|line| line.contains("\"tool\""))
        .unwrap();
    let listed: Value = serde_json::from_str(line).unwrap();
    assert_eq!(listed["by"], "installed");
    assert_eq!(listed["sha256"], json!(sum));
    assert_eq!(listed["source"], json!(url));
    server.take_requests();
    agents(&project, &["install", "tool", "--yes"])
        .expect_code(0)
        .expect_stdout(&["tool 1.0.0 is already installed"]);
    assert_eq!(
        server.take_requests(),
        [""; 0],
        "nothing is downloaded again"
    );
    acp(&project, &["agents", "remove", "tool"])
        .expect_code(0)
        .expect_stdout(&["removed tool"]);
    assert_eq!(installed_files(&project), ["installed.json"]);
    acp(&project, &["agents", "remove", "tool"])
        .expect_code(2)
        .expect_stderr("agent not installed: `tool`");
}

#[test]
fn nothing_is_installed_without_the_users_consent() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let url = server.serve("/tool.tar.gz", ServedFile::new(agent_archive("one")));
    write_registry(&project, &[binary_entry("1.0.0", &url, None)]);
    agents(&project, &["install", "tool"])
        .expect_code(2)
        .expect_stderr("two words")
        .expect_stderr("use --yes");
    assert_eq!(installed_files(&project), [""; 0]);
    let line = format!("{ACP} agents install tool --registry registry.json");
    let mut terminal = CommandTerminal::start(&project, &line);
    terminal.wait_for("[y/N] ");
    for part in [
        "two words",
        "LEVEL=3",
        "tool.tar.gz",
        "none in the registry",
        "MIT",
        "An Author",
    ] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    terminal.answer("[y/N] ", "n\n");
    assert!(terminal.expect_exit(2).contains("not installed"));
    assert_eq!(installed_files(&project), [""; 0]);
    assert!(
        server
            .take_requests()
            .iter()
            .all(|request| request.starts_with("HEAD "))
    );
    let mut terminal = CommandTerminal::start(&project, &line);
    terminal.answer("[y/N] ", "y\n");
    assert!(terminal.expect_exit(0).contains("installed tool 1.0.0"));
    assert_eq!(started_by(&project, "tool"), "one acp two words 3");
}

#[test]
fn faulty_downloads_are_refused_and_leave_nothing() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let good = agent_archive("one");
    let sum = sha256(&good);
    let regular = EntryType::Regular;
    let tool = ("bin/tool", regular, "", "x");
    let hostile = |entry| ServedFile::new(archive(&[tool, entry]));
    let half = good[..good.len() / 2].to_vec();
    let cut_off = ServedFile {
        announced: Some(good.len()),
        ..ServedFile::new(half.clone())
    };
    let without_size = ServedFile {
        is_without_size: true,
        ..ServedFile::new(good.clone())
    };
    for (file, sum, reason) in [
        (
            ServedFile::new(agent_archive("two")),
            Some(&sum),
            "checksum mismatch",
        ),
        (cut_off, None, "cut off"),
        (ServedFile::new(half), None, "damaged"),
        (without_size, None, "does not say how large"),
        (ServedFile::new("<html>"), None, "damaged"),
        (
            hostile(("../../up", regular, "", "x")),
            None,
            "contains `..`",
        ),
        (
            hostile(("/tmp/acp-test", regular, "", "x")),
            None,
            "is absolute",
        ),
        (
            hostile(("link", EntryType::Symlink, "../../../..", "")),
            None,
            "symbolic link",
        ),
        (
            hostile(("link", EntryType::Link, "../../x", "")),
            None,
            "contains `..`",
        ),
        (
            hostile(("device", EntryType::Char, "", "")),
            None,
            "is a device",
        ),
        (
            hostile(("bin/tool", regular, "", "y")),
            None,
            "occurs twice",
        ),
        (
            hostile(("BIN/tool", regular, "", "y")),
            None,
            "differ only in case",
        ),
        (
            ServedFile::new(archive(&[("other", regular, "", "x")])),
            None,
            "does not contain the program",
        ),
        (
            ServedFile::redirect("https://127.0.0.1:1/x"),
            None,
            "redirects away from this machine",
        ),
        (
            ServedFile::redirect(&server.url("/tool.tar.gz")),
            None,
            "more than 5 redirects",
        ),
    ] {
        let url = server.serve("/tool.tar.gz", file);
        let sum = sum.map(String::as_str);
        write_registry(&project, &[binary_entry("1.0.0", &url, sum)]);
        agents(&project, &["install", "tool", "--yes"])
            .expect_code(1)
            .expect_stderr(reason);
        assert_eq!(installed_files(&project), [""; 0], "{reason}");
    }
}

#[test]
fn interrupted_download_leaves_nothing_and_is_not_disturbed_by_another() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let body = agent_archive("one");
    let (stalled, stalls) = mpsc::channel();
    let half = ServedFile {
        stalled: Some(stalled),
        ..ServedFile::new(body.clone())
    };
    let url = server.serve("/tool.tar.gz", half);
    write_registry(&project, &[binary_entry("1.0.0", &url, None)]);
    let line = format!("{ACP} agents install tool --yes --registry registry.json");
    let mut terminal = CommandTerminal::start(&project, &line);
    stalls.recv_timeout(Duration::from_secs(60)).unwrap();
    agents(&project, &["install", "tool", "--yes"])
        .expect_code(1)
        .expect_stderr("another acp is installing or removing agents");
    terminal.send_keys("\u{3}");
    terminal.expect_exit(130);
    assert_eq!(installed_files(&project), [""; 0]);
    server.serve("/tool.tar.gz", ServedFile::new(body));
    agents(&project, &["install", "tool", "--yes"]).expect_code(0);
    assert_eq!(started_by(&project, "tool"), "one acp two words 3");
}

#[test]
fn update_to_another_kind_of_distribution_is_shown() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let body = agent_archive("one");
    let sum = sha256(&body);
    let url = server.serve("/tool.tar.gz", ServedFile::new(body));
    write_registry(&project, &[binary_entry("1.0.0", &url, Some(&sum))]);
    agents(&project, &["install", "tool", "--yes"]).expect_code(0);
    let mut entry = binary_entry("1.1.0", &url, None);
    entry["distribution"] = json!({"npx": {"package": "tool@1.1.0"}});
    write_registry(&project, &[entry]);
    let updated = agents(&project, &["update", "--yes"]).expect_code(0);
    for part in ["tool@1.1.0", &url, "npx", "bin/tool", &sum, "LEVEL=3"] {
        assert!(updated.stderr.contains(part), "{part}: {}", updated.stderr);
    }
    assert_eq!(installed_files(&project), ["installed.json"]);
}

#[test]
fn registries_that_lie_are_refused() {
    let project = TestProject::new();
    let good = binary_entry("1.0.0", "https://127.0.0.1:1/tool.tar.gz", None);
    let target = format!("/distribution/binary/{}", current_platform().unwrap());
    for (place, value, reason) in [
        ("/id".to_owned(), json!("../tool"), "agent not found"),
        ("/id".to_owned(), json!("acp"), "agent not found"),
        (
            "/version".to_owned(),
            json!("1.0.0/../../x"),
            "invalid version",
        ),
        (
            format!("{target}/archive"),
            json!("http://example.org/x.zip"),
            "only https",
        ),
        (
            format!("{target}/archive"),
            json!("https://example.org/x.dmg"),
            "not supported",
        ),
        (
            format!("{target}/cmd"),
            json!("../../bin/sh"),
            "contains `..`",
        ),
        (format!("{target}/cmd"), json!("/bin/sh"), "is absolute"),
        (
            format!("{target}/env"),
            json!({"A=B": "c"}),
            "invalid environment variable",
        ),
        (
            "/distribution".to_owned(),
            json!({"npx": {"package": "--call=sh"}}),
            "not the name of a package",
        ),
        (
            "/distribution".to_owned(),
            json!({"container": {}}),
            "knows none of the ways",
        ),
        (
            "/distribution".to_owned(),
            json!({"binary": {"plan9-mips": {"archive": "https://a.example/x", "cmd": "x"}}}),
            "no download for this platform",
        ),
    ] {
        let mut entry = good.clone();
        *entry.pointer_mut(&place).unwrap() = value;
        write_registry(&project, &[entry]);
        agents(&project, &["install", "tool", "--yes"])
            .expect_code(2)
            .expect_stderr(reason);
        assert_eq!(installed_files(&project), [""; 0], "{reason}");
    }
    let mut bundled = good;
    bundled["id"] = json!("acp");
    write_registry(&project, &[bundled]);
    agents(&project, &["install", "acp", "--yes"])
        .expect_code(2)
        .expect_stderr("the name of the bundled agent");
}

#[test]
fn release_that_has_changed_is_refused() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let body = agent_archive("one");
    let url = server.serve("/tool.tar.gz", ServedFile::new(body.clone()));
    write_registry(&project, &[binary_entry("1.0.0", &url, None)]);
    agents(&project, &["install", "tool", "--yes"]).expect_code(0);
    let before = installed_files(&project);
    // The registry states another sum.
    let other = agent_archive("two");
    let url = server.serve("/tool.tar.gz", ServedFile::new(other.clone()));
    write_registry(
        &project,
        &[binary_entry("1.0.0", &url, Some(&sha256(&other)))],
    );
    for command in ["install", "update"] {
        agents(&project, &[command, "tool", "--yes"])
            .expect_code(1)
            .expect_stderr("the release has changed");
    }
    // It states none, but another place, where there is something else.
    let moved = server.serve("/moved.tar.gz", ServedFile::new(other));
    write_registry(&project, &[binary_entry("1.0.0", &moved, None)]);
    agents(&project, &["install", "tool", "--yes"])
        .expect_code(1)
        .expect_stderr("but the lock file has");
    assert_eq!(installed_files(&project), before);
    assert_eq!(started_by(&project, "tool@1.0.0"), "one acp two words 3");
    // Files that somebody has removed are installed again, if they are the same.
    std::fs::remove_dir_all(project.installed_agents_directory().join("tool/1.0.0")).unwrap();
    acp(&project, &["run", "--agent", "tool", "/help"])
        .expect_code(2)
        .expect_stderr("acp agents install tool@1.0.0");
    agents(&project, &["install", "tool", "--yes"]).expect_code(1);
    server.serve("/moved.tar.gz", ServedFile::new(body));
    agents(&project, &["install", "tool", "--yes"]).expect_code(0);
    assert_eq!(installed_files(&project), before);
}

#[test]
fn update_shows_what_changes_and_replaces_the_version() {
    let (project, server) = (TestProject::new(), FileServer::start());
    acp(&project, &["agents", "update", "tool"])
        .expect_code(2)
        .expect_stderr("agent not installed: `tool`");
    let old = server.serve("/1/tool.tar.gz", ServedFile::new(agent_archive("one")));
    write_registry(&project, &[binary_entry("1.0.0", &old, None)]);
    agents(&project, &["install", "tool", "--yes"]).expect_code(0);
    // The registry from which it was installed is asked.
    acp(&project, &["agents", "update"])
        .expect_code(0)
        .expect_stdout(&["tool 1.0.0 is up to date"]);
    let new = server.serve("/2/tool.tar.gz", ServedFile::new(agent_archive("two")));
    let mut entry = binary_entry("1.1.0", &new, None);
    let target = format!("/distribution/binary/{}", current_platform().unwrap());
    entry.pointer_mut(&target).unwrap()["env"] = json!({"LEVEL": "4"});
    write_registry(&project, &[entry]);
    let shown = acp(&project, &["agents", "update", "tool"]).expect_code(2);
    for part in [
        "1.1.0",
        "1.0.0",
        &new,
        &old,
        "LEVEL=4",
        "LEVEL=3",
        "use --yes",
    ] {
        assert!(shown.stderr.contains(part), "{part}: {}", shown.stderr);
    }
    assert_eq!(started_by(&project, "tool@1.0.0"), "one acp two words 3");
    // What fails leaves the old version.
    server.serve("/2/tool.tar.gz", ServedFile::new("damaged"));
    let before = installed_files(&project);
    acp(&project, &["agents", "update", "--yes"]).expect_code(1);
    assert_eq!(installed_files(&project), before);
    assert_eq!(started_by(&project, "tool"), "one acp two words 3");
    server.serve("/2/tool.tar.gz", ServedFile::new(agent_archive("two")));
    acp(&project, &["agents", "update", "--yes"])
        .expect_code(0)
        .expect_stdout(&["updated tool 1.1.0"]);
    assert_eq!(started_by(&project, "tool@1.1.0"), "two acp two words 4");
    assert!(
        installed_files(&project)
            .iter()
            .all(|file| !file.contains("1.0.0"))
    );
}

#[test]
fn packages_are_pinned_to_an_exact_version() {
    let project = TestProject::new();
    let entry = |id: &str, distribution: Value| json!({"id": id, "name": id, "version": "1.2.3", "description": "", "distribution": distribution});
    write_registry(
        &project,
        &[
            entry(
                "node",
                json!({"npx": {"package": "@scope/node@1.2.3", "args": ["--acp"], "env": {"LEVEL": "5"}}}),
            ),
            entry(
                "unpinned",
                json!({"npx": {"package": "unpinned", "cmd": "other"}}),
            ),
            entry(
                "python",
                json!({"uvx": {"package": "python-agent@latest", "args": ["-x"]}}),
            ),
            entry("range", json!({"npx": {"package": "range@^1.0.0"}})),
        ],
    );
    let programs = project.path_outside("programs");
    for runner in ["npx", "uvx"] {
        let file = programs.join(runner);
        std::fs::write(&file, program(runner)).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let run = |args: &[&str]| {
        let mut command = project.acp_command(args);
        CommandResult::from_output(command.env("PATH", &path).output().unwrap())
    };
    for (id, started) in [
        ("node", "npx --yes @scope/node@1.2.3 --acp 5"),
        ("unpinned", "npx --yes --package unpinned@1.2.3 -- other"),
        ("python", "uvx --from python-agent==1.2.3 python-agent -x"),
    ] {
        agents(&project, &["install", id, "--yes"]).expect_code(0);
        run(&["run", "--agent", id, "/help"]).expect_code(0);
        assert_eq!(project.read_file("started").trim(), started);
    }
    agents(&project, &["install", "range", "--yes"])
        .expect_code(2)
        .expect_stderr("has no exact version");
}

#[test]
fn search_lists_what_the_registry_has() {
    let project = TestProject::new();
    let package = |id: &str, description: &str| {
        json!({"id": id, "name": id.to_uppercase(), "version": "1.2.3", "description": description,
            "distribution": {"npx": {"package": format!("{id}@1.2.3")}}})
    };
    let mut later = package("later", "Of a later kind");
    later["distribution"] = json!({"container": {"image": "later"}});
    let mut strange = package("strange", "Its id is not valid");
    strange["id"] = json!("Strange/..");
    write_registry(
        &project,
        &[
            package("alpha", "Writes\u{1b}[31m code\nand texts"),
            package("beta", "Reads code"),
            later,
            strange,
        ],
    );
    agents(&project, &["install", "beta", "--yes"]).expect_code(0);
    let all = agents(&project, &["search"]).expect_code(0);
    let all = all.expect_stderr("ignoring agent \"Strange/..\"");
    let lines: Vec<&str> = all.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(!all.stdout.contains('\u{1b}'), "{}", all.stdout);
    let columns: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        columns[0][..5],
        ["alpha", "1.2.3", "npx", "not", "installed"]
    );
    assert_eq!(columns[1][..4], ["beta", "1.2.3", "npx", "installed"]);
    assert_eq!(columns[2][..4], ["later", "1.2.3", "unknown", "not"]);
    let found = agents(&project, &["search", "CODE", "reads", "--format", "json"]).expect_code(0);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(
        (&found["id"], &found["installed"]),
        (&json!("beta"), &json!("1.2.3"))
    );
    agents(&project, &["search", "xyzzy"])
        .expect_code(0)
        .expect_stderr("no agent");
}

#[test]
fn registry_is_cached_and_works_offline() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let package = json!({"id": "node", "name": "Node", "version": "1.2.3", "description": "",
        "distribution": {"npx": {"package": "node-agent@1.2.3"}}});
    let file = ServedFile {
        etag: Some("\"one\"".to_owned()),
        ..ServedFile::new(registry(&[package]))
    };
    let url = server.serve("/registry.json", file);
    let run = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--registry", &url]);
        acp(&project, &all)
    };
    run(&["agents", "search"])
        .expect_code(0)
        .expect_stdout(&["node"]);
    assert_eq!(server.take_requests(), ["GET /registry.json 200"]);
    run(&["agents", "search"])
        .expect_code(0)
        .expect_stdout(&["node"]);
    assert_eq!(server.take_requests(), [""; 0]);
    // Whoever installs gets what the registry has now.
    run(&["agents", "install", "node", "--yes"]).expect_code(0);
    assert_eq!(server.take_requests(), ["GET /registry.json 304"]);
    // The server fails.
    server.serve("/registry.json", ServedFile::redirect("ftp://example.org/"));
    run(&["agents", "install", "node", "--yes"])
        .expect_code(0)
        .expect_stderr("using the copy of the registry from 0 minutes ago");
    server.serve("/registry.json", ServedFile::new("<html>"));
    run(&["agents", "install", "node", "--yes"])
        .expect_code(1)
        .expect_stderr("invalid registry");
}

#[test]
fn files_are_downloaded_over_https_with_a_valid_certificate() {
    let project = TestProject::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let config = rustls::ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let (server, plain) = (FileServer::start_tls(config), FileServer::start());
    let trusted = project.file("trusted.pem");
    std::fs::write(&trusted, certificate.pem()).unwrap();
    let body = agent_archive("one");
    let archive = server.serve("/tool.tar.gz", ServedFile::new(body.clone()));
    let elsewhere = plain.serve("/tool.tar.gz", ServedFile::new(body));
    let install = |url: &str, is_trusted: bool| {
        let entry = binary_entry("1.0.0", url, None);
        let address = server.serve("/registry.json", ServedFile::new(registry(&[entry])));
        let mut command = project.acp_command(&["agents", "install", "tool", "--yes"]);
        command.args(["--registry", &address]).env("NO_PROXY", "*");
        if is_trusted {
            command.env("SSL_CERT_FILE", &trusted);
        }
        CommandResult::from_output(command.output().unwrap())
    };
    install(&archive, false)
        .expect_code(1)
        .expect_stderr("certificate");
    let down = server.serve("/down", ServedFile::redirect(&elsewhere));
    install(&down, true)
        .expect_code(1)
        .expect_stderr("redirects to a URL that is not https");
    assert_eq!(installed_files(&project), [""; 0]);
    let over = server.serve("/over", ServedFile::redirect(&archive));
    install(&over, true)
        .expect_code(1)
        .expect_stderr("it is an archive, but its URL does not end");
    assert_eq!(installed_files(&project), [""; 0]);
    let over = server.serve("/over.tar.gz", ServedFile::redirect(&archive));
    install(&over, true).expect_code(0);
    assert_eq!(started_by(&project, "tool"), "one acp two words 3");
    acp(&project, &["agents", "remove", "tool"]).expect_code(0);
    install(&archive, true).expect_code(0);
    assert_eq!(started_by(&project, "tool"), "one acp two words 3");
}

#[test]
fn users_own_agent_takes_precedence_and_settings_apply() {
    let (project, server) = (TestProject::new(), FileServer::start());
    let url = server.serve("/tool.tar.gz", ServedFile::new(agent_archive("one")));
    let mut entry = binary_entry("1.0.0", &url, None);
    // A well-known agent has this name, too.
    entry["id"] = json!("goose");
    write_registry(&project, &[entry]);
    agents(&project, &["install", "goose", "--yes"])
        .expect_code(0)
        .expect_stderr("--agent goose will start it instead of `goose acp`");
    assert_eq!(started_by(&project, "goose"), "one acp two words 3");
    project.write_config("config.toml", "[agents.goose]\nenv = { LEVEL = '7' }\n");
    assert_eq!(started_by(&project, "goose"), "one acp two words 7");
    assert_eq!(started_by(&project, "goose@1.0.0"), "one acp two words 7");
    let own = project.file("own");
    std::fs::write(&own, program("own")).unwrap();
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).unwrap();
    let config = format!("[agents.goose]\ncommand = '{}'\n", own.display());
    project.write_config("config.toml", &config);
    assert_eq!(started_by(&project, "goose"), "own");
    assert_eq!(started_by(&project, "goose@1.0.0"), "one acp two words 3");
}

//! Tests of remote agents that have the project in a different directory, using `--map` or `paths` in `config.toml`.

use crate::common::{ACP, TestProject};
use crate::connect::token_file;
use crate::serve::Server;

/// A project, and a server that may only open a different directory.
struct TwoDirectories {
    project: TestProject,
    /// The directory on the server.
    remote: String,
    server: Server,
    token: String,
}

impl TwoDirectories {
    fn new() -> Self {
        let project = TestProject::new();
        let remote = project.path_outside("remote").display().to_string();
        let server = Server::start(&project, &["--cwd", &remote]);
        let token = token_file(&project, server.token().expose());
        Self {
            project,
            remote,
            server,
            token,
        }
    }

    /// Returns the arguments that choose the agent and map its paths.
    fn agent_args(&self, url: &str) -> Vec<String> {
        let map = format!("{}={}", self.project.path().display(), self.remote);
        ["--url", url, "--token-file", &self.token, "--map", &map]
            .map(str::to_owned)
            .to_vec()
    }
}

#[test]
fn agent_works_on_the_files_of_the_mapped_directory() {
    let two = TwoDirectories::new();
    let web_socket = two.server.plain_url().to_owned();
    for url in [web_socket.clone(), web_socket.replacen("ws", "http", 1)] {
        two.project.write_file("notes.txt", "first\nsecond\n");
        let agent = two.agent_args(&url);
        let run = |prompt: &str| {
            let mut args = vec!["--allow", "all", prompt];
            args.extend(agent.iter().map(String::as_str));
            two.project.run(&args).expect_code(0)
        };
        // The agent reads and edits through the client.
        run("/read notes.txt").expect_stdout(&["second"]);
        run("/edit notes.txt\nsecond\n===\nchanged");
        assert_eq!(two.project.read_file("notes.txt"), "first\nchanged\n");
        // The client runs the command, in its own directory.
        let here = two.project.path().canonicalize().unwrap();
        run("/run pwd -P").expect_stdout(&[here.to_str().unwrap()]);
        assert!(!std::path::Path::new(&two.remote).join("notes.txt").exists());
    }
}

#[test]
fn unmapped_directory_is_rejected_by_the_server() {
    let two = TwoDirectories::new();
    let agent = ["--url", two.server.plain_url(), "--token-file", &two.token];
    two.project
        .run(&[&["/read notes.txt"], &agent[..]].concat())
        .expect_code(1)
        .expect_stderr("directory not allowed");
}

#[test]
fn sessions_are_listed_with_local_directories() {
    let two = TwoDirectories::new();
    let agent = two.agent_args(two.server.plain_url());
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    two.project
        .run(&[&["/read notes.txt"], &agent[..]].concat())
        .expect_code(0);
    let mut command = two.project.acp_command(&["sessions", "--format", "json"]);
    let listed = command.args(&agent).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains(two.project.path().to_str().unwrap()),
        "{listed}"
    );
    assert!(!listed.contains(&two.remote), "{listed}");
}

#[test]
fn configured_paths_of_an_agent_are_used() {
    let two = TwoDirectories::new();
    let (url, here) = (two.server.plain_url(), two.project.path().display());
    two.project.write_config(
        "config.toml",
        &format!(
            "[agents.far]\nurl = '{url}'\ntoken_file = '{}'\npaths = {{ '{here}' = '{}' }}\n",
            two.token, two.remote
        ),
    );
    two.project
        .run(&["/read notes.txt", "--agent", "far"])
        .expect_code(0)
        .expect_stdout(&["second"]);
}

#[test]
fn editor_uses_the_mapping_through_acp_connect() {
    let two = TwoDirectories::new();
    let mut args = vec![
        "/read notes.txt".to_owned(),
        "--".to_owned(),
        ACP.to_owned(),
        "connect".to_owned(),
    ];
    args.push(two.server.plain_url().to_owned());
    args.extend(two.agent_args("").into_iter().skip(2));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    two.project
        .run(&args)
        .expect_code(0)
        .expect_stdout(&["second"]);
}

#[test]
fn invalid_mappings_are_rejected() {
    let project = TestProject::new();
    for (value, expected) in [
        ("/srv", "LOCAL=REMOTE"),
        ("/a=b", "use an absolute path on the agent's machine"),
    ] {
        project
            .run(&["hi", "--url", "ws://h/", "--map", value])
            .expect_code(2)
            .expect_stderr(expected);
    }
    project
        .run(&["hi", "--map", "/a=/b", "--", ACP, "agent"])
        .expect_code(2)
        .expect_stderr("--map requires a remote agent");
}

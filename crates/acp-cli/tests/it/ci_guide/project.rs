//! A repository with a remote, a server in place of GitHub, and the jobs of the example workflows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use acp_agent::Provider;
use serde_json::Value;

use super::workflow::{JobRun, has_runner_programs, read_yaml, repository};
use crate::common::{ACP, CommandResult, TestProject};
use crate::full_task::provider::{AnswerPiece, ProviderReply, ProviderServer};

/// A server that accepts everything, in place of GitHub's API. It records the requests.
pub(super) struct ApiServer {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl ApiServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        // The thread ends with the test program.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut head).unwrap_or_default() == 0 {
                        break;
                    }
                }
                assert!(
                    head.contains("authorization: Bearer the-token\r\n"),
                    "{head}"
                );
                let length = head.lines().find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")
                        .map(str::to_owned)
                });
                let mut body = vec![0; length.unwrap().parse().unwrap()];
                stream.read_exact(&mut body).unwrap();
                let path = head.split(' ').nth(1).unwrap().to_owned();
                recorded
                    .lock()
                    .unwrap()
                    .push((path, serde_json::from_slice(&body).unwrap()));
                let _ = stream.get_mut().write_all(
                    b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
                );
            }
        });
        Self { url, requests }
    }

    pub(super) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }
}

/// A git repository with the files of the examples, its remote, and a server in place of GitHub.
pub(super) struct CiProject {
    pub(super) project: TestProject,
    pub(super) origin: PathBuf,
    pub(super) api: ApiServer,
}

impl CiProject {
    /// Creates the repository, or returns `None` if a program is missing.
    pub(super) fn new() -> Option<Self> {
        if !has_runner_programs() {
            return None;
        }
        let project = TestProject::new();
        let origin = project.path_outside("origin.git");
        let ci = Self {
            api: ApiServer::start(),
            origin,
            project,
        };
        ci.git(ci.origin.as_path(), &["init", "--quiet", "--bare"]);
        ci.git(ci.checkout(), &["init", "--quiet", "--initial-branch=main"]);
        ci.git(
            ci.checkout(),
            &["remote", "add", "origin", ci.origin.to_str().unwrap()],
        );
        std::fs::create_dir_all(ci.project.file(".github/acp")).unwrap();
        for name in ["review.toml", "fix.toml", "permissions.toml"] {
            let from = repository().join("examples/github-action/acp").join(name);
            std::fs::copy(from, ci.project.file(".github/acp").join(name)).unwrap();
        }
        ci.project.write_file("sum.txt", "1 + 1 = 3\n");
        ci.project
            .write_file("test.sh", "grep -q '1 + 1 = 2' sum.txt\n");
        ci.commit("begin");
        ci.git(ci.checkout(), &["push", "--quiet", "origin", "main"]);
        Some(ci)
    }

    pub(super) fn checkout(&self) -> &Path {
        self.project.path()
    }

    pub(super) fn git(&self, directory: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(directory)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn commit(&self, message: &str) {
        self.git(self.checkout(), &["add", "--all"]);
        let user = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
        self.git(
            self.checkout(),
            &[&user[..], &["commit", "--quiet", "-m", message]].concat(),
        );
    }

    /// Checks out the merge commit of a pull request that writes these files.
    pub(super) fn check_out_pull_request(&self, files: &[(&str, &str)]) {
        self.git(self.checkout(), &["checkout", "--quiet", "-b", "change"]);
        for (name, text) in files {
            self.project.write_file(name, text);
        }
        self.commit("change");
        self.git(
            self.checkout(),
            &["checkout", "--quiet", "--detach", "main"],
        );
        let user = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
        self.git(
            self.checkout(),
            &[&user[..], &["merge", "--quiet", "--no-ff", "change"]].concat(),
        );
    }

    /// Returns the run of a job with the program under test, and the bundled agent with this model.
    pub(super) fn job<'a>(
        &'a self,
        workflow: &'a Value,
        job: &'a str,
        server: &ProviderServer,
    ) -> JobRun<'a> {
        let mut run = JobRun::new(&self.project, workflow, job, self.checkout().to_owned());
        run.inputs.insert("archive", String::new());
        run.inputs.insert("program", ACP.to_owned());
        let name = if job == "fix" {
            "fix.toml"
        } else {
            "review.toml"
        };
        let config =
            std::fs::read_to_string(repository().join("examples/github-action/acp").join(name))
                .unwrap();
        let url = format!("[agent]\nbase_url = \"http://{}\"", server.address);
        let file = self.project.path_outside("config").join(name);
        std::fs::write(&file, config.replace("[agent]", &url)).unwrap();
        run.inputs
            .insert("config", file.to_str().unwrap().to_owned());
        run.environment
            .insert("GITHUB_API_URL", self.api.url.clone());
        // The project's command for its tests.
        let programs = self.project.path_outside("programs");
        let npm = programs.join("npm");
        std::fs::write(&npm, "#!/bin/sh\nexec sh test.sh\n").unwrap();
        Command::new("chmod").arg("+x").arg(&npm).status().unwrap();
        let path = std::env::var("PATH").unwrap();
        run.environment
            .insert("PATH", format!("{}:{path}", programs.display()));
        run
    }
}

pub(super) async fn model(rounds: Vec<Vec<AnswerPiece>>) -> ProviderServer {
    ProviderServer::new(
        Provider::Anthropic,
        rounds.into_iter().map(ProviderReply::Says),
    )
    .await
}

/// Runs a job on a thread that may block.
pub(super) fn run(mut job: JobRun<'_>) -> CommandResult {
    tokio::task::block_in_place(|| job.run())
}

/// Returns the lines of a log that a runner would obey.
pub(super) fn obeyed_commands(log: &str) -> Vec<&str> {
    let mut obeyed = Vec::new();
    let mut stopped_by = None;
    for line in log.split(['\n', '\r']).map(str::trim) {
        match (stopped_by, line.strip_prefix("::stop-commands::")) {
            (None, Some(word)) => stopped_by = Some(word),
            (Some(word), _) if line == format!("::{word}::") => stopped_by = None,
            (None, None) if line.starts_with("::") || line.contains("##[") => obeyed.push(line),
            _ => {}
        }
    }
    assert_eq!(
        stopped_by, None,
        "commands are obeyed again at the end: {log}"
    );
    obeyed
}

/// Returns a project and a workflow of the examples, or `None` if programs that they need are missing.
pub(super) fn start(workflow: &str) -> Option<(CiProject, Value)> {
    let ci = CiProject::new()?;
    Some((
        ci,
        read_yaml(&format!("examples/github-action/{workflow}"))?,
    ))
}

/// Like [`start`], for a workflow whose agent runs in a sandbox.
pub(super) fn start_in_sandbox(workflow: &str) -> Option<(CiProject, Value)> {
    sandboxes_exist().then(|| start(workflow)).flatten()
}

fn sandboxes_exist() -> bool {
    let sandbox = acp_host::Sandbox::new([]);
    if let Err(error) = &sandbox {
        println!("skipped: {error}");
    }
    sandbox.is_ok()
}

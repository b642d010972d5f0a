//! Runs peers, and outlines what happened.

mod person;
pub(crate) mod server;
pub(crate) mod typescript;
pub(crate) mod version2;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

pub(crate) use person::{
    InteropClient, cancel_when, current_value, error_code, item_outline, last_item_outline,
    run_prompt, wait_for_thread,
};

/// What an official client reports for the prompt `work` with our agent.
pub(crate) const WORK_OUTLINE: [&str; 37] = [
    "thought \"First I look.\"",
    "message \"Reading \"",
    "message \"the \"",
    "message \"note.\"",
    "plan in_progress pending pending",
    "new read in_progress",
    "read note.txt",
    "read note.txt",
    "call read completed",
    "new edit pending",
    "permission edit",
    "call edit in_progress",
    "write note.txt",
    "call edit completed",
    "plan completed in_progress pending",
    "new run pending",
    "create sh",
    "call run in_progress",
    "wait terminal-0",
    "output terminal-0",
    "release terminal-0",
    "call run completed",
    "new kill pending",
    "create sleep",
    "call kill in_progress",
    "output terminal-1",
    "kill terminal-1",
    "wait terminal-1",
    "release terminal-1",
    "call kill failed",
    "plan completed completed completed",
    "usage_update",
    "config_option_update",
    "mode code",
    "session_info_update",
    "message \" Done.\"",
    "ended end_turn",
];

/// Returns the entries of [`WORK_OUTLINE`] that are updates from the agent.
pub(crate) fn work_updates() -> Vec<&'static str> {
    let of_clients = [
        "read ",
        "permission ",
        "write ",
        "create ",
        "wait ",
        "output ",
        "kill ",
        "release ",
        "ended ",
    ];
    WORK_OUTLINE
        .into_iter()
        .filter(|line| !of_clients.iter().any(|start| line.starts_with(start)))
        .collect()
}

/// The maximum time to wait for anything that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for `work`, which must finish in time.
#[track_caller]
pub(crate) fn with_timeout<T>(
    what: &str,
    work: impl Future<Output = T>,
) -> impl Future<Output = T> {
    with_time_limit(TIMEOUT, what, work)
}

/// Waits like [`with_timeout`], with the given time limit.
#[track_caller]
fn with_time_limit<T>(
    patience: Duration,
    what: &str,
    work: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(patience, work).await {
            Ok(done) => done,
            Err(_) => panic!("{caller}: it does not happen that {what}"),
        }
    }
}

/// A temporary project with one file.
pub(crate) struct InteropProject(tempfile::TempDir);

impl InteropProject {
    pub(crate) fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write_file("note.txt", "one\ntwo\n");
        project
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Returns the state directory for programs, so that they do not use the state of the user who runs the tests.
    pub(crate) fn state_directory(&self) -> PathBuf {
        self.file(".state")
    }

    pub(crate) fn write_file(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// Requires that the command whose process id is in the file `pid` exits, possibly after a moment.
    #[track_caller]
    pub(crate) fn assert_command_ended(&self) {
        let pid = self.read_file("pid").trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        assert!(has_ended(pid), "process {pid:?} is still there");
    }

    /// Runs a program in the project until it exits.
    pub(crate) async fn run_program<A: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> ProgramResult {
        self.run_program_within(TIMEOUT, program, args).await
    }

    /// Runs a program like [`run_program`](Self::run_program), with the given time limit.
    pub(crate) async fn run_program_within<A: AsRef<OsStr>>(
        &self,
        patience: Duration,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = A>,
    ) -> ProgramResult {
        let mut command = tokio::process::Command::new(program);
        command
            .args(args)
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.state_directory())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = with_time_limit(patience, "the program ends", command.output()).await;
        ProgramResult::from_output(output.unwrap())
    }

    /// Makes the official Rust client run a turn in the project.
    pub(crate) async fn run_official_client(&self, args: &[&str], agent: &[&str]) -> ClientOutput {
        self.run_client(&[env!("CARGO_BIN_EXE_official-client")], args, agent)
            .await
    }

    /// Makes a client run a turn in the project.
    pub(crate) async fn run_client(
        &self,
        client: &[&str],
        args: &[&str],
        agent: &[&str],
    ) -> ClientOutput {
        let (program, client_args) = client.split_first().unwrap();
        let args = client_args.iter().chain(args).chain(&["--"]).chain(agent);
        ClientOutput(
            self.run_program(program, args)
                .await
                .expect_code(0)
                .json_lines(),
        )
    }

    /// Makes a client run a turn in the project with the agent at a URL.
    pub(crate) async fn run_remote_client(
        &self,
        client: &[&str],
        args: &[&str],
        url: &str,
    ) -> ClientOutput {
        let (program, client_args) = client.split_first().unwrap();
        let to = ["--url", url];
        let args = client_args.iter().chain(&to).chain(args);
        ClientOutput(
            self.run_program(program, args)
                .await
                .expect_code(0)
                .json_lines(),
        )
    }

    /// Makes `acp run` run a turn in the project, and presses Ctrl-C when a message with a given method has been
    /// received. Returns the last message that the program printed, and its exit code.
    pub(crate) async fn run_interrupted(
        &self,
        turn: &str,
        agent: &[&str],
        at: &str,
    ) -> (Value, Option<i32>) {
        let arguments = ["run", "--allow", "all", "--format", "json", turn, "--"];
        let mut run = tokio::process::Command::new(acp_program())
            .args(arguments.iter().chain(agent))
            .current_dir(self.path())
            .env("XDG_STATE_HOME", self.state_directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
        let mut next = async || -> Option<Value> {
            let line = with_timeout("there is a line, or the end", lines.next_line())
                .await
                .unwrap()?;
            Some(serde_json::from_str(&line).unwrap())
        };
        while next().await.unwrap()["method"] != at {}
        let pid = i32::try_from(run.id().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut last = None;
        while let Some(message) = next().await {
            last = Some(message);
        }
        let ended = with_timeout("it ends", run.wait()).await.unwrap();
        (last.unwrap(), ended.code())
    }
}

/// Waits until a process that is not our child has ended. Returns `false` if that takes too long. A zombie counts as
/// ended.
#[cfg(target_os = "linux")]
fn has_ended(pid: rustix::process::Pid) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(error) => return error == rustix::io::Errno::SRCH,
    };
    let patience = Timespec::try_from(TIMEOUT).unwrap();
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    poll(&mut ended, Some(&patience)) == Ok(1)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn has_ended(pid: rustix::process::Pid) -> bool {
    rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

/// The exit status and the output of a program.
#[derive(Debug)]
pub(crate) struct ProgramResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramResult {
    fn from_output(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Requires that stderr contains the given texts.
    #[track_caller]
    pub(crate) fn expect_stderr(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:#?}");
        }
        self
    }

    /// Requires that stdout contains the given texts, in order.
    #[track_caller]
    pub(crate) fn expect_stdout(self, parts: &[&str]) -> Self {
        let mut rest = self.stdout.as_str();
        for part in parts {
            let (_, after) = rest
                .split_once(part)
                .unwrap_or_else(|| panic!("no {part:?} in {self:#?}"));
            rest = after;
        }
        self
    }

    /// Requires that stdout contains the given texts, in any order. The position of a running terminal depends on
    /// timing.
    #[track_caller]
    pub(crate) fn assert_shown_anywhere(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stdout.contains(part), "no {part:?} in {self:#?}");
        }
    }

    /// Parses stdout as JSON, one value per line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// What the official client printed, in order. Each value is an object with one field, whose name says what happened.
pub(crate) struct ClientOutput(pub(crate) Vec<Value>);

impl ClientOutput {
    /// Returns all messages of a kind.
    pub(crate) fn all_of_type(&self, what: &str) -> Vec<&Value> {
        self.0.iter().filter_map(|told| told.get(what)).collect()
    }

    /// Returns the only message of a kind.
    #[track_caller]
    pub(crate) fn one_of_type(&self, what: &str) -> &Value {
        match self.all_of_type(what)[..] {
            [one] => one,
            _ => panic!("not one {what}: {:#?}", self.0),
        }
    }

    /// Returns the last update of a tool call that has a field.
    #[track_caller]
    pub(crate) fn tool_call_field(&self, call: &str, field: &str) -> &Value {
        let updates = self.all_of_type("update").into_iter().rev();
        let mut found = updates
            .filter(|u| u["toolCallId"] == call)
            .filter_map(|u| u.get(field));
        found
            .next()
            .unwrap_or_else(|| panic!("no {field} of {call}: {:#?}", self.0))
    }

    /// Describes each event in a few words, in order. Omits events that can happen at any time: the official SDK
    /// reports responses at unpredictable times, and commands can be announced at any time.
    pub(crate) fn outline(&self) -> Vec<String> {
        self.0.iter().filter_map(outline_of).collect()
    }

    #[track_caller]
    pub(crate) fn expect_stop_reason(&self, reason: &str) -> &Self {
        assert_eq!(
            self.one_of_type("ended")["stopReason"],
            reason,
            "{:#?}",
            self.0
        );
        assert!(
            self.0.last().unwrap().get("ended").is_some(),
            "{:#?}",
            self.0
        );
        self
    }

    #[track_caller]
    pub(crate) fn expect_error_code(&self, code: i64) -> &Self {
        assert_eq!(self.one_of_type("error")["code"], code, "{:#?}", self.0);
        self
    }
}

fn outline_of(told: &Value) -> Option<String> {
    let (what, message) = told.as_object().unwrap().iter().next().unwrap();
    Some(match what.as_str() {
        "update" => return update_outline(message),
        "initialized" | "opened" | "mode" | "option" | "authenticated" | "prompted"
        | "completed" => {
            return None;
        }
        "permission" => {
            // In version 2, a tool call is one of several subjects of a permission request.
            let calls = [&message["toolCall"], &message["subject"]["toolCall"]];
            let mut ids = calls
                .into_iter()
                .filter_map(|call| call["toolCallId"].as_str());
            format!("permission {}", ids.next().unwrap_or_default())
        }
        "read" | "write" => {
            let file = Path::new(message["path"].as_str().unwrap())
                .file_name()
                .unwrap();
            format!("{what} {}", file.to_str().unwrap())
        }
        "create" => format!("create {}", message["command"].as_str().unwrap()),
        "output" | "wait" | "kill" | "release" => {
            format!("{what} {}", message["terminalId"].as_str().unwrap())
        }
        "ended" => format!("ended {}", message["stopReason"].as_str().unwrap()),
        _ => what.clone(),
    })
}

/// Describes an update in a few words.
pub(crate) fn update_outline(update: &Value) -> Option<String> {
    let text = || update["content"]["text"].as_str().unwrap();
    Some(match update["sessionUpdate"].as_str().unwrap() {
        "available_commands_update" => return None,
        "user_message_chunk" => format!("user {:?}", text()),
        "agent_message_chunk" => format!("message {:?}", text()),
        "agent_thought_chunk" => format!("thought {:?}", text()),
        "plan" => {
            let entries = update["entries"].as_array().unwrap().iter();
            let statuses: Vec<&str> = entries
                .map(|entry| entry["status"].as_str().unwrap())
                .collect();
            format!("plan {}", statuses.join(" "))
        }
        "tool_call" => {
            let status = update["status"].as_str().unwrap_or("pending");
            format!("new {} {status}", update["toolCallId"].as_str().unwrap())
        }
        "tool_call_update" => {
            let status = update["status"].as_str().unwrap_or("changed");
            format!("call {} {status}", update["toolCallId"].as_str().unwrap())
        }
        "state_update" => {
            let reason = update["stopReason"]
                .as_str()
                .map(|reason| format!(" {reason}"));
            format!(
                "state {}{}",
                update["state"].as_str().unwrap(),
                reason.unwrap_or_default()
            )
        }
        "plan_update" => {
            let plan = &update["plan"];
            let entries = plan["entries"].as_array().unwrap().iter();
            let statuses = entries.map(|entry| entry["status"].as_str().unwrap());
            let statuses: Vec<&str> = statuses.collect();
            format!(
                "plan {} {}",
                plan["planId"].as_str().unwrap(),
                statuses.join(" ")
            )
        }
        "current_mode_update" => format!("mode {}", update["currentModeId"].as_str().unwrap()),
        other => other.to_owned(),
    })
}

/// Requires that the outline contains the given entries, in order.
#[track_caller]
pub(crate) fn assert_in_order(outline: &[String], expected: &[&str]) {
    let mut lines = outline.iter();
    for line in expected {
        assert!(
            lines.any(|found| found == line),
            "no {line:?} in its place in {outline:#?}"
        );
    }
}

/// Returns the path of the `acp` command.
pub(crate) fn acp_program() -> &'static str {
    static ACP_PROGRAM: OnceLock<String> = OnceLock::new();
    ACP_PROGRAM.get_or_init(|| built_program("acp", ["--package", "acp-toolkit", "--bin", "acp"]))
}

/// Returns the path of an example of our library.
pub(crate) fn example_program(name: &str) -> String {
    let path = format!("examples/{name}");
    built_program(&path, ["--package", "acp-sdk", "--example", name])
}

/// Returns the path of one of our programs. Builds it if it does not exist or is older than its sources.
fn built_program(path: &str, target: [&str; 4]) -> String {
    // All programs of a build are in one directory, which is named after the profile.
    let directory = Path::new(env!("CARGO_BIN_EXE_official-client"))
        .parent()
        .unwrap();
    let program = directory.join(format!("{path}{}", std::env::consts::EXE_SUFFIX));
    if !is_up_to_date(&program) {
        build_program(directory, target);
    }
    program.into_os_string().into_string().unwrap()
}

/// Returns `true` if a program is newer than its sources, which Cargo lists in a file next to it. Usually it has just
/// been built for its own tests.
fn is_up_to_date(program: &Path) -> bool {
    let changed = |file: &Path| std::fs::metadata(file).and_then(|file| file.modified());
    let (Ok(built), Ok(rule)) = (
        changed(program),
        std::fs::read_to_string(program.with_extension("d")),
    ) else {
        return false;
    };
    let Some((_, sources)) = rule.split_once(": ") else {
        return false;
    };
    let sources = sources.trim_end().replace("\\ ", "\0");
    sources
        .split(' ')
        .map(|source| source.replace('\0', " "))
        .all(|source| changed(Path::new(&source)).is_ok_and(|changed| changed <= built))
}

fn build_program(directory: &Path, target: [&str; 4]) {
    let profile = match directory.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        profile => profile,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let status = std::process::Command::new(cargo)
        .arg("build")
        .args(target)
        .args(["--profile", profile, "--target-dir"])
        .arg(directory.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success(), "{target:?} cannot be built");
}

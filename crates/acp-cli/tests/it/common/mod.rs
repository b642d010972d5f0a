//! Runs the binary as a user or a script would.

pub(crate) mod agent;
#[cfg(unix)]
pub(crate) mod browser;
pub(crate) mod editor;
#[cfg(unix)]
pub(crate) mod file_server;
#[cfg(unix)]
pub(crate) mod itself;
pub(crate) mod patient;
#[cfg(target_os = "linux")]
pub(crate) mod prepared_model;
pub(crate) mod reach;
#[cfg(target_os = "linux")]
pub(crate) mod screen;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binary under test.
pub(crate) const ACP: &str = env!("CARGO_BIN_EXE_acp");

/// The environment variable for testing a binary other than the one built with the tests. Contains its path.
pub(crate) const BINARY_VARIABLE: &str = "ACP_UNDER_TEST";

/// A permission rule that allows all commands.
const ALLOW_COMMANDS_RULES: &str = "[[rule]]\ndecision = \"allow\"\nkind = \"execute\"\n";

/// A directory with a small project, and a separate directory for the user's files, so that tests do not touch the
/// files of whoever runs them.
pub(crate) struct TestProject {
    directory: tempfile::TempDir,
    home: tempfile::TempDir,
}

/// Stops the local servers that the test has started.
#[cfg(unix)]
impl Drop for TestProject {
    fn drop(&mut self) {
        use std::io::{Read, Write};
        let Ok(files) = std::fs::read_dir(self.live_directory()) else {
            return;
        };
        for file in files.flatten() {
            if let Ok(mut server) = std::os::unix::net::UnixStream::connect(file.path()) {
                let stop =
                    r#"{"jsonrpc":"2.0","id":1,"method":"_live/stop","params":{"force":true}}"#;
                let _ = writeln!(server, "{stop}");
                let _ = server.read_to_end(&mut Vec::new());
            }
        }
    }
}

impl TestProject {
    pub(crate) fn new() -> Self {
        let project = Self {
            directory: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
        };
        for (_, place) in project.home_variables() {
            std::fs::create_dir(place).unwrap();
        }
        project.write_file("notes.txt", "first\nsecond\nthird\n");
        project
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the directory where the bundled agent stores its sessions.
    pub(crate) fn sessions_directory(&self) -> PathBuf {
        self.home.path().join("XDG_STATE_HOME/acp")
    }

    /// Returns the directory of agents that are installed from a registry.
    pub(crate) fn installed_agents_directory(&self) -> PathBuf {
        self.home.path().join("XDG_DATA_HOME/acp/agents")
    }

    /// Returns the directory of the local servers' sockets.
    pub(crate) fn live_directory(&self) -> PathBuf {
        self.sessions_directory().join("live")
    }

    /// Creates a directory with this name outside the project and returns its path.
    pub(crate) fn path_outside(&self, name: &str) -> PathBuf {
        let directory = self.home.path().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Returns the environment variables that determine where the user's files are.
    pub(crate) fn home_variables(&self) -> [(&'static str, PathBuf); 4] {
        [
            "XDG_CONFIG_HOME",
            "XDG_STATE_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
        ]
        .map(|name| (name, self.home.path().join(name)))
    }

    /// Writes a file to the user's configuration directory.
    pub(crate) fn write_config(&self, name: &str, text: &str) {
        let file = self.home.path().join("XDG_CONFIG_HOME/acp").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// Adds a user rule that allows all commands, so that the bundled agent runs them in code mode without asking.
    pub(crate) fn allow_commands(&self) {
        self.write_config("permissions.toml", ALLOW_COMMANDS_RULES);
    }

    /// Returns the start of an agent command line that makes the agent allow all commands, while `acp run` does not.
    pub(crate) fn environment_allowing_commands(&self) -> [String; 2] {
        let config = self.home.path().join("agent");
        std::fs::create_dir_all(config.join("acp")).unwrap();
        std::fs::write(config.join("acp/permissions.toml"), ALLOW_COMMANDS_RULES).unwrap();
        [
            "env".to_owned(),
            format!("XDG_CONFIG_HOME={}", config.display()),
        ]
    }

    pub(crate) fn write_file(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// Runs `acp run` in this project.
    pub(crate) fn run(&self, args: &[&str]) -> CommandResult {
        CommandResult::from_output(self.agent_command(args).output().unwrap())
    }

    pub(crate) fn agent_command(&self, args: &[&str]) -> Command {
        let mut command = self.acp_command(&["run"]);
        command.args(args);
        command
    }

    /// Returns a command that runs `acp` in this project with the given arguments.
    pub(crate) fn acp_command(&self, args: &[&str]) -> Command {
        let acp = std::env::var(BINARY_VARIABLE).unwrap_or_else(|_| ACP.to_owned());
        let mut command = self.program_command(&acp);
        command.args(args);
        command
    }

    /// Returns a command that runs a program in this project, isolated from whoever runs the test.
    pub(crate) fn program_command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .envs(self.home_variables())
            .stdin(Stdio::null());
        // The sockets of local servers are then among the user's files, where `drop` finds them.
        for key in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "XDG_RUNTIME_DIR",
        ] {
            command.env_remove(key);
        }
        command
    }

    /// Runs a command line in a shell that has the binary on its `PATH`.
    pub(crate) fn run_shell(&self, line: &str) -> CommandResult {
        CommandResult::from_output(self.shell_command(line).output().unwrap())
    }

    /// Returns the command for [`run_shell`](Self::run_shell), with its output captured.
    pub(crate) fn shell_command(&self, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let binaries = Path::new(ACP).parent().unwrap().to_str().unwrap();
        let mut command = self.program_command("sh");
        command
            .args(["-c", line])
            .env("PATH", format!("{binaries}:{path}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns a command line that makes this test program act as the agent in [`agent`].
    #[cfg(unix)]
    pub(crate) fn test_agent_command(&self, flags: &str) -> String {
        let script =
            itself::write_agent_script(&self.home.path().join("agent.sh"), agent::AGENT_TEST_NAME);
        format!("{script} {flags}")
    }

    /// Runs `acp run` with the bundled agent playing a script.
    pub(crate) fn run_script(&self, args: &[&str], turn: &str) -> CommandResult {
        let script = self.write_turn_script(turn);
        let mut all = args.to_vec();
        all.extend(["go", "--", ACP, "agent", "--script", &script]);
        self.run(&all)
    }

    /// Writes a script with one turn and returns its path.
    pub(crate) fn write_turn_script(&self, turn: &str) -> String {
        let file = self.file(".script.json");
        std::fs::write(&file, format!("{{\"turns\": [[{turn}]]}}")).unwrap();
        file.to_str().unwrap().to_owned()
    }
}

/// The result of a command: its exit code and output.
#[derive(Debug, Clone)]
pub(crate) struct CommandResult {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandResult {
    pub(crate) fn from_output(output: Output) -> Self {
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

    /// Asserts that these texts appear on stdout in this order.
    #[track_caller]
    pub(crate) fn expect_stdout(self, parts: &[&str]) -> Self {
        let mut rest = self.stdout.as_str();
        for part in parts {
            let at = rest
                .find(part)
                .unwrap_or_else(|| panic!("{part:?} is not shown, or too early: {self:#?}"));
            rest = &rest[at + part.len()..];
        }
        self
    }

    #[track_caller]
    pub(crate) fn expect_stderr(self, part: &str) -> Self {
        assert!(
            self.stderr.contains(part),
            "stderr does not say {part:?}: {self:#?}"
        );
        self
    }

    /// Returns the line of stderr that contains this text, trimmed.
    #[track_caller]
    pub(crate) fn find_line(&self, part: &str) -> String {
        let line = self.stderr.lines().find(|line| line.contains(part));
        let line = line.unwrap_or_else(|| panic!("stderr has no {part:?}: {self:#?}"));
        line.trim().to_owned()
    }
}

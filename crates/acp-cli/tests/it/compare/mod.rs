//! Tests of `acp compare`: what agents get, what is shown, and that the user's files stay as they are until the user takes
//! a result over.

mod comparing;
mod starting;
mod taking_over;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{CommandResult, TestProject};

/// An agent that runs the shell commands in its first argument when it gets a prompt, and then ends the turn. Its second
/// argument is the session that it opens. `received` is what it has received last.
const AGENT: &str = r#"
end() { printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$prompt"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
say() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
while read -r received; do
  case $received in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":1,"result":%s}\n' "$2";;
    *'"session/set_config_option"'*)
      model=$(printf '%s' "$received" | sed 's/^.*"value":"\([a-z]*\)".*$/\1/')
      echo '{"jsonrpc":"2.0","id":2,"result":{"configOptions":[]}}';;
    *'"session/prompt"'*)
      prompt=$(printf '%s' "$received" | sed 's/^.*"id":\([0-9]*\),"method".*$/\1/')
      eval "$1"
      end;;
  esac
done
"#;

const SESSION: &str = r#"{"sessionId":"s"}"#;

/// A project in a git repository, with scripted agents.
struct ComparedProject {
    project: TestProject,
    /// Where `acp` puts temporary files.
    temporary: PathBuf,
    /// A directory that agents can write to, and that is not part of the project.
    outside: PathBuf,
}

/// The type, permissions and contents of each file.
type FileStates = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl ComparedProject {
    /// Creates a project with one commit.
    fn new() -> Self {
        let compared = Self::without_repository();
        compared.git(&["init", "--quiet", "--initial-branch=main"]);
        compared.commit();
        compared
    }

    fn without_repository() -> Self {
        let project = TestProject::new();
        let temporary = project.path_outside("temporary");
        let outside = project.path_outside("outside");
        std::fs::write(outside.join("agent.sh"), AGENT).unwrap();
        Self {
            project,
            temporary,
            outside,
        }
    }

    /// Sets which agents there are, and what each does.
    fn agents(&self, agents: &[(&str, &str)]) -> &Self {
        self.agents_with_session(agents, SESSION)
    }

    fn agents_with_session(&self, agents: &[(&str, &str)], session: &str) -> &Self {
        let script = self.outside.join("agent.sh");
        let agents = agents.iter().map(|(name, does)| {
            let does = does.replace("OUTSIDE", self.outside.to_str().unwrap());
            let does = does.replace("PROJECT", self.project.path().to_str().unwrap());
            let command = json!(["sh", script, does, session]);
            format!("[agents.{name}]\ncommand = {command}\n")
        });
        let config: String = agents.collect();
        self.project.write_config("config.toml", &config);
        self
    }

    /// Adds what belongs to this test to a command.
    fn isolate<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("TMPDIR", &self.temporary)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.acp_command(&["compare"]);
        self.isolate(command.args(args));
        command
    }

    /// Runs `acp compare` with the agents `a` and `b`, which may do everything.
    fn compare(&self, args: &[&str]) -> CommandResult {
        let usual = ["--agent", "a", "--agent", "b", "--allow", "all"];
        self.compare_only(&[&usual, args, &["go"]].concat())
    }

    fn compare_only(&self, args: &[&str]) -> CommandResult {
        CommandResult::from_output(self.command(args).output().unwrap())
    }

    /// Runs `acp compare` and returns its JSON.
    fn compare_json(&self, args: &[&str]) -> Value {
        let result = self.compare(&[&["--format", "json"], args].concat());
        let result = result.expect_code(0);
        serde_json::from_str(&result.stdout).unwrap()
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let mut command = self.project.program_command("git");
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let output = self
            .isolate(command.args(identity).args(args))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "A commit"]);
    }

    /// Returns all files of the project, including those in `.git`.
    fn files(&self) -> FileStates {
        read_files(self.project.path())
    }

    /// Asserts that nothing is left in the temporary directory.
    #[track_caller]
    fn expect_clean(&self) {
        let left = std::fs::read_dir(&self.temporary).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        let worktrees = self.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
    }
}

fn read_files(root: &Path) -> FileStates {
    let mut files = FileStates::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let contents = if metadata.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                target.into_os_string().into_encoded_bytes()
            } else if metadata.is_dir() {
                directories.push(path.clone());
                Vec::new()
            } else {
                std::fs::read(&path).unwrap()
            };
            let name = path.strip_prefix(root).unwrap().to_owned();
            files.insert(name, (metadata.mode(), contents));
        }
    }
    files
}

/// Returns the paths of the changed files and how they were changed.
fn changed(agent: &Value) -> Vec<String> {
    let files = agent["files"].as_array().unwrap();
    let shown = files.iter().map(|file| {
        format!(
            "{} {}",
            file["kind"].as_str().unwrap(),
            file["path"].as_str().unwrap()
        )
    });
    shown.collect()
}

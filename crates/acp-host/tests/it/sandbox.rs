//! Tests of what a sandboxed command can and cannot do.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::common::{TIMEOUT, with_timeout};
use acp_host::{
    AgentCommand, AgentProcess, HostTerminals, Sandbox, SandboxError, SessionTerminals,
};
use acp_wire::v1::{
    CreateTerminalRequest, ReleaseTerminalRequest, TerminalOutputRequest,
    WaitForTerminalExitRequest,
};

/// Creates a sandbox. If the system does not support sandboxes, prints the reason and returns `None`.
fn sandbox_for(writable: &[&Path]) -> Option<Sandbox> {
    match Sandbox::new(writable.iter().map(|path| path.to_path_buf())) {
        Ok(sandbox) => Some(sandbox),
        Err(error @ SandboxError::NotSupported { .. }) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Two directories, one of which is a root, and terminals that are confined to the root.
struct SandboxFixture {
    terminals: SessionTerminals,
    root: PathBuf,
    outside: PathBuf,
    sandbox: Sandbox,
    _directory: tempfile::TempDir,
}

impl SandboxFixture {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let [root, outside] = ["root", "outside"].map(|name| path.join(name));
        for directory in [&root, &outside] {
            std::fs::create_dir(directory).unwrap();
        }
        std::fs::write(outside.join("file"), "as it was\n").unwrap();
        let sandbox = sandbox_for(&[&root])?;
        let terminals = HostTerminals::new().sandbox(sandbox.clone());
        let terminals = terminals.session(&root, |_| ());
        Some(Self {
            terminals,
            root,
            outside,
            sandbox,
            _directory: directory,
        })
    }

    /// Runs a shell line in which `$OUT` is the directory outside the root. Returns its exit code and output.
    async fn run_shell(&self, line: &str) -> (Option<u32>, String) {
        let line = format!("OUT='{}'; {line}", self.outside.display());
        let request = CreateTerminalRequest::new("s", "sh").args(["-c".to_owned(), line]);
        let id = self.terminals.create(&request).await.unwrap().terminal_id;
        let exit = WaitForTerminalExitRequest::new("s", &id);
        let exit = with_timeout(self.terminals.wait_for_exit(&exit))
            .await
            .unwrap();
        let output = TerminalOutputRequest::new("s", &id);
        let output = self.terminals.output(&output).await.unwrap().output;
        let release = ReleaseTerminalRequest::new("s", &id);
        with_timeout(self.terminals.release(&release))
            .await
            .unwrap();
        (exit.exit_code, output)
    }

    async fn assert_command_succeeds(&self, line: &str) -> String {
        let (code, output) = self.run_shell(line).await;
        assert_eq!(code, Some(0), "{line}: {output}");
        output
    }

    /// Asserts that the command line fails and changes nothing outside the root.
    async fn assert_rejected(&self, line: &str) {
        let (code, output) = self.run_shell(line).await;
        assert_ne!(code, Some(0), "{line}: {output}");
        let refused = [
            "Permission denied",
            "Operation not permitted",
            "Invalid cross-device link",
        ];
        assert!(
            refused.iter().any(|words| output.contains(words)),
            "{line}: {output}"
        );
        let names: Vec<_> = std::fs::read_dir(&self.outside)
            .unwrap()
            .flatten()
            .collect();
        assert_eq!(names.len(), 1, "{line}: {names:?}");
        let text = std::fs::read_to_string(self.outside.join("file")).unwrap();
        assert_eq!(text, "as it was\n", "{line}");
    }
}

#[tokio::test]
async fn everything_under_the_root_is_writable() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    place
        .assert_command_succeeds(
            "mkdir -p a/b c && echo one > a/b/file && echo two >> a/b/file && mv a/b/file c/ &&
            ln c/file a/hard && ln -s ../c/file a/soft && echo three >> a/soft && mkfifo pipe &&
            truncate -s 4 a/hard && rm -r a pipe",
        )
        .await;
    assert_eq!(
        std::fs::read_to_string(place.root.join("c/file")).unwrap(),
        "one\n"
    );
}

#[tokio::test]
async fn everything_is_readable_and_executable() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    assert_eq!(
        place
            .assert_command_succeeds("cat $OUT/file; ls $OUT")
            .await,
        "as it was\nfile\n"
    );
    place
        .assert_command_succeeds("ls / >/dev/null && cat /proc/self/status >/dev/null")
        .await;
}

#[tokio::test]
async fn nothing_outside_is_writable() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    for line in [
        "echo x > $OUT/new",
        "echo x > $OUT/file",
        "echo x >> $OUT/file",
        "mkdir $OUT/new",
        "mkfifo $OUT/new",
        "ln -s x $OUT/new",
        "rm $OUT/file",
        "truncate -s 0 $OUT/file",
        // Through the root.
        "ln -s $OUT/file soft && echo x > soft",
        "ln -s $OUT there && echo x > there/new",
        "echo x > ../outside/new",
        "mv $OUT/file moved",
        "echo x > mine && mv mine $OUT/file",
        "echo x > mine; ln mine $OUT/new",
        "ln $OUT/file hard && echo x > hard",
        "rmdir $OUT 2>&1; mv $OUT renamed",
        // Through other processes.
        "sh -c 'sh -c \"echo x > $0/new\"' $OUT",
        "setsid -w sh -c 'echo x > $0/new' $OUT",
        "(echo x > $OUT/new) & wait $!",
        "cd $OUT && echo x > new",
        "exec 3< $OUT/file && echo x > /proc/self/fd/3",
    ] {
        place.assert_rejected(line).await;
    }
}

#[tokio::test]
async fn common_devices_are_usable() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    place
        .assert_command_succeeds("echo x > /dev/null && echo x >> /dev/null && head -c 8 /dev/urandom > /dev/zero && ls / > /dev/null 2>&1")
        .await;
}

#[tokio::test]
async fn temporary_directory_is_private_and_removed() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    let printed = place
        .assert_command_succeeds("echo x > $TMPDIR/x && mkdir $TMP/y && test $TEMP = $TMPDIR && file=$(mktemp) && test -f $file && echo $TMPDIR")
        .await;
    let temporary = PathBuf::from(printed.trim_end());
    assert_eq!(temporary, place.sandbox.temporary_directory());
    assert!(temporary.join("x").exists() && temporary.join("y").exists());
    // The temporary directory of no other sandbox.
    let (code, _) = place
        .run_shell("echo x > $TMPDIR/../acp-sandbox-test-of-others")
        .await;
    assert_ne!(code, Some(0));
    drop(place);
    // The processes in the sandbox have ended. The directory is removed when the last of them is reaped.
    let start = Instant::now();
    while temporary.exists() {
        assert!(start.elapsed() < TIMEOUT);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn agent_is_confined_with_its_children() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    let script = "echo x > mine; echo x > $0/new; sh -c 'echo x > $0/newer' $0; echo x > $TMPDIR/x && echo done >&2";
    let command = AgentCommand::new("sh")
        .args(["-c", script])
        .args([&place.outside])
        .cwd(&place.root)
        .sandbox(place.sandbox.clone());
    let agent = AgentProcess::spawn(&command).unwrap();
    assert!(with_timeout(agent.wait()).await.success());
    let tail = agent.output_tail();
    assert_eq!(tail.matches("Permission denied").count(), 2, "{tail}");
    assert!(tail.ends_with("done"), "{tail}");
    assert!(place.root.join("mine").exists());
    place.assert_rejected("echo x > $OUT/new").await;
}

#[tokio::test]
async fn program_in_the_terminal_is_confined() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    let command = AgentCommand::new("sh")
        .args([
            "-c",
            "echo x > mine && test -d $TMPDIR && ! touch $0/new 2> error",
        ])
        .args([&place.outside])
        .cwd(&place.root)
        .sandbox(place.sandbox.clone());
    let exit = with_timeout(command.run_in_terminal()).await.unwrap();
    assert!(exit.success(), "{exit}");
    assert!(place.root.join("mine").exists());
    assert!(!place.outside.join("new").exists());
}

#[tokio::test]
async fn commands_can_signal_only_their_own_sandbox() {
    let Some(place) = SandboxFixture::new() else {
        return;
    };
    let sleeper = CreateTerminalRequest::new("s", "sh")
        .args(["-c", "echo $$ > new && mv new id && exec sleep 1000"].map(str::to_owned));
    let id = place.terminals.create(&sleeper).await.unwrap().terminal_id;
    place
        .assert_command_succeeds("until test -e id; do sleep 0.01; done; kill -9 $(cat id)")
        .await;
    let exit = WaitForTerminalExitRequest::new("s", &id);
    let exit = with_timeout(place.terminals.wait_for_exit(&exit))
        .await
        .unwrap();
    assert_eq!(exit.signal.as_deref(), Some("SIGKILL"));
    // The process of this test, which continues. Kernels before 6.12 do not support this.
    let (code, output) = place
        .run_shell(&format!("kill -0 {}", std::process::id()))
        .await;
    if code == Some(0) {
        println!("skipped: this kernel does not confine signals");
    } else {
        assert!(output.contains("not permitted"), "{output}");
    }
}

#[test]
fn missing_path_cannot_be_made_writable() {
    if sandbox_for(&[]).is_none() {
        return;
    }
    let error = Sandbox::new([PathBuf::from("/no/such/directory")]).unwrap_err();
    assert!(matches!(error, SandboxError::Path { .. }), "{error:?}");
    assert!(error.to_string().contains("/no/such/directory"), "{error}");
}

#[tokio::test]
async fn single_file_can_be_writable() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let Some(sandbox) = sandbox_for(&[&file]) else {
        return;
    };
    let command = AgentCommand::new("sh")
        .args(["-c", "echo x > file && ! echo x > other"])
        .cwd(directory.path())
        .sandbox(sandbox);
    let agent = AgentProcess::spawn(&command).unwrap();
    assert!(
        with_timeout(agent.wait()).await.success(),
        "{}",
        agent.output_tail()
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
}

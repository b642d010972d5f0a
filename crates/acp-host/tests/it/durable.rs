//! Tests that, if a write fails or its process is killed, a file has either all of its old contents or all of its new
//! contents.
//!
//! A system that loses data it reported as stored cannot be tested here, because that requires a disk that fails on
//! demand.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::scene::entry_names;
use crate::common::{ordinary_user, with_timeout};
use acp_host::Files;
use acp_wire::jsonrpc::Error;

#[test]
fn tests_pass_as_an_ordinary_user() {
    ordinary_user::rerun_as_ordinary_user(module_path!(), &[]);
}

/// The environment variable that contains the directory for a test running in a separate process.
const DIRECTORY_VARIABLE: &str = "ACP_TEST_DIRECTORY";

/// If this process was started to run a single test, returns the directory to work in.
fn test_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from)
}

/// Returns a command that runs a single test of this program. The command line starts with `before`, followed by this
/// program and its arguments.
fn rerun_command(before: &[&str], test: &str, directory: &Path) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut words = before
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([this.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command
        .args(words)
        .args([
            "--exact",
            &format!("durable::{test}"),
            "--nocapture",
            "--include-ignored",
        ])
        .env(DIRECTORY_VARIABLE, directory)
        .stdin(Stdio::null());
    command
}

/// Writes a file as a client does for its agent.
fn write_file(path: &Path, text: impl Into<String>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // The root is the existing part of the path.
    let root = path.ancestors().skip(1).find(|above| above.is_dir());
    let files = Files::new([root.unwrap().to_owned()]).unwrap();
    runtime.block_on(with_timeout(files.write_text(path, text)))
}

#[track_caller]
fn assert_write_failed(written: Result<(), Error>, errno: &str) {
    let error = written.expect_err("it was written");
    assert_eq!(error.data.as_ref().unwrap()["errno"], errno, "{error}");
}

/// The size, in bytes, of the files being written when the writer is killed.
const CONTENT_BYTES: usize = 2 * 1024 * 1024;

/// How many times to kill the writer.
const KILL_COUNT: u32 = 50;

#[test]
#[ignore = "a process of a test below"]
fn write_until_killed() {
    let Some(directory) = test_directory() else {
        return;
    };
    for letter in ('a'..='z').cycle() {
        write_file(
            &directory.join("file"),
            String::from(letter).repeat(CONTENT_BYTES),
        )
        .unwrap();
        println!("written {letter}");
    }
}

/// A child process. Killed on drop.
struct WriterProcess(Child);

impl Drop for WriterProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn kill_during_a_write_leaves_old_or_new_content() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "A".repeat(CONTENT_BYTES)).unwrap();
    let (mut left, mut changed) = (0, 0);
    for _ in 0..KILL_COUNT {
        let mut command = rerun_command(&[], "write_until_killed", temporary.path());
        let mut writer = WriterProcess(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(writer.0.stdout.take().unwrap()).lines();
        let mut written = || {
            let line = lines
                .by_ref()
                .map(Result::unwrap)
                .find(|line| line.starts_with("written"));
            line.expect("it writes").chars().last().unwrap()
        };
        written();
        let begun = Instant::now();
        let last = written();
        // Kills at any moment of about the next two writes. The sleep waits for nothing: it chooses the moment that is
        // tested.
        let most = u64::try_from(begun.elapsed().as_micros()).unwrap() * 2;
        let moment = RandomState::new().hash_one(0) % most.max(1);
        std::thread::sleep(Duration::from_micros(moment));
        drop(writer);

        let content = fs::read(&file).unwrap();
        assert_eq!(content.len(), CONTENT_BYTES, "a part of a file");
        let letter = content[0];
        assert!(content.iter().all(|byte| *byte == letter), "a mixture");
        changed += u32::from(char::from(letter) != last);
        for name in entry_names(temporary.path()) {
            if name == "file" {
                continue;
            }
            assert!(
                name.starts_with(".acp-") && name.ends_with(".tmp"),
                "{name}"
            );
            fs::remove_file(temporary.path().join(name)).unwrap();
            left += 1;
        }
    }
    println!(
        "killed {KILL_COUNT} times, always whole; {changed} times later than what was last reported; {left} hidden files left"
    );
}

const OLD_CONTENT: &str = "old content\n";

/// Not a real test: runs in a process with a limit on file sizes, and checks that exceeding it fails with `EFBIG`.
#[test]
#[ignore = "a process of a test below"]
fn write_beyond_the_size_limit() {
    let Some(directory) = test_directory() else {
        return;
    };
    assert_write_failed(
        write_file(&directory.join("file"), "x".repeat(1024 * 1024)),
        "EFBIG",
    );
    assert_write_failed(
        write_file(&directory.join("new"), "x".repeat(1024 * 1024)),
        "EFBIG",
    );
    write_file(&directory.join("small"), "fits").unwrap();
    println!("tried");
}

#[test]
fn failed_large_write_keeps_the_old_file() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("file"), OLD_CONTENT).unwrap();
    // The signal that is sent at the limit would end the process. The limit is 64 blocks, whatever size the shell
    // assumes for a block.
    let limited = [
        "sh",
        "-c",
        "trap '' XFSZ && ulimit -f 64 && exec \"$@\"",
        "sh",
    ];
    let ended = run_to_end(rerun_command(
        &limited,
        "write_beyond_the_size_limit",
        temporary.path(),
    ));
    assert_write_attempted(&ended);
    assert_eq!(
        fs::read_to_string(temporary.path().join("file")).unwrap(),
        OLD_CONTENT
    );
    assert_eq!(entry_names(temporary.path()), ["file", "small"]);
}

fn run_to_end(mut command: Command) -> Output {
    command.output().unwrap()
}

#[track_caller]
fn assert_write_attempted(ended: &Output) {
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && said.contains("tried"),
        "{ended:?}"
    );
}

/// The size of the disk to fill, in bytes.
const DISK_BYTES: usize = 256 * 1024;

#[test]
#[ignore = "a process of a test below"]
fn write_to_full_disk() {
    let Some(directory) = test_directory() else {
        return;
    };
    println!("mounted");
    let file = directory.join("file");
    let old = "o".repeat(DISK_BYTES / 2);
    fs::write(&file, &old).unwrap();
    // The new file would fit if the old one were removed, but it must not be removed.
    assert_write_failed(write_file(&file, "n".repeat(DISK_BYTES * 3 / 4)), "ENOSPC");
    assert_write_failed(
        write_file(&directory.join("new"), "n".repeat(DISK_BYTES)),
        "ENOSPC",
    );
    assert_write_failed(
        write_file(&directory.join("made/new"), "n".repeat(DISK_BYTES)),
        "ENOSPC",
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    // The directory remains.
    assert_eq!(entry_names(&directory), ["file", "made"]);
    assert_eq!(entry_names(&directory.join("made")), [""; 0]);
    write_file(&file, "n".repeat(DISK_BYTES / 4)).unwrap();
    println!("tried");
}

/// Tests writing to a full disk. Mounts a small file system that only this process can see, and fills it.
#[test]
fn full_disk_keeps_the_old_content() {
    let temporary = tempfile::tempdir().unwrap();
    let mount = format!(
        "mount -t tmpfs -o size={DISK_BYTES} tmpfs \"${DIRECTORY_VARIABLE}\" && exec \"$@\""
    );
    let unshare = if ordinary_user::is_root() {
        "-m"
    } else {
        "-rm"
    };
    let before = ["unshare", unshare, "sh", "-c", &mount, "sh"];
    let mut command = rerun_command(&before, "write_to_full_disk", temporary.path());
    let ended = match command.output() {
        Ok(ended) if String::from_utf8_lossy(&ended.stdout).contains("mounted") => ended,
        other => {
            println!("skipped: cannot mount a disk here: {other:?}");
            return;
        }
    };
    assert_write_attempted(&ended);
    assert_eq!(entry_names(temporary.path()), [""; 0]);
}

#[test]
fn read_only_file_is_kept() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("d");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("file");
    fs::write(&file, OLD_CONTENT).unwrap();
    if ordinary_user::is_root() {
        println!("skipped: root can write everywhere; this test also runs as an ordinary user");
        return;
    }
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&directory, 0o555);
    assert_write_failed(write_file(&file, "new"), "EACCES");
    assert_write_failed(write_file(&directory.join("new"), "new"), "EACCES");
    mode(&directory, 0o755);
    // The permissions of the directory would be enough to replace the file.
    mode(&file, 0o444);
    assert_write_failed(write_file(&file, "new"), "EACCES");
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD_CONTENT);
    assert_eq!(entry_names(&directory), ["file"]);
    // A file that can be written but not read is still written.
    mode(&file, 0o200);
    write_file(&file, "new\n").unwrap();
    mode(&file, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
}

#[test]
fn line_endings_and_byte_order_mark_are_preserved() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    for (old, new, expected) in [
        ("a\r\nb\r\n", "1\n2\n", "1\r\n2\r\n"),
        ("\u{FEFF}a\r\n", "1\n", "\u{FEFF}1\r\n"),
        ("a\r\nb\n", "1\n2\n", "1\n2\n"),
        ("a\nb\n", "1\r\n2\r\n", "1\r\n2\r\n"),
        // Text that was read and changed is written as it is.
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", "a\r\nnew\r\nb\r\n"),
    ] {
        fs::write(&file, old).unwrap();
        write_file(&file, new).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{old:?}");
    }
    // Line ends are recognized across chunks, but not if the last line differs.
    let long = "x".repeat(100_000);
    fs::write(&file, format!("{long}\r\n{long}\r\n")).unwrap();
    write_file(&file, "1\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\r\n");
    fs::write(&file, format!("{long}\r\n{long}\n")).unwrap();
    write_file(&file, "1\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
}

#[test]
fn mode_is_preserved_except_set_id_bits() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    for (mode, expected) in [
        (0o600, 0o600),
        (0o751, 0o751),
        (0o666, 0o666),
        (0o4755, 0o755),
    ] {
        fs::write(&file, OLD_CONTENT).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(&file).unwrap();
        write_file(&file, "new").unwrap();
        let after = fs::metadata(&file).unwrap();
        assert_eq!(after.mode() & 0o7777, expected, "{mode:o}");
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    }
}

#[cfg(target_os = "linux")]
mod attributes {
    use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
    use rustix::io::Errno;

    use super::*;

    const ACCESS_ACL: &str = "system.posix_acl_access";

    /// Returns an access control list that lets user 12345 and the group read.
    fn sample_acl() -> Vec<u8> {
        let nobody = u32::MAX;
        let entries: [(u16, u16, u32); 5] = [
            (0x01, 6, nobody),
            (0x02, 4, 12345),
            (0x04, 4, nobody),
            (0x10, 4, nobody),
            (0x20, 0, nobody),
        ];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(rights.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        list
    }

    fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
        let mut value = vec![0; 4096];
        let length = getxattr(path, name, &mut *value).ok()?;
        value.truncate(length);
        Some(value)
    }

    /// Sets an extended attribute. Returns `false` if the file system does not support it.
    fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
        match setxattr(path, name, value, XattrFlags::empty()) {
            Ok(()) => true,
            Err(Errno::NOTSUP) => {
                println!("skipped: this file system does not support {name}");
                false
            }
            Err(e) => panic!("{name}: {e}"),
        }
    }

    #[test]
    fn access_control_list_is_preserved() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, OLD_CONTENT).unwrap();
        if !set_attribute(&file, ACCESS_ACL, &sample_acl()) {
            return;
        }
        let mode = fs::metadata(&file).unwrap().mode();
        write_file(&file, "new").unwrap();
        assert_eq!(get(&file, ACCESS_ACL), Some(sample_acl()));
        assert_eq!(fs::metadata(&file).unwrap().mode(), mode);
    }

    /// Tests that a directory's default access control list for new files is not applied to a file that had no such
    /// list before.
    #[test]
    fn file_without_an_acl_gets_none() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, OLD_CONTENT).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        if !set_attribute(temporary.path(), "system.posix_acl_default", &sample_acl()) {
            return;
        }
        write_file(&file, "new").unwrap();
        assert_eq!(get(&file, ACCESS_ACL), None);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        // A new file gets the default list of the directory.
        let new = temporary.path().join("new");
        write_file(&new, "new").unwrap();
        assert!(get(&new, ACCESS_ACL).is_some());
        removexattr(temporary.path(), "system.posix_acl_default").unwrap();
    }

    #[test]
    fn other_attributes_are_preserved() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, OLD_CONTENT).unwrap();
        if !set_attribute(&file, "user.note", b"kept") {
            return;
        }
        write_file(&file, "new").unwrap();
        assert_eq!(get(&file, "user.note").as_deref(), Some(&b"kept"[..]));
    }
}

//! Checks that a file has either the old or the new contents, complete, when a write fails or is killed.
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

use crate::common::scene::names;
use crate::common::{ordinary_user, soon};
use acp_host::Files;
use acp_wire::jsonrpc::Error;

#[test]
fn as_an_ordinary_user_too() {
    ordinary_user::runs_the_tests_of(module_path!(), &[]);
}

/// The environment variable with the directory of a test that runs in its own process.
const DIRECTORY: &str = "ACP_TEST_DIRECTORY";

/// Returns the directory to work in, if this process was started for a test that runs in its own process.
fn directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Returns a command that runs one test of this program. `before` is a command that gets this program as its last
/// arguments.
fn start(before: &[&str], test: &str, directory: &Path) -> Command {
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
        .env(DIRECTORY, directory)
        .stdin(Stdio::null());
    command
}

/// Writes a file as a client does for its agent.
fn write(path: &Path, text: impl Into<String>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    // The root is the existing part of the path.
    let root = path.ancestors().skip(1).find(|above| above.is_dir());
    let files = Files::new([root.unwrap().to_owned()]).unwrap();
    runtime.block_on(soon(files.write_text(path, text)))
}

#[track_caller]
fn failed(written: Result<(), Error>, errno: &str) {
    let error = written.expect_err("it was written");
    assert_eq!(error.data.as_ref().unwrap()["errno"], errno, "{error}");
}

/// The size in bytes of the files that are being written when the writer is killed.
const SIZE: usize = 2 * 1024 * 1024;

/// How often the writer is killed.
const KILLS: u32 = 50;

#[test]
#[ignore = "a process of a test below"]
fn writes_until_it_is_killed() {
    let Some(directory) = directory() else { return };
    for letter in ('a'..='z').cycle() {
        write(&directory.join("file"), String::from(letter).repeat(SIZE)).unwrap();
        println!("written {letter}");
    }
}

/// A child process that is killed when this is dropped.
struct WriterProcess(Child);

impl Drop for WriterProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_kill_in_the_middle_leaves_one_content_or_the_other() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "A".repeat(SIZE)).unwrap();
    let (mut left, mut changed) = (0, 0);
    for _ in 0..KILLS {
        let mut command = start(&[], "writes_until_it_is_killed", temporary.path());
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
        assert_eq!(content.len(), SIZE, "a part of a file");
        let letter = content[0];
        assert!(content.iter().all(|byte| *byte == letter), "a mixture");
        changed += u32::from(char::from(letter) != last);
        for name in names(temporary.path()) {
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
        "killed {KILLS} times, always whole; {changed} times later than what was last reported; {left} hidden files left"
    );
}

const OLD: &str = "old content\n";

/// Checks that a process with a limit on file sizes gets the error for a full disk.
#[test]
#[ignore = "a process of a test below"]
fn has_no_room_for_a_large_file() {
    let Some(directory) = directory() else { return };
    failed(
        write(&directory.join("file"), "x".repeat(1024 * 1024)),
        "EFBIG",
    );
    failed(
        write(&directory.join("new"), "x".repeat(1024 * 1024)),
        "EFBIG",
    );
    write(&directory.join("small"), "fits").unwrap();
    println!("tried");
}

#[test]
fn a_file_that_is_too_large_leaves_the_old_one() {
    let temporary = tempfile::tempdir().unwrap();
    fs::write(temporary.path().join("file"), OLD).unwrap();
    // The signal that is sent at the limit would end the process. The limit is 64 blocks, whatever size the shell
    // assumes for a block.
    let limited = [
        "sh",
        "-c",
        "trap '' XFSZ && ulimit -f 64 && exec \"$@\"",
        "sh",
    ];
    let ended = output(start(
        &limited,
        "has_no_room_for_a_large_file",
        temporary.path(),
    ));
    tried(&ended);
    assert_eq!(
        fs::read_to_string(temporary.path().join("file")).unwrap(),
        OLD
    );
    assert_eq!(names(temporary.path()), ["file", "small"]);
}

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

#[track_caller]
fn tried(ended: &Output) {
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && said.contains("tried"),
        "{ended:?}"
    );
}

/// The size of the disk that becomes full, in bytes.
const DISK: usize = 256 * 1024;

#[test]
#[ignore = "a process of a test below"]
fn fills_the_disk() {
    let Some(directory) = directory() else { return };
    println!("mounted");
    let file = directory.join("file");
    let old = "o".repeat(DISK / 2);
    fs::write(&file, &old).unwrap();
    // The new file would fit if the old one were removed, but it must not be removed.
    failed(write(&file, "n".repeat(DISK * 3 / 4)), "ENOSPC");
    failed(write(&directory.join("new"), "n".repeat(DISK)), "ENOSPC");
    failed(
        write(&directory.join("made/new"), "n".repeat(DISK)),
        "ENOSPC",
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), old);
    // The directory remains.
    assert_eq!(names(&directory), ["file", "made"]);
    assert_eq!(names(&directory.join("made")), [""; 0]);
    write(&file, "n".repeat(DISK / 4)).unwrap();
    println!("tried");
}

/// Mounts a disk that only this process sees, and fills it.
#[test]
fn a_full_disk_leaves_the_old_content() {
    let temporary = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size={DISK} tmpfs \"${DIRECTORY}\" && exec \"$@\"");
    let unshare = if ordinary_user::is_root() {
        "-m"
    } else {
        "-rm"
    };
    let before = ["unshare", unshare, "sh", "-c", &mount, "sh"];
    let mut command = start(&before, "fills_the_disk", temporary.path());
    let ended = match command.output() {
        Ok(ended) if String::from_utf8_lossy(&ended.stdout).contains("mounted") => ended,
        other => {
            println!("skipped: cannot mount a disk here: {other:?}");
            return;
        }
    };
    tried(&ended);
    assert_eq!(names(temporary.path()), [""; 0]);
}

#[test]
fn what_may_not_be_written_stays() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("d");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("file");
    fs::write(&file, OLD).unwrap();
    if ordinary_user::is_root() {
        println!("skipped: root can write everywhere; this test also runs as an ordinary user");
        return;
    }
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&directory, 0o555);
    failed(write(&file, "new"), "EACCES");
    failed(write(&directory.join("new"), "new"), "EACCES");
    mode(&directory, 0o755);
    // The permissions of the directory would be enough to replace the file.
    mode(&file, 0o444);
    failed(write(&file, "new"), "EACCES");
    assert_eq!(fs::read_to_string(&file).unwrap(), OLD);
    assert_eq!(names(&directory), ["file"]);
    // A file that can be written but not read is still written.
    mode(&file, 0o200);
    write(&file, "new\n").unwrap();
    mode(&file, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
}

#[test]
fn line_ends_and_a_byte_order_mark_stay() {
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
        write(&file, new).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{old:?}");
    }
    // Line ends are recognized across chunks, but not if the last line differs.
    let long = "x".repeat(100_000);
    fs::write(&file, format!("{long}\r\n{long}\r\n")).unwrap();
    write(&file, "1\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\r\n");
    fs::write(&file, format!("{long}\r\n{long}\n")).unwrap();
    write(&file, "1\n").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
}

#[test]
fn the_mode_stays_but_for_set_id_bits() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    for (mode, expected) in [
        (0o600, 0o600),
        (0o751, 0o751),
        (0o666, 0o666),
        (0o4755, 0o755),
    ] {
        fs::write(&file, OLD).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(&file).unwrap();
        write(&file, "new").unwrap();
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

    const ACCESS: &str = "system.posix_acl_access";

    /// Returns an access control list that lets user 12345 read, and gives the group no more than that.
    fn list() -> Vec<u8> {
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
    fn set(path: &Path, name: &str, value: &[u8]) -> bool {
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
    fn an_access_control_list_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, OLD).unwrap();
        if !set(&file, ACCESS, &list()) {
            return;
        }
        let mode = fs::metadata(&file).unwrap().mode();
        write(&file, "new").unwrap();
        assert_eq!(get(&file, ACCESS), Some(list()));
        assert_eq!(fs::metadata(&file).unwrap().mode(), mode);
    }

    /// A directory can give new files a default list. A file without a list was not meant for the users in that list.
    #[test]
    fn a_file_without_a_list_gets_none() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, OLD).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        if !set(temporary.path(), "system.posix_acl_default", &list()) {
            return;
        }
        write(&file, "new").unwrap();
        assert_eq!(get(&file, ACCESS), None);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        // A new file gets the default list of the directory.
        let new = temporary.path().join("new");
        write(&new, "new").unwrap();
        assert!(get(&new, ACCESS).is_some());
        removexattr(temporary.path(), "system.posix_acl_default").unwrap();
    }

    #[test]
    fn other_attributes_stay() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, OLD).unwrap();
        if !set(&file, "user.note", b"kept") {
            return;
        }
        write(&file, "new").unwrap();
        assert_eq!(get(&file, "user.note").as_deref(), Some(&b"kept"[..]));
    }
}

//! A root with every kind of path that could lead outside, and a secret file outside the root. Other crates' tests also
//! use this file.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The contents of the secret file. This text occurs nowhere else.
pub(crate) const SECRET_TEXT: &str = "s3cr3t";

/// The text that every attempt tries to write.
pub(crate) const ATTEMPT_TEXT: &str = "written by an attempt";

pub(crate) struct EscapeScene {
    _base: tempfile::TempDir,
    pub(crate) base: PathBuf,
    /// The root, which may be accessed. Its name is a prefix of the name of `outside`.
    pub(crate) root: PathBuf,
    pub(crate) outside: PathBuf,
    before: BTreeMap<PathBuf, FileFingerprint>,
    outside_open: fs::File,
    secret_open: fs::File,
    _socket: UnixListener,
}

/// Properties of a file that can be observed without changing it.
type FileFingerprint = (u64, u32, i64, i64, Vec<u8>);

/// The reason why an attempt must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// The path leads outside the root, and the error says so.
    Outside,
    /// The path leads outside the root, but the system reports a different error first.
    Nowhere,
    Relative,
    /// The path is not a regular file.
    NotAFile,
    /// No file can have this name.
    Name,
}

#[derive(Debug, Clone)]
pub(crate) struct EscapeAttempt {
    pub(crate) path: PathBuf,
    pub(crate) why: RefusalReason,
}

impl EscapeScene {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path().canonicalize().unwrap();
        let (root, outside) = (base.join("proj"), base.join("proj-secret"));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), SECRET_TEXT).unwrap();
        fs::create_dir(outside.join("inner")).unwrap();
        fs::write(outside.join("inner/secret"), SECRET_TEXT).unwrap();

        fs::create_dir(&root).unwrap();
        fs::write(root.join("file"), "inside").unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/file"), "inside").unwrap();
        let outside_open = fs::File::open(&outside).unwrap();
        let secret_open = fs::File::open(outside.join("secret")).unwrap();
        let descriptor = |file: &fs::File| format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = |name: &str, to: &dyn AsRef<Path>| symlink(to, root.join(name)).unwrap();
        // Ways to the secret.
        link("l-absolute", &outside.join("secret"));
        link("l-relative", &"../proj-secret/secret");
        link("l-twice", &"l-absolute");
        link("l-chain-0", &"l-relative");
        for n in 1..10 {
            link(
                &format!("l-chain-{n}"),
                &format!("sub/../l-chain-{}", n - 1),
            );
        }
        link("l-out-and-out", &"../proj/../proj-secret/secret");
        link("l-named-like-inside", &root.join("../proj-secret/secret"));
        link("l-dangling", &outside.join("new"));
        link("l-dangling-relative", &"../proj-secret/new");
        link("l-dangling-deep", &outside.join("new/new/new"));
        link("l-new\nline", &outside.join("secret"));
        link("sub/l-up", &"../../proj-secret/secret");
        link("l-fd", &descriptor(&secret_open));
        // Ways to directories.
        link("d-absolute", &outside);
        link("d-relative", &"../proj-secret");
        link("d-inner", &outside.join("inner"));
        link("d-up", &"..");
        link("d-slash", &"/");
        link("d-proc-root", &"/proc/self/root");
        link("d-proc-fd", &descriptor(&outside_open));
        link("d-proc-cwd", &"/proc/self/cwd");
        link("l-loop", &"l-loop");
        link("l-loop-a", &"l-loop-b");
        link("l-loop-b", &"l-loop-a");
        let mkfifo = Command::new("mkfifo").arg(root.join("fifo")).status();
        assert!(mkfifo.unwrap().success());
        let socket = UnixListener::bind(root.join("socket")).unwrap();
        let before = snapshot(&outside);
        Self {
            _base: temporary,
            base,
            root,
            outside,
            before,
            outside_open,
            secret_open,
            _socket: socket,
        }
    }

    /// Returns paths that are invalid or lead to files outside the root.
    pub(crate) fn escape_attempts(&self) -> Vec<EscapeAttempt> {
        let secret = self.outside.join("secret");
        let secret = secret.to_str().unwrap();
        let up = "../".repeat(100);
        let from_root: &[(RefusalReason, &[&str])] = &[
            (
                RefusalReason::Outside,
                &[
                    "../proj-secret/secret",
                    "../proj-secret/new",
                    "../proj-secret/new/new",
                    "../new",
                    "..//proj-secret//secret",
                    "./../proj-secret/./secret",
                    "sub/../../proj-secret/secret",
                    "sub/../sub/../../proj/../proj-secret/secret",
                    "l-absolute",
                    "l-relative",
                    "l-twice",
                    "l-chain-9",
                    "l-out-and-out",
                    "l-named-like-inside",
                    "l-dangling",
                    "l-dangling-relative",
                    "l-dangling-deep",
                    "l-new\nline",
                    "l-fd",
                    "sub/l-up",
                    "sub/../l-absolute",
                    "d-up/proj-secret/secret",
                    "d-up/new",
                    "d-absolute/secret",
                    "d-absolute/new",
                    "d-absolute/new/new/new",
                    "d-absolute/inner/../secret",
                    "d-absolute/../proj-secret/secret",
                    "d-relative/secret",
                    "d-relative/new/new",
                    "d-inner/../secret",
                    "d-inner/../new",
                    "d-slash/etc/passwd",
                    "d-proc-root/etc/passwd",
                    "d-proc-fd/secret",
                    "d-proc-fd/new",
                    "d-proc-cwd/secret",
                ],
            ),
            (
                RefusalReason::Nowhere,
                &[
                    "not-there/../../proj-secret/secret",
                    "file/../../proj-secret/secret",
                    "fifo/../../proj-secret/secret",
                    "l-loop",
                    "l-loop-a",
                    "l-loop/../../proj-secret/secret",
                ],
            ),
            (
                RefusalReason::NotAFile,
                &[
                    "", "/", ".", "sub", "sub/", "sub/.", "sub/..", "fifo", "socket", "file/",
                    "file/.", "new/", "new/a/..", "new/.",
                ],
            ),
        ];
        let mut attempts = Vec::new();
        let mut add = |why, path: PathBuf| attempts.push(EscapeAttempt { path, why });
        for (why, paths) in from_root {
            for path in *paths {
                add(*why, from(&self.root, path));
            }
        }
        let descriptor = |file: &fs::File| format!("/proc/self/fd/{}", file.as_raw_fd());
        for path in [
            secret.to_owned(),
            format!("/{secret}"),
            format!("/proc/self/root{secret}"),
            format!("/proc/thread-self/root{secret}"),
            format!("/proc/{}/root{secret}", std::process::id()),
            format!("/proc/self/cwd/{up}{secret}"),
            format!("{}/secret", descriptor(&self.outside_open)),
            format!("{}/new", descriptor(&self.outside_open)),
            descriptor(&self.secret_open),
            format!("/dev/fd/{}", self.secret_open.as_raw_fd()),
            "/dev/stdin".to_owned(),
            "/dev/null".to_owned(),
            "/dev/zero".to_owned(),
            "/etc/passwd".to_owned(),
            "/etc/shadow".to_owned(),
            "/".to_owned(),
            format!("{}/{up}etc/passwd", self.root.display()),
            format!("{}/new", self.base.display()),
            self.base.display().to_string(),
            // Other names that start with the name of the root.
            format!("{}-secret/new", self.root.display()),
            format!("{}x", self.root.display()),
            format!("{}\n/file", self.root.display()),
        ] {
            add(RefusalReason::Outside, path.into());
        }
        for path in [
            "file",
            "./file",
            "../proj-secret/secret",
            "",
            ".",
            "~/x",
            "file:///etc/passwd",
        ] {
            add(RefusalReason::Relative, path.into());
        }
        let long = "n".repeat(300);
        let deep = "d/".repeat(2500);
        let endless = "e/".repeat(500_000);
        for name in [
            &*long,
            "sub\0",
            "sub/a\0b/c",
            &*format!("sub/{long}/x"),
            &*deep,
            &*endless,
        ] {
            add(RefusalReason::Name, from(&self.root, name));
        }
        // Names that are not UTF-8 lead out no more than others.
        for (why, name) in [
            (RefusalReason::Outside, &b"../\xFF"[..]),
            (RefusalReason::Outside, b"d-absolute/\xFF\xFE"),
        ] {
            add(why, self.root.join(OsStr::from_bytes(name)));
        }
        attempts
    }

    /// Returns paths that lead to directories outside the root.
    pub(crate) fn watched_directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = [
            "..",
            "../",
            "../proj-secret",
            "sub/../..",
            "d-absolute",
            "d-absolute/",
            "d-relative",
            "d-relative/inner",
            "d-inner",
            "d-inner/..",
            "d-up",
            "d-up/proj-secret",
            "d-slash",
            "d-slash/etc",
            "d-proc-root",
            "d-proc-root/etc",
            "d-proc-fd",
            "d-proc-cwd",
            "l-dangling",
            "d-absolute/../proj-secret",
        ]
        .iter()
        .map(|path| from(&self.root, path))
        .collect();
        let fd = self.outside_open.as_raw_fd();
        directories.extend([
            self.outside.clone(),
            self.base.clone(),
            "/".into(),
            "/etc".into(),
            "/proc/self".into(),
            "/proc/self/root".into(),
            "/proc/self/cwd".into(),
            format!("/proc/self/fd/{fd}").into(),
            format!("/proc/self/root{}", self.outside.display()).into(),
        ]);
        directories
    }

    /// Panics if anything outside the root was changed.
    #[track_caller]
    pub(crate) fn assert_untouched(&self, after: &dyn std::fmt::Debug) {
        assert_eq!(snapshot(&self.outside), self.before, "after {after:?}");
        assert_eq!(
            entry_names(&self.base),
            ["proj", "proj-secret"],
            "after {after:?}"
        );
    }
}

/// Joins a path to the root without normalizing it, as a peer would send it.
fn from(root: &Path, path: &str) -> PathBuf {
    format!("{}/{path}", root.display()).into()
}

/// Returns the sorted names in a directory.
pub(crate) fn entry_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn snapshot(directory: &Path) -> BTreeMap<PathBuf, FileFingerprint> {
    let mut seen = BTreeMap::new();
    let mut ahead = vec![directory.to_owned()];
    while let Some(path) = ahead.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mut content = Vec::new();
        if metadata.is_dir() {
            ahead.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            content = fs::read(&path).unwrap();
        }
        let changed = (metadata.mtime(), metadata.mtime_nsec());
        let what = (
            metadata.ino(),
            metadata.mode(),
            changed.0,
            changed.1,
            content,
        );
        seen.insert(path, what);
    }
    seen
}

/// Swaps two names repeatedly until dropped.
pub(crate) struct NameSwapper {
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl NameSwapper {
    pub(crate) fn new(one: PathBuf, other: PathBuf) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let stop = done.clone();
        let aside = one.with_extension("aside");
        let swap = move || {
            #[cfg(target_os = "linux")]
            if rustix::fs::renameat_with(
                rustix::fs::CWD,
                &one,
                rustix::fs::CWD,
                &other,
                rustix::fs::RenameFlags::EXCHANGE,
            )
            .is_ok()
            {
                return;
            }
            fs::rename(&one, &aside).unwrap();
            fs::rename(&other, &one).unwrap();
            fs::rename(&aside, &other).unwrap();
        };
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                swap();
                std::thread::yield_now();
            }
        });
        Self {
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for NameSwapper {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

//! Tests of access to files under a session's roots, on a real file system.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::with_timeout;
use acp_host::Files;
use acp_wire::jsonrpc::Error;
use acp_wire::v1::{ReadTextFileRequest, WriteTextFileRequest};

/// A root, a file outside it, and access to the files inside the root.
struct FilesFixture {
    _directory: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    files: Files,
}

fn files_fixture() -> FilesFixture {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let (root, outside) = (base.join("proj"), base.join("proj-secret"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let files = Files::new([root.clone()]).unwrap();
    FilesFixture {
        _directory: directory,
        root,
        outside,
        files,
    }
}

impl FilesFixture {
    async fn read(&self, path: impl AsRef<Path>) -> Result<String, Error> {
        let path = self.root.join(path);
        let request = ReadTextFileRequest::new("s", path.to_str().unwrap());
        with_timeout(self.files.read(&request))
            .await
            .map(|response| response.content)
    }

    async fn write(&self, path: impl AsRef<Path>, content: &str) -> Result<(), Error> {
        let path = self.root.join(path);
        let request = WriteTextFileRequest::new("s", path.to_str().unwrap(), content);
        with_timeout(self.files.write(&request)).await.map(|_| ())
    }

    fn read_from_disk(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Returns the sorted names of the entries in a directory of the root.
    fn entry_names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(directory)).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Asserts that reading and writing a path fail with a clear error and change nothing outside the root.
    async fn assert_outside(&self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        let before = fs::read_dir(&self.outside).unwrap().count();
        for result in [
            self.read(path).await,
            self.write(path, "changed").await.map(|()| String::new()),
        ] {
            let error = result.expect_err(&format!("{path:?} got out"));
            assert_eq!(error.code, Error::INVALID_PARAMS, "{path:?}: {error}");
            assert!(
                error.message.contains("outside the session's directories"),
                "{path:?}: {error}"
            );
            assert!(
                error.message.contains(self.root.to_str().unwrap()),
                "{path:?}: {error}"
            );
        }
        assert_eq!(
            fs::read_to_string(self.outside.join("secret")).unwrap(),
            "secret"
        );
        assert_eq!(fs::read_dir(&self.outside).unwrap().count(), before);
    }
}

#[tokio::test]
async fn line_numbers_start_at_one_and_lines_are_verbatim() {
    let place = files_fixture();
    let text = "one\r\ntwo\n\nfour\u{FEFF}é\nlast without end";
    place.write("a.txt", text).await.unwrap();
    assert_eq!(place.read_from_disk("a.txt"), text);
    let path = place.root.join("a.txt");
    let cases = [
        (None, None, text),
        (Some(0), None, text),
        (Some(1), None, text),
        (Some(1), Some(1), "one\r\n"),
        (Some(2), Some(2), "two\n\n"),
        (None, Some(2), "one\r\ntwo\n"),
        (Some(4), None, "four\u{FEFF}é\nlast without end"),
        (Some(5), Some(u32::MAX), "last without end"),
        (Some(6), None, ""),
        (Some(u32::MAX), Some(1), ""),
        (Some(2), Some(0), ""),
    ];
    for (line, limit, expected) in cases {
        let read = with_timeout(place.files.read_text(&path, line, limit))
            .await
            .unwrap();
        assert_eq!(read, expected, "line {line:?} limit {limit:?}");
    }
    // A trailing line end does not start another line.
    place.write("b.txt", "x\n").await.unwrap();
    assert_eq!(
        place
            .files
            .read_text(&place.root.join("b.txt"), Some(2), None)
            .await
            .unwrap(),
        ""
    );
}

#[tokio::test]
async fn lines_are_found_across_chunks_of_a_large_file() {
    let place = files_fixture();
    let line = |number: usize| format!("{number} {}\n", "x".repeat(number % 1000));
    let text: String = (1..=5000).map(line).collect();
    assert!(text.len() > 2_000_000);
    place.write("large", &text).await.unwrap();
    for first in [1, 7, 130, 131, 132, 2500, 5000] {
        let read = place
            .files
            .read_text(&place.root.join("large"), Some(first), Some(3))
            .await
            .unwrap();
        let first = first as usize;
        let expected: String = (first..first + 3)
            .filter(|n| *n <= 5000)
            .map(line)
            .collect();
        assert_eq!(read, expected);
    }
}

#[tokio::test]
async fn oversized_file_can_be_read_in_parts() {
    let place = files_fixture();
    // A line end takes two bytes in a message.
    let files = place.files.clone().max_read(12);
    let path = place.root.join("a");
    fs::write(&path, "12345\n789\nmore").unwrap();
    let error = files.read_text(&path, None, None).await.unwrap_err();
    assert_eq!(error.code, Error::INVALID_PARAMS);
    assert!(error.message.contains("limit: 12 bytes"), "{error}");
    assert!(error.message.contains("`line` and `limit`"), "{error}");
    assert_eq!(
        files.read_text(&path, None, Some(2)).await.unwrap(),
        "12345\n789\n"
    );
    assert_eq!(files.read_text(&path, Some(3), None).await.unwrap(), "more");
}

#[tokio::test]
async fn missing_file_is_not_found() {
    let place = files_fixture();
    for path in ["new.txt", "no/such/dir/new.txt"] {
        let error = place.read(path).await.unwrap_err();
        assert_eq!(error.code, Error::RESOURCE_NOT_FOUND);
        assert!(error.message.contains("not found"), "{error}");
        assert!(
            error
                .message
                .contains(place.root.join(path).to_str().unwrap()),
            "{error}"
        );
        assert_eq!(error.data.unwrap()["errno"], "ENOENT");
    }
}

#[tokio::test]
async fn relative_path_is_rejected() {
    let place = files_fixture();
    for path in ["a.txt", "./a.txt", "../proj/a.txt", "", "~/a.txt"] {
        let read = place
            .files
            .read(&ReadTextFileRequest::new("s", path))
            .await
            .unwrap_err();
        let write = place
            .files
            .write(&WriteTextFileRequest::new("s", path, "x"))
            .await
            .unwrap_err();
        for error in [read, write] {
            assert_eq!(error.code, Error::INVALID_PARAMS);
            assert!(
                error.message.contains("file path must be absolute"),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn invalid_text_and_special_files_are_rejected_without_blocking() {
    let place = files_fixture();
    fs::write(place.root.join("binary"), b"ok\n\xFF\xFE").unwrap();
    let error = place.read("binary").await.unwrap_err();
    assert!(
        error
            .message
            .contains("invalid UTF-8 at byte 3 of the text that was read"),
        "{error}"
    );
    assert_eq!(
        place
            .files
            .read_text(&place.root.join("binary"), None, Some(1))
            .await
            .unwrap(),
        "ok\n"
    );

    let mkfifo = std::process::Command::new("mkfifo")
        .arg(place.root.join("fifo"))
        .status()
        .unwrap();
    assert!(mkfifo.success());
    let _socket = std::os::unix::net::UnixListener::bind(place.root.join("socket")).unwrap();
    fs::create_dir(place.root.join("dir")).unwrap();
    for path in ["fifo", "socket", "dir", "dir/", ""] {
        let read = place.read(path).await.unwrap_err();
        let write = place.write(path, "x").await.unwrap_err();
        for error in [read, write] {
            assert_eq!(error.code, Error::INVALID_PARAMS, "{path}: {error}");
            let what = if path.starts_with("dir") || path.is_empty() {
                "a directory"
            } else {
                "not a regular file"
            };
            assert!(error.message.contains(what), "{path}: {error}");
        }
    }
    assert_eq!(place.entry_names(""), ["binary", "dir", "fifo", "socket"]);

    let devices = Files::new([PathBuf::from("/dev")]).unwrap();
    let error = with_timeout(devices.read_text(Path::new("/dev/zero"), None, None))
        .await
        .unwrap_err();
    assert!(error.message.contains("not a regular file"), "{error}");
}

#[tokio::test]
async fn write_replaces_the_file_and_keeps_its_mode() {
    let place = files_fixture();
    let path = place.root.join("script");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let old = fs::File::open(&path).unwrap();
    place.write("script", "new").await.unwrap();
    assert_eq!(place.read_from_disk("script"), "new");
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o751);
    // A reader that had the file open still has the complete old contents.
    assert_eq!(std::io::read_to_string(&old).unwrap(), "old");
    assert_ne!(metadata.ino(), old.metadata().unwrap().ino());
    assert_eq!(place.entry_names(""), ["script"]);

    place.write("empty", "").await.unwrap();
    assert_eq!(place.read_from_disk("empty"), "");
}

#[tokio::test]
async fn readers_see_either_the_old_or_the_new_content() {
    let place = files_fixture();
    let contents = ["a".repeat(300_000), "b".repeat(200_000)];
    place.write("f", &contents[0]).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (path, done, contents) = (place.root.join("f"), done.clone(), contents.clone());
        std::thread::spawn(move || {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) {
                let seen = fs::read_to_string(&path).unwrap();
                assert!(contents.contains(&seen), "{} bytes", seen.len());
                reads += 1;
            }
            reads
        })
    };
    for turn in 0..40 {
        place.write("f", &contents[turn % 2]).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
    assert_eq!(place.entry_names(""), ["f"]);
}

#[tokio::test]
async fn write_creates_parent_directories() {
    let place = files_fixture();
    place.write("a/b/c/new.txt", "x").await.unwrap();
    assert_eq!(place.read_from_disk("a/b/c/new.txt"), "x");
    fs::write(place.root.join("file"), "x").unwrap();
    let error = place.write("file/below", "y").await.unwrap_err();
    assert_eq!(place.read_from_disk("file"), "x");
    assert!(error.message.contains("file/below"), "{error}");
    assert_eq!(place.entry_names(""), ["a", "file"]);
}

#[tokio::test]
async fn failed_write_keeps_the_old_content_and_leaves_no_files() {
    let place = files_fixture();
    fs::create_dir(place.root.join("d")).unwrap();
    fs::write(place.root.join("d/f"), "old").unwrap();
    // Root can write everywhere, but a name that is too long fails for every user.
    let error = place
        .write(format!("d/{}", "n".repeat(300)), "x")
        .await
        .unwrap_err();
    assert_eq!(error.data.unwrap()["errno"], "ENAMETOOLONG");
    if rustix::process::geteuid().as_raw() != 0 {
        fs::set_permissions(place.root.join("d"), fs::Permissions::from_mode(0o555)).unwrap();
        place.write("d/f", "new").await.unwrap_err();
        fs::set_permissions(place.root.join("d"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(place.root.join("d/f"), fs::Permissions::from_mode(0o444)).unwrap();
        place.write("d/f", "new").await.unwrap_err();
    }
    assert_eq!(place.read_from_disk("d/f"), "old");
    assert_eq!(place.entry_names("d"), ["f"]);
}

#[tokio::test]
async fn nothing_outside_the_roots_is_reachable() {
    let place = files_fixture();
    let outside = place.outside.clone();
    let secret = outside.join("secret");
    place.assert_outside(&secret).await;
    place.assert_outside("../proj-secret/secret").await;
    place.assert_outside("../new").await;
    fs::create_dir(place.root.join("sub")).unwrap();
    place.assert_outside("sub/../../proj-secret/secret").await;
    place.assert_outside("/etc/passwd").await;
    place.assert_outside("/proc/self/root/etc/passwd").await;
    place
        .assert_outside(format!("/proc/self/cwd/../{}", secret.display()))
        .await;

    // Each of these leads out at its end, and then in the middle.
    symlink(&secret, place.root.join("absolute")).unwrap();
    symlink("../proj-secret/secret", place.root.join("relative")).unwrap();
    symlink(outside.join("not there yet"), place.root.join("dangling")).unwrap();
    symlink(
        "../proj-secret/not there yet",
        place.root.join("dangling-relative"),
    )
    .unwrap();
    symlink("absolute", place.root.join("twice")).unwrap();
    for link in [
        "absolute",
        "relative",
        "dangling",
        "dangling-relative",
        "twice",
    ] {
        place.assert_outside(link).await;
    }
    symlink(&outside, place.root.join("dir")).unwrap();
    symlink("../proj-secret", place.root.join("dir-relative")).unwrap();
    symlink("/proc/self/root", place.root.join("magic")).unwrap();
    for path in [
        "dir/secret",
        "dir/new",
        "dir-relative/new/new",
        "dir/../proj-secret/secret",
        "magic/etc/passwd",
    ] {
        place.assert_outside(path).await;
    }
    // A link, and a `..` after it: the system resolves it, not the text.
    fs::create_dir(outside.join("inner")).unwrap();
    symlink(outside.join("inner"), place.root.join("inner")).unwrap();
    place.assert_outside("inner/../secret").await;
}

#[tokio::test]
async fn symlinks_inside_the_roots_are_followed() {
    let place = files_fixture();
    fs::create_dir(place.root.join("real")).unwrap();
    fs::write(place.root.join("real/file"), "old").unwrap();
    symlink("real/file", place.root.join("relative")).unwrap();
    symlink(place.root.join("real/file"), place.root.join("absolute")).unwrap();
    symlink(place.root.join("real"), place.root.join("dir")).unwrap();
    symlink("../proj/real", place.root.join("out-and-in")).unwrap();
    symlink("real/new", place.root.join("dangling")).unwrap();
    for link in [
        "relative",
        "absolute",
        "dir/file",
        "out-and-in/file",
        "../proj/real/file",
        "dir/../real/file",
    ] {
        assert_eq!(place.read(link).await.unwrap(), "old", "{link}");
        place.write(link, link).await.unwrap();
        assert_eq!(place.read_from_disk("real/file"), link);
        fs::write(place.root.join("real/file"), "old").unwrap();
    }
    for link in ["relative", "absolute", "dir"] {
        assert!(place.root.join(link).is_symlink(), "{link} was replaced");
    }
    let error = place.read("dangling").await.unwrap_err();
    assert_eq!(error.code, Error::RESOURCE_NOT_FOUND);
    place.write("dangling", "created").await.unwrap();
    assert_eq!(place.read_from_disk("real/new"), "created");
    assert!(place.root.join("dangling").is_symlink());
    assert_eq!(place.entry_names("real"), ["file", "new"]);

    symlink("loop", place.root.join("loop")).unwrap();
    place.read("loop").await.unwrap_err();
    let error = place.write("loop", "x").await.unwrap_err();
    assert!(error.message.contains("symbolic links"), "{error}");
}

#[tokio::test]
async fn symlinked_root_is_pinned_and_reachable_by_both_paths() {
    let place = files_fixture();
    let link = place.outside.join("link");
    symlink(&place.root, &link).unwrap();
    let files = Files::new([link.clone()]).unwrap();
    fs::write(place.root.join("a"), "x").unwrap();
    for name in [&link, &place.root] {
        assert_eq!(
            files.read_text(&name.join("a"), None, None).await.unwrap(),
            "x"
        );
    }
    // Another directory takes its place.
    fs::remove_file(&link).unwrap();
    symlink("/etc", &link).unwrap();
    assert_eq!(
        files.read_text(&link.join("a"), None, None).await.unwrap(),
        "x"
    );
    let error = files
        .read_text(&link.join("passwd"), None, None)
        .await
        .unwrap_err();
    assert_eq!(error.code, Error::RESOURCE_NOT_FOUND);
}

#[tokio::test]
async fn symlinks_between_roots_are_followed() {
    let place = files_fixture();
    let inner = place.root.join("inner");
    fs::create_dir(&inner).unwrap();
    symlink("../file", inner.join("up")).unwrap();
    symlink(place.outside.join("secret"), inner.join("across")).unwrap();
    fs::write(place.root.join("file"), "x").unwrap();
    let roots = [place.root.clone(), inner.clone(), place.outside.clone()];
    let files = Files::new(roots.clone()).unwrap();
    assert!(files.roots().eq(roots.iter()));
    assert_eq!(
        files
            .read_text(&inner.join("up"), None, None)
            .await
            .unwrap(),
        "x"
    );
    assert_eq!(
        files
            .read_text(&inner.join("across"), None, None)
            .await
            .unwrap(),
        "secret"
    );

    let error = Files::new([place.root.join("not there")]).unwrap_err();
    assert!(error.to_string().contains("not there"), "{error}");
    Files::new([PathBuf::from("relative")]).unwrap_err();
    Files::new([place.root.join("file")]).unwrap_err();
}

/// Swaps a symlink in and out while files are being read and written. Nothing outside the root must be accessed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapped_symlinks_do_not_lead_out_of_the_roots() {
    let place = files_fixture();
    let (dir, aside) = (place.root.join("dir"), place.root.join("aside"));
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("secret"), "inside").unwrap();
    symlink(&place.outside, &aside).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (dir, aside, done) = (dir.clone(), aside.clone(), done.clone());
        std::thread::spawn(move || {
            let here = rustix::fs::CWD;
            while !done.load(Ordering::Relaxed) {
                #[cfg(target_os = "linux")]
                rustix::fs::renameat_with(
                    here,
                    &dir,
                    here,
                    &aside,
                    rustix::fs::RenameFlags::EXCHANGE,
                )
                .unwrap();
                #[cfg(not(target_os = "linux"))]
                let _ = (here, &dir, &aside);
            }
        })
    };
    for turn in 0..1000 {
        if let Ok(text) = place.read("dir/secret").await {
            assert_eq!(text, "inside");
        }
        if turn % 10 == 0 {
            let _ = place.write("dir/secret", "inside").await;
            let _ = place.write("dir/new", "inside").await;
        }
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(
        fs::read_to_string(place.outside.join("secret")).unwrap(),
        "secret"
    );
    assert_eq!(fs::read_dir(&place.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn unusual_file_names_are_supported() {
    let place = files_fixture();
    for name in [
        "new\nline",
        " spaces ",
        "…/ü",
        "-rf",
        "a\\b",
        "*?",
        &"n".repeat(255),
    ] {
        place.write(name, name).await.unwrap();
        assert_eq!(place.read(name).await.unwrap(), name);
    }
    let error = place.read("nul\0byte").await.unwrap_err();
    assert_eq!(error.code, Error::INVALID_PARAMS, "{error}");
}

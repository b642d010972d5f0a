//! Tests of attempts to access files outside a session's roots with `fs/*` requests. Every attempt must be rejected,
//! and nothing outside may change.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::common::one_session::OneSession;
use crate::common::scene::{
    ATTEMPT_TEXT, EscapeScene, NameSwapper, RefusalReason, SECRET_TEXT, entry_names,
};
use crate::common::{TIMEOUT, block_on, ordinary_user, with_timeout};
use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp_host::{Files, Host, Policy, Prompter};
use acp_wire::jsonrpc::Error;
use acp_wire::v1::{PermissionOptionId, ReadTextFileRequest, WriteTextFileRequest};

#[test]
fn tests_pass_as_an_ordinary_user() {
    ordinary_user::rerun_as_ordinary_user(module_path!(), &[]);
}

#[track_caller]
fn assert_rejected(error: &Error, why: RefusalReason, path: &Path) {
    let said = match why {
        RefusalReason::Outside => "outside the session's directories",
        RefusalReason::Relative => "file path must be absolute",
        RefusalReason::NotAFile => "not a regular file",
        RefusalReason::Nowhere | RefusalReason::Name => "",
    };
    assert!(error.message.contains(said), "{path:?}: {error}");
    if why == RefusalReason::Nowhere {
        return;
    }
    assert_eq!(error.code, Error::INVALID_PARAMS, "{path:?}: {error}");
    // An error does not quote all of a long path from a peer.
    assert!(error.to_string().len() < 4096, "{path:?}");
}

#[tokio::test]
async fn every_escape_attempt_is_rejected_without_side_effects() {
    let scene = EscapeScene::new();
    let files = Files::new([scene.root.clone()]).unwrap();
    let inside = entry_names(&scene.root);
    let attempts = scene.escape_attempts();
    let mut count = 0;
    for attempt in &attempts {
        let (path, why) = (&attempt.path, attempt.why);
        for (line, limit) in [(None, None), (Some(1), Some(1))] {
            let read = with_timeout(files.read_text(path, line, limit)).await;
            let error = read.expect_err(&format!("{path:?} was read"));
            assert_rejected(&error, why, path);
        }
        let written = with_timeout(files.write_text(path, ATTEMPT_TEXT)).await;
        let error = written.expect_err(&format!("{path:?} was written"));
        assert_rejected(&error, why, path);
        count += 3;
        // Also send the paths over the wire, if JSON can represent them.
        if let Some(path) = path.to_str() {
            let request = ReadTextFileRequest::new("s", path);
            with_timeout(files.read(&request)).await.unwrap_err();
            let request = WriteTextFileRequest::new("s", path, ATTEMPT_TEXT);
            with_timeout(files.write(&request)).await.unwrap_err();
            count += 2;
        }
        scene.assert_untouched(path);
        assert_eq!(entry_names(&scene.root), inside, "after {path:?}");
    }
    assert_eq!(
        fs::read_to_string(scene.root.join("file")).unwrap(),
        "inside"
    );
    println!("{} paths, {count} attempts, none got out", attempts.len());
}

#[tokio::test]
async fn devices_are_not_opened() {
    let devices = Files::new([PathBuf::from("/dev")]).unwrap();
    for name in ["null", "zero", "full", "random", "tty", "ptmx"] {
        let path = Path::new("/dev").join(name);
        if !path.exists() {
            continue;
        }
        for error in [
            with_timeout(devices.read_text(&path, None, None))
                .await
                .unwrap_err(),
            with_timeout(devices.write_text(&path, ATTEMPT_TEXT))
                .await
                .unwrap_err(),
        ] {
            assert_rejected(&error, RefusalReason::NotAFile, &path);
        }
    }
    // These are symlinks into `/proc`.
    for name in ["stdin", "fd/0", "stdout"] {
        let path = Path::new("/dev").join(name);
        with_timeout(devices.read_text(&path, None, None))
            .await
            .unwrap_err();
    }
}

/// Uses `/` as the root, so that every path is inside it. Links to open files in `/proc` must not lead to a deleted
/// file. They are resolved as text, without the kernel's special handling.
#[tokio::test]
async fn kernel_magic_links_are_resolved_by_their_text() {
    let scene = EscapeScene::new();
    let files = Files::new([PathBuf::from("/")]).unwrap();
    let gone = scene.root.join("gone");
    fs::write(&gone, SECRET_TEXT).unwrap();
    let open = fs::File::open(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    let descriptor = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    if !descriptor.exists() {
        println!("skipped: no /proc");
        return;
    }
    assert_eq!(fs::read_to_string(&descriptor).unwrap(), SECRET_TEXT);
    let (reader, _writer) = std::io::pipe().unwrap();
    let pipe = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    for path in [descriptor, pipe] {
        with_timeout(files.read_text(&path, None, None))
            .await
            .unwrap_err();
        // This can create a file with the name that the link shows.
        let _ = with_timeout(files.write_text(&path, ATTEMPT_TEXT)).await;
    }
    assert_eq!(std::io::read_to_string(&open).unwrap(), SECRET_TEXT);
    scene.assert_untouched(&"links of the kernel's");
}

/// Writes through a hard link to a file outside the root. A hard link inside the root counts as inside. Writing
/// replaces the name with a new file, and the file outside keeps its contents.
#[tokio::test]
async fn writing_through_a_hard_link_does_not_change_the_outside_file() {
    let scene = EscapeScene::new();
    let (inside, outside) = (scene.root.join("hard"), scene.outside.join("secret"));
    fs::hard_link(&outside, &inside).unwrap();
    let files = Files::new([scene.root.clone()]).unwrap();
    assert_eq!(
        with_timeout(files.read_text(&inside, None, None))
            .await
            .unwrap(),
        SECRET_TEXT
    );
    with_timeout(files.write_text(&inside, ATTEMPT_TEXT))
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(&inside).unwrap(), ATTEMPT_TEXT);
    scene.assert_untouched(&"a hard link was written");
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_ne!(inode(&inside), inode(&outside));
}

#[tokio::test]
async fn unusual_names_inside_the_roots_work() {
    use std::os::unix::ffi::OsStrExt;
    let scene = EscapeScene::new();
    let files = Files::new([scene.root.clone()]).unwrap();
    let longest = [b'n'; 255];
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"\xFF\xFE",
        b"\xC3",
        b" ",
        b"...",
        b"-rf",
        b"a\\..\\b",
        b"\x1B[2J",
        &longest,
    ];
    for name in names {
        let name = std::ffi::OsStr::from_bytes(name);
        for path in [
            scene.root.join(name),
            scene.root.join("deep").join(name).join(name),
        ] {
            with_timeout(files.write_text(&path, ATTEMPT_TEXT))
                .await
                .unwrap();
            assert_eq!(
                with_timeout(files.read_text(&path, None, None))
                    .await
                    .unwrap(),
                ATTEMPT_TEXT
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), ATTEMPT_TEXT);
        }
    }
    scene.assert_untouched(&"hard names");
}

/// Repeats an attempt until it has both succeeded and been rejected at least once, while another thread swaps files.
async fn repeat_until_both_outcomes<F: Future<Output = bool>>(
    what: &str,
    attempt: impl Fn(usize) -> F,
) {
    let begun = Instant::now();
    let (mut done, mut refused, mut turn) = (0, 0, 0);
    while turn < 100 || done == 0 || refused == 0 {
        if attempt(turn).await {
            done += 1;
        } else {
            refused += 1;
        }
        turn += 1;
        assert!(
            begun.elapsed() < TIMEOUT,
            "{what}: {done} done, {refused} refused"
        );
    }
    println!("{what}: {turn} times; {done} done inside, {refused} refused");
}

/// Replaces first a parent directory, then the file itself, with a symlink that leads outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_path_during_a_call_does_not_escape_the_roots() {
    let scene = EscapeScene::new();
    let files = Files::new([scene.root.clone()]).unwrap();
    let race = scene.root.join("race");
    fs::create_dir_all(race.join("dir")).unwrap();
    fs::write(race.join("dir/secret"), "inside").unwrap();
    symlink(&scene.outside, race.join("away")).unwrap();
    let read = async |path: PathBuf| match with_timeout(files.read_text(&path, None, None)).await {
        Ok(text) => {
            assert!(["inside", ATTEMPT_TEXT].contains(&text.as_str()), "{text}");
            true
        }
        Err(_) => false,
    };
    let write = async |path: PathBuf| {
        with_timeout(files.write_text(&path, ATTEMPT_TEXT))
            .await
            .is_ok()
    };

    let swapper = NameSwapper::new(race.join("dir"), race.join("away"));
    let secret = race.join("dir/secret");
    repeat_until_both_outcomes("reading under a swapped directory", |_| {
        read(secret.clone())
    })
    .await;
    repeat_until_both_outcomes("writing under it", |_| write(secret.clone())).await;
    repeat_until_both_outcomes("creating under it", |turn| {
        write(race.join(format!("dir/new-{turn}")))
    })
    .await;
    repeat_until_both_outcomes("creating directories under it", |turn| {
        write(race.join(format!("dir/a-{turn}/b/c/new")))
    })
    .await;
    drop(swapper);
    scene.assert_untouched(&"a directory was swapped");

    fs::write(race.join("file"), "inside").unwrap();
    symlink(scene.outside.join("secret"), race.join("link")).unwrap();
    let swapper = NameSwapper::new(race.join("file"), race.join("link"));
    repeat_until_both_outcomes("reading a swapped file", |_| read(race.join("file"))).await;
    drop(swapper);
    let swapper = NameSwapper::new(race.join("file"), race.join("link"));
    // Whatever is there is replaced. A link is replaced by its name, and its target is never touched.
    for _ in 0..100 {
        write(race.join("file")).await;
    }
    drop(swapper);
    scene.assert_untouched(&"a file was swapped");
}

/// Replaces a regular file with a FIFO. Accessing it must not wait for the other end of the FIFO.
#[test]
fn file_replaced_by_a_fifo_does_not_block() {
    block_on(check_fifo_swap());
}

async fn check_fifo_swap() {
    let scene = EscapeScene::new();
    let files = Files::new([scene.root.clone()]).unwrap();
    let (file, fifo) = (scene.root.join("file"), scene.root.join("fifo"));
    let swapper = NameSwapper::new(file.clone(), fifo);
    repeat_until_both_outcomes("reading what becomes a fifo", |_| async {
        with_timeout(files.read_text(&file, None, None))
            .await
            .is_ok()
    })
    .await;
    // At some point it becomes a FIFO between the check and the opening.
    for _ in 0..3000 {
        let _ = with_timeout(files.read_text(&file, None, None)).await;
    }
    // A write replaces whatever is there at the last moment, so after a while there is no FIFO any more.
    for _ in 0..100 {
        let _ = with_timeout(files.write_text(&file, "inside")).await;
    }
    drop(swapper);
}

struct EscapePrompter;

impl Prompter for EscapePrompter {
    async fn ask(&self, _: &PermissionRequest) -> Option<PermissionOptionId> {
        None
    }
}

/// Renames the roots after the host has been created. The host must keep using the same directories.
#[tokio::test]
async fn roots_are_pinned_when_the_session_starts() {
    let scene = EscapeScene::new();
    let more = scene.root.join("sub");
    let host = Host::new(
        Policy::All,
        EscapePrompter,
        [scene.root.clone(), more.clone()],
    )
    .unwrap();
    let host = OneSession::new(host, &ThreadHandle::new());
    // Both names now lead outside.
    let aside = scene.root.join("sub-aside");
    fs::rename(&more, &aside).unwrap();
    symlink(&scene.outside, &more).unwrap();
    let moved = scene.base.join("proj-moved");
    fs::rename(&scene.root, &moved).unwrap();
    symlink(&scene.outside, &scene.root).unwrap();
    for root in [&scene.root, &more] {
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        let read = ReadTextFileRequest::new("s", path("file"));
        assert_eq!(
            with_timeout(host.read(read)).await.unwrap().content,
            "inside"
        );
        let read = ReadTextFileRequest::new("s", path("secret"));
        with_timeout(host.read(read)).await.unwrap_err();
        let write = WriteTextFileRequest::new("s", path("made/here"), ATTEMPT_TEXT);
        with_timeout(host.write(write)).await.unwrap();
    }
    for place in ["made/here", "sub-aside/made/here"] {
        assert_eq!(fs::read_to_string(moved.join(place)).unwrap(), ATTEMPT_TEXT);
    }
    fs::remove_file(&scene.root).unwrap();
    fs::rename(&moved, &scene.root).unwrap();
    scene.assert_untouched(&"the roots' names were swapped");
}

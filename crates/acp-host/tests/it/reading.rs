//! Tests of reading files with long lines, files that grow, and files that the kernel generates.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::with_timeout;
use acp_host::Files;

/// Returns access to the files in a directory, with `most` as the size limit for one read.
fn files_with_limit(directory: &Path, most: usize) -> Files {
    Files::new([directory.to_owned()]).unwrap().max_read(most)
}

fn temporary_directory() -> (tempfile::TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().canonicalize().unwrap();
    (temporary, directory)
}

#[tokio::test]
async fn line_is_read_in_full_or_not_at_all() {
    let (_temporary, directory) = temporary_directory();
    let path = directory.join("file");
    fs::write(
        &path,
        format!("short\n{}\nshort again", "x".repeat(200_000)),
    )
    .unwrap();
    let files = files_with_limit(&directory, 200_000);
    let read =
        async |line, limit| with_timeout(files.read_text(&path, Some(line), Some(limit))).await;
    assert_eq!(read(1, 1).await.unwrap(), "short\n");
    // With its line end, the line is one byte too long.
    read(2, 1).await.unwrap_err();
    assert_eq!(read(3, 1).await.unwrap(), "short again");
}

/// Appends lines to a file until it is stopped.
struct LineAppender {
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LineAppender {
    fn new(path: &Path) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let stop = done.clone();
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        let thread = std::thread::spawn(move || {
            // Ends at some point even if nothing stops it.
            for line in 0..2_000_000 {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                file.write_all(format!("line {line}\n").as_bytes()).unwrap();
            }
        });
        Self {
            done,
            thread: Some(thread),
        }
    }
}

impl Drop for LineAppender {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

#[tokio::test]
async fn file_may_grow_while_it_is_read() {
    let (_temporary, directory) = temporary_directory();
    let path = directory.join("log");
    fs::write(&path, "the first\n").unwrap();
    let files = files_with_limit(&directory, 64 * 1024 * 1024);
    let appender = LineAppender::new(&path);
    let mut reads = Vec::new();
    for _ in 0..20 {
        reads.push(
            with_timeout(files.read_text(&path, None, None))
                .await
                .unwrap(),
        );
        let first = with_timeout(files.read_text(&path, Some(1), Some(1))).await;
        assert_eq!(first.unwrap(), "the first\n");
    }
    // At some point the file is longer than the limit, however fast it grows.
    let small = files.clone().max_read(100_000);
    loop {
        match with_timeout(small.read_text(&path, None, None)).await {
            Ok(text) => assert!(text.len() <= 100_000),
            Err(error) => {
                assert!(error.message.contains("limit: 100000 bytes"), "{error}");
                break;
            }
        }
    }
    drop(appender);
    let all = fs::read_to_string(&path).unwrap();
    for read in reads {
        assert!(
            all.starts_with(&read),
            "the text that was read was never in the file"
        );
    }
}

/// Files that the kernel generates have no length, but are still read to their end.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn kernel_files_are_read_to_the_end() {
    let files = files_with_limit(Path::new("/proc/self"), 1024 * 1024);
    let status = with_timeout(files.read_text(Path::new("/proc/self/status"), None, None)).await;
    assert!(status.unwrap().contains("\nPid:"));
    let part =
        with_timeout(files.read_text(Path::new("/proc/self/status"), Some(1), Some(1))).await;
    assert!(part.unwrap().starts_with("Name:"));
    // Reading one of these fails.
    let error = with_timeout(files.read_text(Path::new("/proc/self/mem"), None, None)).await;
    assert_eq!(
        error.unwrap_err().code,
        acp_wire::jsonrpc::Error::INTERNAL_ERROR
    );
}

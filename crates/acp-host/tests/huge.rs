//! Tests reading a file that is larger than memory. This is a separate test program because it measures the memory use
//! of the whole process.

#![cfg(unix)]
// Clippy recognizes test code only inside test functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::task::Poll;

use acp_host::Files;
use acp_wire::jsonrpc::Error;
use common::{block_on, with_timeout};

/// Creates a file with two short lines and a third that is as long as the file system allows. The third line is a hole,
/// which takes up no space.
fn create_huge_file(directory: &Path) -> PathBuf {
    let path = directory.join("huge");
    fs::write(&path, "one\ntwo\n").unwrap();
    let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    // Where the file system supports files of that size, reading this one would take hours.
    file.set_len(8 << 40)
        .or_else(|_| file.set_len(8 << 30))
        .unwrap();
    path
}

/// Returns the peak memory use of this process, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: usize = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    kib * 1024
}

#[tokio::test]
async fn partial_read_of_a_huge_file_uses_little_memory() {
    let temporary = tempfile::tempdir().unwrap();
    let path = create_huge_file(temporary.path());
    let most = 1024 * 1024;
    let files = Files::new([temporary.path().to_owned()])
        .unwrap()
        .max_read(most);
    #[cfg(target_os = "linux")]
    let before = peak_memory();
    for (line, expected) in [(1, "one\n"), (2, "two\n")] {
        let read = with_timeout(files.read_text(&path, Some(line), Some(1))).await;
        assert_eq!(read.unwrap(), expected);
    }
    // Read all of it, and the line that is too long.
    for (line, limit) in [(None, None), (Some(2), Some(2)), (Some(3), Some(1))] {
        let error = with_timeout(files.read_text(&path, line, limit))
            .await
            .unwrap_err();
        assert_eq!(error.code, Error::INVALID_PARAMS);
        assert!(error.message.contains("limit: 1048576 bytes"), "{error}");
    }
    #[cfg(target_os = "linux")]
    {
        let grown = peak_memory() - before;
        println!("the peak grew by {grown} bytes");
        assert!(grown < 16 * most, "{grown} bytes");
    }
}

/// Tests that after starting and dropping the maximum number of concurrent reads, another read succeeds.
#[test]
fn read_stops_when_its_future_is_dropped() {
    block_on(check_abandoned_read());
}

async fn check_abandoned_read() {
    let temporary = tempfile::tempdir().unwrap();
    let path = create_huge_file(temporary.path());
    let files = Files::new([temporary.path().to_owned()]).unwrap();
    for _ in 0..4 {
        let mut reading = Box::pin(files.read_text(&path, Some(1_000_000), Some(1)));
        // The read starts, and there is no result yet.
        let begun = std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_pending()));
        assert!(begun.await);
    }
    let read = with_timeout(files.read_text(&path, Some(2), Some(1))).await;
    assert_eq!(read.unwrap(), "two\n");
}

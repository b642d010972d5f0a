//! Runs the checks on the corpus: the files in `fuzz/corpus/` and `fuzz/regressions/`.
//!
//! `fuzz/README.md` describes how to run the fuzzers themselves.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether any thread or task has panicked. A panic in a task would go unnoticed.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// Returns the files of a fuzz target.
fn corpus_files(target: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["corpus", "regressions"] {
        let folder = fuzz.join(folder).join(target);
        // Some targets have no regressions.
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    files.sort();
    files
}

fn replay_corpus(target: &str, check: fn(&[u8])) {
    let files = corpus_files(target);
    assert!(files.len() >= 20, "{target} has {} files", files.len());
    for file in &files {
        let bytes = fs::read(file).unwrap();
        HAS_PANICKED.store(false, Ordering::Relaxed);
        let checked = catch_unwind(AssertUnwindSafe(|| check(&bytes)));
        assert!(
            checked.is_ok() && !HAS_PANICKED.load(Ordering::Relaxed),
            "{}: the check panicked; see the message above",
            file.display()
        );
    }
    println!("{target}: {} files", files.len());
}

/// A single test, so that no other test panics at the same time.
#[test]
fn fuzz_corpus_passes() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        HAS_PANICKED.store(true, Ordering::Relaxed);
        say(panic);
    }));
    replay_corpus("framer", acp_fuzz_checks::check_framer);
    replay_corpus("messages_v1", acp_fuzz_checks::check_messages_v1);
    replay_corpus("messages_v2", acp_fuzz_checks::check_messages_v2);
    replay_corpus("connection", acp_fuzz_checks::check_connection);
    replay_corpus("remote_client", acp_fuzz_checks::check_remote_client);
    replay_corpus("remote_server", acp_fuzz_checks::check_remote_server);
}

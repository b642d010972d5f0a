//! What several tests need.

#![allow(dead_code)]

pub(crate) mod one_session;
#[cfg(unix)]
pub(crate) mod ordinary_user;
#[cfg(unix)]
pub(crate) mod scene;

use std::time::Duration;

/// Long enough for anything here, short enough to notice what hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what should happen soon.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what)
        .await
        .expect("it hangs")
}

/// Runs a test of what could block a thread for good. A runtime waits for its threads when it ends, and the
/// test would not fail, but hang.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    struct BackgroundRuntime(Option<tokio::runtime::Runtime>);
    impl Drop for BackgroundRuntime {
        fn drop(&mut self) {
            self.0.take().unwrap().shutdown_background();
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = BackgroundRuntime(Some(runtime.unwrap()));
    runtime.0.as_ref().unwrap().block_on(test)
}

/// Whether a process runs. One that has ended and that nobody has asked about does not.
pub(crate) fn runs(pid: u32) -> bool {
    let known = rustix::process::Pid::from_raw(pid.cast_signed())
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    if !known || !std::path::Path::new("/proc/self/stat").exists() {
        return known;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default().chars().next();
    !matches!(state, None | Some('Z' | 'X'))
}

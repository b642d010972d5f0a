//! Helpers used by several tests.

#![allow(dead_code)]

pub(crate) mod one_session;
#[cfg(unix)]
pub(crate) mod ordinary_user;
#[cfg(unix)]
pub(crate) mod scene;

use std::time::Duration;

/// A timeout that is long enough for every test, but short enough to notice one that hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for something that should happen soon. Panics if it does not.
pub(crate) async fn with_timeout<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, what).await.expect("it hangs")
}

/// Runs a test that could block a thread forever. Dropping an ordinary runtime waits for its threads, which would make
/// such a test hang instead of fail.
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

/// Returns `true` if a process is running. A zombie does not count.
#[cfg(unix)]
pub(crate) fn is_running(pid: u32) -> bool {
    let known = rustix::process::Pid::from_raw(pid.cast_signed())
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    if !known || !std::path::Path::new("/proc/self/stat").exists() {
        return known;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default().chars().next();
    !matches!(state, None | Some('Z' | 'X'))
}

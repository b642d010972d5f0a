//! What several tests need.

use acp::{Thread, ThreadHandle};

/// Waits until a thread shows what is looked for.
pub(crate) async fn until(thread: &ThreadHandle, found: impl Fn(&Thread) -> bool) {
    let mut seen = 0;
    while !thread.read(&found) {
        seen = tokio::time::timeout(std::time::Duration::from_secs(20), thread.changed(seen))
            .await
            .expect("the thread shows what is looked for");
    }
}

//! Staying for open pages when the connection has ended.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use tokio::sync::watch;

use crate::signals::Signals;

/// How long to wait for a page that was closed to be opened again. A page reconnects when it is reloaded, and for each
/// filter.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns `true` if a user has started the command at a terminal. An editor uses stdin to talk to the agent, and waits
/// for the process to exit, so the command must not stay.
pub(super) fn is_user_present() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Waits until all pages are closed, or the user presses Ctrl-C.
pub(super) async fn wait_for_pages(mut pages: watch::Receiver<usize>, signals: &mut Signals) {
    if *pages.borrow() == 0 {
        return;
    }
    // Nobody may be reading stderr.
    let _ = writeln!(
        std::io::stderr(),
        "acp: the connection has ended. The page still works, until you close it or press Ctrl-C."
    );
    let closed = async {
        loop {
            // The sender lives as long as the server, which is stopped after this.
            if pages.wait_for(|pages| *pages == 0).await.is_err() {
                return;
            }
            let reopened = pages.wait_for(|pages| *pages > 0);
            if tokio::time::timeout(REOPEN_TIMEOUT, reopened)
                .await
                .is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = closed => {}
        _ = signals.next() => {}
    }
}

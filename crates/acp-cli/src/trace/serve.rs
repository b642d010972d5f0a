//! `acp trace serve`: serves agents over the network, and records a trace of each connection.

use crate::args::trace::TraceServeArgs;
use crate::exit::CommandExit;
use crate::serve::{RecordedConnections, serve};

pub(super) async fn serve_and_record(args: TraceServeArgs) -> CommandExit {
    let mut serve_args = args.serve;
    let failed = |e: std::io::Error| {
        CommandExit::failed(format!(
            "cannot create the directory {}: {e}",
            args.directory.display()
        ))
    };
    let directory = match create_directory(&args.directory) {
        Ok(directory) => directory,
        Err(e) => return failed(e),
    };
    if serve_args.sandbox.sandbox.is_some() {
        // The recorder starts the agent, and so runs in the sandbox with it.
        serve_args.sandbox.writable.push(directory.clone());
    }
    let connections = RecordedConnections {
        directory,
        secrets: args.secrets,
    };
    serve(serve_args, Some(connections)).await
}

/// Creates a directory if it does not exist. Returns an absolute path, since agents may have a different working
/// directory.
fn create_directory(directory: &std::path::Path) -> std::io::Result<std::path::PathBuf> {
    std::fs::create_dir_all(directory)?;
    std::path::absolute(directory)
}

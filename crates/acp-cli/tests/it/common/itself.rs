//! Starts this test program again as an agent.
//!
//! The harness prints to stdout. So a shell moves stdout to descriptor 3 first, and the agent finds its client there.

use std::fs::{File, OpenOptions};
use std::path::Path;

/// The environment variable that contains the flags of the agent to run.
const FLAGS_VARIABLE: &str = "ACP_TEST_AGENT";

/// Returns a shell script that runs the agent in the ignored test called `test`. The agent gets `flags` and the
/// script's own arguments.
pub(crate) fn agent_script(test: &str, flags: &str) -> String {
    let this = std::env::current_exe().unwrap();
    format!(
        "exec 3>&1 >/dev/null\n{FLAGS_VARIABLE}=\"{flags} $*\" exec {} --exact {test} --ignored --nocapture\n",
        this.display()
    )
}

/// Writes an [`agent_script`] to a file and returns the command line that runs it.
pub(crate) fn write_agent_script(file: &Path, test: &str) -> String {
    std::fs::write(file, agent_script(test, "")).unwrap();
    format!("sh {}", file.display())
}

/// If this program was started as an agent, runs the agent with its stdout connected to the client, and exits.
pub(crate) fn run_if_agent(agent: impl FnOnce(&[String])) {
    let Ok(flags) = std::env::var(FLAGS_VARIABLE) else {
        return;
    };
    rustix::stdio::dup2_stdout(client_output()).unwrap();
    let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
    agent(&flags);
    // The harness has nothing to add for the client.
    std::process::exit(0);
}

/// Opens the pipe on which the client reads the agent's output.
pub(crate) fn client_output() -> File {
    OpenOptions::new().write(true).open("/dev/fd/3").unwrap()
}

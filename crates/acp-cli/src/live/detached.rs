//! `--no-wait`: a run that goes on in the background.
//!
//! `acp run --no-wait` starts itself again, as a process of its own that sends the prompt and stays connected until the
//! turn ends. So the user's rules and `--allow` decide on permission requests as in every run. The first process waits
//! until the server has the prompt.

use std::fs::File;
#[cfg(not(unix))]
use std::io;

#[cfg(not(unix))]
use crate::exit::CommandExit;

/// The background process's connection to the process that started it.
pub(crate) struct RunLauncher(File);

#[cfg(not(unix))]
impl RunLauncher {
    pub(crate) fn run_in_background() -> CommandExit {
        CommandExit::usage("--no-wait is not available on this system")
    }

    pub(crate) fn take_stdout() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn report_accepted(self, _hint: &str) -> io::Result<()> {
        drop(self.0);
        Ok(())
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::process::{Command, Stdio};

    use acp_host::process_secrets;

    use super::super::unix_server::detach_from_terminal;
    use super::RunLauncher;
    use crate::exit::CommandExit;
    use crate::this_program::this_program;

    /// The first line that the background process prints when the server has the prompt. A hint for the user follows.
    const ACCEPTED_LINE: &str = "accepted";

    impl RunLauncher {
        /// Starts this command again in the background. Returns when the prompt has been accepted, or has failed.
        pub(crate) fn run_in_background() -> CommandExit {
            match start() {
                Ok(exit) => exit,
                Err(e) => CommandExit::failed(format!("cannot start a background process: {e}")),
            }
        }

        /// Takes over stdout, to which nothing else is written from here on.
        pub(crate) fn take_stdout() -> io::Result<Self> {
            let stdout = rustix::io::dup(rustix::stdio::stdout())?;
            rustix::stdio::dup2_stdout(null()?)?;
            Ok(Self(stdout.into()))
        }

        /// Reports that the prompt has been accepted, and lets the other process exit. From here on, nothing is printed.
        pub(crate) fn report_accepted(mut self, hint: &str) -> io::Result<()> {
            detach_from_terminal();
            rustix::stdio::dup2_stderr(null()?)?;
            rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
            writeln!(self.0, "{ACCEPTED_LINE}\n{hint}")
        }
    }

    fn null() -> io::Result<File> {
        File::options().write(true).open("/dev/null")
    }

    fn start() -> io::Result<CommandExit> {
        let program = match this_program() {
            Ok(program) => program,
            Err(exit) => return Ok(exit),
        };
        let mut background = Command::new(program)
            .args(arguments(std::env::args_os().skip(1)))
            .envs(process_secrets::variables())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (Some(mut stdout), Some(mut stderr)) =
            (background.stdout.take(), background.stderr.take())
        else {
            return Err(io::Error::other("no output"));
        };
        // Until the prompt is accepted, the process reports errors as if it were this one.
        let copying = std::thread::spawn(move || io::copy(&mut stderr, &mut io::stderr().lock()));
        let mut output = String::new();
        stdout.read_to_string(&mut output)?;
        let _ = copying.join();
        let mut lines = output.lines();
        if lines.next() == Some(ACCEPTED_LINE) {
            for line in lines {
                eprintln!("{line}");
            }
            return Ok(CommandExit::SUCCESS);
        }
        // The process has said why.
        let code = background.wait()?.code();
        Ok(CommandExit {
            code: code
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(CommandExit::FAILED),
            message: None,
        })
    }

    /// Returns the arguments of this process, with one that makes it the process in the background.
    fn arguments(own: impl Iterator<Item = OsString>) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut is_inserted = false;
        for argument in own {
            let is_command = argument == "run" && !is_inserted;
            arguments.push(argument);
            if is_command {
                arguments.push("--detached".into());
                is_inserted = true;
            }
        }
        arguments
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_the_command_is_followed_by_the_new_argument() {
            let own = ["--log", "info", "run", "--no-wait", "run", "--", "run"];
            let own = own.iter().map(OsString::from);
            assert_eq!(
                arguments(own),
                [
                    "--log",
                    "info",
                    "run",
                    "--detached",
                    "--no-wait",
                    "run",
                    "--",
                    "run"
                ]
            );
        }
    }
}

//! Code that runs in the child process between fork and exec.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::keeper::KeeperMessage;
use super::own_process::close_inherited_in_children;

/// The highest signal number on any supported system.
const MAX_SIGNAL: i32 = 64;

/// Prepares the child process of `command` before it runs its program. The child starts a session and thus a process
/// group, registers with the keeper if there is one, resets all signal handlers, and closes all file descriptors except
/// the standard streams.
///
/// A new process group alone is not enough. A program that wants to ask for a password fails if it has no controlling
/// terminal, but with one, the terminal would stop it forever.
#[allow(unsafe_code)]
pub(super) fn before_exec(command: &mut Command, line: Option<KeeperMessage>) {
    let prepare = move || {
        rustix::process::setsid()?;
        if let Some(line) = &line {
            // The standard library has set this to its default by now. A keeper that has exited must not end the child.
            set_signal(libc::SIGPIPE, libc::SIG_IGN);
            line.send(rustix::process::getpid());
        }
        // A signal that the parent ignores, such as SIGHUP under `nohup`, stays ignored after exec. Commands do not
        // expect that. The signal mask is cleared by the standard library.
        for signal in 1..=MAX_SIGNAL {
            set_signal(signal, libc::SIG_DFL);
        }
        close_inherited_in_children();
        Ok(())
    };
    // SAFETY: between fork and exec, only calls that POSIX calls async-signal-safe are allowed, because another thread
    // of the parent may have held any lock, for example the allocator's. This closure makes system calls (setsid,
    // getpid, write, sigaction, close_range or fcntl) and formats a number on the stack. It allocates nothing: an error
    // of setsid becomes an `io::Error` that holds only a number.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Sets this process's action for a signal. Does nothing if the signal does not exist on this system.
#[allow(unsafe_code)]
fn set_signal(signal: i32, to: libc::sighandler_t) {
    // SAFETY: the call is async-signal-safe, and it installs no code, because this is called with the two fixed values
    // only.
    unsafe {
        libc::signal(signal, to);
    }
}

//! Keeping this process to itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;

/// The first descriptor that is none of the standard streams.
const FIRST: RawFd = 3;

/// How far is looked for open descriptors where the kernel cannot say it of all at once.
const FURTHEST: RawFd = 65_536;

/// Lets nobody but root look into this process.
pub(crate) fn hide_this_process() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It cannot fail: the kernel knows this value since there is the call.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Has what is open, beside the standard streams, closed in all that is started.
///
/// Makes system calls only, so that it can be called between fork and exec. What is closed by `exec` alone, such as
/// the pipe by which the standard library learns of its failure, stays open until then.
#[allow(unsafe_code)]
pub(crate) fn close_inherited_in_children() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: it takes three numbers, and sets a flag of descriptors. Nothing of this process is closed.
        let set = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                FIRST,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        if set == 0 {
            return;
        }
    }
    // Before Linux 5.11, and on other systems.
    for descriptor in FIRST..FURTHEST {
        // SAFETY: as above; for one that is not open it fails and does nothing. `fcntl` is async-signal-safe.
        unsafe {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Takes variables out of the environment, and out of the memory in which `/proc/PID/environ` finds them. Takes none
/// if there is more than one thread.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) fn take_variables(wanted: impl Fn(&OsStr) -> bool) -> BTreeMap<OsString, OsString> {
    use std::ffi::{CStr, c_char};

    unsafe extern "C" {
        static environ: *const *mut c_char;
    }

    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    if !matches!(threads, Ok(1)) {
        return BTreeMap::new();
    }
    let taken: BTreeMap<OsString, OsString> = std::env::vars_os()
        .filter(|(name, _)| wanted(name))
        .collect();
    for (name, value) in &taken {
        // SAFETY: this is the only thread, and it starts none here, so that nobody reads or writes the environment at
        // the same time. `environ` is the list of its entries, with a null at its end, each a string that may be
        // written: the kernel, or whoever has set it, put it into memory of this process. What is written stays within
        // the entry: its value, up to the end that was there, is as long as when it was read.
        unsafe {
            let mut entry = environ;
            while !entry.is_null() && !(*entry).is_null() {
                let text = CStr::from_ptr(*entry).to_bytes();
                let begin = name.len() + 1;
                let is_this = text.len() == begin + value.len()
                    && text.starts_with(name.as_encoded_bytes())
                    && text.get(name.len()) == Some(&b'=');
                if is_this {
                    std::ptr::write_bytes((*entry).add(begin), 0, value.len());
                }
                entry = entry.add(1);
            }
            std::env::remove_var(name);
        }
    }
    taken
}

/// Elsewhere the environment of a process is not read by a file.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take_variables(_wanted: impl Fn(&OsStr) -> bool) -> BTreeMap<OsString, OsString> {
    BTreeMap::new()
}

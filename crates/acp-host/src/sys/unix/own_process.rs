//! Protects this process from other processes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;

/// The first file descriptor that is not a standard stream.
const FIRST_DESCRIPTOR: RawFd = 3;

/// The highest file descriptor to check if the kernel cannot update all of them at once.
const LAST_DESCRIPTOR: RawFd = 65_536;

/// Prevents other processes, unless they run as root, from inspecting this one.
pub(crate) fn hide_this_process() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // This cannot fail, because the kernel has known this value for as long as the call.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Marks all open file descriptors except the standard streams to be closed in child processes.
///
/// Makes only system calls, so it can be called between fork and exec. Files that are closed by `exec`, such as the
/// pipe through which the standard library reports errors, stay open until then.
#[allow(unsafe_code)]
pub(crate) fn close_inherited_in_children() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the call takes three numbers and sets a flag of descriptors. It closes nothing in this process.
        let set = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                FIRST_DESCRIPTOR,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        if set == 0 {
            return;
        }
    }
    // For Linux before 5.11 and other systems.
    for descriptor in FIRST_DESCRIPTOR..LAST_DESCRIPTOR {
        // SAFETY: as above. For a descriptor that is not open, the call fails and does nothing. `fcntl` is
        // async-signal-safe.
        unsafe {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Removes variables from the environment and from the memory shown in `/proc/PID/environ`. Does nothing if there is
/// more than one thread.
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
        // SAFETY: this is the only thread, and it starts no other thread here, so nothing else reads or writes the
        // environment at the same time. `environ` is the list of the environment's entries, with a null at its end.
        // Each entry is a string in memory of this process that can be written, whether the kernel or another program
        // put it there. Writing stays within the entry's value, whose end is where it was when the value was read.
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

/// Does nothing, because on other systems a process's environment cannot be read from a file.
#[cfg(not(target_os = "linux"))]
pub(crate) fn take_variables(_wanted: impl Fn(&OsStr) -> bool) -> BTreeMap<OsString, OsString> {
    BTreeMap::new()
}

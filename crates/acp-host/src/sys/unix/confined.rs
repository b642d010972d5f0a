//! A thread confined by Landlock, along with all processes it starts.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    PathFdError, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope,
};

use crate::sandbox::SandboxError;

/// The minimum Landlock version, available since Linux 6.2. Older versions do not prevent files outside the sandbox
/// from being truncated.
const REQUIRED_ABI: ABI = ABI::V3;

/// The Landlock version that can deny TCP, available since Linux 6.7.
const REQUIRED_ABI_FOR_TCP: ABI = ABI::V4;

/// Devices that anyone may write to. They include terminals, since some programs run others in terminals of their own.
const ALLOWED_DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

type ConfinedJob = Box<dyn FnOnce() + Send>;

/// A confined thread for starting processes. Landlock rules apply to a thread and all processes it starts from then on.
/// They cannot be removed.
///
/// One thread starts all processes of a sandbox, so that they are in one domain and can send signals to one another.
/// The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ConfinementThread {
    work_sender: SyncSender<ConfinedJob>,
}

impl ConfinementThread {
    /// Starts a thread that can write only to `writable` and, if `tcp` is given, can open TCP connections only to those
    /// ports. Processes started by the thread have the same restrictions.
    pub(crate) fn new(writable: Vec<PathBuf>, tcp: Option<Vec<u16>>) -> Result<Self, SandboxError> {
        let failed = |source| SandboxError::System { source };
        let (work, todo) = sync_channel::<ConfinedJob>(1);
        let (told, confined) = sync_channel(1);
        let thread = std::thread::Builder::new().name("sandbox".to_owned());
        let started = thread.spawn(move || {
            let confined = confine_thread(&writable, tcp.as_deref());
            let goes_on = confined.is_ok();
            if told.send(confined).is_ok() && goes_on {
                while let Ok(work) = todo.recv() {
                    work();
                }
            }
        });
        started.map_err(failed)?;
        confined
            .recv()
            .map_err(|_| failed(thread_ended_error()))??;
        Ok(Self { work_sender: work })
    }

    /// Runs a function on the thread and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (told, done) = sync_channel(1);
        let work = move || drop(told.send(work()));
        self.work_sender
            .send(Box::new(work))
            .map_err(|_| thread_ended_error())?;
        done.recv().map_err(|_| thread_ended_error())
    }
}

fn thread_ended_error() -> io::Error {
    io::Error::other("the sandbox thread has exited")
}

/// Confines this thread as far as the kernel allows. Returns an error if that is not sufficient.
fn confine_thread(writable: &[PathBuf], tcp: Option<&[u16]>) -> Result<(), SandboxError> {
    let failed = |error: RulesetError| SandboxError::System {
        source: io::Error::other(error),
    };
    // The rules do not cover reading and executing, so both are allowed everywhere. Rights that the kernel does not
    // know yet are omitted, and `check_restriction` checks what that means.
    let everything = AccessFs::from_write(ABI::V5);
    let mut rules = Ruleset::default()
        .handle_access(everything)
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(|rules| match tcp {
            Some(_) => rules.handle_access(AccessNet::from_all(REQUIRED_ABI_FOR_TCP)),
            None => Ok(rules),
        })
        .and_then(Ruleset::create)
        .map_err(failed)?;
    for port in tcp.unwrap_or_default() {
        rules = rules
            .add_rule(NetPort::new(*port, AccessNet::ConnectTcp))
            .map_err(failed)?;
    }
    for path in writable {
        let rule = path_rule(path, everything).map_err(|source| SandboxError::Path {
            path: path.clone(),
            source,
        })?;
        rules = rules.add_rule(rule).map_err(failed)?;
    }
    for device in ALLOWED_DEVICES {
        // Containers do not have all of these devices.
        if let Ok(rule) = path_rule(Path::new(device), AccessFs::from_file(ABI::V5) & everything) {
            rules = rules.add_rule(rule).map_err(failed)?;
        }
    }
    check_restriction(&rules.restrict_self().map_err(failed)?, tcp.is_some())
}

/// Returns a rule that allows `access` to a path, limited to the rights that exist for its file type.
fn path_rule(path: &Path, access: BitFlags<AccessFs>) -> io::Result<PathBeneath<PathFd>> {
    let opened = PathFd::new(path).map_err(|error| match error {
        PathFdError::OpenCall { source, .. } => source,
        other => io::Error::other(other),
    })?;
    let is_directory = rustix::fs::fstat(opened.as_fd())
        .map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir())?;
    let access = match is_directory {
        true => access,
        false => access & AccessFs::from_file(ABI::V5),
    };
    Ok(PathBeneath::new(opened, access))
}

/// Checks that a confined thread's restrictions are sufficient.
fn check_restriction(status: &RestrictionStatus, without_tcp: bool) -> Result<(), SandboxError> {
    check_support(status.landlock)?;
    if without_tcp {
        supports_tcp(status.landlock)?;
    }
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(not_supported_error(
            "the kernel did not enforce the sandbox rules",
        )),
    }
}

/// Checks that the kernel supports everything that a sandbox needs.
fn check_support(status: LandlockStatus) -> Result<(), SandboxError> {
    match status {
        LandlockStatus::Available { effective_abi, .. } if effective_abi >= REQUIRED_ABI => Ok(()),
        LandlockStatus::Available { effective_abi, .. } => Err(not_supported_error(format!(
            "the kernel supports Landlock version {effective_abi}, but version {REQUIRED_ABI} (Linux 6.2) is required"
        ))),
        LandlockStatus::NotEnabled => Err(not_supported_error(
            "Landlock is not enabled; add it to the kernel's `lsm=` boot parameter",
        )),
        LandlockStatus::NotImplemented => Err(not_supported_error(
            "the kernel does not support Landlock, or this container blocks it",
        )),
    }
}

/// Checks that the kernel can deny TCP.
fn supports_tcp(status: LandlockStatus) -> Result<(), SandboxError> {
    match status {
        LandlockStatus::Available { effective_abi, .. } if effective_abi < REQUIRED_ABI_FOR_TCP => {
            Err(not_supported_error(format!(
                "the kernel supports Landlock version {effective_abi}, but blocking TCP requires version {REQUIRED_ABI_FOR_TCP} (Linux 6.7)"
            )))
        }
        _ => Ok(()),
    }
}

fn not_supported_error(why: impl Into<String>) -> SandboxError {
    SandboxError::NotSupported { why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_kernel_error_explains_what_to_do() {
        let with = |abi: i32| LandlockStatus::Available {
            effective_abi: ABI::from(abi),
            kernel_abi: None,
        };
        for (status, words) in [
            (LandlockStatus::NotImplemented, "does not support Landlock"),
            (LandlockStatus::NotEnabled, "`lsm=`"),
            (with(1), "Landlock version 1, "),
            (with(2), "version 2, but version 3 (Linux 6.2) is required"),
        ] {
            let error = check_support(status).unwrap_err();
            assert!(matches!(error, SandboxError::NotSupported { .. }));
            assert!(error.to_string().contains(words), "{error}");
        }
        for abi in 3..=9 {
            assert!(check_support(with(abi)).is_ok());
        }
        let error = supports_tcp(with(3)).unwrap_err().to_string();
        assert!(error.contains("blocking TCP requires version 4"), "{error}");
        for abi in 4..=9 {
            assert!(supports_tcp(with(abi)).is_ok());
        }
    }
}

//! Contains all code that differs between operating systems. Each system's module has the same items.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod unix_files;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(unix)]
pub(crate) use unix_files::*;

#[cfg(not(target_os = "linux"))]
mod unconfined;
#[cfg(not(target_os = "linux"))]
pub(crate) use unconfined::ConfinementThread;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::*;

//! Functions for opening and replacing files on Unix.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, PermissionsExt};

/// Sets options so that opening a file neither blocks, for example on a FIFO, nor acquires a controlling terminal.
pub(crate) fn set_nonblocking(options: &mut OpenOptions) {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed());
}

/// Sets options so that only the owner can access a new file, right from its creation.
pub(crate) fn set_private(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// Creates a file without a name in a directory, if the system supports that. If this process is killed, the file
/// disappears. For `private`, see [`set_private`].
#[cfg(target_os = "linux")]
pub(crate) fn create_unnamed(dir: &Dir, private: bool) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let mode = if private { 0o600 } else { 0o666 };
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, ".", flags, Mode::from_raw_mode(mode)).ok()?;
    Some(File::from_std(std::fs::File::from(file)))
}

/// Links a file from [`create_unnamed`] into the directory under a name.
#[cfg(target_os = "linux")]
pub(crate) fn link_unnamed(dir: &Dir, file: &File, name: &OsStr) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // This works without the privilege that linking a descriptor itself requires.
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let follow = rustix::fs::AtFlags::SYMLINK_FOLLOW;
    Ok(rustix::fs::linkat(
        rustix::fs::CWD,
        descriptor,
        dir,
        name,
        follow,
    )?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn create_unnamed(_dir: &Dir, _private: bool) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn link_unnamed(_dir: &Dir, _file: &File, _name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Copies the attributes of `old` to `file`: its mode and, as far as permitted, its owner, group, access control list
/// and other extended attributes. Set-id bits and capabilities are dropped, as always when a file is written. If the
/// group cannot be kept, the new group gets no more rights than everyone else.
pub(crate) fn copy_attributes(file: &File, old: &File, metadata: &Metadata) -> io::Result<()> {
    let (owner, group) = (metadata.uid(), metadata.gid());
    let new = file.metadata()?;
    let mut group_stays = true;
    if (new.uid(), new.gid()) != (owner, group) {
        let owner = rustix::fs::Uid::from_raw(owner);
        let group = rustix::fs::Gid::from_raw(group);
        if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
            group_stays =
                new.gid() == metadata.gid() || rustix::fs::fchown(file, None, Some(group)).is_ok();
        }
    }
    copy_extended_attributes(file, old)?;
    let mut permissions = metadata.permissions();
    permissions.set_mode(replacement_mode(metadata.mode(), group_stays));
    file.set_permissions(permissions)
}

/// Returns the mode for a file that replaces one with the mode `old`.
fn replacement_mode(old: u32, group_stays: bool) -> u32 {
    let mode = old & 0o777;
    if group_stays {
        mode
    } else {
        mode & 0o707 | (mode & 0o7) << 3
    }
}

#[cfg(target_os = "linux")]
fn copy_extended_attributes(file: &File, old: &File) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    const ACL_ATTRIBUTE: &[u8] = b"system.posix_acl_access";
    /// The kernel's limit, in bytes, on the total size of a file's attribute names, and also on the size of each
    /// attribute's value.
    const MAX_ATTRIBUTE_BYTES: usize = 64 * 1024;

    let mut names = vec![0; MAX_ATTRIBUTE_BYTES];
    let Ok(length) = flistxattr(old, &mut *names) else {
        // The file system does not support extended attributes.
        return Ok(());
    };
    names.truncate(length);
    let names = || {
        names
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
    };
    // The directory's default access control list could give others access.
    if !names().any(|name| name == ACL_ATTRIBUTE) {
        match fremovexattr(file, ACL_ATTRIBUTE) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
    for name in names().filter(|name| *name != b"security.capability") {
        let Ok(length) = fgetxattr(old, name, &mut *value) else {
            continue;
        };
        let value = value.get(..length).unwrap_or_default();
        match fsetxattr(file, name, value, XattrFlags::empty()) {
            // Without the access control list, the mode would have another meaning.
            Err(e) if name == ACL_ATTRIBUTE => return Err(e.into()),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn copy_extended_attributes(_file: &File, _old: &File) -> io::Result<()> {
    Ok(())
}

/// Syncs a directory if possible, so that changes to its entries survive a system crash.
pub(crate) fn sync_dir(dir: &Dir) {
    if let Ok(dir) = dir.open(".") {
        let _ = dir.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacement_mode_does_not_give_extra_rights_to_another_group() {
        for (old, stays, changes) in [
            (0o100664, 0o664, 0o644),
            (0o660, 0o660, 0o600),
            (0o604, 0o604, 0o644),
            (0o6755, 0o755, 0o755),
        ] {
            assert_eq!(
                (replacement_mode(old, true), replacement_mode(old, false)),
                (stays, changes),
                "{old:o}"
            );
        }
    }
}

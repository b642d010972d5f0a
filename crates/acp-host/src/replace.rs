//! Replaces a file's contents, either completely or not at all.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::roots::{PathError, describe_file_type, open_file};
use crate::sys;
use crate::text_form::TextForm;

/// Writes `text` to the file `name` in `dir`, preserving the line endings and byte order mark of the current text.
/// Creates the file if it does not exist.
///
/// The text is written to a new file, which replaces the old one once it is complete and on disk. Readers see either
/// the old or the new contents, even after a crash. A hard link to the file keeps the old contents.
///
/// Where the system supports it (Linux, on most file systems), the new file has no name while it is being written. It
/// then gets a temporary name for a short time, because replacing a file requires one. On other systems, the new file
/// is a hidden file in the same directory, which remains if this process is killed. Such files are never removed,
/// because they might belong to a process that is still running.
pub(crate) fn replace_file(dir: &Dir, name: &OsStr, text: &str) -> Result<(), PathError> {
    let old = ReplacedFile::open(dir, name)?;
    let form = match &old {
        // The form of a file that can be written but not read is unknown.
        Some(_) => open_file(dir, name)
            .ok()
            .and_then(|file| TextForm::read(file).ok())
            .unwrap_or_default(),
        None => TextForm::default(),
    };
    let text = form.apply(text);
    // A file that replaces content which others may not be allowed to read starts as private.
    let private = old.is_some();
    let fill = |mut file: &File| -> io::Result<()> {
        if let Some(old) = &old {
            sys::copy_attributes(file, &old.file, &old.metadata)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    let mut temporary = None;
    if let Some(file) = sys::create_unnamed(dir, private) {
        fill(&file)?;
        // Naming it may be impossible, for example if `/proc` is not mounted.
        temporary =
            TemporaryFile::create_with_unused_name(dir, |name| sys::link_unnamed(dir, &file, name))
                .ok()
                .map(|((), temporary)| temporary);
    }
    let temporary = match temporary {
        Some(temporary) => temporary,
        None => {
            let (file, temporary) = TemporaryFile::create(dir, private)?;
            fill(&file)?;
            temporary
        }
    };
    // Both files are closed by now: Windows neither replaces nor renames open files.
    drop(old);
    temporary.rename(name)?;
    sys::sync_dir(dir);
    Ok(())
}

/// The old file that is being replaced.
struct ReplacedFile {
    file: File,
    metadata: Metadata,
}

impl ReplacedFile {
    fn open(dir: &Dir, name: &OsStr) -> Result<Option<Self>, PathError> {
        let metadata = match dir.symlink_metadata(name) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        if let Some(what) = describe_file_type(&metadata) {
            return Err(PathError::NotAFile(what));
        }
        // Permissions of the directory are enough to replace a file, but a file that is not writable is meant to stay.
        // A running program is not writable either, but replacing it is harmless.
        let mut options = OpenOptions::new();
        options.write(true);
        sys::set_nonblocking(&mut options);
        let file = match dir.open_with(name, &options) {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy => open_file(dir, name)?,
            other => other?,
        };
        Ok(Some(Self { file, metadata }))
    }
}

/// A temporary file. Removed on drop unless it has been renamed.
struct TemporaryFile<'a> {
    dir: &'a Dir,
    name: OsString,
    is_renamed: bool,
}

impl<'a> TemporaryFile<'a> {
    /// Creates a temporary file. If `private` is set, only its owner can read it, because others may not be allowed to
    /// read the file that it replaces.
    fn create(dir: &'a Dir, private: bool) -> io::Result<(File, Self)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if private {
            sys::set_private(&mut options);
        }
        Self::create_with_unused_name(dir, |name| dir.open_with(name, &options))
    }

    /// Calls `make` with new names until a call succeeds.
    fn create_with_unused_name<T>(
        dir: &'a Dir,
        make: impl Fn(&OsStr) -> io::Result<T>,
    ) -> io::Result<(T, Self)> {
        let mut tries = 0;
        loop {
            // Not for secrecy, but so that two writers do not choose the same name.
            let random = RandomState::new().hash_one(std::process::id());
            let name = OsString::from(format!(".acp-{random:016x}.tmp"));
            match make(&name) {
                Ok(made) => {
                    let renamed = false;
                    return Ok((
                        made,
                        Self {
                            dir,
                            name,
                            is_renamed: renamed,
                        },
                    ));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < 16 => tries += 1,
                Err(e) => return Err(e),
            }
        }
    }

    fn rename(mut self, name: &OsStr) -> io::Result<()> {
        self.dir.rename(&self.name, self.dir, name)?;
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn unfinished_file_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "old").unwrap();
        let dir = Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority()).unwrap();
        let (mut file, temporary) = TemporaryFile::create(&dir, true).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(dir.entries().unwrap().count(), 2);
        drop(temporary);
        assert_eq!(dir.entries().unwrap().count(), 1);
        // The last step fails, because a file cannot replace a directory.
        std::fs::create_dir(directory.path().join("d")).unwrap();
        let (_file, temporary) = TemporaryFile::create(&dir, true).unwrap();
        temporary.rename(OsStr::new("d")).unwrap_err();
        assert_eq!(dir.entries().unwrap().count(), 2);
        assert_eq!(
            std::fs::read_to_string(directory.path().join("a")).unwrap(),
            "old"
        );
    }

    /// Tests that an unnamed file can be linked into its directory, and leaves nothing behind otherwise.
    #[test]
    #[cfg(target_os = "linux")]
    fn unnamed_file_is_linked_or_removed() {
        let directory = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority()).unwrap();
        let Some(mut file) = sys::create_unnamed(&dir, false) else {
            println!("skipped: this file system does not support unnamed files");
            return;
        };
        file.write_all(b"new").unwrap();
        assert_eq!(dir.entries().unwrap().count(), 0);
        let named = TemporaryFile::create_with_unused_name(&dir, |name| {
            sys::link_unnamed(&dir, &file, name)
        });
        let ((), temporary) = named.unwrap();
        assert_eq!(dir.entries().unwrap().count(), 1);
        temporary.rename(OsStr::new("a")).unwrap();
        let text = std::fs::read_to_string(directory.path().join("a"));
        assert_eq!(text.unwrap(), "new");
        drop(sys::create_unnamed(&dir, true));
        assert_eq!(dir.entries().unwrap().count(), 1);
    }
}

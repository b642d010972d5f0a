//! Replacing a file's content as a whole or not at all.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use cap_std::fs::{Dir, OpenOptions};

use crate::roots::{Refusal, other_than_file};
use crate::sys;

/// Gives the file `name` in `dir` this content; creates it if it is not there.
///
/// The content is written to a new file beside it, which takes its place once it is complete and on
/// disk. Whoever looks sees the old content or the new, also after a crash. Another name of the same
/// file (a hard link) keeps the old content.
pub(crate) fn replace(dir: &Dir, name: &OsStr, content: &[u8]) -> Result<(), Refusal> {
    let old = match dir.symlink_metadata(name) {
        Ok(old) => Some(old),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e.into()),
    };
    if let Some(old) = &old {
        if let Some(what) = other_than_file(old) {
            return Err(Refusal::NotAFile(what));
        }
        // A directory's rights are enough to replace a file, but a file that cannot be written is
        // meant to stay. A program that runs cannot be written either; replacing it is harmless.
        let mut options = OpenOptions::new();
        options.write(true);
        sys::never_wait(&mut options);
        match dir.open_with(name, &options) {
            Err(e) if e.kind() != io::ErrorKind::ExecutableFileBusy => return Err(e.into()),
            _ => {}
        }
    }
    let (mut file, temporary) = Temporary::create(dir, old.is_some())?;
    if let Some(old) = &old {
        sys::keep_owner_and_mode(&file, old)?;
    }
    file.write_all(content)?;
    file.sync_all()?;
    // Windows renames no open files.
    drop(file);
    temporary.rename(name)?;
    sys::sync_dir(dir);
    Ok(())
}

/// A file that is removed again unless it is renamed.
struct Temporary<'a> {
    dir: &'a Dir,
    name: OsString,
    renamed: bool,
}

impl<'a> Temporary<'a> {
    /// `private` is for content that replaces some which others may have no right to read.
    fn create(dir: &'a Dir, private: bool) -> io::Result<(cap_std::fs::File, Self)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if private {
            sys::private(&mut options);
        }
        let mut tries = 0;
        loop {
            // Not for secrecy: only so that no two writers meet.
            let random = RandomState::new().hash_one(std::process::id());
            let name = OsString::from(format!(".acp-{random:016x}.tmp"));
            match dir.open_with(&name, &options) {
                Ok(file) => {
                    return Ok((
                        file,
                        Self {
                            dir,
                            name,
                            renamed: false,
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
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_not_finished_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "old").unwrap();
        let dir = Dir::open_ambient_dir(directory.path(), cap_std::ambient_authority()).unwrap();
        let (mut file, temporary) = Temporary::create(&dir, true).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(dir.entries().unwrap().count(), 2);
        drop(temporary);
        assert_eq!(dir.entries().unwrap().count(), 1);
        // The last step fails: a directory cannot be replaced by a file.
        std::fs::create_dir(directory.path().join("d")).unwrap();
        let (_file, temporary) = Temporary::create(&dir, true).unwrap();
        temporary.rename(OsStr::new("d")).unwrap_err();
        assert_eq!(dir.entries().unwrap().count(), 2);
        assert_eq!(
            std::fs::read_to_string(directory.path().join("a")).unwrap(),
            "old"
        );
    }
}

//! Diffs: tool calls, "Diffs".

record! {
    /// Changes of files.
    pub struct Diff {
        /// Which files changed, and how: what counts.
        required_list changes: DiffChange,
        /// The changes as text, for users; may leave some out.
        optional patch: DiffPatch,
    }
}

tagged! {
    /// A change of a file.
    pub enum DiffChange by "operation" {
        /// A new file.
        Add(DiffPathChange) = "add",
        /// A file that is gone.
        Delete(DiffPathChange) = "delete",
        /// Another content.
        Modify(DiffPathChange) = "modify",
        /// Another place, and maybe another content.
        Move(DiffPathPairChange) = "move",
        /// A copy.
        Copy(DiffPathPairChange) = "copy",
    }
}

record! {
    /// A change of a file that stays where it is.
    pub struct DiffPathChange {
        /// The file, an absolute path.
        required path: String,
        /// The type of the file.
        optional file_type: DiffFileType,
        /// Its media type.
        optional mime_type: String,
    }
}

record! {
    /// A change from one file to another.
    pub struct DiffPathPairChange {
        /// The file before, an absolute path.
        required old_path: String,
        /// The file after, an absolute path.
        required path: String,
        /// The type of the file.
        optional file_type: DiffFileType,
        /// Its media type.
        optional mime_type: String,
    }
}

open_enum! {
    /// The type of the file.
    pub enum DiffFileType {
        /// Text.
        Text = "text",
        /// Bytes.
        Binary = "binary",
        /// A directory.
        Directory = "directory",
        /// A symbolic link.
        Symlink = "symlink",
    }
}

record! {
    /// Changes as text.
    pub struct DiffPatch {
        /// What sort of text.
        required format: DiffPatchFormat,
        /// The text.
        required text: String,
    }
}

open_enum! {
    /// What sort of text a patch is.
    pub enum DiffPatchFormat {
        /// `diff --git` sections with absolute paths, without the surroundings of a commit.
        GitPatch = "git_patch",
    }
}

//! Changes to files. See "Diffs" on the specification's page "Tool Calls".

record! {
    /// Changes to one or more files.
    pub struct Diff {
        /// One entry for each changed file. This list is authoritative.
        required_list changes: DiffChange,
        /// A textual patch to show to the user. It may be incomplete.
        optional patch: DiffPatch,
    }
}

tagged! {
    /// A change to one file.
    pub enum DiffChange by "operation" {
        /// The file was added.
        Add(DiffPathChange) = "add",
        /// The file was deleted.
        Delete(DiffPathChange) = "delete",
        /// The content of the file was changed.
        Modify(DiffPathChange) = "modify",
        /// The file was moved, and its content may also have changed.
        Move(DiffPathPairChange) = "move",
        /// The file was copied.
        Copy(DiffPathPairChange) = "copy",
    }
}

record! {
    /// A change to a file whose path stays the same.
    pub struct DiffPathChange {
        /// The absolute path of the file.
        required path: String,
        /// The type of the file: text, binary, directory or link.
        optional file_type: DiffFileType,
        /// The media type, such as `text/plain`.
        optional mime_type: String,
    }
}

record! {
    /// A change that moves or copies a file to another path.
    pub struct DiffPathPairChange {
        /// The absolute path of the file before the change.
        required old_path: String,
        /// The absolute path of the file after the change.
        required path: String,
        /// The type of the file: text, binary, directory or link.
        optional file_type: DiffFileType,
        /// The media type, such as `text/plain`.
        optional mime_type: String,
    }
}

open_enum! {
    /// The type of a changed file: text, binary, directory or link.
    pub enum DiffFileType {
        /// A text file.
        Text = "text",
        /// A binary file.
        Binary = "binary",
        /// A directory.
        Directory = "directory",
        /// A symbolic link.
        Symlink = "symlink",
    }
}

record! {
    /// A textual patch to show to the user.
    pub struct DiffPatch {
        /// The format of the patch.
        required format: DiffPatchFormat,
        /// The patch, in the given `format`.
        required text: String,
    }
}

open_enum! {
    /// The format of a patch.
    pub enum DiffPatchFormat {
        /// `diff --git` sections with absolute paths and no commit message.
        GitPatch = "git_patch",
    }
}

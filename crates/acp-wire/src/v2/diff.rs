//! Diffs: the specification's page "Tool Calls", "Diffs".

record! {
    /// Changes of files.
    pub struct Diff {
        /// The changed files. These are authoritative.
        required_list changes: DiffChange,
        /// The changes as text to show to the user. Some may be missing.
        optional patch: DiffPatch,
    }
}

tagged! {
    /// A change of a file.
    pub enum DiffChange by "operation" {
        /// A new file.
        Add(DiffPathChange) = "add",
        /// A deleted file.
        Delete(DiffPathChange) = "delete",
        /// A file with new content.
        Modify(DiffPathChange) = "modify",
        /// A moved file, possibly with new content.
        Move(DiffPathPairChange) = "move",
        /// A copied file.
        Copy(DiffPathPairChange) = "copy",
    }
}

record! {
    /// A change of a file that keeps its path.
    pub struct DiffPathChange {
        /// The file, as an absolute path.
        required path: String,
        /// The type of the file.
        optional file_type: DiffFileType,
        /// The media type.
        optional mime_type: String,
    }
}

record! {
    /// A change from one path to another.
    pub struct DiffPathPairChange {
        /// The old path of the file, as an absolute path.
        required old_path: String,
        /// The new path of the file, as an absolute path.
        required path: String,
        /// The type of the file.
        optional file_type: DiffFileType,
        /// The media type.
        optional mime_type: String,
    }
}

open_enum! {
    /// The type of the file.
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
    /// Changes as text.
    pub struct DiffPatch {
        /// The format of the text.
        required format: DiffPatchFormat,
        /// The text.
        required text: String,
    }
}

open_enum! {
    /// The format of a patch.
    pub enum DiffPatchFormat {
        /// `diff --git` sections with absolute paths, without a commit around them.
        GitPatch = "git_patch",
    }
}

//! The user's repository: the state of its files when the comparison begins, and what has changed since in a copy or in
//! the user's own files.
//!
//! Git runs with the user's configuration, but with an index and an object store in the temporary directory. So nothing
//! in the user's `.git` is written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::changes::{ComparedChange, parse_changes};
use super::git::{GitCall, io_exit, split_at_nul};
use super::tracked::{IndexFlags, RealDirectories, join_with_nul, parse_stages};
use crate::exit::CommandExit;

/// The options with which git compares two trees. None of them depends on the user's configuration.
const DIFF_OPTIONS: [&str; 7] = [
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
];

/// The user's repository, and the recorded state of its files.
#[derive(Debug)]
pub(super) struct CompareRepository {
    /// The root of the user's files.
    pub(super) root: PathBuf,
    /// The path of the working directory in `root`.
    pub(super) prefix: PathBuf,
    git_dir: PathBuf,
    /// The object store in the temporary directory. It reads the user's.
    pub(super) objects: PathBuf,
    /// The index of the recorded state.
    pub(super) index: PathBuf,
    /// The recorded state.
    base: String,
    /// The tree of the user's index, if it has one: not during a merge with conflicts.
    pub(super) staged: Option<String>,
}

impl CompareRepository {
    /// Records the state of the user's files, in `directory`.
    ///
    /// # Errors
    /// `cwd` is not in a git repository with files, or git fails.
    pub(super) async fn record(cwd: &Path, directory: &Path) -> Result<Self, CommandExit> {
        let (root, git_dir, prefix) = find_repository(cwd).await?;
        let path_of = |name: &'static str| {
            let args = ["rev-parse", "--path-format=absolute", "--git-path", name];
            let call = GitCall::new(&root, &args);
            call.variable("GIT_DIR", &git_dir).path()
        };
        let (users_objects, users_index) = (path_of("objects").await?, path_of("index").await?);
        let objects = directory.join("objects");
        let info = objects.join("info");
        std::fs::create_dir_all(&info).map_err(|e| io_exit("create", &info, &e))?;
        write_alternates(&info, &users_objects)?;
        let mut repository = Self {
            root,
            prefix,
            git_dir,
            objects,
            index: directory.join("base.index"),
            base: String::new(),
            staged: None,
        };
        let (root, index) = (repository.root.clone(), repository.index.clone());
        match std::fs::copy(&users_index, &index) {
            // A new repository has no index.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let call = repository.call(&root, &index, &["read-tree", "--empty"]);
                call.output().await?;
            }
            copied => drop(copied.map_err(|e| io_exit("read", &users_index, &e))?),
        }
        let staged = repository.call(&root, &index, &["write-tree"]);
        repository.staged = staged.text().await.ok();
        repository.base = repository.record_tree(&root, &index).await?;
        Ok(repository)
    }

    /// Creates a call of git about the files in `root`, with this index. New objects go to the temporary directory.
    pub(super) fn call(&self, root: &Path, index: &Path, args: &[&str]) -> GitCall {
        GitCall::new(root, args)
            .variable("GIT_DIR", &self.git_dir)
            .variable("GIT_WORK_TREE", root)
            .variable("GIT_INDEX_FILE", index)
            .variable("GIT_OBJECT_DIRECTORY", &self.objects)
    }

    /// Records all files in `root` that are not ignored, and returns their tree. `index` is what was there before, and is
    /// updated. Files of submodules and nested repositories are left out.
    ///
    /// `git add` would do the same, but it also asks nested repositories for their status, and so runs filters that an
    /// agent may have configured there.
    pub(super) async fn record_tree(
        &self,
        root: &Path,
        index: &Path,
    ) -> Result<String, CommandExit> {
        let flags = self.call(root, index, &["ls-files", "-z", "-v", "--cached"]);
        let flags = flags.output().await?;
        let flags = IndexFlags::parse(&flags);
        if !flags.unchanged.is_empty() {
            let args = ["update-index", "--no-assume-unchanged", "-z", "--stdin"];
            let call = self.call(root, index, &args);
            let call = call.input(join_with_nul(&flags.unchanged));
            call.output().await?;
        }
        let tracked = self.call(root, index, &["ls-files", "-z", "--stage"]);
        let tracked = tracked.output().await?;
        let args = ["ls-files", "-z", "--others", "--exclude-standard"];
        let others = self.call(root, index, &args).output().await?;
        let mut present = BTreeSet::new();
        let mut absent = BTreeSet::new();
        let mut directories = RealDirectories::new(root);
        for path in parse_stages(&tracked) {
            if directories.has_file(path) {
                present.insert(path);
            } else if !flags.sparse.contains(path) {
                absent.insert(path);
            }
        }
        // A directory is a repository of its own.
        present.extend(split_at_nul(&others).filter(|path| !path.ends_with(b"/")));
        if !absent.is_empty() {
            let args = ["update-index", "--force-remove", "-z", "--stdin"];
            let call = self.call(root, index, &args);
            call.input(join_with_nul(&absent)).output().await?;
        }
        let args = ["update-index", "--add", "--replace", "-z", "--stdin"];
        let call = self.call(root, index, &args);
        call.input(join_with_nul(&present)).output().await?;
        self.call(root, index, &["write-tree"]).text().await
    }

    /// Creates a call of git that compares a tree with the recorded state.
    fn diff_call(&self, options: &[&str], tree: &str) -> GitCall {
        let args = [&DIFF_OPTIONS[..], options, &[&self.base, tree]].concat();
        self.call(&self.root, &self.index, &args)
    }

    /// Returns the changes from the recorded state to a tree.
    pub(super) async fn changes(&self, tree: &str) -> Result<Vec<ComparedChange>, CommandExit> {
        let raw = self.diff_call(&["-z", "--raw"], tree).output().await?;
        let counts = self.diff_call(&["-z", "--numstat"], tree).output().await?;
        Ok(parse_changes(&raw, &counts))
    }

    /// Writes the changes to a file that `git apply` can read.
    pub(super) async fn write_patch(&self, tree: &str, file: &Path) -> Result<(), CommandExit> {
        let options = [
            "-p",
            "-U3",
            "--binary",
            "--full-index",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        self.diff_call(&options, tree).write_to(file).await
    }

    /// Writes the changes to a file, as people read them.
    pub(super) async fn write_diff(&self, tree: &str, file: &Path) -> Result<(), CommandExit> {
        let options = ["-p", "-U3", "--src-prefix=a/", "--dst-prefix=b/"];
        self.diff_call(&options, tree).write_to(file).await
    }
}

/// Returns the root of the repository's files, its `.git`, and the path of `cwd` in it.
async fn find_repository(cwd: &Path) -> Result<(PathBuf, PathBuf, PathBuf), CommandExit> {
    let ask = |what: &'static str| GitCall::new(cwd, &["rev-parse", what]);
    let root = match ask("--show-toplevel").path().await {
        Ok(root) => root,
        Err(exit) => {
            let message = exit.message.unwrap_or_default();
            let cwd = cwd.display();
            let message = if message.contains("not a git repository") {
                format!("not a git repository: {cwd}; each agent works in a copy of a repository")
            } else if message.contains("must be run in a work tree") {
                format!(
                    "a repository without files: {cwd}; each agent works in a copy of the files"
                )
            } else {
                message
            };
            return Err(CommandExit::usage(message));
        }
    };
    let git_dir = ask("--absolute-git-dir").path().await?;
    let prefix = ask("--show-prefix").path().await?;
    Ok((root, git_dir, prefix))
}

/// Makes an object store read another one.
pub(super) fn write_alternates(info: &Path, objects: &Path) -> Result<(), CommandExit> {
    let file = info.join("alternates");
    let mut line = objects.as_os_str().as_encoded_bytes().to_vec();
    if line.contains(&b'\n') {
        let objects = objects.display();
        return Err(CommandExit::usage(format!(
            "the path of the repository contains a line break: {objects}"
        )));
    }
    line.push(b'\n');
    std::fs::write(&file, line).map_err(|e| io_exit("write", &file, &e))
}

//! The copy of the project for an agent: the user's files in a repository of its own.

use std::path::{Path, PathBuf};

use super::git::{GitCall, io_exit};
use super::repository::{CompareRepository, write_alternates};
use crate::exit::CommandExit;

/// The branches and tags that an agent sees.
const REFERENCES: [&str; 3] = ["refs/heads", "refs/tags", "refs/remotes"];

/// The settings of the user's repository that also apply to the copies. No setting that names a program or a remote
/// repository is among them.
const COPIED_SETTINGS: [&str; 9] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.symlinks",
    "user.email",
    "user.name",
];

/// A project's rules, in its directories.
const RULES_FILE: &str = ".acp/permissions.toml";

/// What the `.git` of each copy contains.
#[derive(Debug)]
pub(super) struct WorkspaceTemplate {
    git_dir: PathBuf,
}

/// The copy of the project that an agent works in.
#[derive(Debug)]
pub(super) struct AgentWorkspace {
    /// The root of the copy.
    pub(super) root: PathBuf,
    /// The agent's working directory in it.
    pub(super) cwd: PathBuf,
    /// The index of the copied files. The agent has another one.
    index: PathBuf,
}

impl WorkspaceTemplate {
    /// Creates the template in `directory`.
    pub(super) async fn create(
        repository: &CompareRepository,
        directory: &Path,
    ) -> Result<Self, CommandExit> {
        let ask = |args: &[&str]| repository.call(&repository.root, &repository.index, args);
        let format = ask(&["rev-parse", "--show-object-format"]).text().await?;
        let place = directory.join("template");
        // Empty, so no hooks of the user's template.
        let args = ["init", "--quiet", "--template="];
        let call = GitCall::new(directory, &args).arg(&place);
        let call = call.variable("GIT_DEFAULT_HASH", &format);
        let call = call.variable("GIT_DEFAULT_REF_FORMAT", "files");
        call.output().await?;
        let git_dir = place.join(".git");
        let write = |name: &str, text: &[u8]| {
            let file = git_dir.join(name);
            std::fs::write(&file, text).map_err(|e| io_exit("write", &file, &e))
        };
        let head = match ask(&["symbolic-ref", "--quiet", "HEAD"]).text().await {
            Ok(branch) => format!("ref: {branch}\n"),
            Err(_) => format!("{}\n", ask(&["rev-parse", "HEAD"]).text().await?),
        };
        write("HEAD", head.as_bytes())?;
        let list = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let references = ask(&[&list[..], &REFERENCES].concat()).output().await?;
        let references = [b"# pack-refs with: sorted \n", &*references].concat();
        write("packed-refs", &references)?;
        let info = git_dir.join("objects/info");
        for place in [&info, &git_dir.join("info")] {
            std::fs::create_dir_all(place).map_err(|e| io_exit("create", place, &e))?;
        }
        write_alternates(&info, &repository.objects)?;
        for name in ["info/exclude", "info/attributes", "shallow"] {
            let args = ["rev-parse", "--path-format=absolute", "--git-path", name];
            let file = ask(&args).path().await?;
            match std::fs::read(&file) {
                Ok(text) => write(name, &text)?,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(io_exit("read", &file, &e)),
            }
        }
        for name in COPIED_SETTINGS {
            let Ok(value) = ask(&["config", "--get", name]).text().await else {
                // It is not set.
                continue;
            };
            let call = GitCall::new(directory, &["config", "--file"]);
            let call = call.arg(git_dir.join("config")).arg(name).arg(value);
            call.output().await?;
        }
        Ok(Self { git_dir })
    }
}

impl AgentWorkspace {
    /// Copies the project to a new directory in `directory`.
    pub(super) async fn create(
        repository: &CompareRepository,
        template: &WorkspaceTemplate,
        directory: &Path,
    ) -> Result<Self, CommandExit> {
        let name = repository.root.file_name();
        let root = directory.join(name.unwrap_or("project".as_ref()));
        let index = directory.join("index");
        std::fs::create_dir_all(&root).map_err(|e| io_exit("create", &root, &e))?;
        let copy = |from: &Path, to: &Path| match std::fs::copy(from, to) {
            Ok(_) => Ok(()),
            Err(e) => Err(io_exit("copy", from, &e)),
        };
        copy(&repository.index, &index)?;
        let checkout = ["checkout-index", "--all", "--index", "--force", "--quiet"];
        repository.call(&root, &index, &checkout).output().await?;
        let git_dir = root.join(".git");
        copy_directory(&template.git_dir, &git_dir).map_err(|e| io_exit("create", &git_dir, &e))?;
        // The agent sees what is staged and what is not, as the user does.
        let agents_index = git_dir.join("index");
        copy(&index, &agents_index)?;
        if let Some(staged) = &repository.staged {
            let call = repository.call(&root, &agents_index, &["read-tree", "-m", staged]);
            call.output().await?;
        }
        let cwd = root.join(&repository.prefix);
        // It may have no files.
        std::fs::create_dir_all(&cwd).map_err(|e| io_exit("create", &cwd, &e))?;
        // Rules restrict what agents may do, so they also apply if git ignores them.
        for directory in repository.prefix.ancestors() {
            let file = directory.join(RULES_FILE);
            let (from, to) = (repository.root.join(&file), root.join(&file));
            if from.is_file() && to.symlink_metadata().is_err() {
                let parent = to.parent().unwrap_or(&root);
                std::fs::create_dir_all(parent).map_err(|e| io_exit("create", parent, &e))?;
                copy(&from, &to)?;
            }
        }
        Ok(Self { root, cwd, index })
    }

    /// Records the files as they are now, and returns their tree.
    pub(super) async fn record(
        &self,
        repository: &CompareRepository,
    ) -> Result<String, CommandExit> {
        repository.record_tree(&self.root, &self.index).await
    }
}

/// Copies a directory that contains only files and directories.
fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_directory(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

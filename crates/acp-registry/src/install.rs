//! Installs and removes agents.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use acp_config::{InstalledAgent, InstalledAgents, InstalledDistribution};
use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::archive::{self, ArchiveKind, ArchiveLimits};
use crate::download::{Downloader, parse_url};
use crate::error::RegistryError;
use crate::offer::{AgentOffer, OfferedDistribution};
use crate::source::RegistrySource;

/// The maximum size of a download, in bytes.
const MAX_DOWNLOAD_BYTES: u64 = 1024 * 1024 * 1024;

/// The start of the names of directories that are removed if an installation fails. No id of an agent begins with a dot.
const STAGING_PREFIX: &str = ".new-";

/// Installs an agent in place of the version that is installed, and records it. `announced` is the size of the download
/// that the user was shown.
///
/// If this fails or the future is dropped, everything is as before. The download of a version that was installed before
/// must have the same checksum as then.
///
/// # Errors
/// The download fails or is not the expected one, the archive is refused, or a file cannot be written.
pub async fn install(
    offer: &AgentOffer,
    registry: &RegistrySource,
    agents: &InstalledAgents,
    downloader: &Downloader,
    announced: Option<u64>,
) -> Result<InstalledAgent, RegistryError> {
    let _lock = lock_directory(agents.directory())?;
    remove_leftovers(agents.directory());
    let before = agents.find(&offer.agent.id)?;
    if let Some(before) = &before {
        offer.check_unchanged(before)?;
    }
    let mut sum = String::new();
    let mut staging = None;
    if let OfferedDistribution::Binary { url, sha256 } = &offer.distribution {
        let directory = tempfile::Builder::new()
            .prefix(STAGING_PREFIX)
            .tempdir_in(agents.directory())
            .map_err(RegistryError::file(agents.directory()))?;
        let same_version = before
            .as_ref()
            .filter(|agent| agent.version == offer.agent.version);
        let recorded = same_version.and_then(|agent| agent.distribution.sha256());
        let expected = [
            ("the registry", sha256.as_deref()),
            ("the lock file", recorded),
        ];
        sum = download(url, &expected, announced, directory.path(), downloader).await?;
        unpack(offer, url, directory.path())?;
        staging = Some(directory);
    }
    let agent = offer.to_record(registry, &sum);
    match &staging {
        Some(staging) => put_in_place(staging.path(), &agent, agents)?,
        None => agents.record(agent.clone())?,
    }
    remove_other_versions(agents, &agent);
    Ok(agent)
}

/// Removes an agent's files and its record. Returns `false` if it is not installed.
///
/// # Errors
/// The lock file cannot be changed, or the files cannot be removed.
pub fn remove(id: &str, agents: &InstalledAgents) -> Result<bool, RegistryError> {
    // Reading first creates no directory for someone who has never installed an agent.
    if agents.find(id)?.is_none() {
        return Ok(false);
    }
    let _lock = lock_directory(agents.directory())?;
    remove_leftovers(agents.directory());
    let was_installed = agents.forget(id)?;
    let directory = agents.directory().join(id);
    match fs::remove_dir_all(&directory) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(RegistryError::file(&directory)(e))
        }
        _ => Ok(was_installed),
    }
}

/// Makes other processes wait for the end of an installation. The returned file holds the lock.
fn lock_directory(directory: &Path) -> Result<File, RegistryError> {
    fs::create_dir_all(directory).map_err(RegistryError::file(directory))?;
    let path = directory.join(".lock");
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = file.map_err(RegistryError::file(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RegistryError::Busy(directory.to_owned())),
        Err(TryLockError::Error(e)) => Err(RegistryError::file(&path)(e)),
    }
}

/// Removes what a process that was killed has left. The caller holds the lock, so nobody uses it.
fn remove_leftovers(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(STAGING_PREFIX)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Downloads a file to the staging directory. Returns its checksum, which must be all of the expected ones.
async fn download(
    url: &str,
    expected: &[(&'static str, Option<&str>)],
    announced: Option<u64>,
    staging: &Path,
    downloader: &Downloader,
) -> Result<String, RegistryError> {
    let path = staging.join("download");
    let mut file = File::create_new(&path).map_err(RegistryError::file(&path))?;
    let done = downloader
        .file(url, MAX_DOWNLOAD_BYTES, announced, &mut file)
        .await?;
    let mut is_expected = false;
    for (by, expected) in expected {
        match expected {
            Some(sum) if *sum != done.sha256 => {
                return Err(RegistryError::Checksum {
                    url: url.to_owned(),
                    by,
                    expected: (*sum).to_owned(),
                    actual: done.sha256,
                });
            }
            Some(_) => is_expected = true,
            None => {}
        }
    }
    match is_expected || done.is_length_known {
        true => Ok(done.sha256),
        false => {
            let reason = "the server does not say how large the file is, and the registry has no checksum for it, so it may be incomplete";
            Err(RegistryError::download(url, reason))
        }
    }
}

/// Unpacks the download in the staging directory, and makes sure that it contains the program.
fn unpack(offer: &AgentOffer, url: &str, staging: &Path) -> Result<(), RegistryError> {
    let refused = |reason: String| RegistryError::Archive {
        url: url.to_owned(),
        reason,
    };
    let kind = ArchiveKind::from_url(&parse_url(url)?).map_err(refused)?;
    let archive = staging.join("download");
    let archive = File::open(&archive).map_err(RegistryError::file(&archive))?;
    let files = staging.join("files");
    fs::create_dir(&files).map_err(RegistryError::file(&files))?;
    let directory = Dir::open_ambient_dir(&files, ambient_authority());
    let directory = directory.map_err(RegistryError::file(&files))?;
    let program = &offer.program;
    archive::unpack(archive, kind, &directory, program, ArchiveLimits::AGENT).map_err(refused)?;
    let found = directory.metadata(program);
    if !found.as_ref().is_ok_and(cap_std::fs::Metadata::is_file) {
        return Err(refused(format!(
            "it does not contain the program {program:?}"
        )));
    }
    #[cfg(unix)]
    {
        use cap_std::fs::{Permissions, PermissionsExt};
        // Zip archives from other systems do not say which files are programs.
        let permissions = Permissions::from_mode(0o755);
        let changed = directory.set_permissions(program, permissions);
        changed.map_err(RegistryError::file(&files.join(program)))?;
    }
    Ok(())
}

/// Moves the unpacked files to their final place and records the agent. If that fails, everything is as before.
fn put_in_place(
    staging: &Path,
    agent: &InstalledAgent,
    agents: &InstalledAgents,
) -> Result<(), RegistryError> {
    let parent = agents.directory().join(&agent.id);
    let place = agents.version_directory(&agent.id, &agent.version);
    let replaced = staging.join("replaced");
    fs::create_dir_all(&parent).map_err(RegistryError::file(&parent))?;
    let has_old = match fs::rename(&place, &replaced) {
        Ok(()) => true,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
        Err(e) => return Err(RegistryError::file(&place)(e)),
    };
    let done = fs::rename(staging.join("files"), &place)
        .map_err(RegistryError::file(&place))
        .and_then(|()| Ok(agents.record(agent.clone())?));
    if done.is_err() {
        // The staging directory is removed, with what is moved back to it.
        let _ = fs::rename(&place, staging.join("files"));
        if has_old {
            let _ = fs::rename(&replaced, &place);
        }
        // This fails if another version is in it.
        let _ = fs::remove_dir(&parent);
    }
    done
}

/// Removes the files of versions that are no longer installed. What is left, because it is in use for example, is
/// removed by the next installation.
fn remove_other_versions(agents: &InstalledAgents, agent: &InstalledAgent) {
    let parent = agents.directory().join(&agent.id);
    let is_binary = matches!(agent.distribution, InstalledDistribution::Binary { .. });
    for entry in fs::read_dir(&parent).into_iter().flatten().flatten() {
        if !is_binary || entry.file_name().to_string_lossy() != agent.version {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let _ = fs::remove_dir(&parent);
}

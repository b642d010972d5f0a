//! The store of a server's live sessions.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp_config::paths;
use acp_server::store::LiveStore;
use acp_server::{AgentServer, NodeOptions};
use futures_util::future::BoxFuture;

use super::access::ServerAccess;
use super::roots::served_roots;
use crate::args::serve::{LogFormat, ServeArgs};
use crate::args::store_address::{StoreAddress, StoreChoice};
use crate::exit::CommandExit;
use crate::settings_hash::SettingsHash;
use crate::store::{display, open_store};

/// Stores the server's sessions, if that is wanted. The returned future completes when the server has shut down.
pub(super) async fn join_store(
    args: &ServeArgs,
    access: &ServerAccess,
    address: SocketAddr,
    server: &AgentServer,
) -> Result<BoxFuture<'static, ()>, CommandExit> {
    let Some((store_address, store)) = open_store_of_sessions(args).await? else {
        return Ok(Box::pin(std::future::ready(())));
    };
    let mut options = NodeOptions::new(Duration::from_secs(args.lease));
    options.token = access.token.clone();
    options.address = args.advertise.clone().or_else(|| {
        let scheme = if access.tls.is_some() { "wss" } else { "ws" };
        // Servers that share a file are on one machine.
        let is_local = matches!(&store_address, StoreAddress::File(_));
        match address.ip().is_unspecified() {
            true if is_local => Some(format!("{scheme}://127.0.0.1:{}", address.port())),
            true => None,
            false => Some(format!("{scheme}://{address}")),
        }
    });
    if options.address.is_none() {
        eprintln!(
            "acp: warning: other servers cannot reach this one; give its address with --advertise"
        );
    }
    let joined = server.join_store(store, options).await.map_err(|error| {
        CommandExit::failed(format!("store {}: {error}", display(&store_address)))
    })?;
    Ok(Box::pin(joined))
}

/// Opens the store that was named, or else the file of these agents and directories in the state directory.
async fn open_store_of_sessions(
    args: &ServeArgs,
) -> Result<Option<(StoreAddress, Arc<dyn LiveStore>)>, CommandExit> {
    match &args.store {
        _ if !args.live => Ok(None),
        Some(StoreChoice::None) => Ok(None),
        Some(StoreChoice::At(address)) => Ok(Some((address.clone(), open_store(address).await?))),
        None => {
            let Some(file) = default_file(args)? else {
                eprintln!("acp: warning: sessions are not stored: there is no home directory");
                return Ok(None);
            };
            let opened = match create_private_parent(&file) {
                Ok(()) => open_store(&StoreAddress::File(file.clone()))
                    .await
                    .map_err(|exit| exit.message.unwrap_or_default()),
                Err(error) => Err(format!("{}: {error}", paths::display_path(&file))),
            };
            match opened {
                Ok(store) => {
                    announce_store(args, &file);
                    Ok(Some((StoreAddress::File(file), store)))
                }
                // A server that cannot write to the state directory is still of use.
                Err(reason) => {
                    eprintln!(
                        "acp: warning: sessions are not stored: {reason}; use --store FILE, or --store none"
                    );
                    Ok(None)
                }
            }
        }
    }
}

/// Creates the directory of a file such that only the user can read it.
fn create_private_parent(file: &Path) -> std::io::Result<()> {
    let mut directories = DirBuilder::new();
    directories.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut directories, 0o700);
    file.parent()
        .map_or(Ok(()), |parent| directories.create(parent))
}

fn announce_store(args: &ServeArgs, file: &Path) {
    let file = paths::display_path(file);
    match args.log_format {
        LogFormat::Json => tracing::info!(file, "sessions are stored"),
        LogFormat::Text => eprintln!("acp: sessions are stored in {file}"),
    }
}

/// Returns the file of the sessions of these agents in these directories.
///
/// Sessions belong to agents by name. Servers of other agents or directories therefore do not share a file, since they
/// might continue each other's sessions with the wrong agent, or show them to the wrong clients.
fn default_file(args: &ServeArgs) -> Result<Option<PathBuf>, CommandExit> {
    let Some(state) = paths::state_dir() else {
        return Ok(None);
    };
    let roots = served_roots(args)?;
    let name = SettingsHash::new()
        .with_list(&roots)
        .with_list(&args.agent)
        .with_list(&args.agent_command)
        .name();
    Ok(Some(state.join("live").join(format!("{name}.db"))))
}

//! `acp store`: shows, migrates and copies the stores of live sessions, and of those of the bundled agent.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use acp_agent::store::{PostgresStore, StoreError};
use acp_host::AgentCommand;
use acp_postgres::{PostgresError, PostgresServer};
use acp_server::store::{
    LiveStore, LiveStoreError, PostgresLiveStore, SqliteLiveStore, StoreSummary, copy_sessions,
};

use crate::args::store::{StoreArgs, StoreMigrateArgs, StoreSubcommand};
use crate::args::store_address::StoreAddress;
use crate::exit::CommandExit;
use crate::screen::print;

/// The variable that contains the password of a PostgreSQL server. Its name makes sure that agents do not get it.
const PASSWORD_VARIABLE: &str = "ACP_STORE_PASSWORD";

pub(crate) async fn run_store(args: StoreArgs) -> CommandExit {
    let done = match args.command {
        StoreSubcommand::Status(args) => show_status(&args.store).await,
        StoreSubcommand::Migrate(args) => migrate(&args).await,
        StoreSubcommand::Import(args) => import(&args.from, &args.to).await,
    };
    match done {
        Ok(()) => CommandExit::SUCCESS,
        Err(exit) => exit,
    }
}

/// Opens a store. Creates it if it does not exist.
pub(crate) async fn open_store(address: &StoreAddress) -> Result<Arc<dyn LiveStore>, CommandExit> {
    let opened: Result<Arc<dyn LiveStore>, LiveStoreError> = match address {
        StoreAddress::File(path) => {
            SqliteLiveStore::open(path).map(|store| Arc::new(store) as Arc<dyn LiveStore>)
        }
        StoreAddress::Postgres(url) => PostgresLiveStore::connect(url, password().as_deref())
            .await
            .map(|store| Arc::new(store) as Arc<dyn LiveStore>),
    };
    opened.map_err(|error| store_exit(address, &error))
}

/// Opens a store that must exist.
async fn open_existing(address: &StoreAddress) -> Result<Arc<dyn LiveStore>, CommandExit> {
    if let StoreAddress::File(path) = address
        && !path.exists()
    {
        return Err(CommandExit::usage(format!("{}: not found", path.display())));
    }
    open_store(address).await
}

async fn show_status(address: &StoreAddress) -> Result<(), CommandExit> {
    let store = open_existing(address).await?;
    let summary = store.summary().await;
    let summary = summary.map_err(|error| store_exit(address, &error))?;
    let mut text = status_text(&summary);
    if let StoreAddress::Postgres(url) = address {
        let agent = PostgresStore::summary(url, password().as_deref()).await;
        if let Some(agent) = agent.map_err(|error| session_store_exit(address, &error))? {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "sessions of the bundled agent: {} (version {})",
                agent.sessions, agent.version
            );
        }
    }
    print(text.as_bytes());
    Ok(())
}

fn status_text(summary: &StoreSummary) -> String {
    let StoreSummary {
        version,
        nodes,
        sessions,
        owned,
        prompts,
        lines,
        ..
    } = summary;
    let mut text = format!(
        "version: {version}\nsessions: {sessions} ({owned} live)\nprompts that wait or run: {prompts}\nlines in all logs: {lines}\nservers: {}\n",
        nodes.len()
    );
    for node in nodes {
        let address = node.address.as_deref().unwrap_or("no address");
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {}  {address}", node.id);
    }
    text
}

async fn migrate(args: &StoreMigrateArgs) -> Result<(), CommandExit> {
    let StoreAddress::Postgres(url) = &args.store else {
        let message = "a file needs no migration; give the URL of a PostgreSQL database";
        return Err(CommandExit::usage(message));
    };
    let migrated = PostgresLiveStore::migrate(url, password().as_deref()).await;
    let (before, after) = migrated.map_err(|error| store_exit(&args.store, &error))?;
    let mut text = migrated_text("the store", before, after);
    let migrated = PostgresStore::migrate(url, password().as_deref()).await;
    let (before, after) = migrated.map_err(|error| session_store_exit(&args.store, &error))?;
    text += &migrated_text("the store of the bundled agent", before, after);
    print(text.as_bytes());
    Ok(())
}

fn migrated_text(store: &str, before: u32, after: u32) -> String {
    match before {
        _ if before == after => format!("{store} has version {after} already\n"),
        0 => format!("created the tables of {store}, version {after}\n"),
        _ => format!("migrated {store} from version {before} to {after}\n"),
    }
}

async fn import(from: &StoreAddress, to: &StoreAddress) -> Result<(), CommandExit> {
    if from == to {
        return Err(CommandExit::usage("both stores are the same"));
    }
    let source = open_existing(from).await?;
    let target = open_store(to).await?;
    let copied = copy_sessions(&*source, &*target).await;
    let copied = copied.map_err(|error| {
        CommandExit::failed(format!(
            "cannot copy from {} to {}: {error}",
            display(from),
            display(to)
        ))
    })?;
    let text = format!(
        "copied {} sessions; {} were there already\n",
        copied.copied, copied.skipped
    );
    print(text.as_bytes());
    Ok(())
}

fn store_exit(address: &StoreAddress, error: &LiveStoreError) -> CommandExit {
    CommandExit::failed(format!("store {}: {error}", display(address)))
}

fn session_store_exit(address: &StoreAddress, error: &StoreError) -> CommandExit {
    CommandExit::failed(format!("store {}: {error}", display(address)))
}

/// Lets the bundled agent store its sessions in the database of the live sessions. The password is in its environment:
/// everyone can see command lines. The agent does not pass it on.
pub(crate) fn share_with_agent(
    command: AgentCommand,
    url: &str,
) -> Result<AgentCommand, CommandExit> {
    let invalid = |error: PostgresError| CommandExit::usage(format!("--store: {error}"));
    let (url, in_url) = PostgresServer::split_password(url).map_err(invalid)?;
    let command = command.args(["--sessions", &url]);
    Ok(match password().or(in_url) {
        Some(password) => command.env(PASSWORD_VARIABLE, password),
        None => command,
    })
}

/// Returns the address of a store without a password.
pub(crate) fn display(address: &StoreAddress) -> String {
    match address {
        StoreAddress::File(path) => Path::display(path).to_string(),
        StoreAddress::Postgres(url) => match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, rest)), Some((_, host))) if rest.contains('@') => {
                let user = rest.split([':', '@']).next().unwrap_or_default();
                format!(
                    "{scheme}://{user}@{}",
                    host.split('?').next().unwrap_or(host)
                )
            }
            _ => url.split('?').next().unwrap_or(url).to_owned(),
        },
    }
}

/// Returns the password of a PostgreSQL server, if it is not in the URL.
pub(crate) fn password() -> Option<String> {
    acp_host::process_secrets::variable(PASSWORD_VARIABLE)?
        .into_string()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_gets_the_password_in_its_environment_only() {
        let command = AgentCommand::new("acp");
        let command = share_with_agent(command, "postgres://acp:secret@db/acp").unwrap();
        assert_eq!(command.args, ["--sessions", "postgres://acp@db/acp"]);
        let password = (PASSWORD_VARIABLE.into(), "secret".into());
        assert_eq!(command.env, [password]);
    }

    #[test]
    fn password_is_not_displayed() {
        for (url, shown) in [
            ("postgres://acp:secret@db/acp", "postgres://acp@db/acp"),
            (
                "postgres://acp:s@cret@db/acp?password=x",
                "postgres://acp@db/acp",
            ),
            (
                "postgres://acp@db/acp?password=secret",
                "postgres://acp@db/acp",
            ),
            ("postgres://db/acp?password=secret", "postgres://db/acp"),
        ] {
            assert_eq!(display(&StoreAddress::Postgres(url.to_owned())), shown);
        }
    }
}

//! Arguments of `acp store`.

use clap::Subcommand;

use super::store_address::StoreAddress;

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreSubcommand {
    /// Show the servers, sessions and version of a store.
    Status(StoreStatusArgs),
    /// Create a store's tables, or bring them up to date, with those of the bundled agent.
    ///
    /// `acp serve` creates missing tables by itself, but does not change those of an older version, which other servers
    /// may be using. Stop them first. Files need no migration.
    Migrate(StoreMigrateArgs),
    /// Copy the sessions of one store into another.
    ///
    /// Sessions that are in both are left as they are. Stop the servers of the first store before.
    Import(StoreImportArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct StoreStatusArgs {
    /// The store: an SQLite file or `postgres://…`.
    #[arg(value_name = "FILE|URL")]
    pub(crate) store: StoreAddress,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StoreMigrateArgs {
    /// The database: `postgres://…`.
    #[arg(value_name = "URL")]
    pub(crate) store: StoreAddress,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StoreImportArgs {
    /// The store to copy from.
    #[arg(value_name = "FROM")]
    pub(crate) from: StoreAddress,

    /// The store to copy to.
    #[arg(value_name = "TO")]
    pub(crate) to: StoreAddress,
}

const EXAMPLES: &str = "\
Examples:
  acp store status postgres://acp@db.example/acp
  acp store migrate postgres://acp@db.example/acp
  acp store import sessions.db postgres://acp@db.example/acp

The password of a PostgreSQL server is read from the variable ACP_STORE_PASSWORD.";

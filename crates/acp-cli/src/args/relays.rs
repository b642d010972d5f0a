//! What can be typed behind the commands that stand between a client and something else.

use std::path::PathBuf;

use acp_mcp::Endpoint;
use clap::ValueEnum;

use super::agent_choice::EnvArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct McpProxyArgs {
    /// Where the client listens: unix:PATH or tcp:127.0.0.1:PORT.
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) connect: Endpoint,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckRelayArgs {
    /// Where the check has written how it is reached.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp bridge --to VERSION -- AGENT COMMAND...",
    after_long_help = EXIT_CODES,
    after_help = "See --help for the exit codes."
)]
pub(crate) struct BridgeArgs {
    /// The version the client is to find: `2` puts an agent of version 1 behind a client of version 2,
    /// `1` the other way round.
    #[arg(long, value_name = "VERSION", value_enum)]
    pub(crate) to: VersionArg,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// The agent to run, with its arguments.
    #[arg(last = true, required = true, value_name = "AGENT COMMAND")]
    pub(crate) agent: Vec<String>,
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionArg {
    #[value(name = "1")]
    V1,
    #[value(name = "2")]
    V2,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  the client has closed the connection
    2  wrong usage
    3  the agent could not be started, or has ended by itself
  130  ended by a signal, and the agent with it";

//! Arguments of the commands that relay messages: `acp bridge`, `acp mcp-proxy` and `acp check-relay`.

use std::path::PathBuf;

use acp_mcp::Endpoint;
use clap::ValueEnum;

use super::agent_choice::EnvArgs;
use super::remote::UrlArgs;

#[derive(Debug, clap::Args)]
pub(crate) struct McpProxyArgs {
    /// Address of the client: unix:PATH or tcp:127.0.0.1:PORT.
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) connect: Endpoint,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckRelayArgs {
    /// File with the address of the process that runs the check.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "acp bridge --to VERSION -- AGENT COMMAND...\n       acp bridge --to VERSION --url URL",
    after_long_help = EXAMPLES_AND_EXIT_CODES
)]
pub(crate) struct BridgeArgs {
    /// Protocol version to speak with the client.
    ///
    /// `2` connects a version 1 agent to a version 2 client, `1` the other way round.
    #[arg(long, value_name = "VERSION", value_enum)]
    pub(crate) to: VersionArg,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    #[command(flatten)]
    pub(crate) url: UrlArgs,

    /// Command that starts the agent.
    #[arg(
        last = true,
        required_unless_present = "url",
        value_name = "AGENT COMMAND"
    )]
    pub(crate) agent: Vec<String>,
}

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionArg {
    #[value(name = "1")]
    V1,
    #[value(name = "2")]
    V2,
}

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  acp bridge --to 2 -- gemini --acp                  # for a version 2 client
  acp bridge --to 1 -- my-agent --acp                # for a version 1 client

Exit codes:
    0  the client closed the connection
    2  invalid command line
    3  the agent could not be started, or exited
  130  terminated by a signal, along with the agent";

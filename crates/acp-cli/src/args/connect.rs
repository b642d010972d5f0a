//! Arguments of `acp connect`.

use acp_config::TypedUrl;

use super::remote::{PathArgs, RemoteArgs};

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES_AND_EXIT_CODES)]
pub(crate) struct ConnectArgs {
    /// URL of the agent.
    ///
    /// `acp serve` prints it. The schemes are ws, wss, http and https, and for agents that listen on a plain
    /// socket, tcp://HOST:PORT and unix:PATH. Other users can see the command line, so pass the token with --token-file
    /// or ACP_TOKEN rather than as part of the URL.
    #[arg(value_name = "URL")]
    pub(crate) url: TypedUrl,

    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    #[command(flatten)]
    pub(crate) paths: PathArgs,
}

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  acp connect ws://127.0.0.1:7180/acp --token-file ~/.local/state/acp/serve.token
  acp connect wss://agents.example.com/acp           # the token is in ACP_TOKEN
  acp connect wss://192.0.2.7:7180/acp#sha256:...    # a self-signed certificate
  acp connect https://example.com/acp --token-header x-secret-key
  acp connect wss://HOST/acp --map ~/project=/srv/project
  acp connect unix:/run/user/1000/agent.sock

Other commands need no `acp connect`: use `acp run --url URL`, or define the agent in
config.toml.

Exit codes:
    0  the client closed stdin
    2  invalid command line
    3  the server could not be reached, rejected the connection or closed it, or
       the connection was lost
  130  terminated by a signal";

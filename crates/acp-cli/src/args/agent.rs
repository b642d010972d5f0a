//! Arguments of `acp agent`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use acp_config::EnvRequest;
use acp_host::Policy;
use clap::Subcommand;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::candidates;
use super::shared::{ProtocolArg, SandboxArgs};
use super::store_address::StoreChoice;

// The language model. No doc comment: clap would use it as the description of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// Language model to use, or `offline` to use none.
    ///
    /// PROVIDER is `anthropic`, `openai` or `gemini`. The key is read from ANTHROPIC_API_KEY, OPENAI_API_KEY or
    /// GEMINI_API_KEY, or is the one stored by `acp agent login`.
    ///
    /// `openai-responses` and `openai-chat` select one of OpenAI's wire formats. By default, OpenAI uses the
    /// first, and servers at --base-url the second.
    #[arg(
        long = "model",
        value_name = "PROVIDER/NAME",
        conflicts_with = "script"
    )]
    pub(crate) name: Option<String>,

    /// Base URL of a server that is compatible with the provider's API.
    ///
    /// For example, http://127.0.0.1:11434/v1 with `openai` for Ollama. The key is optional; if set, it is sent
    /// to this server.
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) base_url: Option<String>,

    /// The model's context window in tokens, if `acp` does not know it.
    #[arg(long, value_name = "TOKENS", requires = "name", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) context_window: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentSubcommand>,

    /// Play scripted turns from a file instead of calling a model.
    ///
    /// This is meant for tests.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Where to store sessions: a directory, a PostgreSQL database, or `none` to store none.
    ///
    /// Only you can read the directory. The default is `acp` in $XDG_STATE_HOME, or in ~/.local/state. With
    /// `postgres://USER@HOST/DATABASE`, agents on several machines share their sessions. The password is read from the
    /// variable ACP_STORE_PASSWORD.
    #[arg(long, value_name = "DIR|URL|none", value_parser = OsStringValueParser::new().try_map(StoreChoice::from_os))]
    pub(crate) sessions: Option<StoreChoice>,

    /// Upper limit on what the agent may do, in any mode: ask, reads, all or none.
    ///
    /// `none` allows nothing. `reads` allows reading, and what a rule in permissions.toml allows. `ask` and
    /// `all` leave it to the mode and the rules.
    #[arg(long, value_name = "POLICY", value_parser = super::shared::parse_policy, add = candidates::policy_names())]
    pub(crate) allow: Option<Policy>,

    /// Maximum number of model requests in one turn.
    ///
    /// The turn then ends with the stop reason `max_turn_requests`. The default is the one in config.toml, or else 200.
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_requests: Option<NonZeroUsize>,

    /// The tool of the client's own MCP server that needs no permission, as SERVER/TOOL.
    #[arg(long, hide = true, value_name = "SERVER/TOOL", value_parser = parse_exempt_tool)]
    pub(crate) exempt_tool: Option<(String, String)>,

    /// Let the default in permissions.toml override --allow.
    #[arg(long, requires = "allow", hide = true)]
    pub(crate) allow_gives_way: bool,

    /// Leave it to the client to show which rule rejects an action.
    ///
    /// For a client that applies permissions.toml itself and reports what it rejects, as `acp run` and
    /// `acp chat` do. The agent sends it a permission request also for an action that the rules deny, so that
    /// the client can name the rule, and then rejects the action, whatever the response.
    #[arg(long)]
    pub(crate) client_has_rules: bool,

    /// Set an environment variable for the commands that the agent runs itself.
    ///
    /// Without VALUE, the variable has its current value. Can be repeated. Commands in a terminal of the client have the
    /// client's environment.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<EnvRequest>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,
}

fn parse_exempt_tool(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
            Ok((server.to_owned(), tool.to_owned()))
        }
        _ => Err("expected SERVER/TOOL".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentSubcommand {
    /// Store a provider's API key for the bundled agent.
    ///
    /// The key is entered on the terminal and stored in a file that only you can read.
    #[command(after_long_help = LOGIN_EXAMPLES)]
    Login(AccountArgs),

    /// Remove stored API keys.
    #[command(after_long_help = LOGOUT_EXAMPLES)]
    Logout(AccountArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AccountArgs {
    /// Provider: anthropic, openai or gemini.
    ///
    /// The default is the provider of the configured model for login, and all providers for logout.
    #[arg(value_name = "PROVIDER", add = candidates::provider_names())]
    pub(crate) provider: Option<String>,

    /// Base URL of the server that the key is for, instead of the provider's own.
    ///
    /// Any server that is compatible with the provider. The key is sent to no other server.
    #[arg(long, value_name = "URL", requires = "provider")]
    pub(crate) at: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  acp agent                                          # the configured model
  acp agent --model anthropic/claude-sonnet-4-5
  acp agent --model openai/qwen3:8b --base-url http://127.0.0.1:11434/v1
  acp agent --sandbox                                # commands run in a sandbox
  acp agent --sessions postgres://acp@db/acp         # sessions for several machines
  acp run \"Fix the build\" -- acp agent --model offline";

const LOGIN_EXAMPLES: &str = "\
Examples:
  acp agent login anthropic
  acp agent login openai --at https://llm.example.org/v1";

const LOGOUT_EXAMPLES: &str = "\
Examples:
  acp agent logout anthropic
  acp agent logout                                   # all keys";

//! What can be typed behind `acp agent`.

use std::path::PathBuf;

use acp_host::Policy;
use clap::Subcommand;

use super::shared::{ProtocolArg, SandboxArgs};

// Which language model; not documented, or it would be the text of whatever it is put into.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// Language model to use, as PROVIDER/NAME, where PROVIDER is `anthropic`, `openai` or `gemini`; or
    /// `offline` for none. The key is read from ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or from
    /// the one stored by `acp agent login`. `openai-responses` and `openai-chat` select one of OpenAI's wire
    /// formats; by default, OpenAI uses the first, and servers at --base-url the second.
    #[arg(
        long = "model",
        value_name = "PROVIDER/NAME",
        conflicts_with = "script"
    )]
    pub(crate) name: Option<String>,

    /// Base URL of a server that is compatible with the provider, for example http://127.0.0.1:11434/v1 with
    /// `openai` for Ollama. The key is optional; if set, it is sent to this server.
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) base_url: Option<String>,

    /// Context window of the model in tokens, if it is not known.
    #[arg(long, value_name = "TOKENS", requires = "name", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) context_window: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentSubcommand>,

    /// Play scripted turns from this file instead of calling a model; for tests.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Directory for stored sessions, private to you; `none` disables storage. Default: `acp` in
    /// $XDG_STATE_HOME, or in ~/.local/state.
    #[arg(long, value_name = "DIR")]
    pub(crate) sessions: Option<PathBuf>,

    /// Upper limit on what the agent may do in any mode: `none` allows nothing; `reads` allows reading, and
    /// what a rule in permissions.toml allows; `ask` and `all` leave it to the mode and the rules.
    #[arg(long, value_name = "POLICY", value_parser = super::shared::policy)]
    pub(crate) allow: Option<Policy>,

    /// Let the default in permissions.toml override --allow.
    #[arg(long, requires = "allow", hide = true)]
    pub(crate) allow_gives_way: bool,

    /// The client applies permissions.toml itself and reports what it rejects, as `acp run` does: send it
    /// permission requests for forbidden actions instead of rejecting them.
    #[arg(long)]
    pub(crate) client_has_rules: bool,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentSubcommand {
    /// Store a provider's API key for the bundled agent, in a file only you can read.
    Login(AccountArgs),

    /// Remove stored API keys.
    Logout(AccountArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AccountArgs {
    /// Provider: `anthropic`, `openai` or `gemini`. Default: for login, the provider of the configured model;
    /// for logout, all providers.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// Server to use the key for, if not the provider itself: any compatible server. The key is sent to no
    /// other server.
    #[arg(long, value_name = "URL", requires = "provider")]
    pub(crate) at: Option<String>,
}

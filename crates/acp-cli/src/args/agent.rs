//! What can be typed behind `acp agent`.

use std::path::PathBuf;

use acp_host::Policy;
use clap::Subcommand;

use super::shared::{ProtocolArg, SandboxArgs};

// Which language model; not documented, or it would be the text of whatever it is put into.
#[derive(Debug, clap::Args)]
pub(crate) struct ModelArgs {
    /// The language model to use: `anthropic`, `openai` or `gemini`, a slash, and the name that the model has
    /// there; or `offline` for none. Its key is taken from ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or
    /// is the one that `acp agent login` has kept. `openai-responses` and `openai-chat` are `openai` in one of its two
    /// wire formats; by default OpenAI itself is asked in the first, and a server at --base-url in the second.
    #[arg(
        long = "model",
        value_name = "PROVIDER/NAME",
        conflicts_with = "script"
    )]
    pub(crate) name: Option<String>,

    /// Where the model is, if it is not at its provider's: any server that speaks as one of them, for example
    /// http://127.0.0.1:11434/v1 with `openai` for Ollama. A key that is set is sent there; none is needed.
    #[arg(long, value_name = "URL", requires = "name")]
    pub(crate) base_url: Option<String>,

    /// How many tokens fit into the model's window, where that is not known of it.
    #[arg(long, value_name = "TOKENS", requires = "name", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) context_window: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AgentSubcommand>,

    /// Play the turns of this file instead of answering; for tests.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    /// Where to keep sessions, a directory of yours alone; `none` keeps them nowhere. By default `acp` in
    /// $XDG_STATE_HOME, which is ~/.local/state if it is not set.
    #[arg(long, value_name = "DIR")]
    pub(crate) sessions: Option<PathBuf>,

    /// What the agent may do at most, in every mode: with `none` it does nothing and reads nothing; with `reads` it only
    /// looks, and does what a rule of permissions.toml allows; `ask` and `all` leave that to the mode and the rules.
    #[arg(long, value_name = "POLICY", value_parser = super::shared::policy)]
    pub(crate) allow: Option<Policy>,

    /// Nobody has typed the policy of --allow: the default of permissions.toml takes its place, if there is one.
    #[arg(long, requires = "allow", hide = true)]
    pub(crate) allow_gives_way: bool,

    /// The client goes by the rules of permissions.toml itself, as `acp run` does, and tells what it refuses: ask
    /// it about what they forbid, rather than refuse it.
    #[arg(long)]
    pub(crate) client_has_rules: bool,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    #[command(flatten)]
    pub(crate) protocol: ProtocolArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentSubcommand {
    /// Type the key of a provider, for the bundled agent. It is kept in a file that you alone can read.
    Login(AccountArgs),

    /// Forget the keys that were typed, or one of them.
    Logout(AccountArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AccountArgs {
    /// Whose key it is: `anthropic`, `openai` or `gemini`. By default, to log in, that of the configured model, and to
    /// log out, all of them.
    #[arg(value_name = "PROVIDER")]
    pub(crate) provider: Option<String>,

    /// Where it is for, if not for the provider's own address: any server that speaks as it does. It is sent to no
    /// other.
    #[arg(long, value_name = "URL", requires = "provider")]
    pub(crate) at: Option<String>,
}

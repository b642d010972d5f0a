//! Arguments of `acp completions` and `acp man`, which generate files to install with the program.

use std::path::PathBuf;

use clap::{ValueEnum, ValueHint};

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to print the script for.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: ShellArg,
}

/// A shell for which completions can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShellArg {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory to write the pages to.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  source <(acp completions bash)                     # in ~/.bashrc
  source <(acp completions zsh)                      # in ~/.zshrc, after compinit
  acp completions fish | source                      # in ~/.config/fish/config.fish";

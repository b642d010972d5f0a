//! `acp agent login` and `acp agent logout`: manage the bundled agent's API keys.

use std::io::IsTerminal;

use acp_agent::{Account, KeyFile, Provider, ProviderModel, Secret};
use acp_host::process_secrets;

use crate::args::agent::{AccountArgs, ModelArgs};
use crate::config;
use crate::exit::CommandExit;
use crate::line_input::TerminalSettings;
use crate::models::{BundledAgentConfig, key_file};
use crate::screen::print;
use crate::signals::{ExitSignal, Signals};

/// Reads an API key from the terminal and stores it.
pub(crate) async fn login(args: AccountArgs, model: ModelArgs) -> CommandExit {
    let done = async {
        let file = require_key_file()?;
        let model = match requested_model(args)? {
            Some(model) => model,
            // The provider of the model that the agent would use.
            None => BundledAgentConfig::from_config(&config::read_user_config()?)?.initial_model(model)?.ok_or_else(|| {
                CommandExit::usage(
                    "specify a provider: anthropic, openai or gemini (for example `acp agent login anthropic`)",
                )
            })?,
        };
        store_key(&file, model).await
    };
    done.await.err().unwrap_or(CommandExit::SUCCESS)
}

/// Removes one stored API key, or all of them.
pub(crate) fn logout(args: AccountArgs) -> CommandExit {
    let done = require_key_file().and_then(|file| {
        let account = requested_model(args)?.map(|model| model.account());
        let forgotten = file.remove(account.as_ref());
        print(
            match forgotten.map_err(|e| CommandExit::failed(e.to_string()))? {
                0 => b"no key stored\n".as_slice(),
                _ => b"logged out\n",
            },
        );
        warn_key_variables(account.map(|account| account.provider()));
        Ok(())
    });
    done.err().unwrap_or(CommandExit::SUCCESS)
}

fn require_key_file() -> Result<KeyFile, CommandExit> {
    key_file().ok_or_else(|| CommandExit::usage("cannot store the key: no home directory"))
}

/// Returns a model with the given provider and base URL, or `None` if no provider is given. The model name is a
/// placeholder.
fn requested_model(args: AccountArgs) -> Result<Option<ProviderModel>, CommandExit> {
    let Some(provider) = args.provider else {
        return Ok(None);
    };
    let provider: Provider = provider
        .parse()
        .map_err(|e: acp_agent::ParseProviderError| CommandExit::usage(e.to_string()))?;
    let mut model = ProviderModel::new(provider, "any");
    model.base_url = args.at;
    model
        .check()
        .map_err(|e| CommandExit::usage(format!("--at: {e}")))?;
    Ok(Some(model))
}

async fn store_key(file: &KeyFile, model: ProviderModel) -> Result<(), CommandExit> {
    let account = model.account();
    let whose = account_name(&account);
    if !std::io::stdin().is_terminal() {
        return Err(CommandExit::usage(format!(
            "not a terminal: cannot read the key for {whose}; set {} instead",
            model.key_variable()
        )));
    }
    let typed = read_hidden_line(format!("API key for {whose} (hidden): ")).await?;
    if typed.trim().is_empty() {
        return Err(CommandExit::usage("no key entered"));
    }
    let key = Secret::new(typed);
    let model = model.key(key.clone());
    model
        .check()
        .map_err(|e| CommandExit::usage(e.to_string()))?;
    let kept = file.store(&account, &key);
    kept.map_err(|e| CommandExit::failed(e.to_string()))?;
    let said = format!(
        "key saved to {}; it will be checked with the first prompt\n",
        file.path().display()
    );
    print(said.as_bytes());
    if account.url().is_none() {
        warn_key_variables(Some(account.provider()));
    }
    Ok(())
}

/// Reads a line from the terminal without echoing it.
async fn read_hidden_line(prompt: String) -> Result<String, CommandExit> {
    // While input is hidden, Ctrl-C reaches the reader as a character; the reader then raises the signal before it
    // restores the terminal. So the signal must not terminate the process.
    let listening = Signals::listen();
    let mut signals =
        listening.map_err(|e| CommandExit::failed(format!("cannot listen for signals: {e}")))?;
    let settings = TerminalSettings::capture();
    let mut reading = tokio::task::spawn_blocking(move || rpassword::prompt_password(prompt));
    loop {
        let read = tokio::select! {
            read = &mut reading => read,
            signal = signals.next() => match signal {
                ExitSignal::Interrupt => continue,
                ExitSignal::Terminate => {
                    // The reader keeps waiting for input and dies with the process before it restores the terminal.
                    if let Some(settings) = settings {
                        settings.restore();
                    }
                    return Err(CommandExit::CANCELLED);
                }
            },
        };
        let typed = read.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        return typed.map_err(|e| match e.kind() {
            std::io::ErrorKind::Interrupted => CommandExit::CANCELLED,
            _ => CommandExit::failed(format!("cannot read the key: {e}")),
        });
    }
}

fn account_name(account: &Account) -> String {
    match account.url() {
        Some(address) => address.to_owned(),
        None => account.provider().title().to_owned(),
    }
}

/// Warns that a key in the environment takes precedence over a stored key.
fn warn_key_variables(provider: Option<Provider>) {
    for known in Provider::ALL {
        let variable = known.key_variable();
        let meant = provider.is_none_or(|provider| provider == known);
        if meant && process_secrets::variable(variable).is_some_and(|key| !key.is_empty()) {
            eprintln!("acp: {variable} is set and takes precedence over the stored key");
        }
    }
}

//! `acp agent login` and `acp agent logout`: the providers' keys, for the bundled agent.

use std::io::IsTerminal;

use acp_agent::{Account, KeyFile, Provider, ProviderModel, Secret};
use acp_host::own_process;

use crate::args::agent::{AccountArgs, ModelArgs};
use crate::config;
use crate::exit::Exit;
use crate::models::{Models, key_file};
use crate::screen::print;
use crate::signals::{Signal, Signals};
use crate::typing::Settings;

/// Asks for a key on the terminal and keeps it.
pub(crate) async fn login(args: AccountArgs, model: ModelArgs) -> Exit {
    let done = async {
        let file = file()?;
        let model = match wanted(args)? {
            Some(model) => model,
            // That of the model that the agent would have.
            None => Models::of(&config::read()?)?.model(model)?.ok_or_else(|| {
                Exit::usage(
                    "say whose key it is: `acp agent login anthropic`, `openai` or `gemini`",
                )
            })?,
        };
        keep(&file, model).await
    };
    done.await.err().unwrap_or(Exit::SUCCESS)
}

/// Forgets a key, or all of them.
pub(crate) fn logout(args: AccountArgs) -> Exit {
    let done = file().and_then(|file| {
        let account = wanted(args)?.map(|model| model.account());
        let forgotten = file.forget(account.as_ref());
        print(match forgotten.map_err(|e| Exit::failed(e.to_string()))? {
            0 => b"there was no key\n".as_slice(),
            _ => b"logged out\n",
        });
        still_given(account.map(|account| account.provider()));
        Ok(())
    });
    done.err().unwrap_or(Exit::SUCCESS)
}

fn file() -> Result<KeyFile, Exit> {
    key_file().ok_or_else(|| Exit::usage("there is no home directory to keep a key in"))
}

/// Whose key it is, if that was said: as a model there, of whatever name.
fn wanted(args: AccountArgs) -> Result<Option<ProviderModel>, Exit> {
    let Some(provider) = args.provider else {
        return Ok(None);
    };
    let provider: Provider = provider
        .parse()
        .map_err(|e: acp_agent::ParseProviderError| Exit::usage(e.to_string()))?;
    let mut model = ProviderModel::new(provider, "any");
    model.base_url = args.at;
    model
        .check()
        .map_err(|e| Exit::usage(format!("--at: {e}")))?;
    Ok(Some(model))
}

async fn keep(file: &KeyFile, model: ProviderModel) -> Result<(), Exit> {
    let account = model.account();
    let whose = whose(&account);
    if !std::io::stdin().is_terminal() {
        return Err(Exit::usage(format!(
            "the key for {whose} is typed in a terminal, and this is none; elsewhere set {}",
            model.key_variable()
        )));
    }
    let typed = read_hidden(format!("Key for {whose} (it is not shown): ")).await?;
    if typed.trim().is_empty() {
        return Err(Exit::usage("no key was typed"));
    }
    let key = Secret::new(typed);
    let model = model.key(key.clone());
    model.check().map_err(|e| Exit::usage(e.to_string()))?;
    let kept = file.keep(&account, &key);
    kept.map_err(|e| Exit::failed(e.to_string()))?;
    let said = format!(
        "the key is kept in {}; it has not been tried yet, the first prompt does\n",
        file.path().display()
    );
    print(said.as_bytes());
    if account.address().is_none() {
        still_given(Some(account.provider()));
    }
    Ok(())
}

/// Reads what is typed without showing it.
async fn read_hidden(prompt: String) -> Result<String, Exit> {
    // Ctrl-C reaches the reader as a letter, and it raises the signal before it gives the terminal back. So the signal
    // must not end the process.
    let listening = Signals::listen();
    let mut signals =
        listening.map_err(|e| Exit::failed(format!("cannot listen for signals: {e}")))?;
    let settings = Settings::now();
    let mut reading = tokio::task::spawn_blocking(move || rpassword::prompt_password(prompt));
    loop {
        let read = tokio::select! {
            read = &mut reading => read,
            signal = signals.next() => match signal {
                Signal::Interrupt => continue,
                Signal::Terminate => {
                    // The reader goes on to wait for a letter, and ends with the process, in the middle of it.
                    if let Some(settings) = settings {
                        settings.restore();
                    }
                    return Err(Exit::CANCELLED);
                }
            },
        };
        let typed = read.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        return typed.map_err(|e| match e.kind() {
            std::io::ErrorKind::Interrupted => Exit::CANCELLED,
            _ => Exit::failed(format!("no key was read: {e}")),
        });
    }
}

fn whose(account: &Account) -> String {
    match account.address() {
        Some(address) => address.to_owned(),
        None => account.provider().title().to_owned(),
    }
}

/// Says where a key of the environment goes before any other.
fn still_given(provider: Option<Provider>) {
    for known in Provider::ALL {
        let variable = known.key_variable();
        let meant = provider.is_none_or(|provider| provider == known);
        if meant && own_process::variable(variable).is_some_and(|key| !key.is_empty()) {
            eprintln!("acp: {variable} is set, and its key is the one that is used");
        }
    }
}

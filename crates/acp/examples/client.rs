//! The least useful client: it starts an agent, prompts it once, and prints what it says.
//!
//! ```sh
//! cargo run -p acp-sdk --example client -- "Hello" gemini --acp
//! ```

// Clippy takes a program that prints for one that logs.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use acp::Transport;
use acp::client::{Client, Update, UpdateContext, connect};
use tokio::process::Command;

/// How long the agent may take to end when its stdin has.
const LAST_WORDS: Duration = Duration::from_secs(5);

struct Printer;

impl Client for Printer {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        print!("{}", update.message_text().unwrap_or_default());
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [prompt, program, args @ ..] = args.as_slice() else {
        return Err("usage: client PROMPT PROGRAM [ARGUMENT]…".into());
    };
    let mut process = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let transport = Transport::child(&mut process).ok_or("no pipes")?;
    let (handshake, driver) = connect(transport, Printer);
    tokio::spawn(driver);
    let agent = handshake.await?;
    let session = agent.new_session(std::env::current_dir()?).await?;
    let stopped = session.prompt(prompt.as_str()).await?;
    println!("\n({stopped})");
    // An agent that is started by its client ends with the connection; one that does not is killed when
    // `process` is dropped.
    agent.close();
    let ended = tokio::time::timeout(LAST_WORDS, process.wait()).await;
    ended.map_err(|_| "the agent does not end")??;
    Ok(())
}

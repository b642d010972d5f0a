//! A minimal client that starts an agent, sends one prompt and prints the response.
//!
//! ```sh
//! cargo run -p acp-sdk --example client -- "Hello" gemini --acp
//! ```

// Clippy warns about printing, which is this program's purpose.
#![allow(clippy::print_stdout)]

use std::error::Error;

use acp::Transport;
use acp::client::{Client, Update, UpdateContext, connect};
use tokio::process::Command;

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
    let transport = Transport::spawn(Command::new(program).args(args))?;
    let (handshake, driver) = connect(transport, Printer);
    let work = async {
        let session = handshake
            .await?
            .new_session(std::env::current_dir()?)
            .await?;
        Ok::<_, Box<dyn Error>>(session.prompt(prompt.as_str()).await?)
    };
    // When this returns, the agent's process has also exited.
    println!("\n({})", driver.run(work).await?);
    Ok(())
}

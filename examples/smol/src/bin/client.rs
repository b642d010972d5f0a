//! Starts an agent, says hello, and prints its response, on the executor `smol`: `client AGENT [ARGUMENT...]`

use std::error::Error;

use acp::client::{Client, Update, UpdateContext, connect};
use smol::process::{Command, Stdio};

struct SmolClient;

impl Client for SmolClient {
    type State = ();

    async fn update(&self, (): &(), _: &UpdateContext, update: &Update) {
        print!("{}", update.message_text().unwrap_or_default());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments
        .next()
        .ok_or("usage: client AGENT [ARGUMENT...]")?;
    let mut agent = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (stdout, stdin) = (agent.stdout.take(), agent.stdin.take());
    let (stdout, stdin) = stdout.zip(stdin).ok_or("the stdin and stdout of the agent are not piped")?;
    let (handshake, driver) = connect(acp::Transport::from_futures(stdout, stdin), SmolClient);
    smol::block_on(driver.run(async {
        let session = handshake.await?.new_session("/").await?;
        let stop_reason = session.prompt("Hello!").await?;
        println!(" ({stop_reason})");
        Ok(())
    }))
}

//! Tests of a page whose command has ended.

use super::*;
use crate::common::ACP;
use crate::common::terminal::CommandTerminal;

fn click_row(browser: &mut Browser, name: &str) {
    wait_for_row(browser, &[name]);
    browser.evaluate(&format!(
        "[...document.querySelectorAll('tr.row .open')].find((open) => open.textContent.startsWith('{name}')).click()"
    ));
}

fn wait_for_message(browser: &mut Browser, text: &str) {
    browser.wait_for(&format!(
        "document.getElementById('message').innerText.includes({})",
        json!(text)
    ));
}

#[test]
fn page_says_how_to_open_the_trace_when_an_editor_has_ended_the_command() {
    let project = TestProject::new();
    let mut command = project.acp_command(&["trace", "live"]);
    command.args(["my trace", "--", "sh", "-c", AGENT]);
    let mut trace = LiveTrace::start(command);
    let Some(mut browser) = open_page(&trace.url) else {
        return;
    };
    trace.write(
        "{\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n",
    );
    wait_for_row(&mut browser, &["two"]);
    click_row(&mut browser, "one");
    wait_for_message(&mut browser, "\"method\": \"one\"");
    // The editor waits for the process, so it ends although a page is open.
    trace.finish().expect_code(0);
    browser.wait_for("!document.getElementById('gone').hidden");
    let gone = browser.evaluate_text("document.getElementById('gone').innerText");
    let file = project.file("my trace");
    assert_eq!(
        gone,
        format!(
            "The command has ended. The page still shows what it has loaded. To view the whole trace: acp trace html '{}'",
            file.display()
        )
    );
    // The rows stay, and so do the messages that were opened.
    wait_for_row(&mut browser, &["two"]);
    click_row(&mut browser, "two");
    wait_for_message(&mut browser, "this message was not opened before");
    click_row(&mut browser, "one");
    wait_for_message(&mut browser, "\"method\": \"one\"");
    browser.take_picture("gone.png");
    // The command that the page shows works in a shell.
    let shown = gone.split_once("acp trace html ").unwrap().1;
    let line = format!("{ACP} trace html {shown}");
    let output = project.program_command("sh").args(["-c", &line]).output();
    CommandResult::from_output(output.unwrap()).expect_code(0);
}

#[test]
fn command_at_a_terminal_stays_until_the_page_is_closed() {
    let project = TestProject::new();
    let agent = "read -r line; read -r line; exit 0";
    let line = format!("{ACP} trace live --address-file address -- sh -c '{agent}'");
    let mut terminal = CommandTerminal::start(&project, &line);
    terminal.wait_for("acp: page of the trace: ");
    let url = project.read_file("address");
    let Some(mut browser) = open_page(url.trim()) else {
        return;
    };
    terminal.send_keys(
        "{\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n",
    );
    terminal.wait_for(
        "acp: the connection has ended. The page still works, until you close it or press Ctrl-C.",
    );
    browser.wait_for("document.getElementById('state').textContent === 'recording ended'");
    // A message that was not opened before, and a filter.
    click_row(&mut browser, "one");
    wait_for_message(&mut browser, "\"method\": \"one\"");
    type_into(&mut browser, "method", "two");
    browser.wait_for("document.querySelectorAll('tr.row').length === 1");
    click_row(&mut browser, "two");
    wait_for_message(&mut browser, "\"method\": \"two\"");
    // Closing the page ends the command.
    browser.call("Page.navigate", json!({ "url": "about:blank" }));
    // The exit code is that of the connection: the agent has exited.
    terminal.expect_exit(3);
    assert!(!project.file("address").exists());
}

#[test]
fn ctrl_c_ends_a_command_that_stays() {
    let project = TestProject::new();
    let line = format!("exec {ACP} trace live --address-file address -- sh -c 'read -r line'");
    let mut terminal = CommandTerminal::start(&project, &line);
    terminal.wait_for("acp: page of the trace: ");
    let url = project.read_file("address");
    let url = url.trim();
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap()
        .0;
    let bearer = format!("Bearer {}", url.split_once('#').unwrap().1);
    let _stream = open_stream(address, &[("Host", address), ("Authorization", &bearer)]);
    terminal.send_keys("end\n");
    terminal.wait_for("acp: the connection has ended.");
    terminal.send_keys("\u{3}");
    terminal.expect_exit(3);
}

//! Tests of a request next to its response.

use super::*;

/// Returns the headings and the texts of the message that is open.
fn opened_parts(browser: &mut Browser) -> Vec<(String, String)> {
    let parts = browser.evaluate(
        "[...document.querySelectorAll('#message .part')].map((part) => [part.querySelector('h3')?.textContent ?? '', (part.querySelector('pre') ?? part).textContent])",
    );
    serde_json::from_value(parts).unwrap()
}

fn open_row(browser: &mut Browser, name: &str) {
    browser.evaluate(&format!(
        "[...document.querySelectorAll('tr.row .open')].find((open) => open.textContent === {}).click()",
        json!(name)
    ));
}

#[test]
fn request_is_shown_next_to_its_response_with_the_time_between() {
    let project = TestProject::new();
    write_trace(&project);
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(project.file("trace"))
        .unwrap();
    writeln!(file, r#"{{"t":6000,"from":"agent","len":1,"msg":{{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file"}}}}"#).unwrap();
    let trace = LiveTrace::start(project.acp_command(&["trace", "live", "trace"]));
    let Some(mut browser) = open_page(&trace.url) else {
        return;
    };
    wait_for_row(&mut browser, &["fs/read_text_file #1"]);
    // Either of the two shows both.
    for name in ["session/prompt #1", "session/prompt =1"] {
        open_row(&mut browser, name);
        browser.wait_for("document.querySelectorAll('#message pre').length === 2");
        let parts = opened_parts(&mut browser);
        assert_eq!(
            (parts[0].0.as_str(), parts[1].0.as_str()),
            ("Request", "Response")
        );
        assert!(parts[0].1.contains("ümläut"), "{parts:?}");
        assert!(parts[1].1.contains("needle"), "{parts:?}");
        let took = browser.evaluate_text("document.getElementById('message-took').textContent");
        assert_eq!(took, "response after 3.0 ms");
        browser.evaluate("document.getElementById('message-close').click()");
    }
    browser.take_picture("pairs.png");
    // A request that the agent sends with the same id is another one. Its response appears when it arrives.
    open_row(&mut browser, "fs/read_text_file #1");
    browser.wait_for(
        "document.getElementById('message').innerText.includes('There is no response yet.')",
    );
    writeln!(file, r#"{{"t":9000,"from":"client","len":1,"msg":{{"jsonrpc":"2.0","id":1,"result":{{"content":"late"}}}}}}"#).unwrap();
    browser.wait_for("document.querySelectorAll('#message pre').length === 2");
    let parts = opened_parts(&mut browser);
    assert!(parts[1].1.contains("late"), "{parts:?}");
    // From one of the two, the page goes to the other, even if the filter hides it.
    browser.evaluate("document.getElementById('message-close').click()");
    type_into(&mut browser, "text", "needle");
    browser.wait_for("document.getElementById('counts').textContent === '1 of 7 messages'");
    wait_for_row(&mut browser, &["session/prompt =1"]);
    open_row(&mut browser, "session/prompt =1");
    browser.wait_for("document.querySelectorAll('#message pre').length === 2");
    browser.evaluate(
        "[...document.querySelectorAll('#message button')].find((button) => button.textContent === 'Show in the list').click()",
    );
    browser.wait_for("document.querySelector('tr.row.is-open')?.dataset.line === '2'");
    assert_eq!(
        browser.evaluate_text("document.getElementById('counts').textContent"),
        "7 messages"
    );
    trace.stop();
}

//! Tests of the page with a trace of very many messages.

use super::*;

/// The number of messages. A debug build needs minutes for more.
const MESSAGES: usize = 20_000;

/// The number of messages if the variable `ACP_TEST_LONG_TRACE` is set.
const MOST_MESSAGES: usize = 100_000;

/// The maximum number of rows in the document, whatever the size of the trace.
const MOST_ROWS: i64 = 120;

/// Appends messages to a trace, as a recorder does. Every thousandth one is different.
fn append_messages(file: &mut std::fs::File, numbers: std::ops::Range<usize>) {
    let mut text = String::new();
    for number in numbers {
        let (name, session) = match number % 1000 {
            0 => ("plan", "rare"),
            _ => ("agent_message_chunk", "often"),
        };
        text.push_str(&format!(
            "{{\"t\":{number},\"from\":\"agent\",\"len\":1,\"msg\":{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"{session}\",\"update\":{{\"sessionUpdate\":\"{name}\",\"content\":{{\"type\":\"text\",\"text\":\"word {number}.\"}}}}}}}}}}\n"
        ));
    }
    file.write_all(text.as_bytes()).unwrap();
}

fn wait_for_counts(browser: &mut Browser, text: &str) {
    browser.wait_for(&format!(
        "document.getElementById('counts').textContent === {}",
        json!(text)
    ));
}

/// Waits until this row is in view, not only in the document. Positions may be fractions of a pixel.
fn wait_for_row_in_view(browser: &mut Browser, line: usize) {
    browser.wait_for(&format!(
        "(() => {{ const row = document.querySelector('tr.row[data-line=\"{line}\"]')?.getBoundingClientRect(); \
         const list = document.getElementById('scroller').getBoundingClientRect(); \
         return row && row.top >= list.top && row.bottom <= list.bottom + 1; }})()"
    ));
}

fn number(value: usize) -> String {
    format!("{},{:03}", value / 1000, value % 1000)
}

#[test]
fn page_of_a_long_trace_scrolls_searches_and_filters_all_messages() {
    let messages = match std::env::var_os("ACP_TEST_LONG_TRACE") {
        Some(_) => MOST_MESSAGES,
        None => MESSAGES,
    };
    let project = TestProject::new();
    project.write_file(
        "trace",
        "{\"acp_trace\":1,\"started\":\"2026-01-01T00:00:00Z\",\"command\":[\"my-agent\"],\"by\":\"acp\",\"secrets\":\"redacted\"}\n",
    );
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(project.file("trace"))
        .unwrap();
    let trace = LiveTrace::start(project.acp_command(&["trace", "live", "trace"]));
    let Some(mut browser) = open_page(&trace.url) else {
        return;
    };
    let rows = |browser: &mut Browser| {
        let rows = browser.evaluate("document.querySelectorAll('#rows tr').length");
        rows.as_i64().unwrap()
    };
    let scroll_to = |browser: &mut Browser, part: &str| {
        browser.evaluate(&format!(
            "(() => {{ const list = document.getElementById('scroller'); list.scrollTop = list.scrollHeight * {part}; }})()"
        ));
    };
    // The messages arrive while the page is open, and the page follows the last one.
    for first in (0..messages).step_by(1000) {
        append_messages(&mut file, first..first + 1000);
        if first == 0 {
            wait_for_row_in_view(&mut browser, 1001);
        }
    }
    wait_for_counts(&mut browser, &format!("{} messages", number(messages)));
    wait_for_row_in_view(&mut browser, messages + 1);
    assert!(rows(&mut browser) <= MOST_ROWS);
    // All messages can be reached by scrolling, and the page then stays where it is.
    scroll_to(&mut browser, "0");
    wait_for_row_in_view(&mut browser, 2);
    assert_eq!(
        browser.evaluate("document.getElementById('follow').checked"),
        false
    );
    append_messages(&mut file, messages..messages + 1);
    wait_for_counts(&mut browser, &format!("{} messages", number(messages + 1)));
    assert_eq!(
        browser.evaluate("document.getElementById('scroller').scrollTop"),
        0
    );
    scroll_to(&mut browser, "0.5");
    browser.wait_for(&format!(
        "[...document.querySelectorAll('tr.row')].some((row) => Math.abs(row.dataset.line - {}) < 30)",
        messages / 2
    ));
    // While the user scrolls through everything, the document stays small.
    for step in 0..=20 {
        scroll_to(&mut browser, &format!("{step} / 20"));
        browser.wait_for("document.querySelector('#rows tr.row') !== null");
        assert!(rows(&mut browser) <= MOST_ROWS);
    }
    wait_for_row_in_view(&mut browser, messages + 2);
    browser.take_picture("long.png");
    // Search and filters select from all messages.
    let last = number(messages + 1);
    let text = format!("word {}.", messages / 4 + 1);
    type_into(&mut browser, "text", &text);
    wait_for_counts(&mut browser, &format!("1 of {last} messages"));
    wait_for_row(&mut browser, &[&text]);
    browser.evaluate("document.getElementById('clear').click()");
    wait_for_counts(&mut browser, &format!("{last} messages"));
    type_into(&mut browser, "method", "plan");
    let plans = messages / 1000 + 1;
    wait_for_counts(&mut browser, &format!("{plans} of {last} messages"));
    assert!(shown_names(&mut browser).iter().all(|name| name == "plan"));
    // A message in the middle opens, with its own content.
    let line = 2000 + 2;
    browser.evaluate("document.getElementById('follow').checked = false");
    scroll_to(&mut browser, "0");
    wait_for_row_in_view(&mut browser, line);
    browser.evaluate(&format!(
        "document.querySelector('tr.row[data-line=\"{line}\"] .open').click()"
    ));
    browser.wait_for("document.querySelector('#message pre')?.textContent.includes('word 2000.')");
    trace.stop();
}

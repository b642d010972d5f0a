//! Checks how a client starts commands and limits their output.

use serde_json::{Value, json};

use crate::check::checks;
use crate::client_harness::ClientHarness;
use crate::verdict::{CheckStop, require, skip};

use super::steps::{ScratchDirectory, request_result, wait_for_prompt_with_capability};
use super::terminals::{CheckTerminal, TERMINAL_CAPABILITY};

checks! { V1 Client "terminals";
    121 Must "Arguments are passed verbatim, without a shell." => passes_arguments;
    122 Must "The command gets the given environment variables." => passes_environment;
    123 Must "The command runs in `cwd`." => runs_in_given_directory;
    124 Must "Output that exceeds `outputByteLimit` is truncated at the beginning." => limits_output;
    125 Must "Truncated output is valid UTF-8." => does_not_split_characters;
    126 Must "`truncated` is set if output was truncated." => reports_truncation;
    127 Must "Output includes stderr." => includes_stderr;
}

/// Runs a command, waits until it exits, and returns the result of `terminal/output`.
async fn command_result(
    harness: &mut ClientHarness,
    line: &str,
    more: Value,
) -> Result<Value, CheckStop> {
    let terminal = CheckTerminal::run(harness, line, more).await?;
    finish_command(harness, terminal).await
}

async fn finish_command(
    harness: &mut ClientHarness,
    terminal: CheckTerminal,
) -> Result<Value, CheckStop> {
    terminal.request(harness, "terminal/wait_for_exit").await?;
    let response = terminal.request(harness, "terminal/output").await?;
    terminal.finish(harness).await?;
    Ok(response)
}

fn output_text(response: &Value) -> &str {
    response["output"].as_str().unwrap_or_default()
}

async fn passes_arguments(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, TERMINAL_CAPABILITY).await?;
    // `$1` and not `$HOME`, because the shell does not expand its arguments again.
    let args = json!([
        "-c",
        "printf '<%s>' \"$@\"",
        "sh",
        "$HOME",
        "a b",
        "*",
        "; exit 3",
        "\"'\\",
        ""
    ]);
    let params = json!({"sessionId": prompted.session, "command": "/bin/sh", "args": args});
    let created = request_result(harness, "terminal/create", params).await?;
    let id = created["terminalId"].clone();
    let response = finish_command(
        harness,
        CheckTerminal {
            prompt: prompted,
            id,
        },
    )
    .await?;
    let expected = "<$HOME><a b><*><; exit 3><\"'\\><>";
    require(output_text(&response).trim_end() == expected, || {
        format!(
            "the arguments {expected} reached the command as {}",
            output_text(&response)
        )
    })
}

async fn passes_environment(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let env = json!([
        {"name": "ACP_CHECK_ONE", "value": "a b=\"c\""},
        {"name": "ACP_CHECK_TWO", "value": ""},
    ]);
    let line = "printf '<%s><%s>' \"$ACP_CHECK_ONE\" \"${ACP_CHECK_TWO-not set}\"";
    let response = command_result(harness, line, json!({ "env": env })).await?;
    require(output_text(&response).trim_end() == "<a b=\"c\"><>", || {
        format!(
            "the variables in `env` reached the command as {:?}",
            output_text(&response)
        )
    })
}

async fn runs_in_given_directory(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, TERMINAL_CAPABILITY).await?;
    let scratch = ScratchDirectory::new(harness)?;
    scratch.create_file("here", "")?;
    let line = "test -e here && echo yes || pwd";
    let terminal =
        CheckTerminal::run_in_turn(harness, prompted, line, json!({"cwd": scratch.path()})).await?;
    let response = finish_command(harness, terminal).await?;
    require(output_text(&response).trim_end() == "yes", || {
        format!(
            "`cwd` was {}, but the command ran in {}",
            scratch.path().display(),
            output_text(&response).trim_end()
        )
    })
}

async fn limits_output(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let line = "printf 0123456789abcdef";
    let response = command_result(harness, line, json!({"outputByteLimit": 10})).await?;
    let kept = output_text(&response);
    require(kept.len() <= 10, || {
        format!(
            "the limit was 10 bytes, but {} were returned: {kept:?}",
            kept.len()
        )
    })?;
    require(
        !kept.is_empty() && "0123456789abcdef".ends_with(kept),
        || format!("the output ended with \"6789abcdef\", but {kept:?} was returned"),
    )
}

async fn does_not_split_characters(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    // Each character has three bytes. Ten bytes hold three characters, with one byte left over.
    let line = "printf '世界世界世界'";
    let response = command_result(harness, line, json!({"outputByteLimit": 10})).await?;
    let kept = output_text(&response);
    require(
        !kept.contains('\u{fffd}') && "世界世界世界".ends_with(kept),
        || format!("output was truncated within a character: {kept:?}"),
    )?;
    if kept.len() > 10 {
        return skip("the output was not truncated");
    }
    Ok(())
}

async fn reports_truncation(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let prompted = wait_for_prompt_with_capability(harness, TERMINAL_CAPABILITY).await?;
    let long = json!({"outputByteLimit": 4});
    let cut =
        CheckTerminal::run_in_turn(harness, prompted.clone(), "printf 0123456789", long).await?;
    cut.request(harness, "terminal/wait_for_exit").await?;
    let response = cut.request(harness, "terminal/output").await?;
    // A client that reports truncation honestly passes this check even if it does not truncate output. Another check
    // tests that.
    let what = match output_text(&response) {
        "0123456789" => "was not truncated",
        _ => "was cut",
    };
    require(response["truncated"] == (what == "was cut"), || {
        format!(
            "output {what}, but `truncated` is {}",
            response["truncated"]
        )
    })?;
    cut.request(harness, "terminal/release").await?;
    let short = json!({"outputByteLimit": 4096});
    let whole = CheckTerminal::run_in_turn(harness, prompted, "printf 0123456789", short).await?;
    let response = finish_command(harness, whole).await?;
    require(response["truncated"] == false, || {
        format!(
            "output was not truncated, but `truncated` is {}",
            response["truncated"]
        )
    })
}

async fn includes_stderr(harness: &mut ClientHarness) -> Result<(), CheckStop> {
    let response = command_result(harness, "echo wrong >&2", json!({})).await?;
    require(output_text(&response).trim_end() == "wrong", || {
        format!(
            "\"wrong\" was written to stderr, but the output is {:?}",
            output_text(&response)
        )
    })
}

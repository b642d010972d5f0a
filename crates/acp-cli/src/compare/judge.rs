//! The judge: a command of the user's that scores the results.

use std::collections::BTreeMap;
use std::time::Duration;

use acp_host::Environment;
use serde::{Deserialize, Serialize};

use super::outcome::{AgentOutcome, ComparedState, JudgeOutcome, TestOutcome};
use super::run::ComparisonSetup;
use super::shell::{BoundedCommand, shell_command};

/// The maximum size of the judge's answer, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// What the judge gets on stdin.
#[derive(Serialize)]
struct JudgeRequest<'a> {
    prompt: &'a str,
    results: Vec<JudgedResult<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JudgedResult<'a> {
    label: &'a str,
    state: ComparedState,
    answer: &'a str,
    diff: &'a str,
    is_diff_truncated: bool,
    test: Option<&'a TestOutcome>,
}

/// What the judge prints.
#[derive(Debug, Deserialize)]
struct JudgeAnswer {
    scores: BTreeMap<String, f64>,
    reason: Option<String>,
}

/// Runs the judge, and sets the scores of the agents.
pub(super) async fn judge_results(
    setup: &ComparisonSetup,
    line: &str,
    prompt: &str,
    agents: &mut [AgentOutcome],
) -> JudgeOutcome {
    let results = agents.iter().map(|agent| JudgedResult {
        label: &agent.label,
        state: agent.state,
        answer: &agent.answer,
        diff: agent.diff.as_ref().map_or("", |diff| &diff.text),
        is_diff_truncated: agent.diff.as_ref().is_some_and(|diff| diff.is_truncated),
        test: agent.test.as_ref(),
    });
    let request = JudgeRequest {
        prompt,
        results: results.collect(),
    };
    let input = match serde_json::to_vec(&request) {
        Ok(input) => input,
        Err(e) => return failed(e.to_string()),
    };
    let command = shell_command(line)
        .cwd(&setup.cwd)
        .environment(Environment::inherit());
    let command = BoundedCommand {
        command,
        input,
        timeout: Duration::from_secs(setup.args.timeout),
        max_output: MAX_ANSWER_BYTES,
        keeps_end: false,
        grace: Duration::ZERO,
    };
    let ended = match command.run(&setup.stop).await {
        Ok(ended) => ended,
        Err(error) => return failed(error),
    };
    match ended.exit {
        Some(exit) if exit.success() => {}
        Some(exit) => return failed(format!("{exit}\n{}", ended.stderr.trim())),
        None if ended.is_timeout => {
            return failed(format!("timed out after {} s", setup.args.timeout));
        }
        None => return failed("cancelled"),
    }
    if ended.is_truncated {
        let limit = MAX_ANSWER_BYTES;
        return failed(format!("the answer is too long (limit: {limit} bytes)"));
    }
    read_answer(&ended.output, agents)
}

/// Sets the scores from the judge's answer.
fn read_answer(output: &[u8], agents: &mut [AgentOutcome]) -> JudgeOutcome {
    let answer: JudgeAnswer = match serde_json::from_slice(output) {
        Ok(answer) => answer,
        Err(e) => {
            let expected = r#"{"scores": {LABEL: NUMBER}, "reason": TEXT}"#;
            return failed(format!("the answer is not {expected}: {e}"));
        }
    };
    let mut unknown = Vec::new();
    for (label, score) in answer.scores {
        match agents.iter_mut().find(|agent| agent.label == label) {
            Some(agent) => agent.score = Some(score),
            None => unknown.push(label),
        }
    }
    let error = match unknown.is_empty() {
        true => None,
        false => Some(format!("there is no agent {}", unknown.join(", "))),
    };
    JudgeOutcome {
        reason: answer.reason,
        error,
    }
}

fn failed(error: impl Into<String>) -> JudgeOutcome {
    JudgeOutcome {
        reason: None,
        error: Some(error.into()),
    }
}

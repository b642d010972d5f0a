//! A typical task for a coding agent: the project, and a model that solves the task on the second attempt.

use serde_json::json;

use super::provider::{AnswerPiece, ProviderReply, ProviderUsage};

/// The user's prompt.
pub const TASK_PROMPT: &str = "Greet people as the tests want it.";

/// The model's final message.
pub const FINAL_ANSWER: &str = "The greeting is as the tests want it, and they pass.";

/// The file to change: the original, the model's first version, and the correct version.
pub const ORIGINAL_GREETING: &str = "greet() {\n    echo \"Hello $1\"\n}\n";
pub const INCOMPLETE_GREETING: &str = "greet() {\n    echo \"Hello, $1\"\n}\n";
pub const CORRECT_GREETING: &str = "greet() {\n    echo \"Hello, $1!\"\n}\n";

/// The test script. The model cannot predict its output, and has to run it.
pub const TEST_SCRIPT: &str = r#". ./greet.sh
echo "testing in $(basename "$PWD")"
said=$(greet Ada)
if [ "$said" != "Hello, Ada!" ]; then
    echo "FAILED: wanted <Hello, Ada!>, got <$said>"
    exit 3
fi
echo "1 test passed"
"#;

/// The command that runs the tests.
pub const TEST_COMMAND: &str = "sh test.sh";

/// The files of the project.
pub const PROJECT_FILES: [(&str, &str); 2] =
    [("greet.sh", ORIGINAL_GREETING), ("test.sh", TEST_SCRIPT)];

/// The steps of the plan, followed by their statuses in each report of the plan.
pub const PLAN_STEPS: [&str; 3] = ["Change the greeting", "Run the tests", "Mend what fails"];
pub const PLAN_STATUSES: [[&str; 3]; 3] = [
    ["in_progress", "pending", "pending"],
    ["completed", "in_progress", "pending"],
    ["completed", "completed", "in_progress"],
];

/// The statuses of the plan at the end.
pub const FINISHED_PLAN_STATUSES: [&str; 3] = ["completed"; 3];

/// The number of tokens used by the last round.
pub const LAST_ROUND_TOKENS: u64 = 6 * TOKENS_PER_ROUND + TOKENS_PER_ANSWER;

/// The number of tokens added by each round, and the number in each response.
const TOKENS_PER_ROUND: u64 = 1000;
const TOKENS_PER_ANSWER: u64 = 100;

fn plan_call(id: &'static str, states: [&str; 3]) -> AnswerPiece {
    let entries: Vec<_> = PLAN_STEPS
        .iter()
        .zip(states)
        .map(|(content, status)| json!({"content": content, "status": status}))
        .collect();
    AnswerPiece::Call(id, "plan", json!({ "entries": entries }))
}

fn edit_call(id: &'static str, search: &str, replacement: &str) -> AnswerPiece {
    let arguments = json!({"path": "greet.sh", "search": search, "replacement": replacement});
    AnswerPiece::Call(id, "edit", arguments)
}

fn run_call(id: &'static str) -> AnswerPiece {
    AnswerPiece::Call(id, "run", json!({ "command": TEST_COMMAND }))
}

fn read_call(id: &'static str, path: &str) -> AnswerPiece {
    AnswerPiece::Call(id, "read", json!({ "path": path }))
}

/// Returns the model's responses, round by round.
pub fn task_replies() -> Vec<ProviderReply> {
    let rounds = [
        vec![
            AnswerPiece::Think("Two files, I need both."),
            AnswerPiece::Sign("signed"),
            AnswerPiece::Text("I look at the code and its tests."),
            read_call("read-1", "greet.sh"),
            read_call("read-2", "test.sh"),
        ],
        vec![
            plan_call("plan-1", PLAN_STATUSES[0]),
            edit_call("edit-1", "echo \"Hello $1\"", "echo \"Hello, $1\""),
        ],
        vec![plan_call("plan-2", PLAN_STATUSES[1]), run_call("run-1")],
        vec![
            AnswerPiece::Text("An exclamation mark is missing."),
            plan_call("plan-3", PLAN_STATUSES[2]),
            edit_call("edit-2", "Hello, $1", "Hello, $1!"),
            run_call("run-2"),
        ],
        vec![plan_call("plan-4", FINISHED_PLAN_STATUSES)],
        vec![AnswerPiece::Text(FINAL_ANSWER)],
    ];
    (1..)
        .zip(rounds)
        .map(|(round, mut says)| {
            says.push(AnswerPiece::Usage(ProviderUsage {
                input: round * TOKENS_PER_ROUND,
                output: TOKENS_PER_ANSWER,
                ..ProviderUsage::default()
            }));
            ProviderReply::Says(says)
        })
        .collect()
}

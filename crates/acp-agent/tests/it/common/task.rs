//! A task as people give it to a coding agent, the project it is about, and a model that gets it right the second
//! time.

use serde_json::json;

use super::provider::{AnswerPiece, ProviderReply, ProviderUsage};

/// What the person asks for.
pub const PROMPT: &str = "Greet people as the tests want it.";

/// What is said in the end.
pub const DONE: &str = "The greeting is as the tests want it, and they pass.";

/// What has to be changed, as it is, as the model first makes it, and as it is to be.
pub const GREETING: &str = "greet() {\n    echo \"Hello $1\"\n}\n";
pub const HALF_WAY: &str = "greet() {\n    echo \"Hello, $1\"\n}\n";
pub const RIGHT: &str = "greet() {\n    echo \"Hello, $1!\"\n}\n";

/// How it is tested. What this prints nobody can know who has not run it.
pub const TESTS: &str = r#". ./greet.sh
echo "testing in $(basename "$PWD")"
said=$(greet Ada)
if [ "$said" != "Hello, Ada!" ]; then
    echo "FAILED: wanted <Hello, Ada!>, got <$said>"
    exit 3
fi
echo "1 test passed"
"#;

/// The command that tests it.
pub const COMMAND: &str = "sh test.sh";

/// The files of the project.
pub const FILES: [(&str, &str); 2] = [("greet.sh", GREETING), ("test.sh", TESTS)];

/// The plan, and how far each of its steps is, whenever that is said.
pub const PLAN: [&str; 3] = ["Change the greeting", "Run the tests", "Mend what fails"];
pub const STATES: [[&str; 3]; 3] = [
    ["in_progress", "pending", "pending"],
    ["completed", "in_progress", "pending"],
    ["completed", "completed", "in_progress"],
];

/// How the plan ends.
pub const FINISHED: [&str; 3] = ["completed"; 3];

/// How many tokens the last round takes.
pub const USED: u64 = 6 * ROUND + ANSWER;

/// How many come with each round, and how many each answer has.
const ROUND: u64 = 1000;
const ANSWER: u64 = 100;

fn plan(id: &'static str, states: [&str; 3]) -> AnswerPiece {
    let entries: Vec<_> = PLAN
        .iter()
        .zip(states)
        .map(|(content, status)| json!({"content": content, "status": status}))
        .collect();
    AnswerPiece::Call(id, "plan", json!({ "entries": entries }))
}

fn edit(id: &'static str, search: &str, replacement: &str) -> AnswerPiece {
    let arguments = json!({"path": "greet.sh", "search": search, "replacement": replacement});
    AnswerPiece::Call(id, "edit", arguments)
}

fn run(id: &'static str) -> AnswerPiece {
    AnswerPiece::Call(id, "run", json!({ "command": COMMAND }))
}

fn read(id: &'static str, path: &str) -> AnswerPiece {
    AnswerPiece::Call(id, "read", json!({ "path": path }))
}

/// What the model answers, round by round.
pub fn answers() -> Vec<ProviderReply> {
    let rounds = [
        vec![
            AnswerPiece::Think("Two files, I need both."),
            AnswerPiece::Sign("signed"),
            AnswerPiece::Text("I look at the code and its tests."),
            read("read-1", "greet.sh"),
            read("read-2", "test.sh"),
        ],
        vec![
            plan("plan-1", STATES[0]),
            edit("edit-1", "echo \"Hello $1\"", "echo \"Hello, $1\""),
        ],
        vec![plan("plan-2", STATES[1]), run("run-1")],
        vec![
            AnswerPiece::Text("An exclamation mark is missing."),
            plan("plan-3", STATES[2]),
            edit("edit-2", "Hello, $1", "Hello, $1!"),
            run("run-2"),
        ],
        vec![plan("plan-4", FINISHED)],
        vec![AnswerPiece::Text(DONE)],
    ];
    (1..)
        .zip(rounds)
        .map(|(round, mut says)| {
            says.push(AnswerPiece::Usage(ProviderUsage {
                input: round * ROUND,
                output: ANSWER,
                ..ProviderUsage::default()
            }));
            ProviderReply::Says(says)
        })
        .collect()
}

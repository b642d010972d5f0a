//! Tests a whole task with a local model, using the two commands that a user would run. A server that responds like the
//! model takes its place.

#[path = "../../../acp-agent/tests/it/common/provider/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "not every test needs it")]
pub(crate) mod provider;
#[path = "../../../acp-agent/tests/it/common/task.rs"]
#[allow(dead_code, unreachable_pub, reason = "not every test needs it")]
mod task;

use crate::common::{ACP, CommandResult, TestProject};
use acp_agent::{Provider, WireFormat};
use provider::{AnswerPiece, ProviderReply, ProviderServer};
use serde_json::Value;

/// Returns the `acp agent` arguments that the README gives for a local model, with a different base URL.
fn readme_args(server: &ProviderServer) -> Vec<String> {
    const README_BASE_URL: &str = "http://127.0.0.1:11434/v1";
    let readme = include_str!("../../../../README.md");
    let mut lines = readme.lines();
    let line = lines.find(|line| line.starts_with('{') && line.contains(README_BASE_URL));
    let entry: Value = serde_json::from_str(line.expect("the README has it")).unwrap();
    assert_eq!(entry["command"], "acp");
    let args = entry["args"].as_array().unwrap().iter();
    let args: Vec<&str> = args.map(|arg| arg.as_str().unwrap()).collect();
    let typed = format!("-- acp {}\n", args.join(" "));
    assert!(readme.contains(&typed), "the same in a terminal: {typed}");
    let at = format!("http://{}/v1", server.address);
    let args = args.into_iter();
    args.map(|arg| arg.replace(README_BASE_URL, &at)).collect()
}

fn task_project() -> TestProject {
    let project = TestProject::new();
    for (name, text) in task::PROJECT_FILES {
        project.write_file(name, text);
    }
    project
}

/// Runs `acp run` with the bundled agent and these arguments.
async fn run_task(project: &TestProject, server: &ProviderServer, args: &[&str]) -> CommandResult {
    let mut command = project.agent_command(args);
    command.args([task::TASK_PROMPT, "--", ACP]);
    command.args(readme_args(server));
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    CommandResult::from_output(ended.await.unwrap())
}

#[tokio::test]
async fn local_model_completes_the_task() {
    for version in ["1", "2"] {
        let server = ProviderServer::new(Provider::OpenAi, task::task_replies()).await;
        let project = task_project();
        let args = ["--protocol", version, "--allow", "all"];
        let ended = run_task(&project, &server, &args).await.expect_code(0);
        let name = project.path().file_name().unwrap().to_str().unwrap();
        let testing = format!("  | testing in {name}\n");
        ended.expect_stdout(&[
            "Two files, I need both.",
            "I look at the code and its tests.",
            "* Read `greet.sh` (read)",
            "completed",
            "* Read `test.sh` (read)",
            "completed",
            "Plan\n  [>] Change the greeting\n  [ ] Run the tests\n  [ ] Mend what fails\n",
            "* Edit `greet.sh` (edit)",
            "-    echo \"Hello $1\"\n",
            "+    echo \"Hello, $1\"\n",
            "completed",
            "  [x] Change the greeting\n",
            "  [>] Run the tests\n",
            "* Run `sh test.sh` (execute)",
            &testing,
            "  | FAILED: wanted <Hello, Ada!>, got <Hello, Ada>\n",
            "failed: exit code 3",
            "An exclamation mark is missing.",
            "  [>] Mend what fails\n",
            "* Edit `greet.sh` (edit)",
            "+    echo \"Hello, $1!\"\n",
            "* Run `sh test.sh` (execute)",
            &testing,
            "  | 1 test passed\n",
            "completed",
            "  [x] Mend what fails\n",
            task::FINAL_ANSWER,
        ]);
        assert_eq!(project.read_file("greet.sh"), task::CORRECT_GREETING);
        assert_eq!(project.read_file("test.sh"), task::TEST_SCRIPT);
        // It knew what had come of it, and was asked without a key.
        let heard = server.requests();
        assert_eq!(heard.len(), 6);
        let [_, ran] = &heard[3].tool_results(Provider::OpenAi)[..] else {
            panic!("{:?}", heard[3])
        };
        assert!(ran.contains("got <Hello, Ada>"), "{ran}");
        let asked = |heard: &provider::ProviderRequest| {
            heard.path == "/v1/chat/completions" && heard.header("authorization").is_none()
        };
        assert!(heard.iter().all(asked), "{heard:?}");
    }
}

#[tokio::test]
async fn server_is_called_in_the_requested_wire_format() {
    let server = ProviderServer::new(WireFormat::OpenAiResponses, task::task_replies()).await;
    let project = task_project();
    let mut command = project.agent_command(&["--allow", "all", "--format", "quiet"]);
    command.args([task::TASK_PROMPT, "--", ACP]);
    let args = readme_args(&server).into_iter();
    command.args(args.map(|arg| arg.replace("openai/", "openai-responses/")));
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    CommandResult::from_output(ended.await.unwrap()).expect_code(0);
    assert_eq!(project.read_file("greet.sh"), task::CORRECT_GREETING);
    let heard = server.requests();
    assert_eq!(heard.len(), 6);
    assert!(heard.iter().all(|heard| heard.path == "/v1/responses"));
}

#[tokio::test]
async fn rejected_action_is_not_performed_and_the_model_is_informed() {
    let mut answers = task::task_replies();
    // It gives up where it is not allowed to change anything.
    answers.truncate(2);
    answers.push(ProviderReply::Says(vec![AnswerPiece::Text(
        "Then I leave it.",
    )]));
    let server = ProviderServer::new(Provider::OpenAi, answers).await;
    let project = task_project();
    let ended = run_task(
        &project,
        &server,
        &["--allow", "reads", "--format", "quiet"],
    )
    .await;
    let ended = ended
        .expect_code(8)
        .expect_stderr("rejected by --allow reads");
    assert!(ended.stdout.ends_with("Then I leave it.\n"), "{ended:?}");
    assert_eq!(project.read_file("greet.sh"), task::ORIGINAL_GREETING);
    let [_, edited] = &server.requests()[2].tool_results(Provider::OpenAi)[..] else {
        panic!("{:?}", server.requests())
    };
    assert_eq!(edited, "Permission denied by the user.");
}

#[tokio::test]
async fn model_failure_is_reported_in_one_sentence() {
    let unknown = r#"{"error":{"message":"model 'any' not found","type":"api_error"}}"#;
    let unknown = ProviderReply::Status(404, &[], unknown.to_owned());
    let server = ProviderServer::new(Provider::OpenAi, [unknown]).await;
    let project = task_project();
    let ended = run_task(&project, &server, &["--allow", "all"])
        .await
        .expect_code(1);
    let said = ended.find_line("acp: ");
    let parts = [
        "qwen3:8b at http://",
        "model not found",
        "model 'any' not found",
    ];
    for part in [&parts[..], &[&server.address.to_string()]].concat() {
        assert!(said.contains(part), "{part:?} is not said: {ended:?}");
    }
    // The session is there still.
    ended.expect_stderr("continue with: acp run --resume ");
}

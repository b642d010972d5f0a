//! Tests commands that the agent runs itself, in a display terminal.

use crate::common;
use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, OfferedCapabilities, call_terminal,
    call_text, is_running, load_count, parse_pid, wait_for_thread,
};
use acp::Options;
use acp::thread::{ThreadTerminal, ToolCallStatus};
use acp::v1::*;
use acp_agent::{CodingAgent, ModelConfig};

/// The capabilities of a client that shows display terminals but offers nothing else.
const DISPLAY_TERMINALS_ONLY: OfferedCapabilities = OfferedCapabilities {
    shows: true,
    ..NO_CAPABILITIES
};

fn options_per_version() -> [(Options, &'static str); 2] {
    [
        (Options::new(), "failed"),
        (Options::new().draft_version_2(), "cancelled"),
    ]
}

async fn start_offline_agent(options: Options, offers: OfferedCapabilities) -> AgentFixture {
    let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
    AgentFixture::start_with_options(options, agent, offers).await
}

/// Returns the terminal of the last tool call, as shown to the user.
fn only_terminal(f: &AgentFixture) -> ThreadTerminal {
    let id = call_terminal(&f.last_tool_call()).expect("the call has a terminal");
    let terminal = |thread: &acp::Thread| thread.terminal(&id).cloned();
    f.session.thread().read(terminal).expect("it is known")
}

#[tokio::test]
async fn output_and_exit_status_are_shown() {
    for (options, _) in options_per_version() {
        let v2 = options.latest() == ProtocolVersion::V2;
        let f = start_offline_agent(options, DISPLAY_TERMINALS_ONLY).await;
        f.queue_answers([ALLOW]);
        // The output arrives in two pieces, the first of which ends within a character.
        f.prompt_for_text(
            "/run printf 'one \\303'; sleep 0.3; printf '\\251\\n'; echo two >&2; exit 3",
        )
        .await;
        let call = f.last_tool_call();
        assert_eq!(call.status, ToolCallStatus::Failed);
        let terminal = only_terminal(&f);
        assert_eq!(terminal.output(), "one \u{e9}\ntwo\n");
        assert_eq!(terminal.exit_status.unwrap().exit_code, Some(3));
        assert!(terminal.cwd.is_some());
        if v2 {
            let command = terminal.command.unwrap();
            assert!(command.starts_with("sh -c 'printf "), "{command}");
        }
        // The output is only in the terminal, and not repeated as text.
        assert_eq!(call_text(&call), "Exit code 3.");
        assert_eq!(load_count(&f.seen.created), 0);
    }
}

#[tokio::test]
async fn output_is_shown_live_and_cancel_kills_the_command() {
    for (options, cancelled) in options_per_version() {
        let f = start_offline_agent(options, DISPLAY_TERMINALS_ONLY).await;
        f.queue_answers([ALLOW]);
        let turn = f.start_prompt("/run echo pid:$$; sleep 1000; echo late");
        let printed = |thread: &acp::Thread| {
            let mut items = thread.items().iter();
            items.any(|item| match &item.kind {
                acp::thread::ItemKind::ToolCall(call) => call_terminal(call)
                    .and_then(|id| thread.terminal(&id))
                    .is_some_and(|terminal| terminal.output().contains('\n')),
                _ => false,
            })
        };
        wait_for_thread(f.session.thread(), printed).await;
        let pid = parse_pid(&only_terminal(&f).output()).unwrap();
        assert!(is_running(pid));
        assert_eq!(f.cancel_turn(turn).await, StopReason::Cancelled);
        assert!(!is_running(pid));
        let call = f.last_tool_call();
        assert_eq!(call.status.as_str(), cancelled);
        assert!(call.is_finished());
        let terminal = only_terminal(&f);
        assert_eq!(terminal.output(), format!("pid:{pid}\n"));
        assert_eq!(
            terminal.exit_status.unwrap().signal.as_deref(),
            Some("SIGKILL")
        );
        // Version 1 has no status for this, so a text says it.
        assert_eq!(
            call_text(&call).contains("Cancelled"),
            cancelled == "failed"
        );
    }
}

#[tokio::test]
async fn long_output_is_limited_and_its_tail_is_shown() {
    for (options, _) in options_per_version() {
        let f = start_offline_agent(options, DISPLAY_TERMINALS_ONLY).await;
        f.queue_answers([ALLOW]);
        f.prompt_for_text("/run yes 0123456789 | head -c 5000000; echo; echo end")
            .await;
        assert_eq!(f.last_tool_call().status, ToolCallStatus::Completed);
        let output = only_terminal(&f).output();
        assert!(output.ends_with("\nend\n"), "{:?}", output.get(..100));
    }
}

#[tokio::test]
async fn client_terminal_is_preferred() {
    let f = start_offline_agent(Options::new(), ALL_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/run echo one").await;
    assert_eq!(load_count(&f.seen.created), 1);
    assert!(call_terminal(&f.last_tool_call()).is_some());
}

#[tokio::test]
async fn cancelled_call_has_the_status_of_the_protocol_version() {
    for (options, cancelled) in options_per_version() {
        let f = start_offline_agent(options, DISPLAY_TERMINALS_ONLY).await;
        f.queue_answers([common::QuestionAnswer::Hang]);
        let asked = |_: &acp::Thread| !f.permission_requests().is_empty();
        let stopped = f.cancel_when("/write a.txt new", asked).await;
        assert_eq!(stopped, StopReason::Cancelled);
        assert_eq!(f.last_tool_call().status.as_str(), cancelled);
        assert!(!f.file_exists("a.txt"));
    }
}

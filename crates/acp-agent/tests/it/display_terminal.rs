//! Commands that the agent runs itself, in a terminal that the client shows.

use crate::common;
use crate::common::{
    ALL, ALLOW, AgentFixture, ClientOffers, NONE, count, pid, runs, terminal, texts, until,
};
use acp::Options;
use acp::thread::{ThreadTerminal, ToolCallStatus};
use acp::v1::*;
use acp_agent::{CodingAgent, ModelConfig};

/// Lends nothing, and shows what the agent has.
const SHOWS: ClientOffers = ClientOffers {
    shows: true,
    ..NONE
};

fn versions() -> [(Options, &'static str); 2] {
    [
        (Options::new(), "failed"),
        (Options::new().draft_version_2(), "cancelled"),
    ]
}

async fn offline(options: Options, offers: ClientOffers) -> AgentFixture {
    let agent = CodingAgent::new(&ModelConfig::Offline).unwrap();
    AgentFixture::speaking(options, agent, offers).await
}

/// What the last tool call's terminal shows.
fn shown(f: &AgentFixture) -> ThreadTerminal {
    let id = terminal(&f.call()).expect("the call has a terminal");
    let terminal = |thread: &acp::Thread| thread.terminal(&id).cloned();
    f.session.thread().read(terminal).expect("it is known")
}

#[tokio::test]
async fn what_is_printed_and_how_it_ends_is_shown() {
    for (options, _) in versions() {
        let v2 = options.latest() == ProtocolVersion::V2;
        let f = offline(options, SHOWS).await;
        f.answers([ALLOW]);
        // Written in two goes, the first of which ends within a character.
        f.says("/run printf 'one \\303'; sleep 0.3; printf '\\251\\n'; echo two >&2; exit 3")
            .await;
        let call = f.call();
        assert_eq!(call.status, ToolCallStatus::Failed);
        let terminal = shown(&f);
        assert_eq!(terminal.output(), "one \u{e9}\ntwo\n");
        assert_eq!(terminal.exit_status.unwrap().exit_code, Some(3));
        assert!(terminal.cwd.is_some());
        if v2 {
            let command = terminal.command.unwrap();
            assert!(command.starts_with("sh -c 'printf "), "{command}");
        }
        // The output is in the terminal, and not in a text as well.
        assert_eq!(texts(&call), "Exit code 3.");
        assert_eq!(count(&f.seen.created), 0);
    }
}

#[tokio::test]
async fn it_is_shown_while_the_command_runs_and_a_cancel_ends_the_command() {
    for (options, cancelled) in versions() {
        let f = offline(options, SHOWS).await;
        f.answers([ALLOW]);
        let turn = f.begin("/run echo pid:$$; sleep 1000; echo late");
        let printed = |thread: &acp::Thread| {
            let mut items = thread.items().iter();
            items.any(|item| match &item.kind {
                acp::thread::ItemKind::ToolCall(call) => terminal(call)
                    .and_then(|id| thread.terminal(&id))
                    .is_some_and(|terminal| terminal.output().contains('\n')),
                _ => false,
            })
        };
        until(f.session.thread(), printed).await;
        let pid = pid(&shown(&f).output()).unwrap();
        assert!(runs(pid));
        assert_eq!(f.cancelled(turn).await, StopReason::Cancelled);
        assert!(!runs(pid));
        let call = f.call();
        assert_eq!(call.status.as_str(), cancelled);
        assert!(call.is_finished());
        let terminal = shown(&f);
        assert_eq!(terminal.output(), format!("pid:{pid}\n"));
        assert_eq!(
            terminal.exit_status.unwrap().signal.as_deref(),
            Some("SIGKILL")
        );
        // Version 1 has no status for it, so that a text says it.
        assert_eq!(texts(&call).contains("Cancelled"), cancelled == "failed");
    }
}

#[tokio::test]
async fn much_output_is_bounded_and_its_end_is_shown() {
    for (options, _) in versions() {
        let f = offline(options, SHOWS).await;
        f.answers([ALLOW]);
        f.says("/run yes 0123456789 | head -c 5000000; echo; echo end")
            .await;
        assert_eq!(f.call().status, ToolCallStatus::Completed);
        let output = shown(&f).output();
        assert!(output.ends_with("\nend\n"), "{:?}", output.get(..100));
    }
}

#[tokio::test]
async fn a_client_s_own_terminal_is_preferred() {
    let f = offline(Options::new(), ALL).await;
    f.answers([ALLOW]);
    f.says("/run echo one").await;
    assert_eq!(count(&f.seen.created), 1);
    assert!(terminal(&f.call()).is_some());
}

#[tokio::test]
async fn a_call_that_waits_for_permission_is_cancelled_in_the_version_s_own_words() {
    for (options, cancelled) in versions() {
        let f = offline(options, SHOWS).await;
        f.answers([common::QuestionAnswer::Hang]);
        let asked = |_: &acp::Thread| !f.asked().is_empty();
        let stopped = f.cancel_when("/write a.txt new", asked).await;
        assert_eq!(stopped, StopReason::Cancelled);
        assert_eq!(f.call().status.as_str(), cancelled);
        assert!(!f.there("a.txt"));
    }
}

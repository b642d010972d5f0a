//! Tests the offline model's commands end to end, both with a client that supports everything and with one that
//! supports nothing.

use crate::common::{
    ALL_CAPABILITIES, ALLOW, AgentFixture, NO_CAPABILITIES, OfferedCapabilities, REJECT, call_diff,
    call_terminal, call_text, load_count,
};
use acp::thread::ToolCallStatus;
use acp::v1::*;

const PLAN_STATUSES: [&str; 3] = ["pending", "in_progress", "completed"];

#[tokio::test]
async fn agent_announces_its_info_and_commands() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let info = f.agent.info().unwrap();
    assert_eq!(info.name, "acp-agent");
    assert!(!info.version.is_empty());
    assert!(f.agent.capabilities().prompt_capabilities.embedded_context);
    let commands = f.session.thread().read(|thread| thread.commands().to_vec());
    let names: Vec<&str> = commands
        .iter()
        .map(|command| command.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "help", "list", "read", "search", "write", "edit", "run", "test", "plan"
        ]
    );
    let hint = |name: &str| {
        let command = commands
            .iter()
            .find(|command| command.name == name)
            .unwrap();
        command.input.as_ref().map(|input| input.hint.clone())
    };
    assert_eq!(hint("read").as_deref(), Some("PATH[:LINE[-LINE]]"));
    assert_eq!(hint("help"), None);
    let help = f.prompt_for_text("/help").await;
    assert!(
        names
            .iter()
            .all(|name| help.contains(&format!("`/{name}`"))),
        "{help}"
    );
    assert!(f.tool_calls().is_empty());
    assert!(
        f.prompt_for_text("/frob")
            .await
            .contains("Unknown command `/frob`")
    );
    assert!(
        f.prompt_for_text("/read")
            .await
            .contains("PATH[:LINE[-LINE]]")
    );
}

#[tokio::test]
async fn list_shows_a_directory() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file("src/main.rs", "");
        f.write_file("a.txt", "123");
        let said = f.prompt_for_text("/list").await;
        assert!(said.contains("src/\na.txt  (3 bytes)\n"), "{said}");
        let call = f.last_tool_call();
        assert_eq!(f.statuses(&call.id), PLAN_STATUSES);
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("List `.`", &ToolKind::Read)
        );
        assert_eq!(call.locations[0].path, f.path("").trim_end_matches('/'));
        assert_eq!(call.raw_output.unwrap()["entries"][0]["kind"], "directory");
        assert!(f.prompt_for_text("/list src").await.contains("main.rs"));
        // Nothing outside the session's directories is listed.
        f.prompt_for_text("/list ..").await;
        assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
        assert!(
            call_text(&f.last_tool_call()).contains("outside"),
            "{}",
            call_text(&f.last_tool_call())
        );
        assert!(f.permission_requests().is_empty());
    }
}

#[tokio::test]
async fn read_shows_a_file_or_a_line_range() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file("a.txt", "one\ntwo\nthree\nfour\n");
        assert!(
            f.prompt_for_text("/read a.txt")
                .await
                .contains("one\ntwo\nthree\nfour\n")
        );
        let call = f.last_tool_call();
        assert_eq!(f.statuses(&call.id), PLAN_STATUSES);
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("Read `a.txt`", &ToolKind::Read)
        );
        assert_eq!(call.locations, [ToolCallLocation::new(f.path("a.txt"))]);
        assert_eq!(call.raw_input.unwrap()["path"], "a.txt");
        assert_eq!(call.raw_output.unwrap()["lines"], 4);
        assert_eq!(
            f.prompt_for_text("/read a.txt:2-3").await,
            "```\ntwo\nthree\n```"
        );
        assert_eq!(f.last_tool_call().locations[0].line, Some(2));
        assert_eq!(
            f.prompt_for_text(format!("/read {}:3", f.path("a.txt")))
                .await,
            "```\nthree\n```"
        );
        assert!(
            f.prompt_for_text("/read no.txt")
                .await
                .contains("File not found: `no.txt`")
        );
        let call = f.last_tool_call();
        assert_eq!(f.statuses(&call.id), ["pending", "in_progress", "failed"]);
        assert_eq!(load_count(&f.seen.reads), if offers.read { 4 } else { 0 });
    }
}

#[tokio::test]
async fn search_finds_lines_and_skips_ignored_files() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.write_file("src/a.rs", "fn one() {}\nfn two() {}\n");
    f.write_file("src/b.txt", "fn three\n");
    f.write_file(".gitignore", "built/\n*.log\n!kept.log\n");
    f.write_file("built/a.rs", "fn built() {}\n");
    f.write_file("x.log", "fn log\n");
    f.write_file("kept.log", "fn kept\n");
    f.write_file(".hidden/a.rs", "fn hidden\n");
    f.write_file("binary", "fn \0");
    let said = f.prompt_for_text("/search fn").await;
    for found in [
        "src/a.rs:1: fn one() {}",
        "src/a.rs:2:",
        "src/b.txt:1:",
        "kept.log:1:",
    ] {
        assert!(said.contains(found), "{said}");
    }
    for left_out in ["built", "x.log", "hidden", "binary"] {
        assert!(!said.contains(left_out), "{said}");
    }
    let call = f.last_tool_call();
    assert_eq!(
        (f.statuses(&call.id), &call.kind),
        (PLAN_STATUSES.map(String::from).to_vec(), &ToolKind::Search)
    );
    assert_eq!(call.raw_output.unwrap()["matches"], 4);
    assert_eq!(
        call.locations[1],
        ToolCallLocation::new(f.path("src/a.rs")).line(1u32)
    );
    let said = f.prompt_for_text("/search 'fn t..' *.rs").await;
    assert!(
        said.contains("src/a.rs:2") && !said.contains("b.txt"),
        "{said}"
    );
    assert!(
        f.prompt_for_text("/search nowhere")
            .await
            .contains("No matches")
    );
    assert!(
        f.prompt_for_text("/search (")
            .await
            .contains("Invalid regular expression `(`")
    );
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
}

#[cfg(unix)]
#[tokio::test]
async fn local_access_does_not_follow_symlinks_out_of_the_directory() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), f.path("link")).unwrap();
    for command in ["/list link", "/read link/secret.txt", "/search secret"] {
        let said = f.prompt_for_text(command).await;
        assert!(
            !said.contains("secret.txt:1") && !said.contains("```"),
            "{command}: {said}"
        );
    }
    // The user is not asked about an action that is impossible.
    f.prompt_for_text("/write link/new.txt text").await;
    assert_eq!(f.last_tool_call().status, ToolCallStatus::Failed);
    assert!(!outside.path().join("new.txt").exists());
}

#[tokio::test]
async fn write_requests_permission_and_writes() {
    for offers in [
        ALL_CAPABILITIES,
        NO_CAPABILITIES,
        OfferedCapabilities {
            write: false,
            ..ALL_CAPABILITIES
        },
        OfferedCapabilities {
            read: false,
            ..ALL_CAPABILITIES
        },
    ] {
        let f = AgentFixture::start_offline(offers).await;
        f.queue_answers([ALLOW]);
        f.prompt_for_text("/write new.txt\none\ntwo\n").await;
        assert_eq!(f.read_file("new.txt"), "one\ntwo\n");
        let call = f.last_tool_call();
        assert_eq!(f.statuses(&call.id), PLAN_STATUSES);
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("Write `new.txt`", &ToolKind::Edit)
        );
        // A new file has no old text.
        assert_eq!(
            call_diff(&call).unwrap(),
            Diff::new(f.path("new.txt"), "one\ntwo\n")
        );
        let [asked] = &f.permission_requests()[..] else {
            panic!("{:?}", f.permission_requests())
        };
        assert_eq!(asked.tool_call.id, call.id);
        assert_eq!(asked.tool_call.kind, ToolKind::Edit);
        assert_eq!(asked.tool_call.content, call.content);
        let kinds: Vec<String> = asked.options.iter().map(|o| o.kind.to_string()).collect();
        assert_eq!(
            kinds,
            ["allow_once", "allow_always", "reject_once", "reject_always"]
        );

        f.queue_answers([ALLOW]);
        f.prompt_for_text("/write new.txt three").await;
        assert_eq!(f.read_file("new.txt"), "three");
        assert_eq!(
            call_diff(&f.last_tool_call()).unwrap().old_text.as_deref(),
            Some("one\ntwo\n")
        );
        assert_eq!(load_count(&f.seen.writes), if offers.write { 2 } else { 0 });
        assert_eq!(load_count(&f.seen.reads) > 0, offers.read);
    }
}

#[tokio::test]
async fn edit_replaces_exactly_one_match() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file("a.txt", "one\n  two\nthree\ntwo\n");
        f.queue_answers([ALLOW]);
        f.prompt_for_text("/edit a.txt\n  two\nthree\n===\n2\n3")
            .await;
        assert_eq!(f.read_file("a.txt"), "one\n2\n3\ntwo\n");
        let call = f.last_tool_call();
        assert_eq!(f.statuses(&call.id), PLAN_STATUSES);
        let diff = call_diff(&call).unwrap();
        assert_eq!(diff.path, f.path("a.txt"));
        assert_eq!(diff.old_text.as_deref(), Some("one\n  two\nthree\ntwo\n"));
        assert_eq!(diff.new_text, "one\n2\n3\ntwo\n");
        assert_eq!(
            call.locations,
            [ToolCallLocation::new(f.path("a.txt")).line(2u32)]
        );

        // The error is reported without a permission request.
        for (edit, why) in [
            (
                "/edit a.txt\nfour\n===\n4",
                "no match for the search text or its first line",
            ),
            (
                "/edit a.txt\n two\n===\n4",
                "line 4 differs only in whitespace",
            ),
            ("/edit a.txt\no\n===\n4", "2 times, starting on lines 1, 4"),
            ("/edit no.txt\no\n===\n4", "File not found: `no.txt`"),
        ] {
            let said = f.prompt_for_text(edit).await;
            assert!(said.contains(why), "{said}");
            let call = f.last_tool_call();
            assert_eq!(f.statuses(&call.id), ["pending", "failed"]);
            assert!(call_text(&call).contains(why));
            assert_eq!(f.read_file("a.txt"), "one\n2\n3\ntwo\n");
            assert!(f.permission_requests().is_empty());
        }
    }
}

#[tokio::test]
async fn run_uses_a_client_terminal_if_supported() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    let said = f.prompt_for_text("/run pwd; echo \"$((40 + 2))\"").await;
    assert!(said.contains("exited with code 0"), "{said}");
    let call = f.last_tool_call();
    assert_eq!(f.statuses(&call.id), PLAN_STATUSES);
    assert_eq!(call.kind, ToolKind::Execute);
    assert!(call_terminal(&call).is_some());
    let output = call.raw_output.unwrap();
    assert_eq!(output["exitCode"], 0);
    let printed = output["output"].as_str().unwrap();
    assert!(
        printed.contains("42") && printed.contains(f.path("").trim_end_matches('/')),
        "{printed}"
    );
    assert_eq!(
        (load_count(&f.seen.created), load_count(&f.seen.released)),
        (1, 1)
    );
    // The terminal is embedded while the command is running.
    let updates = f.seen.updates.lock().unwrap();
    let running = updates.iter().position(|update| {
        matches!(update, SessionUpdate::ToolCallUpdate(u) if u.status == Some(acp::v1::ToolCallStatus::InProgress))
    });
    let embedded = updates.iter().position(|update| {
        matches!(update, SessionUpdate::ToolCallUpdate(u) if u.content.as_ref().is_some_and(
            |content| matches!(content[..], [ToolCallContent::Terminal(_)])))
    });
    assert_eq!(running.unwrap() + 1, embedded.unwrap());
}

#[tokio::test]
async fn run_shows_output_as_text_without_terminal_support() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/run echo out; echo err >&2").await;
    let call = f.last_tool_call();
    assert_eq!(f.statuses(&call.id), PLAN_STATUSES);
    assert!(call_text(&call).contains("out\nerr\n"));
    assert_eq!(call.raw_output.unwrap()["output"], "out\nerr\n");
}

#[tokio::test]
async fn failing_command_fails_the_call() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.queue_answers([ALLOW]);
        let said = f.prompt_for_text("/run echo no; exit 3").await;
        assert!(said.contains("exited with code 3"), "{said}");
        let call = f.last_tool_call();
        assert_eq!(f.statuses(&call.id), ["pending", "in_progress", "failed"]);
        assert_eq!(call.raw_output.as_ref().unwrap()["exitCode"], 3);
        assert!(call_text(&call).contains("Exit code 3"));
        assert_eq!(call_terminal(&call).is_some(), offers.terminal);
    }
}

#[tokio::test]
async fn long_output_is_truncated_to_its_tail() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    f.queue_answers([ALLOW]);
    f.prompt_for_text("/run i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
        .await;
    let call = f.last_tool_call();
    let output = call.raw_output.as_ref().unwrap();
    let printed = output["output"].as_str().unwrap();
    assert!(printed.len() <= 64 * 1024 && printed.ends_with("line 19999\n"));
    assert_eq!(output["truncated"], true);
    let updates = f.seen.updates.lock().unwrap();
    assert!(updates.len() < 100, "{} updates", updates.len());
}

#[tokio::test]
async fn test_detects_and_runs_the_project_tests() {
    for (offers, code) in [
        (ALL_CAPABILITIES, 0),
        (NO_CAPABILITIES, 0),
        (ALL_CAPABILITIES, 7),
        (NO_CAPABILITIES, 7),
    ] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file(
            "Makefile",
            &format!("all:\ntest:\n\t@echo testing; exit {code}\n"),
        );
        f.queue_answers([ALLOW]);
        let said = f.prompt_for_text("/test").await;
        let calls = f.tool_calls();
        let titles: Vec<&str> = calls.iter().map(|call| call.title.as_str()).collect();
        assert_eq!(titles, ["List `.`", "Read `Makefile`", "Run `make test`"]);
        // make has an exit code of its own.
        let shown = if code == 0 {
            "exited with code 0"
        } else {
            "exited with code 2"
        };
        assert!(
            said.contains("`make test`") && said.contains(shown),
            "{said}"
        );
        assert!(said.starts_with(if code == 0 {
            "The tests passed"
        } else {
            "The tests failed"
        }));
        assert_eq!(
            f.plan_updates(),
            [
                ["in_progress", "pending", "pending"],
                ["completed", "in_progress", "pending"],
                ["completed", "completed", "in_progress"],
                ["completed", "completed", "completed"],
            ]
        );
        assert_eq!(call_terminal(&calls[2]).is_some(), offers.terminal);
    }
}

#[tokio::test]
async fn test_reports_missing_tests_and_missing_permission() {
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    let said = f.prompt_for_text("/test").await;
    assert!(said.contains("No test command found"), "{said}");
    assert_eq!(f.plan_updates().last().unwrap()[..], ["completed"]);
    f.write_file("Cargo.toml", "");
    f.queue_answers([REJECT]);
    let said = f.prompt_for_text("/test").await;
    assert!(said.contains("The tests were not run"), "{said}");
    assert_eq!(f.last_tool_call().title, "Run `cargo test`");
    assert_eq!(
        f.plan_updates().last().unwrap()[..],
        ["completed", "pending", "pending"]
    );
    assert_eq!(load_count(&f.seen.created), 0);
}

#[tokio::test]
async fn plan_surveys_the_project_and_states_its_limits() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file("package.json", r#"{"scripts": {"test": "true"}}"#);
        f.write_file("src/retry.js", "function retry_request() {}\n");
        let said = f.prompt_for_text("/plan Make retry_request patient").await;
        assert!(said.contains("without a language model"), "{said}");
        assert!(said.contains("src/retry.js:1"), "{said}");
        let plan = f
            .session
            .thread()
            .read(|thread| thread.plans()[0].entries().to_vec());
        assert_eq!(
            plan[3].content,
            "Decide what to change to reach the goal: Make retry_request patient"
        );
        assert_eq!(plan[5].content, "Run the tests with `npm test`");
        let (p, i, c) = ("pending", "in_progress", "completed");
        assert_eq!(
            f.plan_updates(),
            [
                [i, p, p, p, p, p, p],
                [c, i, p, p, p, p, p],
                [c, c, i, p, p, p, p],
                [c, c, c, p, p, p, p],
            ]
        );
        assert!(
            f.tool_calls()
                .iter()
                .all(|call| call.status == ToolCallStatus::Completed)
        );
        assert!(f.permission_requests().is_empty());
    }
}

#[tokio::test]
async fn free_text_gets_an_explanation() {
    for offers in [ALL_CAPABILITIES, NO_CAPABILITIES] {
        let f = AgentFixture::start_offline(offers).await;
        f.write_file("README.md", "# A thing\n\nIt does.\n");
        f.write_file("Cargo.toml", "[package]\nname = \"thing\"\n");
        let attached = TextResourceContents::new("some\ntext", "file:///x/notes.md");
        let embedded = EmbeddedResource::new(EmbeddedResourceResource::Text(attached));
        let prompt = vec![
            ContentBlock::text("Fix the bug"),
            ContentBlock::ResourceLink(Box::new(ResourceLink::new("lib.rs", "file:///x/lib.rs"))),
            ContentBlock::Resource(Box::new(embedded)),
        ];
        let said = f.prompt_for_text(prompt).await;
        for part in [
            "No language model is configured",
            "`/test`",
            "attached: `file:///x/lib.rs`, `file:///x/notes.md` (2 lines)",
            "`README.md` begins with: A thing",
            "name = \"thing\"",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let titles: Vec<String> = f.tool_calls().into_iter().map(|call| call.title).collect();
        assert_eq!(
            titles,
            [
                "List `.`",
                "Read `README.md`, lines 1–40",
                "Read `Cargo.toml`, lines 1–40"
            ]
        );
        assert!(f.permission_requests().is_empty());
    }
}

#[tokio::test]
async fn session_in_a_missing_directory_is_rejected_without_client_files() {
    let f = AgentFixture::start_offline(NO_CAPABILITIES).await;
    let error = f.agent.new_session(f.path("no")).await.unwrap_err();
    assert!(error.to_string().contains(&f.path("no")), "{error}");
    // A client that gives access to its files may have the file.
    let f = AgentFixture::start_offline(ALL_CAPABILITIES).await;
    assert!(f.agent.new_session(f.path("no")).await.is_ok());
}

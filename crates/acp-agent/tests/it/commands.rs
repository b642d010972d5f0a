//! The offline model's commands, end to end, with a client that offers everything and one that
//! offers nothing.

use crate::common::{
    ALL, ALLOW, AgentFixture, ClientOffers, NONE, REJECT, count, diff, terminal, texts,
};
use acp::thread::ToolCallStatus;
use acp::v1::*;

const DONE: [&str; 3] = ["pending", "in_progress", "completed"];

#[tokio::test]
async fn the_agent_says_who_it_is_and_what_can_be_typed() {
    let f = AgentFixture::offline(NONE).await;
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
    let help = f.says("/help").await;
    assert!(
        names
            .iter()
            .all(|name| help.contains(&format!("`/{name}`"))),
        "{help}"
    );
    assert!(f.calls().is_empty());
    assert!(f.says("/frob").await.contains("Unknown command `/frob`"));
    assert!(f.says("/read").await.contains("PATH[:LINE[-LINE]]"));
}

#[tokio::test]
async fn list_shows_a_directory() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.put("src/main.rs", "");
        f.put("a.txt", "123");
        let said = f.says("/list").await;
        assert!(said.contains("src/\na.txt  (3 bytes)\n"), "{said}");
        let call = f.call();
        assert_eq!(f.statuses(&call.id), DONE);
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("List `.`", &ToolKind::Read)
        );
        assert_eq!(call.locations[0].path, f.path("").trim_end_matches('/'));
        assert_eq!(call.raw_output.unwrap()["entries"][0]["kind"], "directory");
        assert!(f.says("/list src").await.contains("main.rs"));
        // Not beyond the session's directories.
        f.says("/list ..").await;
        assert_eq!(f.call().status, ToolCallStatus::Failed);
        assert!(texts(&f.call()).contains("outside"), "{}", texts(&f.call()));
        assert!(f.asked().is_empty());
    }
}

#[tokio::test]
async fn read_shows_a_file_or_some_lines() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.put("a.txt", "one\ntwo\nthree\nfour\n");
        assert!(
            f.says("/read a.txt")
                .await
                .contains("one\ntwo\nthree\nfour\n")
        );
        let call = f.call();
        assert_eq!(f.statuses(&call.id), DONE);
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("Read `a.txt`", &ToolKind::Read)
        );
        assert_eq!(call.locations, [ToolCallLocation::new(f.path("a.txt"))]);
        assert_eq!(call.raw_input.unwrap()["path"], "a.txt");
        assert_eq!(call.raw_output.unwrap()["lines"], 4);
        assert_eq!(f.says("/read a.txt:2-3").await, "```\ntwo\nthree\n```");
        assert_eq!(f.call().locations[0].line, Some(2));
        assert_eq!(
            f.says(format!("/read {}:3", f.path("a.txt"))).await,
            "```\nthree\n```"
        );
        assert!(
            f.says("/read no.txt")
                .await
                .contains("File not found: `no.txt`")
        );
        let call = f.call();
        assert_eq!(f.statuses(&call.id), ["pending", "in_progress", "failed"]);
        assert_eq!(count(&f.seen.reads), if offers.read { 4 } else { 0 });
    }
}

#[tokio::test]
async fn search_finds_lines_and_leaves_out_what_is_ignored() {
    let f = AgentFixture::offline(NONE).await;
    f.put("src/a.rs", "fn one() {}\nfn two() {}\n");
    f.put("src/b.txt", "fn three\n");
    f.put(".gitignore", "built/\n*.log\n!kept.log\n");
    f.put("built/a.rs", "fn built() {}\n");
    f.put("x.log", "fn log\n");
    f.put("kept.log", "fn kept\n");
    f.put(".hidden/a.rs", "fn hidden\n");
    f.put("binary", "fn \0");
    let said = f.says("/search fn").await;
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
    let call = f.call();
    assert_eq!(
        (f.statuses(&call.id), &call.kind),
        (DONE.map(String::from).to_vec(), &ToolKind::Search)
    );
    assert_eq!(call.raw_output.unwrap()["matches"], 4);
    assert_eq!(
        call.locations[1],
        ToolCallLocation::new(f.path("src/a.rs")).line(1u32)
    );
    let said = f.says("/search 'fn t..' *.rs").await;
    assert!(
        said.contains("src/a.rs:2") && !said.contains("b.txt"),
        "{said}"
    );
    assert!(f.says("/search nowhere").await.contains("No matches"));
    assert!(
        f.says("/search (")
            .await
            .contains("Invalid regular expression `(`")
    );
    assert_eq!(f.call().status, ToolCallStatus::Failed);
}

#[cfg(unix)]
#[tokio::test]
async fn own_access_does_not_leave_the_directory_by_symlinks() {
    let f = AgentFixture::offline(NONE).await;
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), f.path("link")).unwrap();
    for command in ["/list link", "/read link/secret.txt", "/search secret"] {
        let said = f.says(command).await;
        assert!(
            !said.contains("secret.txt:1") && !said.contains("```"),
            "{command}: {said}"
        );
    }
    // Nobody is asked for what cannot be done.
    f.says("/write link/new.txt text").await;
    assert_eq!(f.call().status, ToolCallStatus::Failed);
    assert!(!outside.path().join("new.txt").exists());
}

#[tokio::test]
async fn write_asks_and_writes() {
    for offers in [
        ALL,
        NONE,
        ClientOffers {
            write: false,
            ..ALL
        },
        ClientOffers { read: false, ..ALL },
    ] {
        let f = AgentFixture::offline(offers).await;
        f.answers([ALLOW]);
        f.says("/write new.txt\none\ntwo\n").await;
        assert_eq!(f.text("new.txt"), "one\ntwo\n");
        let call = f.call();
        assert_eq!(f.statuses(&call.id), DONE);
        assert_eq!(
            (call.title.as_str(), &call.kind),
            ("Write `new.txt`", &ToolKind::Edit)
        );
        // A new file has no old text.
        assert_eq!(
            diff(&call).unwrap(),
            Diff::new(f.path("new.txt"), "one\ntwo\n")
        );
        let [asked] = &f.asked()[..] else {
            panic!("{:?}", f.asked())
        };
        assert_eq!(asked.tool_call.id, call.id);
        assert_eq!(asked.tool_call.kind, ToolKind::Edit);
        assert_eq!(asked.tool_call.content, call.content);
        let kinds: Vec<String> = asked.options.iter().map(|o| o.kind.to_string()).collect();
        assert_eq!(
            kinds,
            ["allow_once", "allow_always", "reject_once", "reject_always"]
        );

        f.answers([ALLOW]);
        f.says("/write new.txt three").await;
        assert_eq!(f.text("new.txt"), "three");
        assert_eq!(
            diff(&f.call()).unwrap().old_text.as_deref(),
            Some("one\ntwo\n")
        );
        assert_eq!(count(&f.seen.writes), if offers.write { 2 } else { 0 });
        assert_eq!(count(&f.seen.reads) > 0, offers.read);
    }
}

#[tokio::test]
async fn edit_replaces_exactly_one_text() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.put("a.txt", "one\n  two\nthree\ntwo\n");
        f.answers([ALLOW]);
        f.says("/edit a.txt\n  two\nthree\n===\n2\n3").await;
        assert_eq!(f.text("a.txt"), "one\n2\n3\ntwo\n");
        let call = f.call();
        assert_eq!(f.statuses(&call.id), DONE);
        let diff = diff(&call).unwrap();
        assert_eq!(diff.path, f.path("a.txt"));
        assert_eq!(diff.old_text.as_deref(), Some("one\n  two\nthree\ntwo\n"));
        assert_eq!(diff.new_text, "one\n2\n3\ntwo\n");
        assert_eq!(
            call.locations,
            [ToolCallLocation::new(f.path("a.txt")).line(2u32)]
        );

        // What cannot be done is said without a question.
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
            let said = f.says(edit).await;
            assert!(said.contains(why), "{said}");
            let call = f.call();
            assert_eq!(f.statuses(&call.id), ["pending", "failed"]);
            assert!(texts(&call).contains(why));
            assert_eq!(f.text("a.txt"), "one\n2\n3\ntwo\n");
            assert!(f.asked().is_empty());
        }
    }
}

#[tokio::test]
async fn run_shows_a_terminal_where_the_client_has_them() {
    let f = AgentFixture::offline(ALL).await;
    f.answers([ALLOW]);
    let said = f.says("/run pwd; echo \"$((40 + 2))\"").await;
    assert!(said.contains("exited with code 0"), "{said}");
    let call = f.call();
    assert_eq!(f.statuses(&call.id), DONE);
    assert_eq!(call.kind, ToolKind::Execute);
    assert!(terminal(&call).is_some());
    let output = call.raw_output.unwrap();
    assert_eq!(output["exitCode"], 0);
    let printed = output["output"].as_str().unwrap();
    assert!(
        printed.contains("42") && printed.contains(f.path("").trim_end_matches('/')),
        "{printed}"
    );
    assert_eq!((count(&f.seen.created), count(&f.seen.released)), (1, 1));
    // It is embedded while it runs.
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
async fn run_shows_output_as_text_where_it_has_none() {
    let f = AgentFixture::offline(NONE).await;
    f.answers([ALLOW]);
    f.says("/run echo out; echo err >&2").await;
    let call = f.call();
    assert_eq!(f.statuses(&call.id), DONE);
    assert!(texts(&call).contains("out\nerr\n"));
    assert_eq!(call.raw_output.unwrap()["output"], "out\nerr\n");
}

#[tokio::test]
async fn a_command_that_fails_is_a_call_that_fails() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.answers([ALLOW]);
        let said = f.says("/run echo no; exit 3").await;
        assert!(said.contains("exited with code 3"), "{said}");
        let call = f.call();
        assert_eq!(f.statuses(&call.id), ["pending", "in_progress", "failed"]);
        assert_eq!(call.raw_output.as_ref().unwrap()["exitCode"], 3);
        assert!(texts(&call).contains("Exit code 3"));
        assert_eq!(terminal(&call).is_some(), offers.terminal);
    }
}

#[tokio::test]
async fn much_output_is_kept_as_its_end() {
    let f = AgentFixture::offline(NONE).await;
    f.answers([ALLOW]);
    f.says("/run i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
        .await;
    let call = f.call();
    let output = call.raw_output.as_ref().unwrap();
    let printed = output["output"].as_str().unwrap();
    assert!(printed.len() <= 64 * 1024 && printed.ends_with("line 19999\n"));
    assert_eq!(output["truncated"], true);
    let updates = f.seen.updates.lock().unwrap();
    assert!(updates.len() < 100, "{} updates", updates.len());
}

#[tokio::test]
async fn test_finds_and_runs_the_projects_tests() {
    for (offers, code) in [(ALL, 0), (NONE, 0), (ALL, 7), (NONE, 7)] {
        let f = AgentFixture::offline(offers).await;
        f.put(
            "Makefile",
            &format!("all:\ntest:\n\t@echo testing; exit {code}\n"),
        );
        f.answers([ALLOW]);
        let said = f.says("/test").await;
        let calls = f.calls();
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
            f.plans(),
            [
                ["in_progress", "pending", "pending"],
                ["completed", "in_progress", "pending"],
                ["completed", "completed", "in_progress"],
                ["completed", "completed", "completed"],
            ]
        );
        assert_eq!(terminal(&calls[2]).is_some(), offers.terminal);
    }
}

#[tokio::test]
async fn test_says_when_there_is_nothing_or_it_may_not() {
    let f = AgentFixture::offline(ALL).await;
    let said = f.says("/test").await;
    assert!(said.contains("No test command found"), "{said}");
    assert_eq!(f.plans().last().unwrap()[..], ["completed"]);
    f.put("Cargo.toml", "");
    f.answers([REJECT]);
    let said = f.says("/test").await;
    assert!(said.contains("The tests were not run"), "{said}");
    assert_eq!(f.call().title, "Run `cargo test`");
    assert_eq!(
        f.plans().last().unwrap()[..],
        ["completed", "pending", "pending"]
    );
    assert_eq!(count(&f.seen.created), 0);
}

#[tokio::test]
async fn plan_surveys_and_stays_honest() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.put("package.json", r#"{"scripts": {"test": "true"}}"#);
        f.put("src/retry.js", "function retry_request() {}\n");
        let said = f.says("/plan Make retry_request patient").await;
        assert!(said.contains("without a language model"), "{said}");
        assert!(said.contains("src/retry.js:1"), "{said}");
        let plan = f
            .session
            .thread()
            .read(|thread| thread.plans()[0].entries().to_vec());
        assert_eq!(
            plan[3].content,
            "Decide what has to change for: Make retry_request patient"
        );
        assert_eq!(plan[5].content, "Run the tests with `npm test`");
        let (p, i, c) = ("pending", "in_progress", "completed");
        assert_eq!(
            f.plans(),
            [
                [i, p, p, p, p, p, p],
                [c, i, p, p, p, p, p],
                [c, c, i, p, p, p, p],
                [c, c, c, p, p, p, p],
            ]
        );
        assert!(
            f.calls()
                .iter()
                .all(|call| call.status == ToolCallStatus::Completed)
        );
        assert!(f.asked().is_empty());
    }
}

#[tokio::test]
async fn anything_else_gets_an_honest_answer() {
    for offers in [ALL, NONE] {
        let f = AgentFixture::offline(offers).await;
        f.put("README.md", "# A thing\n\nIt does.\n");
        f.put("Cargo.toml", "[package]\nname = \"thing\"\n");
        let attached = TextResourceContents::new("some\ntext", "file:///x/notes.md");
        let embedded = EmbeddedResource::new(EmbeddedResourceResource::Text(attached));
        let prompt = vec![
            ContentBlock::text("Fix the bug"),
            ContentBlock::ResourceLink(Box::new(ResourceLink::new("lib.rs", "file:///x/lib.rs"))),
            ContentBlock::Resource(Box::new(embedded)),
        ];
        let said = f.says(prompt).await;
        for part in [
            "No language model is configured",
            "`/test`",
            "attached: `file:///x/lib.rs`, `file:///x/notes.md` (2 lines)",
            "`README.md` begins with: A thing",
            "name = \"thing\"",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let titles: Vec<String> = f.calls().into_iter().map(|call| call.title).collect();
        assert_eq!(
            titles,
            [
                "List `.`",
                "Read `README.md`, lines 1–40",
                "Read `Cargo.toml`, lines 1–40"
            ]
        );
        assert!(f.asked().is_empty());
    }
}

#[tokio::test]
async fn a_directory_that_is_not_there_opens_no_session() {
    let f = AgentFixture::offline(NONE).await;
    let error = f.agent.new_session(f.path("no")).await.unwrap_err();
    assert!(error.to_string().contains(&f.path("no")), "{error}");
    // A client that lends its files may have it.
    let f = AgentFixture::offline(ALL).await;
    assert!(f.agent.new_session(f.path("no")).await.is_ok());
}

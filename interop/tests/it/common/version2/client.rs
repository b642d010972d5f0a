//! Tests of an official client with our library's agent and with the bundled agent.

use serde_json::{Value, json};

use crate::common::{ClientOutput, InteropProject, acp_program, assert_in_order};

/// What an official client reports for the prompt `work` with our agent.
const WORK_OUTLINE: [&str; 34] = [
    "user_message",
    "state running",
    "thought \"First I look.\"",
    "message \"Reading \"",
    "message \"the \"",
    "message \"note.\"",
    "plan steps in_progress pending pending",
    "call read in_progress",
    "tool_call_content_chunk",
    "tool_call_content_chunk",
    "call read completed",
    "call edit changed",
    "state requires_action",
    "permission edit",
    "state running",
    "call edit in_progress",
    "call edit completed",
    "plan steps completed in_progress pending",
    "terminal_update",
    "call run in_progress",
    "terminal_update",
    "call run completed",
    "terminal_update",
    "call kill in_progress",
    "terminal_update",
    "call kill failed",
    "plan steps completed completed completed",
    "usage_update",
    "config_option_update",
    "session_info_update",
    "agent_message",
    "message \"ne.\"",
    "state idle end_turn",
    "ended end_turn",
];

/// The events that the client reports at the start of each turn.
const TURN_START: [&str; 2] = ["user_message", "state running"];

/// An official client, with a project to work in.
pub(crate) struct OfficialClient<'a> {
    pub(crate) project: InteropProject,
    pub(crate) client: &'a [&'a str],
    /// The command of our library's agent.
    pub(crate) agent: &'a str,
}

impl<'a> OfficialClient<'a> {
    pub(crate) fn new(client: &'a [&'a str], agent: &'a str) -> Self {
        let project = InteropProject::new();
        Self {
            project,
            client,
            agent,
        }
    }

    /// Makes the client run a turn with our library's agent.
    pub(crate) async fn run_with_our_agent(&self, args: &[&str]) -> ClientOutput {
        self.run_with(args, &[self.agent, "--protocol", "2"]).await
    }

    /// Makes the client run a turn with the bundled agent.
    async fn run_with_bundled_agent(&self, args: &[&str]) -> ClientOutput {
        self.run_with(args, &[acp_program(), "agent", "--protocol", "2"])
            .await
    }

    pub(crate) async fn run_with(&self, args: &[&str], agent: &[&str]) -> ClientOutput {
        self.project.run_client(self.client, args, agent).await
    }

    pub(crate) async fn check_full_turn(&self) {
        let told = self.run_with_our_agent(&["work"]).await;
        let mut outline = told.outline();
        outline.retain(|line| line != "terminal_output_chunk");
        assert_eq!(outline, WORK_OUTLINE);
        assert_eq!(self.project.read_file("note.txt"), "ONE\nTWO\n");
        let initialized = told.one_of_type("initialized");
        assert_eq!(initialized["protocolVersion"], 2);
        assert_eq!(initialized["info"]["name"], "our-agent");
        assert_eq!(
            told.tool_call_field("read", "rawOutput"),
            &json!({"bytes": 8})
        );

        let file = self.project.file("note.txt");
        let file = file.to_str().unwrap();
        let patch = format!(
            "diff --git {file} {file}\n--- {file}\n+++ {file}\n@@ -1,2 +1,2 @@\n-one\n-two\n+ONE\n+TWO\n"
        );
        let diff = json!([{
            "type": "diff",
            "changes": [{"operation": "modify", "path": file, "fileType": "text"}],
            "patch": {"format": "git_patch", "text": patch},
        }]);
        assert_eq!(told.tool_call_field("edit", "content"), &diff);
        let asked = told.one_of_type("permission");
        assert_eq!(asked["title"], "Shout");
        assert_eq!(asked["subject"]["toolCall"]["content"], diff);

        let shown = &told.tool_call_field("run", "content")[0];
        assert_eq!(shown["type"], "terminal");
        let updates = told.all_of_type("update");
        let mut of_terminal = updates
            .iter()
            .filter(|update| update["terminalId"] == shown["terminalId"]);
        let begun = of_terminal.next().unwrap();
        assert_eq!(begun["cwd"], json!(self.project.path()));
        let ended = of_terminal.next_back().unwrap();
        assert_eq!(ended["exitStatus"], json!({"exitCode": 3}));
        // Each chunk has one byte, even within the é.
        let printed = "ONE\nTWO\nhéllo\n".len();
        assert_eq!(of_terminal.count(), printed);
        // The agent echoes the prompt with the id that its response contains.
        assert_eq!(
            updates[1..]
                .iter()
                .find(|update| update["sessionUpdate"] == "user_message")
                .map(|update| &update["messageId"]),
            Some(&told.one_of_type("prompted")["messageId"])
        );
    }

    pub(crate) async fn check_rejection(&self) {
        let told = self.run_with_our_agent(&["--reject", "work"]).await;
        told.expect_stop_reason("end_turn");
        assert_eq!(told.tool_call_field("edit", "status"), "failed");
        assert_eq!(self.project.read_file("note.txt"), "one\ntwo\n");
    }

    pub(crate) async fn check_cancel_at_every_point(&self) {
        let cancel_at = async |what, turn| {
            let told = self.run_with_our_agent(&["--cancel-at", what, turn]).await;
            told.expect_stop_reason("cancelled");
            told.outline()
        };
        cancel_at("message", "wait").await;
        assert_in_order(
            &cancel_at("permission", "wait-permission").await,
            &[
                "state requires_action",
                "permission ask",
                "message \"the question was withdrawn\"",
                "state idle cancelled",
            ],
        );
        cancel_at("output", "wait-command").await;
        self.project.assert_command_ended();
    }

    pub(crate) async fn check_extensions_and_errors(&self) {
        let told = self
            .run_with_our_agent(&["--extension", "ask-extension"])
            .await;
        told.expect_stop_reason("end_turn");
        assert_eq!(
            told.one_of_type("answer")["answer"],
            "our agent heard who are you"
        );
        assert_eq!(told.one_of_type("asked")["question"], "how are you");
        let heard = told
            .all_of_type("told")
            .into_iter()
            .map(|told| &told["what"]);
        assert_eq!(
            heard.collect::<Vec<&Value>>(),
            ["our agent was told hello", "a turn runs"]
        );
        let answer = "message \"the official client heard how are you\"";
        assert_in_order(&told.outline(), &[answer]);

        let unknown = ["--call", "session/explode", "--call", "_nobody/knows"];
        let args = [&unknown[..], &["--withdraw", "ask-unknown"]].concat();
        let told = self.run_with_our_agent(&args).await;
        told.expect_stop_reason("end_turn");
        let refused = [-32601, -32601, -32800].map(|code| json!({ "code": code }));
        assert_eq!(
            told.all_of_type("refused"),
            refused.iter().collect::<Vec<_>>()
        );
        assert_in_order(&told.outline(), &["message \"error -32601\""]);
    }

    pub(crate) async fn check_stop_reasons(&self) {
        self.run_with_our_agent(&["refuse"])
            .await
            .expect_stop_reason("refusal");
        self.run_with_our_agent(&["max-tokens"])
            .await
            .expect_stop_reason("max_tokens");
        // The prompt was accepted, but the turn fails.
        let told = self.run_with_our_agent(&["fail"]).await;
        let error = &told.expect_stop_reason("error").one_of_type("ended")["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32050), &json!("the model is on holiday"))
        );
    }

    pub(crate) async fn check_elicitation(&self) {
        let told = self.run_with_our_agent(&["ask-person"]).await;
        told.expect_stop_reason("end_turn");
        assert_eq!(told.one_of_type("form")["message"], "How loud?");
        let session = &told.one_of_type("opened")["sessionId"];
        assert_eq!(&told.one_of_type("form")["sessionId"], session);
        assert_in_order(
            &told.outline(),
            &[
                "state requires_action",
                "form",
                "state running",
                "message \"accept 11\"",
            ],
        );
        let told = self.run_with_our_agent(&["ask-command"]).await;
        let asked = told
            .expect_stop_reason("end_turn")
            .one_of_type("permission");
        let subject =
            json!({"type": "command", "command": "make clean", "cwd": self.project.path()});
        assert_eq!(asked["subject"], subject);
        assert_in_order(&told.outline(), &["message \"yes\""]);
    }

    pub(crate) async fn check_login_and_logout(&self) {
        let agent = [self.agent, "--protocol", "2", "--auth"];
        let told = self.run_with(&["hello"], &agent).await;
        let methods = &told.expect_error_code(-32000).one_of_type("initialized")["authMethods"];
        assert_eq!(
            methods[0],
            json!({"type": "agent", "methodId": "key", "name": "A key"})
        );
        let args = ["--authenticate", "key", "--logout", "hello"];
        let told = self.run_with(&args, &agent).await;
        let turn = ["message \"hello\"", "state idle end_turn", "ended end_turn"];
        assert_eq!(
            told.outline(),
            [&["logged_out"], &TURN_START[..], &turn].concat()
        );
        // There is no session yet, so the form belongs to the request.
        let told = self
            .run_with(&["--authenticate", "form", "hello"], &agent)
            .await;
        let asked = told.expect_stop_reason("end_turn").one_of_type("form");
        assert_eq!(asked["message"], "How loud may it be?");
        assert!(asked.get("requestId").is_some(), "{asked}");
        assert!(asked.get("sessionId").is_none(), "{asked}");
        let args = ["--authenticate", "nothing", "hello"];
        self.run_with(&args, &agent).await.expect_error_code(-32602);
    }

    pub(crate) async fn check_stored_sessions(&self) {
        let args = ["--list", "--resume", "old-1", "--replay", "hello"];
        let told = self.run_with_our_agent(&args).await;
        let pages = told
            .all_of_type("listed")
            .into_iter()
            .map(|page| &page["sessions"]);
        assert_eq!(
            pages.collect::<Vec<_>>(),
            [
                &json!([{"sessionId": "old-1", "cwd": "/tmp", "title": "The first"}]),
                &json!([{"sessionId": "old-2", "cwd": "/tmp", "title": "The second"}]),
            ]
        );
        let past = [
            "listed",
            "listed",
            "user \"what was said\"",
            "thought \"what was thought\"",
            "call call changed",
            "call call completed",
            "message \"what was answered\"",
            "state idle",
            "resumed",
        ];
        let turn = ["message \"hello\"", "state idle end_turn", "ended end_turn"];
        let expected = [&past[..], &TURN_START[..], &turn].concat();
        assert_eq!(told.outline(), expected);
        let options = &told.one_of_type("resumed")["configOptions"];
        assert_eq!(options[0]["currentValue"], "code");

        let told = self
            .run_with_our_agent(&["--resume", "old-2", "hello"])
            .await;
        let expected = [&["state idle", "resumed"], &TURN_START[..], &turn].concat();
        assert_eq!(told.outline(), expected);
        let told = self
            .run_with_our_agent(&["--resume", "new-1", "hello"])
            .await;
        told.expect_error_code(-32002);
        let told = self
            .run_with_our_agent(&["--close", "--delete", "hello"])
            .await;
        assert_in_order(&told.outline(), &["ended end_turn", "closed", "deleted"]);
    }

    pub(crate) async fn check_config_options(&self) {
        let set = async |option, expected: &str| {
            let told = self
                .run_with_our_agent(&["--option", option, "settings"])
                .await;
            told.expect_stop_reason("end_turn");
            assert_in_order(&told.outline(), &[&format!("message {expected:?}")]);
            told
        };
        set("mode=code", "code small false").await;
        let told = set("model=large", "ask large false").await;
        let options = &told.one_of_type("option")["configOptions"];
        let (model, loud) = (&options[1], &options[2]);
        assert_eq!(model["currentValue"], "large");
        // The values are in groups with headings.
        assert_eq!(model["options"][1]["groupId"], "large ones");
        assert_eq!(model["options"][1]["options"][0]["value"], "large");
        assert_eq!(loud["type"], "boolean");
        let told = self
            .run_with_our_agent(&["--option", "model=huge", "settings"])
            .await;
        told.expect_error_code(-32602);
    }

    pub(crate) async fn check_bundled_agent(&self) {
        let told = self.run_with_bundled_agent(&["/read note.txt"]).await;
        told.expect_stop_reason("end_turn");
        assert_in_order(
            &told.outline(),
            &["call call_1 changed", "call call_1 completed"],
        );
        let edit = "/edit note.txt\ntwo\n===\n2";
        let told = self.run_with_bundled_agent(&[edit]).await;
        told.expect_stop_reason("end_turn");
        assert_in_order(
            &told.outline(),
            &[
                "call call_1 changed",
                "state requires_action",
                "permission call_1",
                "state running",
                "call call_1 completed",
                "state idle end_turn",
            ],
        );
        let diff = &told.tool_call_field("call_1", "content")[0];
        assert_eq!(diff["changes"][0]["operation"], "modify");
        let patch = diff["patch"]["text"].as_str().unwrap();
        assert!(patch.ends_with("-two\n+2\n"), "{patch}");
        assert_eq!(self.project.read_file("note.txt"), "one\n2\n");
        let told = self.run_with_bundled_agent(&["/write new.txt hello"]).await;
        let diff = &told
            .expect_stop_reason("end_turn")
            .tool_call_field("call_1", "content")[0];
        assert_eq!(diff["changes"][0]["operation"], "add");
        assert_eq!(self.project.read_file("new.txt"), "hello");
        let told = self
            .run_with_bundled_agent(&["--reject", "/write other.txt hello"])
            .await;
        assert_eq!(
            told.expect_stop_reason("end_turn")
                .tool_call_field("call_1", "status"),
            "failed"
        );
        assert!(!self.project.file("other.txt").exists());

        let told = self
            .run_with_bundled_agent(&["/run echo out; exit 3"])
            .await;
        told.expect_stop_reason("end_turn");
        assert_eq!(told.tool_call_field("call_1", "rawOutput")["exitCode"], 3);
        assert_in_order(
            &told.outline(),
            &[
                "permission call_1",
                "call call_1 in_progress",
                "call call_1 failed",
            ],
        );
    }

    pub(crate) async fn check_bundled_agent_cancel(&self) {
        let args = ["--cancel-at", "permission", "/write new.txt x"];
        self.run_with_bundled_agent(&args)
            .await
            .expect_stop_reason("cancelled");
        assert!(!self.project.file("new.txt").exists());
    }
}

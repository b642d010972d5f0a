//! What every store must do. Each test runs on SQLite, and on PostgreSQL if there is one.

use std::sync::Arc;
use std::time::Duration;

use acp_postgres::TestPostgres;

use super::record::MAX_ENDED_PROMPTS;
use super::*;

/// A lease that does not expire during a test.
const LONG: Duration = Duration::from_secs(600);

/// A lease that expires at once.
const SHORT: Duration = Duration::from_millis(1);

/// Runs a test on an empty store of each kind.
macro_rules! contract {
    ($($name:ident)*) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $name() {
                let directory = tempfile::tempdir().unwrap();
                let path = directory.path().join("live.db");
                let store = super::SqliteLiveStore::open(path).unwrap();
                super::$name(&store).await;
            })*
        }

        mod on_postgres {
            use super::TestPostgres;
            $(#[tokio::test]
            async fn $name() {
                let Some(postgres) = TestPostgres::shared() else {
                    return;
                };
                let url = postgres.new_database();
                let store = super::PostgresLiveStore::connect(&url, None).await.unwrap();
                super::$name(&store).await;
            })*
        }
    };
}

contract! {
    session_has_one_owner
    expired_lease_can_be_claimed_and_its_owner_is_fenced
    expired_lease_cannot_be_renewed
    nodes_give_up_their_sessions
    written_changes_can_be_read
    repeated_change_has_no_effect
    merged_lines_replace_those_that_they_contain
    new_session_that_exists_is_rejected
    ended_prompts_stay_ended_and_old_ones_are_dropped
    last_ended_prompts_of_a_large_batch_are_kept
    zero_characters_do_not_stop_a_batch
    cursors_out_of_range_find_nothing_or_are_rejected
    logs_are_read_in_pages
    long_lines_are_read_in_pages
    sessions_are_listed_in_pages
    sessions_are_listed_by_creator
    abandoned_sessions_have_work_and_no_owner
    only_the_owner_deletes_a_session
}

fn key(session: &str) -> LiveSessionKey {
    LiveSessionKey {
        agent: "agent".to_owned(),
        session: session.to_owned(),
    }
}

fn node(name: &str) -> NodeId {
    NodeId(name.to_owned())
}

async fn join(store: &dyn LiveStore, name: &str, lease: Duration) -> NodeId {
    let info = NodeInfo {
        id: node(name),
        address: Some(format!("ws://{name}")),
    };
    store.join(info, lease).await.unwrap();
    node(name)
}

fn change(session: &str, token: i64) -> LiveSessionChange {
    LiveSessionChange {
        key: key(session),
        token: FencingToken(token),
        is_new: false,
        head: None,
        next_line: 0,
        next_prompt: 1,
        replaced: Vec::new(),
        lines: Vec::new(),
        prompts: Vec::new(),
    }
}

fn new_session(session: &str) -> LiveSessionChange {
    LiveSessionChange {
        is_new: true,
        head: Some(SessionHead {
            cwd: Some("/work".to_owned()),
            title: None,
            creator: None,
            setup: "{}".to_owned(),
        }),
        ..change(session, 1)
    }
}

fn line(number: u64, text: &str) -> LoggedLine {
    LoggedLine {
        number,
        until: number + 1,
        line: text.into(),
    }
}

fn with_lines(
    mut change: LiveSessionChange,
    lines: impl IntoIterator<Item = LoggedLine>,
) -> LiveSessionChange {
    change.lines.extend(lines);
    change.next_line = change.lines.last().map_or(0, |line| line.until);
    change
}

fn prompt(number: u64, state: PromptState) -> PromptRecord {
    let is_open = state != PromptState::Ended;
    PromptRecord {
        number,
        key: format!("key-{number}"),
        sender: Some("client".to_owned()),
        params: if is_open {
            "{}".to_owned()
        } else {
            String::new()
        },
        state,
        position: number,
        response: (!is_open).then(|| r#"{"result":{}}"#.to_owned()),
    }
}

/// Writes a change, and asserts that it was accepted.
async fn write(store: &dyn LiveStore, node: &NodeId, change: LiveSessionChange) {
    let lost = store.write(node.clone(), vec![change]).await.unwrap();
    assert_eq!(lost, []);
}

async fn claim(store: &dyn LiveStore, session: &str, node: &NodeId) -> StoredLiveSession {
    match store.claim(key(session), node.clone()).await.unwrap() {
        SessionClaim::Granted(stored) => *stored,
        other => panic!("{other:?}"),
    }
}

async fn texts(store: &dyn LiveStore, session: &str) -> Vec<(u64, u64, String)> {
    let page = store.read_log(key(session), 0, usize::MAX).await.unwrap();
    let lines = page.lines.into_iter();
    lines
        .map(|line| (line.number, line.until, line.line.to_string()))
        .collect()
}

async fn session_has_one_owner(store: &dyn LiveStore) {
    let (a, b) = (join(store, "a", LONG).await, join(store, "b", LONG).await);
    assert!(matches!(
        store.claim(key("s"), a.clone()).await,
        Ok(SessionClaim::Unknown)
    ));
    write(store, &a, new_session("s")).await;
    let Ok(SessionClaim::Held(owner)) = store.claim(key("s"), b.clone()).await else {
        panic!("the session has no owner");
    };
    assert_eq!(owner.id, a);
    assert_eq!(owner.address.as_deref(), Some("ws://a"));
    // The owner itself can claim again, and its older token is of no use then.
    let stored = claim(store, "s", &a).await;
    assert_eq!(stored.token, FencingToken(2));
    assert_eq!(stored.head.cwd.as_deref(), Some("/work"));
    let old = with_lines(change("s", 1), [line(0, "old")]);
    assert_eq!(store.write(a, vec![old]).await.unwrap(), [key("s")]);
    let other = with_lines(change("s", 2), [line(0, "other")]);
    assert_eq!(store.write(b, vec![other]).await.unwrap(), [key("s")]);
    assert_eq!(texts(store, "s").await, []);
}

async fn expired_lease_can_be_claimed_and_its_owner_is_fenced(store: &dyn LiveStore) {
    let (a, b) = (join(store, "a", SHORT).await, join(store, "b", LONG).await);
    write(store, &a, new_session("s")).await;
    write(store, &a, new_session("other")).await;
    let stored = loop {
        match store.claim(key("s"), b.clone()).await.unwrap() {
            SessionClaim::Granted(stored) => break stored,
            SessionClaim::Held(_) => tokio::task::yield_now().await,
            SessionClaim::Unknown => panic!("the session is not stored"),
        }
    };
    assert_eq!(stored.token, FencingToken(2));
    // What the old owner still writes is rejected for this session, and accepted for the one that nobody has claimed.
    let changes = vec![
        with_lines(change("s", 1), [line(0, "late")]),
        with_lines(change("other", 1), [line(0, "kept")]),
    ];
    assert_eq!(store.write(a, changes).await.unwrap(), [key("s")]);
    write(store, &b, with_lines(change("s", 2), [line(0, "new")])).await;
    assert_eq!(texts(store, "s").await, [(0, 1, "new".to_owned())]);
    assert_eq!(texts(store, "other").await, [(0, 1, "kept".to_owned())]);
}

async fn expired_lease_cannot_be_renewed(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    write(store, &a, new_session("s")).await;
    store.renew(a.clone(), SHORT).await.unwrap();
    let expired = loop {
        match store.renew(a.clone(), SHORT).await {
            Ok(()) => tokio::time::sleep(SHORT).await,
            Err(error) => break error,
        }
    };
    assert!(matches!(expired, LiveStoreError::LeaseExpired));
    assert!(matches!(
        store.renew(a.clone(), LONG).await,
        Err(LiveStoreError::LeaseExpired)
    ));
    assert!(matches!(
        store.claim(key("s"), a).await,
        Err(LiveStoreError::LeaseExpired)
    ));
    assert!(matches!(
        store.renew(node("unknown"), LONG).await,
        Err(LiveStoreError::LeaseExpired)
    ));
}

async fn nodes_give_up_their_sessions(store: &dyn LiveStore) {
    let (a, b) = (join(store, "a", LONG).await, join(store, "b", LONG).await);
    for session in ["one", "two", "three"] {
        write(store, &a, new_session(session)).await;
    }
    // A token that is not the session's own has no effect.
    let released = vec![(key("one"), FencingToken(1)), (key("two"), FencingToken(9))];
    store.release(released, a.clone()).await.unwrap();
    claim(store, "one", &b).await;
    assert!(matches!(
        store.claim(key("two"), b.clone()).await,
        Ok(SessionClaim::Held(_))
    ));
    store.leave(a).await.unwrap();
    claim(store, "two", &b).await;
    claim(store, "three", &b).await;
    let summary = store.summary().await.unwrap();
    assert_eq!(summary.nodes.len(), 1);
    assert_eq!((summary.sessions, summary.owned), (3, 3));
}

async fn written_changes_can_be_read(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let texts = [
        r#"{"a":"\u0000\ud83d"}"#,
        "\u{2028}\u{2029}\u{7f}",
        "🦀 é \\ ' \" {} {1,2} NULL",
        "",
    ];
    let lines = (0..)
        .zip(texts)
        .map(|(number, text)| line(number * 10, text));
    let mut new = with_lines(new_session("s"), lines);
    new.next_line = 99;
    new.next_prompt = 7;
    new.prompts = vec![
        prompt(1, PromptState::Ended),
        PromptRecord {
            position: 9,
            sender: None,
            ..prompt(2, PromptState::Queued)
        },
        prompt(3, PromptState::Running),
    ];
    write(store, &a, new.clone()).await;
    let stored = store.find(key("s")).await.unwrap().unwrap();
    assert_eq!(stored.head, new.head.unwrap());
    assert_eq!((stored.next_line, stored.next_prompt), (99, 7));
    let [one, two, three] = new.prompts.try_into().unwrap();
    assert_eq!(stored.prompts, [three, two, one]);
    let page = store.read_log(key("s"), 0, usize::MAX).await.unwrap();
    assert_eq!(page.lines, new.lines);
    // What a change does not name stays.
    let head = SessionHead {
        title: Some("title".to_owned()),
        creator: Some("anna".to_owned()),
        ..SessionHead::default()
    };
    let changed = LiveSessionChange {
        head: Some(head.clone()),
        ..change("s", 1)
    };
    write(store, &a, changed).await;
    write(store, &a, change("s", 1)).await;
    let stored = store.find(key("s")).await.unwrap().unwrap();
    assert_eq!(stored.head, head);
    assert_eq!((stored.next_line, stored.next_prompt), (99, 7));
    assert!(store.find(key("unknown")).await.unwrap().is_none());
}

async fn repeated_change_has_no_effect(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let mut new = with_lines(new_session("s"), [line(0, "a"), line(1, "b"), line(2, "c")]);
    new.prompts = vec![prompt(1, PromptState::Running)];
    let mut merged = change("s", 1);
    merged.replaced = vec![(0, 2)];
    merged.lines = vec![LoggedLine {
        number: 0,
        until: 2,
        line: "ab".into(),
    }];
    merged.next_line = 3;
    merged.prompts = vec![prompt(1, PromptState::Ended)];
    for change in [&new, &new, &merged, &merged] {
        write(store, &a, change.clone()).await;
    }
    let expected = [(0, 2, "ab".to_owned()), (2, 3, "c".to_owned())];
    assert_eq!(texts(store, "s").await, expected);
    let stored = store.find(key("s")).await.unwrap().unwrap();
    assert_eq!(stored.prompts, merged.prompts);
}

async fn merged_lines_replace_those_that_they_contain(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let lines = (0..8).map(|number| line(number, &number.to_string()));
    write(store, &a, with_lines(new_session("s"), lines)).await;
    let mut merged = change("s", 1);
    merged.replaced = vec![(1, 4), (5, 7)];
    let merge = |number, until, text: &str| LoggedLine {
        number,
        until,
        line: text.into(),
    };
    merged.lines = vec![merge(1, 4, "123"), merge(5, 7, "56"), line(8, "8")];
    merged.next_line = 9;
    write(store, &a, merged).await;
    let lines = texts(store, "s").await;
    let lines: Vec<_> = lines.iter().map(|(n, u, t)| (*n, *u, t.as_str())).collect();
    let expected = [
        (0, 1, "0"),
        (1, 4, "123"),
        (4, 5, "4"),
        (5, 7, "56"),
        (7, 8, "7"),
    ];
    assert_eq!(lines, [&expected[..], &[(8, 9, "8")]].concat());
}

async fn new_session_that_exists_is_rejected(store: &dyn LiveStore) {
    let (a, b) = (join(store, "a", LONG).await, join(store, "b", LONG).await);
    write(store, &a, with_lines(new_session("s"), [line(0, "a")])).await;
    let other = with_lines(new_session("s"), [line(0, "b"), line(1, "b")]);
    let changes = vec![other, new_session("new")];
    assert_eq!(store.write(b.clone(), changes).await.unwrap(), [key("s")]);
    assert_eq!(texts(store, "s").await, [(0, 1, "a".to_owned())]);
    assert!(store.find(key("new")).await.unwrap().is_some());
}

async fn ended_prompts_stay_ended_and_old_ones_are_dropped(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    write(store, &a, new_session("s")).await;
    let most = MAX_ENDED_PROMPTS as u64;
    for number in 1..=most + 10 {
        let mut change = change("s", 1);
        change.prompts = vec![prompt(number, PromptState::Ended)];
        write(store, &a, change).await;
    }
    let mut late = change("s", 1);
    late.prompts = vec![
        prompt(most, PromptState::Running),
        prompt(most + 11, PromptState::Queued),
    ];
    write(store, &a, late).await;
    let stored = store.find(key("s")).await.unwrap().unwrap();
    let open = stored
        .prompts
        .iter()
        .filter(|p| p.state != PromptState::Ended);
    assert_eq!(open.map(|p| p.number).collect::<Vec<_>>(), [most + 11]);
    let ended = stored
        .prompts
        .iter()
        .filter(|p| p.state == PromptState::Ended);
    let ended: Vec<u64> = ended.map(|p| p.number).collect();
    assert!(ended.len() <= MAX_ENDED_PROMPTS + 1, "{ended:?}");
    assert!(ended.ends_with(&[most + 9, most + 10]), "{ended:?}");
}

async fn last_ended_prompts_of_a_large_batch_are_kept(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let most = MAX_ENDED_PROMPTS as u64;
    let mut new = new_session("s");
    new.prompts = (1..=most * 3)
        .map(|number| prompt(number, PromptState::Ended))
        .collect();
    new.prompts.push(prompt(most * 3 + 1, PromptState::Queued));
    write(store, &a, new).await;
    let stored = store.find(key("s")).await.unwrap().unwrap();
    let numbers: Vec<u64> = stored.prompts.iter().map(|p| p.number).collect();
    let mut expected = vec![most * 3 + 1];
    expected.extend(most * 2 + 1..=most * 3);
    assert_eq!(numbers, expected);
}

async fn zero_characters_do_not_stop_a_batch(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let mut new = new_session("s");
    if let Some(head) = &mut new.head {
        head.title = Some("a\0b".to_owned());
    }
    new.prompts = vec![PromptRecord {
        sender: Some("c\0d".to_owned()),
        ..prompt(1, PromptState::Queued)
    }];
    let changes = vec![new, new_session("other")];
    assert_eq!(store.write(a, changes).await.unwrap(), []);
    let stored = store.find(key("s")).await.unwrap().unwrap();
    // PostgreSQL cannot store the character.
    let title = stored.head.title.unwrap();
    assert!(["a\0b", "a\u{fffd}b"].contains(&&*title), "{title:?}");
    assert!(store.find(key("other")).await.unwrap().is_some());
}

async fn cursors_out_of_range_find_nothing_or_are_rejected(store: &dyn LiveStore) {
    for cursor in [
        "7fffffffffffffff.1",
        "-7fffffffffffffff.1",
        "386d7ea9ae4bbff.7fffffffffffffff",
    ] {
        let cursor = Some(cursor.to_owned());
        match store
            .list("agent".to_owned(), LiveSessionFilter::default(), cursor, 2)
            .await
        {
            Ok(page) => assert_eq!(page, LiveSessionPage::default()),
            Err(error) => assert!(matches!(error, LiveStoreError::InvalidCursor), "{error}"),
        }
    }
}

async fn long_lines_are_read_in_pages(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let lengths = [0, 10, 5000, 0, 1, 1000, 999, 1, 0, 3000, 2];
    let lines: Vec<_> = (0..)
        .zip(lengths)
        .map(|(number, length)| line(number, &"é".repeat(length)))
        .collect();
    write(store, &a, with_lines(new_session("s"), lines.clone())).await;
    for max_bytes in [0, 1, 2, 2000, 2001, 10_000, 30_000, usize::MAX] {
        let (mut next, mut read) = (Some(0), Vec::new());
        while let Some(from) = next {
            let page = store.read_log(key("s"), from, max_bytes).await.unwrap();
            let before: usize = page.lines.iter().rev().skip(1).map(|l| l.line.len()).sum();
            assert!(page.lines.len() == 1 || before < max_bytes);
            read.extend(page.lines);
            next = page.next;
        }
        assert_eq!(read, lines, "{max_bytes}");
    }
}

async fn logs_are_read_in_pages(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    let text = "x".repeat(100);
    let lines = (0..50).map(|number| line(number * 2, &text));
    write(store, &a, with_lines(new_session("s"), lines)).await;
    let mut next = Some(0);
    let (mut read, mut pages) = (Vec::new(), 0);
    while let Some(from) = next {
        let page = store.read_log(key("s"), from, 1000).await.unwrap();
        assert!(page.lines.len() <= 10);
        read.extend(page.lines.iter().map(|line| line.number));
        next = page.next;
        pages += 1;
    }
    assert_eq!(pages, 5);
    assert_eq!(read, (0..50).map(|number| number * 2).collect::<Vec<_>>());
    let page = store.read_log(key("s"), 97, 1).await.unwrap();
    assert_eq!((page.lines.len(), page.next), (1, None));
    let page = store.read_log(key("unknown"), 0, 1).await.unwrap();
    assert_eq!(page, LogPage::default());
}

async fn sessions_are_listed_in_pages(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    for number in 0..5 {
        let mut new = new_session(&format!("s{number}"));
        if let Some(head) = &mut new.head {
            head.cwd = Some(format!("/{}", number % 2));
            head.title = Some(format!("title {number}"));
        }
        write(store, &a, new).await;
    }
    let list = async |cwd: Option<&str>, cursor: Option<String>| {
        let cwd = cwd.map(str::to_owned);
        store
            .list(
                "agent".to_owned(),
                LiveSessionFilter {
                    cwd,
                    ..LiveSessionFilter::default()
                },
                cursor,
                2,
            )
            .await
    };
    let names = |page: &LiveSessionPage| {
        let sessions = page.sessions.iter();
        sessions.map(|s| s.key.session.clone()).collect::<Vec<_>>()
    };
    let first = list(None, None).await.unwrap();
    assert_eq!(names(&first), ["s4", "s3"]);
    assert_eq!(first.sessions[0].title.as_deref(), Some("title 4"));
    assert!(first.sessions[0].updated_at > 1_700_000_000_000);
    let second = list(None, first.next).await.unwrap();
    assert_eq!(names(&second), ["s2", "s1"]);
    let third = list(None, second.next).await.unwrap();
    assert_eq!((names(&third), third.next), (vec!["s0".to_owned()], None));
    let odd = list(Some("/1"), None).await.unwrap();
    assert_eq!(
        (names(&odd), odd.next),
        (vec!["s3".into(), "s1".into()], None)
    );
    let other = store
        .list("other".to_owned(), LiveSessionFilter::default(), None, 2)
        .await
        .unwrap();
    assert_eq!(other, LiveSessionPage::default());
    for invalid in ["", "x", "1.", "1.x", "1.2.3"] {
        let listed = list(None, Some(invalid.to_owned())).await;
        assert!(
            matches!(listed, Err(LiveStoreError::InvalidCursor)),
            "{invalid}"
        );
    }
}

async fn sessions_are_listed_by_creator(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    for (session, creator) in [("s1", Some("anna")), ("s2", None), ("s3", Some("bob"))] {
        let mut new = new_session(session);
        if let Some(head) = &mut new.head {
            head.creator = creator.map(str::to_owned);
        }
        write(store, &a, new).await;
    }
    let filter = LiveSessionFilter {
        creator: Some("anna".to_owned()),
        ..LiveSessionFilter::default()
    };
    let listed = store.list("agent".to_owned(), filter, None, 9).await;
    let sessions = listed.unwrap().sessions;
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].key.session, "s1");
    let found = store.find(key("s3")).await.unwrap().unwrap();
    assert_eq!(found.head.creator.as_deref(), Some("bob"));
}

async fn abandoned_sessions_have_work_and_no_owner(store: &dyn LiveStore) {
    let a = join(store, "a", LONG).await;
    for (session, state) in [
        ("queued", PromptState::Queued),
        ("running", PromptState::Running),
        ("ended", PromptState::Ended),
    ] {
        let mut new = new_session(session);
        new.prompts = vec![prompt(1, state)];
        write(store, &a, new).await;
    }
    let abandoned = async || {
        let found = store.abandoned("agent".to_owned(), 10).await.unwrap();
        let mut found: Vec<String> = found.into_iter().map(|key| key.session).collect();
        found.sort();
        found
    };
    assert_eq!(abandoned().await, [""; 0]);
    store.leave(a).await.unwrap();
    assert_eq!(abandoned().await, ["queued", "running"]);
    let b = join(store, "b", LONG).await;
    claim(store, "running", &b).await;
    assert_eq!(abandoned().await, ["queued"]);
    let none = store.abandoned("other".to_owned(), 10).await.unwrap();
    assert_eq!(none, []);
}

async fn only_the_owner_deletes_a_session(store: &dyn LiveStore) {
    let (a, b) = (join(store, "a", LONG).await, join(store, "b", LONG).await);
    let mut new = with_lines(new_session("s"), [line(0, "a")]);
    new.prompts = vec![prompt(1, PromptState::Queued)];
    write(store, &a, new).await;
    store.delete(key("s"), b).await.unwrap();
    assert!(store.find(key("s")).await.unwrap().is_some());
    store.delete(key("s"), a.clone()).await.unwrap();
    assert!(store.find(key("s")).await.unwrap().is_none());
    let summary = store.summary().await.unwrap();
    assert_eq!((summary.lines, summary.prompts), (0, 0));
    // The id can be used again.
    write(store, &a, new_session("s")).await;
}

#[tokio::test]
async fn sessions_are_copied_from_one_store_to_another() {
    let directory = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| {
        let path = directory.path().join(name);
        SqliteLiveStore::open(path).unwrap()
    });
    let a = join(&from, "a", LONG).await;
    let text = "x".repeat(100_000);
    let lines = (0..30).map(|number| line(number, &text));
    let mut new = with_lines(new_session("long"), lines);
    new.prompts = vec![prompt(1, PromptState::Queued)];
    write(&from, &a, new).await;
    write(&from, &a, new_session("both")).await;
    let b = join(&to, "b", LONG).await;
    write(&to, &b, with_lines(new_session("both"), [line(0, "other")])).await;
    let copied = copy_sessions(&from, &to).await.unwrap();
    assert_eq!((copied.copied, copied.skipped), (1, 1));
    assert_eq!(texts(&to, "long").await, texts(&from, "long").await);
    assert_eq!(texts(&to, "both").await, [(0, 1, "other".to_owned())]);
    let mut expected = from.find(key("long")).await.unwrap().unwrap();
    let stored = claim(&to, "long", &b).await;
    expected.token = stored.token;
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn several_processes_share_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.db");
    let (one, two) = (
        SqliteLiveStore::open(&path).unwrap(),
        SqliteLiveStore::open(&path).unwrap(),
    );
    let a = join(&one, "a", LONG).await;
    write(&one, &a, with_lines(new_session("s"), [line(0, "a")])).await;
    assert_eq!(texts(&two, "s").await.len(), 1);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn reading_does_not_wait_for_another_process_that_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.db");
    let store = SqliteLiveStore::open(&path).unwrap();
    let a = join(&store, "a", LONG).await;
    write(&store, &a, with_lines(new_session("s"), [line(0, "a")])).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("begin immediate").unwrap();
    assert_eq!(texts(&store, "s").await.len(), 1);
}

#[tokio::test]
async fn newer_file_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.db");
    drop(SqliteLiveStore::open(&path).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    let error = SqliteLiveStore::open(&path).unwrap_err();
    assert!(
        matches!(error, LiveStoreError::Newer { found: 99, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn servers_that_start_at_once_create_the_tables_once() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    let connected = (0..8).map(|_| PostgresLiveStore::connect(&url, None));
    for store in futures_util::future::join_all(connected).await {
        let summary = store.unwrap().summary().await.unwrap();
        assert_eq!((summary.version, summary.sessions), (2, 0));
    }
    assert_eq!(
        PostgresLiveStore::migrate(&url, None).await.unwrap(),
        (2, 2)
    );
}

#[tokio::test]
async fn tables_of_version_1_are_migrated_and_keep_their_sessions() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    let store = PostgresLiveStore::connect(&url, None).await.unwrap();
    let a = join(&store, "a", LONG).await;
    write(&store, &a, new_session("s")).await;
    postgres.execute(
        &url,
        "alter table acp.session drop column creator; update acp.version set version = 1",
    );
    let error = PostgresLiveStore::connect(&url, None).await.unwrap_err();
    assert!(error.to_string().contains("acp store migrate"), "{error}");
    let migrated = PostgresLiveStore::migrate(&url, None).await.unwrap();
    assert_eq!(migrated, (1, 2));
    let store = PostgresLiveStore::connect(&url, None).await.unwrap();
    let stored = store.find(key("s")).await.unwrap().unwrap();
    assert_eq!(stored.head.creator, None);
}

#[tokio::test]
async fn file_of_version_1_is_migrated_and_keeps_its_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.db");
    let store = SqliteLiveStore::open(&path).unwrap();
    let a = join(&store, "a", LONG).await;
    write(&store, &a, new_session("s")).await;
    drop(store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("drop index session_by_creator; alter table session drop column creator;")
        .unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    let store = SqliteLiveStore::open(&path).unwrap();
    let stored = store.find(key("s")).await.unwrap().unwrap();
    assert_eq!(stored.head.creator, None);
    assert_eq!(store.summary().await.unwrap().version, 2);
}

#[tokio::test]
async fn lost_connection_is_opened_again() {
    let Some(postgres) = TestPostgres::start("-c fsync=off").map(Arc::new) else {
        return;
    };
    let store = PostgresLiveStore::connect(&postgres.new_database(), None)
        .await
        .unwrap();
    let a = join(&store, "a", LONG).await;
    write(&store, &a, with_lines(new_session("s"), [line(0, "a")])).await;
    let server = Arc::clone(&postgres);
    tokio::task::spawn_blocking(move || server.crash())
        .await
        .unwrap();
    let next = with_lines(change("s", 1), [line(1, "b")]);
    let error = store
        .write(a.clone(), vec![next.clone()])
        .await
        .unwrap_err();
    assert!(matches!(error, LiveStoreError::Unavailable(_)), "{error}");
    let server = Arc::clone(&postgres);
    tokio::task::spawn_blocking(move || server.run())
        .await
        .unwrap();
    write(&store, &a, next).await;
    assert_eq!(texts(&store, "s").await.len(), 2);
}

#[tokio::test]
async fn waiting_servers_are_notified() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    let one = PostgresLiveStore::connect(&url, None).await.unwrap();
    let two = PostgresLiveStore::connect(&url, None).await.unwrap();
    let a = join(&one, "a", LONG).await;
    // The first notifications may come before the other server listens.
    let notified = async {
        loop {
            let begun = std::time::Instant::now();
            two.sessions_released().await;
            if begun.elapsed() < Duration::from_millis(900) {
                break;
            }
        }
    };
    let notify = async {
        loop {
            one.release(Vec::new(), a.clone()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = notified => {}
        () = notify => {}
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("not notified"),
    }
}

#[tokio::test]
async fn claim_waits_for_a_renewal_that_has_begun() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    let store = PostgresLiveStore::connect(&url, None).await.unwrap();
    let lease = Duration::from_millis(500);
    let (a, b) = (
        join(&store, "a", lease).await,
        join(&store, "b", LONG).await,
    );
    write(&store, &a, new_session("s")).await;
    let no_tls = tokio_postgres::NoTls;
    let (client, connection) = tokio_postgres::connect(&url, no_tls).await.unwrap();
    tokio::spawn(connection);
    let renewal = "begin; update acp.node set lease_until = clock_timestamp() + interval '1 h'
        where id = 'a' and lease_until > clock_timestamp()";
    client.batch_execute(renewal).await.unwrap();
    tokio::time::sleep(lease).await;
    let commit = async {
        tokio::time::sleep(lease).await;
        client.batch_execute("commit").await.unwrap();
    };
    let (claimed, ()) = tokio::join!(store.claim(key("s"), b), commit);
    assert!(matches!(claimed.unwrap(), SessionClaim::Held(_)));
}

#[tokio::test]
async fn callers_that_wait_for_the_connection_give_up_in_time() {
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    let store = PostgresLiveStore::connect(&url, None).await.unwrap();
    let a = join(&store, "a", LONG).await;
    let no_tls = tokio_postgres::NoTls;
    let (client, connection) = tokio_postgres::connect(&url, no_tls).await.unwrap();
    tokio::spawn(connection);
    let lock = "begin; lock acp.node in access exclusive mode";
    client.batch_execute(lock).await.unwrap();
    let begun = std::time::Instant::now();
    let renewals = (0..4).map(|_| store.renew(a.clone(), LONG));
    for renewed in futures_util::future::join_all(renewals).await {
        assert!(matches!(renewed, Err(LiveStoreError::Unavailable(_))));
    }
    assert!(begun.elapsed() < Duration::from_secs(15));
    client.batch_execute("rollback").await.unwrap();
    store.renew(a, LONG).await.unwrap();
}

#[tokio::test]
async fn invalid_addresses_are_rejected() {
    for address in ["mysql://localhost/x", "postgres://localhost:port/x"] {
        let error = PostgresLiveStore::connect(address, None).await.unwrap_err();
        assert!(
            matches!(error, LiveStoreError::InvalidAddress(_)),
            "{error}"
        );
    }
    // A password with an `@` that is not encoded.
    let error = PostgresLiveStore::connect("postgres://user:a@b?secret=1@host/db", None).await;
    let error = error.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
    let error = PostgresLiveStore::connect("postgres://user:secret@127.0.0.1:1/db", None).await;
    let error = error.unwrap_err();
    assert!(matches!(error, LiveStoreError::Unavailable(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"));
}

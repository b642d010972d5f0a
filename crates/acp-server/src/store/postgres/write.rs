//! Writes changes of sessions in a single statement.

use std::collections::HashSet;

use acp_postgres::{PostgresConnection, to_bigint, without_nul};

use crate::store::record::MAX_ENDED_PROMPTS;
use crate::store::{
    LiveSessionChange, LiveSessionKey, LiveStoreError, LoggedLine, NodeId, PromptRecord,
    PromptState,
};

/// Adds rows for new sessions. What is in them is written by [`WRITE`].
const ADD_SESSIONS: &str = "
    insert into acp.session
        (agent, id, setup, next_line, next_prompt, token, owner, updated_at)
    select agent, id, '{}', 0, 1, token, $1, now()
    from unnest($2::text[], $3::text[], $4::bigint[]) as new (agent, id, token)
    on conflict do nothing";

/// Writes everything. The sessions that the node does not own with this token are left out: the other parts of the
/// statement join the rows that were updated. An update waits for a claim of another node, and then sees its token.
///
/// Each part sees the tables as they were before, so a merged line replaces its first line by an update.
const WRITE: &str = "
    with change as (
        select * from unnest(
            $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[],
            $7::boolean[], $8::text[], $9::text[], $10::text[], $28::text[]
        ) with ordinality
        as c (agent, id, token, next_line, next_prompt, has_head, cwd, title, setup, creator, place)
    ),
    owned as (
        update acp.session s set
            next_line = greatest(s.next_line, c.next_line),
            next_prompt = greatest(s.next_prompt, c.next_prompt),
            cwd = case when c.has_head then c.cwd else s.cwd end,
            title = case when c.has_head then c.title else s.title end,
            setup = case when c.has_head then c.setup else s.setup end,
            creator = case when c.has_head then c.creator else s.creator end,
            updated_at = clock_timestamp()
        from change c
        where s.agent = c.agent and s.id = c.id and s.token = c.token and s.owner = $1
        returning s.number as session, c.place
    ),
    merged as (
        delete from acp.line l
        using owned o, unnest($11::bigint[], $12::bigint[], $13::bigint[]) as m (place, first, until)
        where m.place = o.place and l.session = o.session
            and l.number > m.first and l.number < m.until
    ),
    added as (
        insert into acp.line as l (session, number, until, text)
        select o.session, a.number, a.until, a.text
        from unnest($14::bigint[], $15::bigint[], $16::bigint[], $17::text[])
            as a (place, number, until, text)
        join owned o on o.place = a.place
        on conflict (session, number) do update
            set until = excluded.until, text = excluded.text
            where l.until < excluded.until
    ),
    prompts as (
        insert into acp.prompt as p
            (session, number, key, sender, params, state, position, response)
        select o.session, c.number, c.key, c.sender, c.params, c.state, c.position, c.response
        from unnest(
            $18::bigint[], $19::bigint[], $20::text[], $21::text[], $22::text[],
            $23::smallint[], $24::bigint[], $25::text[]
        ) as c (place, number, key, sender, params, state, position, response)
        join owned o on o.place = c.place
        on conflict (session, number) do update
            set params = excluded.params, state = excluded.state,
                position = excluded.position, response = excluded.response
            where p.state < 2
    ),
    forgotten as (
        delete from acp.prompt p using owned o
        where o.place = any($26::bigint[]) and p.session = o.session and p.state = 2
            and p.number <= (
                select q.number from acp.prompt q
                where q.session = o.session and q.state = 2
                order by q.number desc offset $27 limit 1
            )
    )
    select place from owned";

/// The changes as columns: PostgreSQL takes an array for each.
#[derive(Default)]
struct WriteColumns {
    agents: Vec<String>,
    ids: Vec<String>,
    tokens: Vec<i64>,
    next_lines: Vec<i64>,
    next_prompts: Vec<i64>,
    has_head: Vec<bool>,
    cwds: Vec<Option<String>>,
    titles: Vec<Option<String>>,
    setups: Vec<Option<String>>,
    creators: Vec<Option<String>>,
    merged_places: Vec<i64>,
    merged_first: Vec<i64>,
    merged_until: Vec<i64>,
    line_places: Vec<i64>,
    line_numbers: Vec<i64>,
    line_until: Vec<i64>,
    lines: Vec<std::sync::Arc<str>>,
    prompt_places: Vec<i64>,
    prompts: Vec<PromptRecord>,
    trimmed_places: Vec<i64>,
}

/// Writes changes. Returns the sessions that the node does not own.
pub(super) async fn write(
    connection: &mut PostgresConnection,
    node: &NodeId,
    changes: Vec<LiveSessionChange>,
) -> Result<Vec<LiveSessionKey>, LiveStoreError> {
    // A statement changes each session once.
    let mut parts: Vec<(HashSet<LiveSessionKey>, Vec<LiveSessionChange>)> = Vec::new();
    for change in changes {
        let part = parts
            .iter_mut()
            .find(|(keys, _)| !keys.contains(&change.key));
        match part {
            // The order of changes of the same session stays.
            Some((keys, part)) => {
                keys.insert(change.key.clone());
                part.push(change);
            }
            None => parts.push((HashSet::from([change.key.clone()]), vec![change])),
        }
    }
    let has_new = parts
        .iter()
        .flat_map(|(_, part)| part)
        .any(|change| change.is_new);
    if !has_new && parts.len() == 1 {
        let (_, part) = parts.remove(0);
        return write_part(connection, node, part).await;
    }
    connection.begin().await?;
    let written = async {
        let mut lost = Vec::new();
        for (_, part) in parts {
            add_sessions(connection, node, &part).await?;
            lost.extend(write_part(connection, node, part).await?);
        }
        Ok(lost)
    };
    let written = written.await;
    connection.end(written).await
}

async fn add_sessions(
    connection: &mut PostgresConnection,
    node: &NodeId,
    changes: &[LiveSessionChange],
) -> Result<(), LiveStoreError> {
    let new = || changes.iter().filter(|change| change.is_new);
    let agents: Vec<&str> = new().map(|change| change.key.agent.as_str()).collect();
    if agents.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = new().map(|change| change.key.session.as_str()).collect();
    let tokens: Vec<i64> = new().map(|change| change.token.0).collect();
    connection
        .query(ADD_SESSIONS, &[&node.0, &agents, &ids, &tokens])
        .await?;
    Ok(())
}

async fn write_part(
    connection: &mut PostgresConnection,
    node: &NodeId,
    changes: Vec<LiveSessionChange>,
) -> Result<Vec<LiveSessionKey>, LiveStoreError> {
    let mut keys: Vec<Option<LiveSessionKey>> = Vec::with_capacity(changes.len());
    let mut columns = WriteColumns::default();
    for (place, change) in (1..).zip(changes) {
        keys.push(Some(change.key.clone()));
        columns.add(place, change);
    }
    let written = columns.write(connection, node).await?;
    for place in written {
        let index = usize::try_from(place - 1).unwrap_or(usize::MAX);
        if let Some(key) = keys.get_mut(index) {
            *key = None;
        }
    }
    Ok(keys.into_iter().flatten().collect())
}

impl WriteColumns {
    fn add(&mut self, place: i64, change: LiveSessionChange) {
        self.agents.push(change.key.agent);
        self.ids.push(change.key.session);
        self.tokens.push(change.token.0);
        self.next_lines.push(to_bigint(change.next_line));
        self.next_prompts.push(to_bigint(change.next_prompt));
        self.has_head.push(change.head.is_some());
        let head = change.head;
        let (cwd, title, setup, creator) = match head {
            Some(head) => (head.cwd, head.title, Some(head.setup), head.creator),
            None => (None, None, None, None),
        };
        self.cwds.push(cwd.as_deref().map(without_nul));
        self.titles.push(title.as_deref().map(without_nul));
        self.setups.push(setup);
        self.creators.push(creator);
        for (first, until) in change.replaced {
            self.merged_places.push(place);
            self.merged_first.push(to_bigint(first));
            self.merged_until.push(to_bigint(until));
        }
        for LoggedLine {
            number: of,
            until,
            line,
        } in change.lines
        {
            self.line_places.push(place);
            self.line_numbers.push(to_bigint(of));
            self.line_until.push(to_bigint(until));
            self.lines.push(line);
        }
        let has_ended = |prompt: &PromptRecord| prompt.state == PromptState::Ended;
        if change.prompts.iter().any(has_ended) {
            self.trimmed_places.push(place);
        }
        for mut prompt in change.prompts {
            prompt.sender = prompt.sender.as_deref().map(without_nul);
            self.prompt_places.push(place);
            self.prompts.push(prompt);
        }
    }

    /// Returns the places of the sessions that were written.
    async fn write(
        &self,
        connection: &mut PostgresConnection,
        node: &NodeId,
    ) -> Result<Vec<i64>, LiveStoreError> {
        let lines: Vec<&str> = self.lines.iter().map(|line| &**line).collect();
        let prompts = || self.prompts.iter();
        let numbers: Vec<i64> = prompts().map(|prompt| to_bigint(prompt.number)).collect();
        let keys: Vec<&str> = prompts().map(|prompt| prompt.key.as_str()).collect();
        let senders: Vec<Option<&str>> = prompts().map(|prompt| prompt.sender.as_deref()).collect();
        let params: Vec<&str> = prompts().map(|prompt| prompt.params.as_str()).collect();
        let states: Vec<i16> = prompts().map(|prompt| prompt.state.code()).collect();
        let positions: Vec<i64> = prompts().map(|prompt| to_bigint(prompt.position)).collect();
        let responses: Vec<Option<&str>> =
            prompts().map(|prompt| prompt.response.as_deref()).collect();
        let kept = to_bigint(MAX_ENDED_PROMPTS);
        let rows = connection
            .query(
                WRITE,
                &[
                    &node.0,
                    &self.agents,
                    &self.ids,
                    &self.tokens,
                    &self.next_lines,
                    &self.next_prompts,
                    &self.has_head,
                    &self.cwds,
                    &self.titles,
                    &self.setups,
                    &self.merged_places,
                    &self.merged_first,
                    &self.merged_until,
                    &self.line_places,
                    &self.line_numbers,
                    &self.line_until,
                    &lines,
                    &self.prompt_places,
                    &numbers,
                    &keys,
                    &senders,
                    &params,
                    &states,
                    &positions,
                    &responses,
                    &self.trimmed_places,
                    &kept,
                    &self.creators,
                ],
            )
            .await?;
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            places.push(row.try_get(0)?);
        }
        Ok(places)
    }
}

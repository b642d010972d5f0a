-- Version 1: the logs, prompts and owners of live sessions. Times are those of the database.

-- The servers that use this database.
create table acp.node (
    id text primary key,
    -- Where the other servers reach it.
    address text,
    -- Until then, nobody else may claim the sessions that it owns.
    lease_until timestamptz not null
);

create table acp.session (
    number bigint generated always as identity primary key,
    agent text not null,
    id text not null,
    cwd text,
    title text,
    -- The agent's modes, models and options, as JSON.
    setup text not null,
    next_line bigint not null,
    next_prompt bigint not null,
    -- The fencing token: it increases with each owner.
    token bigint not null,
    -- The node that owns the session.
    owner text,
    updated_at timestamptz not null,
    unique (agent, id)
);
create index session_by_time on acp.session (agent, updated_at, number);
create index session_by_owner on acp.session (owner) where owner is not null;

-- The logs: a message per line, as JSON. `until` is the number after the last line that is merged into this one.
create table acp.line (
    session bigint not null references acp.session on delete cascade,
    number bigint not null,
    until bigint not null,
    text text not null,
    primary key (session, number)
);

-- state: 0 waits, 1 runs, 2 has ended
create table acp.prompt (
    session bigint not null references acp.session on delete cascade,
    number bigint not null,
    key text not null,
    sender text,
    params text not null,
    state smallint not null,
    position bigint not null,
    response text,
    primary key (session, number)
);
create index open_prompt on acp.prompt (session) where state < 2;

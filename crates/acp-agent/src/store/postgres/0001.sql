-- Version 1: the sessions of the bundled agent. Times are those of the database.

create table acp_agent.session (
    number bigint generated always as identity primary key,
    -- Compared by its bytes, so that lists have the same order everywhere.
    id text collate "C" not null unique,
    -- Copies of properties that lists select by.
    cwd text not null,
    archived boolean not null,
    -- JSON, but not of the type json, which cannot contain every string.
    properties text not null,
    created_at timestamptz not null,
    -- When an entry was last added.
    updated_at timestamptz not null,
    revision bigint not null,
    next_entry bigint not null,
    folded_until bigint not null,
    -- The random number of the last change. A client that lost its connection finds out whether the change was made.
    change bigint not null
);
create index session_by_time on acp_agent.session (updated_at desc, id);

create table acp_agent.entry (
    session bigint not null references acp_agent.session on delete cascade,
    number bigint not null,
    kind smallint not null,
    -- JSON.
    body text not null,
    primary key (session, number)
);

-- Version 2: users with tokens of their own.

-- The name of the user who has created the session.
alter table acp.session add column creator text;
create index session_by_creator on acp.session (agent, creator, updated_at, number)
    where creator is not null;

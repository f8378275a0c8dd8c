-- +goose Up

-- A person in a user directory. Tenants that share a directory share sign-in.
-- roles maps a tenant's id to the names of the person's roles in it, on the
-- person's own row, so that issuing a token reads one row.
CREATE TABLE auth.users (
    id                uuid PRIMARY KEY,
    directory         text NOT NULL,
    status            text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
    phone             text,             -- E.164
    phone_verified    boolean NOT NULL DEFAULT false,
    email             text,             -- as given; compared in lower case
    email_verified    boolean NOT NULL DEFAULT false,
    username          text,
    claims            jsonb NOT NULL DEFAULT '{}', -- standard claims: name, birthdate, address ...
    roles             jsonb NOT NULL DEFAULT '{}', -- {"tenant": ["role", ...]}
    created_at        timestamptz NOT NULL,
    updated_at        timestamptz NOT NULL
);
CREATE UNIQUE INDEX users_phone ON auth.users (directory, phone) WHERE phone IS NOT NULL;
CREATE UNIQUE INDEX users_email ON auth.users (directory, lower(email)) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX users_username ON auth.users (directory, lower(username)) WHERE username IS NOT NULL;

-- A password hash in PHC format. A temporary password lives beside the
-- permanent one, and forces a change when it is used.
CREATE TABLE auth.password (
    user_id    uuid NOT NULL REFERENCES auth.users (id) ON DELETE CASCADE,
    temporary  boolean NOT NULL DEFAULT false,
    hash       text NOT NULL,
    changed_at timestamptz NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (user_id, temporary)
);

-- A browser's sign-in. The cookie names (user, session) and carries a secret
-- of which the row keeps the hash; every authentication makes a new secret.
CREATE TABLE auth.session (
    user_id     uuid NOT NULL,
    id          uuid NOT NULL,
    directory   text NOT NULL,
    secret_hash bytea NOT NULL,
    auth_time   timestamptz NOT NULL,
    acr         text NOT NULL DEFAULT '',
    amr         text[] NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,   -- absolute end
    ended_at    timestamptz,
    PRIMARY KEY (user_id, id)
) WITH (fillfactor = 80);
CREATE INDEX session_expires ON auth.session (expires_at);

-- What a person granted to a client in one authorization: the family of its
-- refresh tokens. A refresh token is (user, grant, generation, MAC); rotation
-- is one update of columns that no index holds, so that it stays heap-only.
CREATE TABLE auth.grants (
    user_id             uuid NOT NULL,
    id                  uuid NOT NULL,
    tenant_id           text NOT NULL,
    client_id           text NOT NULL,
    session_id          uuid NOT NULL,
    scope               text NOT NULL,
    auth_time           timestamptz NOT NULL,
    acr                 text NOT NULL DEFAULT '',
    amr                 text[] NOT NULL DEFAULT '{}',
    nonce               text NOT NULL DEFAULT '',
    offline             boolean NOT NULL DEFAULT false,
    generation          integer NOT NULL DEFAULT 1,
    rotated_at          timestamptz NOT NULL,  -- when generation became current
    previous_rotated_at timestamptz NOT NULL,  -- when the generation before it did
    created_at          timestamptz NOT NULL,
    expires_at          timestamptz NOT NULL,  -- absolute end
    revoked_at          timestamptz,
    PRIMARY KEY (user_id, id)
) WITH (fillfactor = 70);
CREATE INDEX grants_expires ON auth.grants (expires_at);
CREATE INDEX grants_session ON auth.grants (user_id, session_id);

-- The numbered log of what stopped being valid before it expired. Numbers may
-- commit out of order: a reader remembers the gaps. An entry goes when every
-- token that it could concern has expired.
CREATE TABLE auth.revocation (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL CHECK (kind IN ('session', 'grant', 'token', 'user')),
    subject    text NOT NULL,           -- sid, grant id, jti or user id
    at         timestamptz NOT NULL,    -- a user's tokens issued before this instant
    expires_at timestamptz NOT NULL
);
CREATE INDEX revocation_expires ON auth.revocation (expires_at);

-- +goose StatementBegin
CREATE FUNCTION auth.notify_revocation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('versola_revocation', '');
    RETURN NULL;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER notify AFTER INSERT ON auth.revocation FOR EACH STATEMENT EXECUTE FUNCTION auth.notify_revocation();

-- Back-channel logout notices that wait to be delivered.
CREATE TABLE auth.logout_notice (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL,
    client_id  text NOT NULL,
    subject    text NOT NULL,
    session_id uuid NOT NULL,
    attempts   integer NOT NULL DEFAULT 0,
    next_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX logout_notice_next ON auth.logout_notice (next_at);
CREATE INDEX logout_notice_expires ON auth.logout_notice (expires_at);

-- Ephemeral from here on: UNLOGGED tables cost no WAL, and a database crash
-- empties them; people in the middle of a sign-in start again.

CREATE UNLOGGED TABLE auth.conversation (
    handle_hash  bytea PRIMARY KEY,
    tenant_id    text NOT NULL,
    client_id    text NOT NULL,
    browser_hash bytea NOT NULL,
    request      jsonb NOT NULL,        -- the validated authorization request
    state        jsonb NOT NULL,        -- what has been identified and proven
    version      integer NOT NULL DEFAULT 1,
    finished_at  timestamptz,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX conversation_expires ON auth.conversation (expires_at);

CREATE UNLOGGED TABLE auth.authorization_code (
    code_hash      bytea PRIMARY KEY,
    tenant_id      text NOT NULL,
    client_id      text NOT NULL,
    redirect_uri   text NOT NULL,
    code_challenge text NOT NULL DEFAULT '', -- S256; empty where PKCE was not used
    user_id        uuid NOT NULL,
    session_id     uuid NOT NULL,
    scope          text NOT NULL,
    nonce          text NOT NULL DEFAULT '',
    auth_time      timestamptz NOT NULL,
    acr            text NOT NULL DEFAULT '',
    amr            text[] NOT NULL DEFAULT '{}',
    created_at     timestamptz NOT NULL,
    valid_until    timestamptz NOT NULL, -- the code's own life, at most 60 s
    used_at        timestamptz,
    grant_id       uuid,                 -- what its first use created
    expires_at     timestamptz NOT NULL  -- kept longer, to recognise a second use
) WITH (fillfactor = 70);
CREATE INDEX authorization_code_expires ON auth.authorization_code (expires_at);

CREATE UNLOGGED TABLE auth.throttle (
    key        bytea PRIMARY KEY,        -- a keyed hash of what is counted
    counts     jsonb NOT NULL,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX throttle_expires ON auth.throttle (expires_at);

-- Messages (one-time codes, notices) that wait to be sent.
CREATE UNLOGGED TABLE auth.message (
    id         uuid PRIMARY KEY,
    tenant_id  text NOT NULL,
    sealed     bytea NOT NULL,           -- channel, address, template, values
    attempts   integer NOT NULL DEFAULT 0,
    next_at    timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX message_next ON auth.message (next_at);
CREATE INDEX message_expires ON auth.message (expires_at);

-- +goose Down
DROP TABLE auth.message, auth.throttle, auth.authorization_code, auth.conversation, auth.logout_notice,
    auth.revocation, auth.grants, auth.session, auth.password, auth.users;
DROP FUNCTION auth.notify_revocation();

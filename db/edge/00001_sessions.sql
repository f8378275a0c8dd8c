-- +goose Up

-- A browser's session at this edge. The cookie is 256 random bits; the row
-- keeps their hash, and the tokens sealed.
CREATE TABLE edge.session (
    id_hash           bytea PRIMARY KEY,
    tenant_id         text NOT NULL,
    preset_id         text NOT NULL,
    subject           text NOT NULL,
    sid               text NOT NULL,         -- the session at auth
    sealed            bytea NOT NULL,        -- access, refresh and ID token
    access_expires_at timestamptz NOT NULL,
    version           integer NOT NULL DEFAULT 1,
    lease_until       timestamptz NOT NULL DEFAULT '-infinity', -- one process refreshes at a time
    created_at        timestamptz NOT NULL,
    expires_at        timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX session_sid ON edge.session (tenant_id, sid);
CREATE INDEX session_subject ON edge.session (tenant_id, subject);
CREATE INDEX session_expires ON edge.session (expires_at);

-- A login that was started and not yet completed, bound to its browser.
CREATE UNLOGGED TABLE edge.login (
    state_hash   bytea PRIMARY KEY,
    browser_hash bytea NOT NULL,
    tenant_id    text NOT NULL,
    preset_id    text NOT NULL,
    sealed       bytea NOT NULL,             -- nonce, PKCE verifier, where to go after
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL
);
CREATE INDEX login_expires ON edge.login (expires_at);

-- Logout tokens that were seen: each works once.
CREATE UNLOGGED TABLE edge.logout_token (
    issuer     text NOT NULL,
    jti        text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (issuer, jti)
);
CREATE INDEX logout_token_expires ON edge.logout_token (expires_at);

-- +goose Down
DROP TABLE edge.logout_token, edge.login, edge.session;

-- +goose Up

-- One-time links by which a person sets a new password. The row keeps the
-- token's hash; a link ends when it is used, when a newer one is made, when the
-- password changes otherwise, and with time. Rows stay longer than links work,
-- to limit how many are sent.
CREATE TABLE auth.password_reset (
    token_hash  bytea PRIMARY KEY,
    user_id     uuid NOT NULL REFERENCES auth.users (id) ON DELETE CASCADE,
    tenant_id   text NOT NULL,          -- at whose address the link is
    sent        boolean NOT NULL,       -- to the person, and not shown to who made it
    created_at  timestamptz NOT NULL,
    valid_until timestamptz NOT NULL,
    ended_at    timestamptz,            -- used, or replaced
    used        boolean NOT NULL DEFAULT false,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX password_reset_user ON auth.password_reset (user_id, created_at);
CREATE INDEX password_reset_expires ON auth.password_reset (expires_at);

-- +goose Down
DROP TABLE auth.password_reset;

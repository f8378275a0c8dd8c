-- +goose Up

-- What tokens are bound to, as thumbprints: the key that an authorization
-- request named (dpop_jkt, RFC 9449 section 10), and what the refresh tokens of
-- a public client stay with (RFC 9449 section 5, RFC 8705 section 4). Empty:
-- nothing. Rotation reads them, and no index holds them.
ALTER TABLE auth.authorization_code ADD COLUMN dpop_jkt text NOT NULL DEFAULT '';
ALTER TABLE auth.grants
    ADD COLUMN dpop_jkt text NOT NULL DEFAULT '',
    ADD COLUMN certificate text NOT NULL DEFAULT '';

-- What was used and may not be used again, by hash (package replay). Both
-- tables are emptied together by a crash; the epoch's row then begins anew.
CREATE UNLOGGED TABLE auth.replay (
    key        bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX replay_expires ON auth.replay (expires_at);
CREATE UNLOGGED TABLE auth.replay_epoch (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    began_at timestamptz NOT NULL
);
INSERT INTO auth.replay_epoch (began_at) VALUES ('epoch'); -- nothing was used before

-- +goose Down
DROP TABLE auth.replay_epoch, auth.replay;
ALTER TABLE auth.authorization_code DROP COLUMN dpop_jkt;
ALTER TABLE auth.grants DROP COLUMN dpop_jkt, DROP COLUMN certificate;

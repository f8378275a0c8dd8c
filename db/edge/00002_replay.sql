-- +goose Up

-- What was used and may not be used again, by hash (package replay). Both
-- tables are emptied together by a crash; the epoch's row then begins anew.
CREATE UNLOGGED TABLE edge.replay (
    key        bytea PRIMARY KEY,
    expires_at timestamptz NOT NULL
);
CREATE INDEX replay_expires ON edge.replay (expires_at);
CREATE UNLOGGED TABLE edge.replay_epoch (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    began_at timestamptz NOT NULL
);
INSERT INTO edge.replay_epoch (began_at) VALUES ('epoch'); -- nothing was used before

-- +goose Down
DROP TABLE edge.replay_epoch, edge.replay;

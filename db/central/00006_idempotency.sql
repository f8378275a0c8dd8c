-- +goose Up

-- Requests to the administration API that have an Idempotency-Key, so that one
-- that is sent again is not done again. They may be lost in a crash: whoever
-- repeats a request then is told that the entity exists.
CREATE UNLOGGED TABLE central.idempotency (
    key         bytea PRIMARY KEY, -- hash of the caller and their key
    fingerprint bytea NOT NULL,    -- hash of the request
    answer      bytea,             -- sealed; NULL while the request is worked on
    claimed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX idempotency_expires ON central.idempotency (expires_at);

-- +goose Down
DROP TABLE central.idempotency;

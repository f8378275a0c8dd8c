-- +goose Up

-- Authorization requests that clients pushed (RFC 9126), by the hash of the
-- handle in their request_uri. A row is there as long as its request can be
-- answered: valid_until bounds when a sign-in may begin with it, and a sign-in
-- that has begun keeps it beyond that. Answering deletes it. Unlogged, like the
-- conversations that come of it.
CREATE UNLOGGED TABLE auth.pushed_request (
    handle_hash bytea PRIMARY KEY,
    tenant_id   text NOT NULL,
    client_id   text NOT NULL,
    request     jsonb NOT NULL,         -- the validated authorization request
    valid_until timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL
);
CREATE INDEX pushed_request_expires ON auth.pushed_request (expires_at);

-- +goose Down
DROP TABLE auth.pushed_request;

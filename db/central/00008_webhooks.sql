-- +goose Up

-- The secrets that sign a webhook's deliveries, sealed with the configured
-- encryption key; the newest first in the header, an older one until it is
-- dropped.
CREATE TABLE central.webhook_secret (
    tenant_id  text NOT NULL,
    webhook_id text NOT NULL,
    id         uuid NOT NULL,
    sealed     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, webhook_id, id),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES central.webhook (tenant_id, id) ON DELETE CASCADE
);

-- Up to which entry of the audit log deliveries have been made. What happened
-- before webhooks is told to nobody.
CREATE TABLE central.webhook_cursor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq bigint NOT NULL
);
INSERT INTO central.webhook_cursor (seq) SELECT seq FROM central.audit_head;

-- The queue: what is to be told to whom, and what became of it.
CREATE TABLE central.webhook_delivery (
    id            uuid PRIMARY KEY, -- ordered by time
    tenant_id     text NOT NULL,
    webhook_id    text NOT NULL,
    event         text NOT NULL,
    seq           bigint,           -- of the audit log; NULL for a ping
    body          text NOT NULL,    -- as it is sent and signed
    state         text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts      integer NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL,
    next_at       timestamptz NOT NULL,
    claimed_until timestamptz,      -- by a process that is delivering it
    last_at       timestamptz,      -- of the last attempt
    status        integer,          -- the last answer's HTTP status
    error         text,             -- why the last attempt failed
    expires_at    timestamptz NOT NULL, -- when it is forgotten
    UNIQUE (tenant_id, webhook_id, seq),
    FOREIGN KEY (tenant_id, webhook_id) REFERENCES central.webhook (tenant_id, id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX webhook_delivery_due ON central.webhook_delivery (next_at) WHERE state = 'pending';
CREATE INDEX webhook_delivery_of ON central.webhook_delivery (tenant_id, webhook_id, id);
CREATE INDEX webhook_delivery_expires ON central.webhook_delivery (expires_at);

-- +goose Down
DROP TABLE central.webhook_delivery, central.webhook_cursor, central.webhook_secret;

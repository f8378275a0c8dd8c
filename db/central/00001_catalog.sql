-- +goose Up

-- One row: every change of configuration moves the revision, in the same
-- transaction, so that revisions rise in the order of the commits (the row's
-- lock makes writers of configuration queue).
CREATE TABLE central.revision (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    revision bigint NOT NULL
);
INSERT INTO central.revision (revision) VALUES (1);

-- An entity is its key and a document ("spec"); the program validates the
-- document strictly before it is written and reads it strictly back.
CREATE TABLE central.edge (
    id         text PRIMARY KEY,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE central.tenant (
    id         text PRIMARY KEY,
    edge_id    text REFERENCES central.edge (id),
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE central.scope (
    tenant_id  text NOT NULL REFERENCES central.tenant (id),
    id         text NOT NULL,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE central.resource (
    tenant_id  text NOT NULL REFERENCES central.tenant (id),
    id         text NOT NULL,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE central.permission (
    tenant_id  text NOT NULL REFERENCES central.tenant (id),
    id         text NOT NULL,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE central.role (
    tenant_id  text NOT NULL REFERENCES central.tenant (id),
    id         text NOT NULL,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE central.client (
    tenant_id  text NOT NULL REFERENCES central.tenant (id),
    id         text NOT NULL,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- A client's secrets, sealed with the configured encryption key. The newest is
-- current; an older one stays valid until it is dropped.
CREATE TABLE central.client_secret (
    tenant_id  text NOT NULL,
    client_id  text NOT NULL,
    id         uuid NOT NULL,
    sealed     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, client_id, id),
    FOREIGN KEY (tenant_id, client_id) REFERENCES central.client (tenant_id, id) ON DELETE CASCADE
);

-- Login presets of an edge; a preset's name is one path segment of that edge.
CREATE TABLE central.preset (
    tenant_id  text NOT NULL REFERENCES central.tenant (id),
    id         text NOT NULL,
    edge_id    text NOT NULL REFERENCES central.edge (id),
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (edge_id, id)
);

-- Signing keys of the deployment. The private part is sealed.
CREATE TABLE central.signing_key (
    id         text PRIMARY KEY,
    alg        text NOT NULL,
    state      text NOT NULL CHECK (state IN ('next', 'active', 'retiring')),
    public_jwk jsonb NOT NULL,
    sealed     bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
-- Every process agrees which key is active: there is one per algorithm.
CREATE UNIQUE INDEX signing_key_active ON central.signing_key (alg) WHERE state = 'active';

-- What was seeded, so that seeding happens once and a restart never touches an
-- operator's edits.
CREATE TABLE central.seed (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL
);

-- +goose StatementBegin
CREATE FUNCTION central.bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Once per transaction is enough, and keeps a large import cheap.
    IF current_setting('versola.bumped', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE central.revision SET revision = revision + 1;
        PERFORM set_config('versola.bumped', pg_current_xact_id()::text, true);
        PERFORM pg_notify('versola_catalog', (SELECT revision::text FROM central.revision));
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['edge', 'tenant', 'scope', 'resource', 'permission', 'role', 'client', 'client_secret', 'preset', 'signing_key'] LOOP
        EXECUTE format('CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE ON central.%I FOR EACH STATEMENT EXECUTE FUNCTION central.bump()', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE central.seed, central.signing_key, central.preset, central.client_secret, central.client, central.role,
    central.permission, central.resource, central.scope, central.tenant, central.edge, central.revision;
DROP FUNCTION central.bump();

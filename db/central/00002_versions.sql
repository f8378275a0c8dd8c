-- +goose Up

-- An entity's version is the revision that it was last changed by, so that a
-- version never comes back, also not after a deletion, and what is newer than
-- a known revision can be asked for.
-- +goose StatementBegin
CREATE FUNCTION central.touch() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r bigint;
BEGIN
    -- Once per transaction is enough, and keeps a large import cheap.
    IF current_setting('versola.bumped', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE central.revision SET revision = revision + 1;
        PERFORM set_config('versola.bumped', pg_current_xact_id()::text, true);
        PERFORM pg_notify('versola_catalog', (SELECT revision::text FROM central.revision));
    END IF;
    SELECT revision INTO r FROM central.revision;
    RETURN r;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION central.bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM central.touch();
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- What a document says of an edge is what the row refers to.
ALTER TABLE central.tenant DROP COLUMN edge_id;
ALTER TABLE central.tenant ADD COLUMN edge_id text GENERATED ALWAYS AS (NULLIF(spec ->> 'edge', '')) STORED REFERENCES central.edge (id);
ALTER TABLE central.preset DROP COLUMN edge_id;
ALTER TABLE central.preset ADD COLUMN edge_id text GENERATED ALWAYS AS (spec ->> 'edge') STORED REFERENCES central.edge (id);
ALTER TABLE central.preset ALTER COLUMN edge_id SET NOT NULL, ADD UNIQUE (edge_id, id);

-- The kind of a client has one name in documents and in the admin API.
-- +goose StatementBegin
DO $$
BEGIN
    -- A statement that changes no row would count as a revision too.
    IF EXISTS (SELECT FROM central.client WHERE spec ? 'kind') THEN
        UPDATE central.client SET spec = (spec - 'kind') || jsonb_build_object('client_kind', spec -> 'kind') WHERE spec ? 'kind';
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose Down
UPDATE central.client SET spec = (spec - 'client_kind') || jsonb_build_object('kind', spec -> 'client_kind') WHERE spec ? 'client_kind';
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION central.bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('versola.bumped', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE central.revision SET revision = revision + 1;
        PERFORM set_config('versola.bumped', pg_current_xact_id()::text, true);
        PERFORM pg_notify('versola_catalog', (SELECT revision::text FROM central.revision));
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd
DROP FUNCTION central.touch();

-- +goose Up

-- What each of the last thousand revisions changed, so that a process that
-- knows one of them reads only what is newer.
--
-- A revision's number does not name it alone: a database that is restored from
-- a backup counts up to the same numbers again, with other contents. Its token
-- does.
ALTER TABLE central.revision ADD COLUMN token uuid NOT NULL DEFAULT gen_random_uuid();
CREATE TABLE central.history (
    revision bigint PRIMARY KEY,
    token    uuid NOT NULL
);
INSERT INTO central.history SELECT revision, token FROM central.revision;

-- The entities that a revision created, changed or deleted. The kind '*' stands
-- for any of all, "signing_key" for the keys; of a client its secrets are part.
CREATE TABLE central.change (
    revision  bigint NOT NULL,
    kind      text NOT NULL,
    tenant_id text NOT NULL,
    id        text NOT NULL,
    PRIMARY KEY (revision, kind, tenant_id, id)
);

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION central.touch() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r bigint;
DECLARE k uuid;
BEGIN
    -- Once per transaction is enough, and keeps a large import cheap.
    IF current_setting('versola.bumped', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        UPDATE central.revision SET revision = revision + 1, token = gen_random_uuid() RETURNING revision, token INTO r, k;
        INSERT INTO central.history (revision, token) VALUES (r, k);
        DELETE FROM central.history WHERE revision <= r - 1000;
        DELETE FROM central.change WHERE revision <= r - 1000;
        PERFORM set_config('versola.bumped', pg_current_xact_id()::text, true);
        PERFORM pg_notify('versola_catalog', r::text);
        RETURN r;
    END IF;
    SELECT revision INTO r FROM central.revision;
    RETURN r;
END
$$;
-- +goose StatementEnd

-- For a table that does not say what changed, and for TRUNCATE, which cannot.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION central.bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO central.change (revision, kind, tenant_id, id) VALUES (central.touch(), '*', '', '') ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- The arguments: the kind, and the columns of the entity's key. A statement
-- that changed no row is no revision.
-- +goose StatementBegin
CREATE FUNCTION central.note() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE source text := format('SELECT %s AS tenant_id, %s AS id FROM changed', TG_ARGV[1], TG_ARGV[2]);
DECLARE found_any boolean;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        source := source || format(' UNION SELECT %s, %s FROM was', TG_ARGV[1], TG_ARGV[2]);
    END IF;
    EXECUTE format('SELECT EXISTS (%s)', source) INTO found_any;
    IF found_any THEN
        EXECUTE format('INSERT INTO central.change (revision, kind, tenant_id, id) SELECT $1, $2, k.tenant_id, k.id FROM (%s) k ON CONFLICT DO NOTHING', source)
            USING central.touch(), TG_ARGV[0];
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

-- Makes a table's changes known; it replaces a trigger "bump".
-- +goose StatementBegin
CREATE FUNCTION central.follow(name text, kind text, tenant_column text, id_column text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE does text := format('FOR EACH STATEMENT EXECUTE FUNCTION central.note(%L, %L, %L)', kind, tenant_column, id_column);
BEGIN
    EXECUTE format('DROP TRIGGER IF EXISTS bump ON central.%I', name);
    EXECUTE format('CREATE TRIGGER note_insert AFTER INSERT ON central.%I REFERENCING NEW TABLE AS changed %s', name, does);
    EXECUTE format('CREATE TRIGGER note_update AFTER UPDATE ON central.%I REFERENCING NEW TABLE AS changed OLD TABLE AS was %s', name, does);
    EXECUTE format('CREATE TRIGGER note_delete AFTER DELETE ON central.%I REFERENCING OLD TABLE AS changed %s', name, does);
    EXECUTE format('CREATE TRIGGER note_truncate AFTER TRUNCATE ON central.%I FOR EACH STATEMENT EXECUTE FUNCTION central.bump()', name);
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['edge', 'directory', 'tenant', 'signing_key'] LOOP
        PERFORM central.follow(t, t, '''''', 'id');
    END LOOP;
    FOREACH t IN ARRAY ARRAY['theme', 'texts', 'template', 'webhook', 'claim', 'authorization_detail_type', 'scope', 'resource', 'permission', 'role', 'client', 'preset'] LOOP
        PERFORM central.follow(t, t, 'tenant_id', 'id');
    END LOOP;
    PERFORM central.follow('client_secret', 'client', 'tenant_id', 'client_id');
END
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['edge', 'directory', 'tenant', 'signing_key', 'theme', 'texts', 'template', 'webhook', 'claim', 'authorization_detail_type', 'scope', 'resource', 'permission', 'role', 'client', 'preset', 'client_secret'] LOOP
        EXECUTE format('DROP TRIGGER note_insert ON central.%I', t);
        EXECUTE format('DROP TRIGGER note_update ON central.%I', t);
        EXECUTE format('DROP TRIGGER note_delete ON central.%I', t);
        EXECUTE format('DROP TRIGGER note_truncate ON central.%I', t);
        EXECUTE format('CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE ON central.%I FOR EACH STATEMENT EXECUTE FUNCTION central.bump()', t);
    END LOOP;
END
$$;
-- +goose StatementEnd
DROP FUNCTION central.follow(text, text, text, text);
DROP FUNCTION central.note();
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION central.bump() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM central.touch();
    RETURN NULL;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION central.touch() RETURNS bigint LANGUAGE plpgsql AS $$
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
DROP TABLE central.change, central.history;
ALTER TABLE central.revision DROP COLUMN token;

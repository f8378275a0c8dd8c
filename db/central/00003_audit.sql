-- +goose Up

-- The audit log: a chain in which each entry's hash covers the entry before it.
-- An entry is its body, kept byte for byte (type json, not jsonb), since the
-- hash is over those bytes; what is searched by is generated from the body and
-- so cannot say anything else than it.
CREATE TABLE central.audit_entry (
    seq         bigint PRIMARY KEY CHECK (seq > 0),
    hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
    body        json NOT NULL,
    at          timestamptz NOT NULL, -- the body's, compared at verification
    action      text NOT NULL GENERATED ALWAYS AS (body->>'action') STORED,
    tenant_id   text GENERATED ALWAYS AS (body->>'tenant') STORED,
    user_id     text GENERATED ALWAYS AS (body->>'user') STORED,
    actor_id    text GENERATED ALWAYS AS (body->'actor'->>'id') STORED,
    object_kind text GENERATED ALWAYS AS (body->'object'->>'kind') STORED,
    object_id   text GENERATED ALWAYS AS (body->'object'->>'id') STORED
);
CREATE INDEX audit_entry_at ON central.audit_entry (at);
CREATE INDEX audit_entry_action ON central.audit_entry (action text_pattern_ops, seq);
CREATE INDEX audit_entry_tenant ON central.audit_entry (tenant_id, seq) WHERE tenant_id IS NOT NULL;
CREATE INDEX audit_entry_user ON central.audit_entry (user_id, seq) WHERE user_id IS NOT NULL;
CREATE INDEX audit_entry_actor ON central.audit_entry (actor_id, seq) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_entry_object ON central.audit_entry (object_kind, object_id, seq) WHERE object_kind IS NOT NULL;

-- One row: where the chain ends, and where it begins since retention removed
-- what was before. The mac is made with a key that is not in the database.
-- Its lock is what makes appenders queue, for the length of one insert.
CREATE TABLE central.audit_head (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    seq       bigint NOT NULL,
    hash      bytea NOT NULL CHECK (octet_length(hash) = 32),
    base_seq  bigint NOT NULL,
    base_hash bytea NOT NULL CHECK (octet_length(base_hash) = 32),
    mac       bytea NOT NULL -- empty only before the first entry
);
INSERT INTO central.audit_head (seq, hash, base_seq, base_hash, mac)
VALUES (0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'), '');

-- +goose StatementBegin
CREATE FUNCTION central.audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Retention says which entry it removes up to, for its transaction alone.
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'audit_entry' THEN
        IF OLD.seq <= COALESCE(NULLIF(current_setting('versola.audit_retain', true), ''), '0')::bigint THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION 'central.% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON central.audit_entry FOR EACH ROW EXECUTE FUNCTION central.audit_append_only();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON central.audit_entry FOR EACH STATEMENT EXECUTE FUNCTION central.audit_append_only();
CREATE TRIGGER append_only BEFORE DELETE ON central.audit_head FOR EACH ROW EXECUTE FUNCTION central.audit_append_only();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON central.audit_head FOR EACH STATEMENT EXECUTE FUNCTION central.audit_append_only();

-- The head only moves forward.
-- +goose StatementBegin
CREATE FUNCTION central.audit_head_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.seq < OLD.seq OR NEW.base_seq < OLD.base_seq OR NEW.base_seq > NEW.seq THEN
        RAISE EXCEPTION 'the head of the audit log moves forward only' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER forward BEFORE UPDATE ON central.audit_head FOR EACH ROW EXECUTE FUNCTION central.audit_head_forward();

-- +goose Down
DROP TABLE central.audit_entry, central.audit_head;
DROP FUNCTION central.audit_append_only();
DROP FUNCTION central.audit_head_forward();

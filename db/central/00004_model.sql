-- +goose Up

CREATE TABLE central.directory (
    id         text PRIMARY KEY,
    spec       jsonb NOT NULL,
    version    bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE ON central.directory FOR EACH STATEMENT EXECUTE FUNCTION central.bump();

-- +goose StatementBegin
DO $$
DECLARE t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['claim', 'authorization_detail_type', 'theme', 'texts', 'template', 'webhook'] LOOP
        EXECUTE format('CREATE TABLE central.%I (
            tenant_id  text NOT NULL REFERENCES central.tenant (id),
            id         text NOT NULL,
            spec       jsonb NOT NULL,
            version    bigint NOT NULL DEFAULT 1,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL,
            PRIMARY KEY (tenant_id, id)
        )', t);
        EXECUTE format('CREATE TRIGGER bump AFTER INSERT OR UPDATE OR DELETE ON central.%I FOR EACH STATEMENT EXECUTE FUNCTION central.bump()', t);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE central.webhook, central.template, central.texts, central.theme, central.authorization_detail_type, central.claim, central.directory;

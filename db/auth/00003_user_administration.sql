-- +goose Up

-- What administration of people needs: an id of the system that they came from,
-- a version that changes with every write, and an index for each way to look.
ALTER TABLE auth.users
    ADD COLUMN external_id text,
    ADD COLUMN version bigint NOT NULL DEFAULT 1;

-- +goose StatementBegin
CREATE FUNCTION auth.next_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := OLD.version + 1;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER next_version BEFORE UPDATE ON auth.users FOR EACH ROW EXECUTE FUNCTION auth.next_version();

-- The same uniqueness as before, in byte order: it serves equality and prefixes
-- whatever the database's collation.
DROP INDEX auth.users_phone, auth.users_email, auth.users_username;
CREATE UNIQUE INDEX users_phone ON auth.users (directory, phone text_pattern_ops) WHERE phone IS NOT NULL;
CREATE UNIQUE INDEX users_email ON auth.users (directory, lower(email) text_pattern_ops) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX users_username ON auth.users (directory, lower(username) text_pattern_ops) WHERE username IS NOT NULL;
CREATE UNIQUE INDEX users_external_id ON auth.users (directory, external_id text_pattern_ops) WHERE external_id IS NOT NULL;

CREATE INDEX users_name ON auth.users (directory, lower(claims ->> 'name') text_pattern_ops, id) WHERE claims ->> 'name' IS NOT NULL;
CREATE INDEX users_created ON auth.users (directory, created_at DESC, id DESC);
CREATE INDEX users_disabled ON auth.users (directory, created_at DESC, id DESC) WHERE status = 'disabled';
CREATE INDEX users_roles ON auth.users USING gin (roles jsonb_path_ops);

-- +goose Down
DROP INDEX auth.users_name, auth.users_created, auth.users_disabled, auth.users_roles, auth.users_phone, auth.users_email, auth.users_username;
CREATE UNIQUE INDEX users_phone ON auth.users (directory, phone) WHERE phone IS NOT NULL;
CREATE UNIQUE INDEX users_email ON auth.users (directory, lower(email)) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX users_username ON auth.users (directory, lower(username)) WHERE username IS NOT NULL;
DROP TRIGGER next_version ON auth.users;
DROP FUNCTION auth.next_version();
ALTER TABLE auth.users DROP COLUMN external_id, DROP COLUMN version;

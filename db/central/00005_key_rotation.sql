-- +goose Up

-- When a key's next step is due: of a "next" key when it begins to sign, of a
-- "retiring" one when nothing that it signed is valid any more. An active key
-- has been so since active_since.
ALTER TABLE central.signing_key ADD COLUMN due_at timestamptz, ADD COLUMN active_since timestamptz;
UPDATE central.signing_key SET active_since = created_at WHERE state = 'active';
-- One rotation of an algorithm at a time.
CREATE UNIQUE INDEX signing_key_next ON central.signing_key (alg) WHERE state = 'next';

-- +goose Down
DROP INDEX central.signing_key_next;
ALTER TABLE central.signing_key DROP COLUMN due_at, DROP COLUMN active_since;

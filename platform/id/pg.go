package id

import (
	"errors"

	"github.com/jackc/pgx/v5/pgtype"
)

// UUIDValue implements pgtype.UUIDValuer; [Nil] is written as NULL.
func (u UUID) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: u, Valid: !u.IsNil()}, nil
}

// ScanUUID implements pgtype.UUIDScanner; NULL is read as [Nil].
func (u *UUID) ScanUUID(v pgtype.UUID) error {
	if u == nil {
		return errors.New("scan uuid into nil")
	}
	*u = v.Bytes
	return nil
}

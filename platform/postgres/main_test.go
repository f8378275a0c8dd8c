package postgres_test

import (
	"os"
	"testing"

	"versola/platform/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

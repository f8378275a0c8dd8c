package db

import (
	"embed"
	"io/fs"

	"versola/platform/postgres"
)

//go:embed auth/*.sql central/*.sql edge/*.sql
var files embed.FS

// Auth is the history of schema "auth".
func Auth() postgres.Migrations { return history("auth") }

// Central is the history of schema "central".
func Central() postgres.Migrations { return history("central") }

// Edge is the history of schema "edge".
func Edge() postgres.Migrations { return history("edge") }

func history(schema string) postgres.Migrations {
	sub, err := fs.Sub(files, schema)
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return postgres.Migrations{Schema: schema, Files: sub}
}

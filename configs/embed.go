package configs

import (
	"embed"
	"io/fs"
)

//go:embed demo/*.yaml system/*.yaml
var files embed.FS

// Demo returns the documents of the demo tenant.
func Demo() fs.FS { return sub("demo") }

// System returns the documents of the system tenant. Those in edge.yaml are
// for deployments whose edge is known at the first start.
func System() fs.FS { return sub("system") }

func sub(name string) fs.FS {
	f, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return f
}

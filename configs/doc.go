// Package configs holds the documents that a first start loads: the built-in
// system tenant and the demo tenant. They are ordinary documents, read by the
// code that reads an operator's. The annotated example configurations of the
// process itself stand beside them.
package configs
